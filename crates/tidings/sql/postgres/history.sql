SELECT job_id, version, at_ms, body
FROM tidings.fact
WHERE job_id = ANY ($1)
ORDER BY job_id, version
