-- The claim alone: what a worker takes. No fact; the claim stands on the row.
UPDATE tidings_job
SET version = ?4, state = 'running', due_at_ms = ?5, due_rank = 0, worker = ?1, started_at_ms = ?2,
    came_from = ?6, on_unknown = ?7, claims = ?8
WHERE id = ?3
