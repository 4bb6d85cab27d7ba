UPDATE tidings_event
SET state = 'fanned_out', due_at_ms = NULL, settled_at_ms = ?2, became = ?3
WHERE id = ?1 AND state = 'waiting'
