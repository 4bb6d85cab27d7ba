-- The first due jobs of one rank of a queue. The one writer runs it once a rank.
-- Whoever asks stops reading when it has enough.
SELECT
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args, version, state, due_at_ms, due_rank, worker, started_at_ms, came_from, on_unknown,
    cancel_requested, accepted_late, claims, attempts, snoozes, crashes
FROM tidings_job
WHERE queue = ?1 AND due_rank = ?4 AND due_at_ms <= ?2 AND kind IN (SELECT value FROM json_each(?3))
    AND NOT EXISTS (SELECT 1 FROM tidings_paused_queue WHERE queue = ?1)
ORDER BY due_at_ms, id
