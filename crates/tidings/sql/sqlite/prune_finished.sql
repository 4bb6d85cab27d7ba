DELETE FROM tidings_finished_job
WHERE id IN (
    SELECT id FROM tidings_finished_job WHERE state = ?1 AND finished_at_ms < ?2 ORDER BY finished_at_ms LIMIT ?3
)
RETURNING id
