INSERT INTO tidings.paused_queue (queue, paused_at_ms, actor, reason)
VALUES ($1, $2, $3, $4)
ON CONFLICT (queue) DO NOTHING
