INSERT INTO tidings.event_type (name, description, exposure, declared_at_ms)
VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE SET description = excluded.description, exposure = excluded.exposure
