INSERT INTO tidings.fact (job_id, version, at_ms, name, body)
VALUES ($1, $2, $3, $4, $5)
