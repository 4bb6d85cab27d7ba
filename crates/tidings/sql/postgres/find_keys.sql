SELECT held.tenant, held.scope, held.key_hash, held.job_id, held.fingerprint
FROM tidings.job_key AS held
JOIN unnest(
        $1::text[], $2::text[], $3::bytea[]
    ) AS wanted (tenant, scope, key_hash)
USING (tenant, scope, key_hash)
