SELECT
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args, version, state, finished_at_ms, claims, attempts, snoozes, crashes
FROM tidings_finished_job
WHERE id = ?1
