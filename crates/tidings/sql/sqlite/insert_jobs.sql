INSERT INTO tidings_job (
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args, version, state, due_at_ms, due_rank, worker, started_at_ms, came_from, on_unknown,
    cancel_requested, accepted_late, claims, attempts, snoozes, crashes
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
    0, 'pending', ?11, ?4, NULL, NULL, NULL, NULL, FALSE, FALSE, 0, 0, 0, 0
)
