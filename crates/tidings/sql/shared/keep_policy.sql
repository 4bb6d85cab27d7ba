INSERT INTO tidings.policy (name, version, body)
VALUES ($1, $2, $3)
ON CONFLICT (name, version) DO NOTHING
