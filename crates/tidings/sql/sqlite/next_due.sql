-- When the next waiting job of one rank of a queue is due.
SELECT due_at_ms
FROM tidings_job
WHERE queue = ?1 AND due_rank = ?2 AND due_at_ms IS NOT NULL
ORDER BY due_at_ms, id
LIMIT 1
