SELECT id, source, subject, reason, opened_at_ms, seen_at_ms, times, closed_at_ms
FROM tidings.incident
WHERE closed_at_ms IS NULL OR $1
ORDER BY opened_at_ms DESC, id DESC
LIMIT $2
