-- An event that failed, was set aside, or was put back: only from the state and failures that were read.
UPDATE tidings.event
SET state = $4, due_at_ms = $5, failures = $6, settled_at_ms = $7, reason = $8
WHERE id = $1 AND state = $2 AND failures = $3
