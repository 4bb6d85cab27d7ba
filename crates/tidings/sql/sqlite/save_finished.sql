-- A live job finishes: written to the finished table here, deleted by `delete_live`. Bound, not selected: an
-- insert from a select journals its pages for each row, which took a third of the writer's time.
INSERT INTO tidings_finished_job (
    id, version, state, finished_at_ms, claims, attempts, snoozes, crashes,
    kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states, args
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
