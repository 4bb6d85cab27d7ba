DELETE FROM tidings.finished_job
WHERE id = $1 AND version = $2
