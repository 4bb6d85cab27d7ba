-- A finished job becomes live again: copied here, deleted by `delete_finished`.
INSERT INTO tidings_job (
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args, version, state, due_at_ms, due_rank, worker, started_at_ms, came_from, on_unknown,
    cancel_requested, accepted_late, claims, attempts, snoozes, crashes
)
SELECT
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args,
    ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16
FROM tidings_finished_job
WHERE id = ?1 AND version = ?2
