DELETE FROM tidings.paused_queue
WHERE queue = $1
