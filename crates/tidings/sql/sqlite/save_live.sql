-- A live job stays live: compare the version, write the row.
UPDATE tidings_job
SET version = ?3, state = ?4, due_at_ms = ?5, due_rank = ?6, worker = ?7, started_at_ms = ?8,
    came_from = ?9, on_unknown = ?10, cancel_requested = ?11, accepted_late = ?12, claims = ?13,
    attempts = ?14, snoozes = ?15, crashes = ?16
WHERE id = ?1 AND version = ?2
