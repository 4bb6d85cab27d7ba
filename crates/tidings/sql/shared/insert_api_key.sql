INSERT INTO tidings.api_key (id, key_hash, scope, tenant, created_at_ms)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO NOTHING
