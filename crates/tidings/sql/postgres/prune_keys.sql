WITH old AS (
    SELECT tenant, scope, key_hash FROM tidings.job_key
    WHERE expires_at_ms < $1
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
DELETE FROM tidings.job_key USING old
WHERE job_key.tenant = old.tenant AND job_key.scope = old.scope AND job_key.key_hash = old.key_hash
