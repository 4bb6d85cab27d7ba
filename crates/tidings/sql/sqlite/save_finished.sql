-- A live job finishes: copied to the finished table here, deleted by `delete_live`.
INSERT INTO tidings_finished_job (
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args, version, state, finished_at_ms, claims, attempts, snoozes, crashes
)
SELECT
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args,
    ?3, ?4, ?5, ?6, ?7, ?8, ?9
FROM tidings_job
WHERE id = ?1 AND version = ?2
