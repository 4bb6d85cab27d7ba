-- When the next job of one rank of a queue that is not due yet will be. What is due and was not taken is
-- left to the poll.
SELECT due_at_ms
FROM tidings_job
WHERE queue = ?1 AND due_rank = ?2 AND due_at_ms > ?3
ORDER BY due_at_ms, id
LIMIT 1
