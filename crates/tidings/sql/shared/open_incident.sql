-- One a subject: the same again is counted.
INSERT INTO tidings.incident (id, source, subject, reason, opened_at_ms, seen_at_ms, times)
VALUES ($1, $2, $3, $4, $5, $5, 1)
ON CONFLICT (source, subject) WHERE closed_at_ms IS NULL DO UPDATE
SET reason = excluded.reason, seen_at_ms = excluded.seen_at_ms, times = tidings.incident.times + 1
