SELECT
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args, version, state, finished_at_ms, claims, attempts, snoozes, crashes
FROM tidings.finished_job
WHERE ($1 = '' OR state = $1) AND ($2 = '' OR kind = $2) AND ($3 = '' OR queue = $3) AND ($4 = '' OR tenant = $4)
    AND id < $5
ORDER BY id DESC
LIMIT $6
