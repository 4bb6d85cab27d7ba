SELECT id, key_hash, scope, tenant
FROM tidings.api_key
WHERE revoked_at_ms IS NULL
ORDER BY id
