INSERT INTO tidings.kind (name, queue, priority, unique_states)
VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE
SET queue = excluded.queue, priority = excluded.priority, unique_states = excluded.unique_states
