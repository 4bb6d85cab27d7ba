-- Whoever inserts a key has it.
INSERT INTO tidings_job_key (tenant, scope, key_hash, job_id, fingerprint, expires_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO NOTHING
