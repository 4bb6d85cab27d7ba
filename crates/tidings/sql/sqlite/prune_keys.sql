DELETE FROM tidings_job_key
WHERE (tenant, scope, key_hash) IN (
    SELECT tenant, scope, key_hash FROM tidings_job_key WHERE expires_at_ms < ?1 LIMIT ?2
)
