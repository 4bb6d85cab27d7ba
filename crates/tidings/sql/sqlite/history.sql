SELECT job_id, version, at_ms, body
FROM tidings_fact
WHERE job_id = ?1
ORDER BY version
