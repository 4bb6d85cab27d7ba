UPDATE tidings.incident
SET closed_at_ms = $3
WHERE source = $1 AND subject = $2 AND closed_at_ms IS NULL
