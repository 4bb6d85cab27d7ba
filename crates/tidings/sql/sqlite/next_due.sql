-- When the next waiting job of one rank of a queue comes due. What is due already and was not
-- taken (paused, or of an unknown kind) is no reason to look again at once.
SELECT due_at_ms
FROM tidings_job
WHERE queue = ?1 AND due_rank = ?2 AND due_at_ms > ?3
ORDER BY due_at_ms, id
LIMIT 1
