DELETE FROM tidings_job_key
WHERE tenant = ?1 AND scope = ?2 AND key_hash = ?3 AND job_id = ?4
