-- Whoever inserts a key has it. In key order, so that two batches cannot wait for each other.
INSERT INTO tidings.job_key (tenant, scope, key_hash, job_id, fingerprint, expires_at_ms)
SELECT * FROM unnest(
        $1::text[], $2::text[], $3::bytea[], $4::uuid[], $5::bytea[], $6::bigint[]
    ) AS new (tenant, scope, key_hash, job_id, fingerprint, expires_at_ms)
ON CONFLICT DO NOTHING
RETURNING job_id
