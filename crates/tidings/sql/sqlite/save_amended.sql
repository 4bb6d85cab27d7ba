-- A finished job stays finished: a late report was added, or it settled the job.
UPDATE tidings_finished_job
SET version = ?3, state = ?4, finished_at_ms = ?5, claims = ?6, attempts = ?7, snoozes = ?8,
    crashes = ?9
WHERE id = ?1 AND version = ?2
