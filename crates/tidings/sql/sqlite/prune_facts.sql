DELETE FROM tidings_fact
WHERE (job_id, version) IN (SELECT job_id, version FROM tidings_fact WHERE at_ms < ?1 LIMIT ?2)
