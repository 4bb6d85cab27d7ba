INSERT INTO tidings.subscription (name, body)
VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET body = excluded.body
