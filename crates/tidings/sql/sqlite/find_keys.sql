SELECT tenant, scope, key_hash, job_id, fingerprint
FROM tidings_job_key
WHERE tenant = ?1 AND scope = ?2 AND key_hash = ?3
