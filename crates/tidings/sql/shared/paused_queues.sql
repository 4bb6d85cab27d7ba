SELECT queue, paused_at_ms, actor, reason
FROM tidings.paused_queue
ORDER BY queue
