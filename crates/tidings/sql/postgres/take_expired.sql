-- Leases that are over, of kinds that this process knows: rank 0, in any of these queues.
SELECT
    due.id, due.kind, due.queue, due.priority, due.tenant, due.enqueued_at_ms, due.run_at_ms,
    due.unique_key_hash, due.unique_states, due.args, due.version, due.state, due.due_at_ms,
    due.due_rank, due.worker, due.started_at_ms, due.came_from, due.on_unknown,
    due.cancel_requested, due.accepted_late, due.claims, due.attempts, due.snoozes, due.crashes
FROM unnest($1::text[]) AS known (queue)
CROSS JOIN LATERAL (
    SELECT *
    FROM tidings.job
    WHERE job.queue = known.queue AND due_rank = 0 AND due_at_ms <= $2 AND kind = ANY ($3)
    ORDER BY due_at_ms, id
    LIMIT $4
    FOR NO KEY UPDATE SKIP LOCKED
) AS due
LIMIT $4
