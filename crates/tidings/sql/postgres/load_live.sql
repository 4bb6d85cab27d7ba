SELECT
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args, version, state, due_at_ms, due_rank, worker, started_at_ms, came_from, on_unknown,
    cancel_requested, accepted_late, claims, attempts, snoozes, crashes
FROM tidings.job
WHERE id = ANY($1)
