DELETE FROM tidings.job_key
USING unnest(
        $1::text[], $2::text[], $3::bytea[], $4::uuid[]
    ) AS old (tenant, scope, key_hash, job_id)
WHERE job_key.tenant = old.tenant AND job_key.scope = old.scope AND job_key.key_hash = old.key_hash
    AND job_key.job_id = old.job_id
