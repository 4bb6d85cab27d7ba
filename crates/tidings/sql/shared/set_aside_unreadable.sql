-- A row that waits and does not read as an event. What it says is left for whoever looks; its failures start anew.
UPDATE tidings.event
SET state = 'poisoned', due_at_ms = NULL, failures = 0, settled_at_ms = $2, reason = $3
WHERE id = $1 AND state = 'waiting'
