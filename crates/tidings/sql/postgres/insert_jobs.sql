INSERT INTO tidings.job (
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args, version, state, due_at_ms, due_rank, worker, started_at_ms, came_from, on_unknown,
    cancel_requested, accepted_late, claims, attempts, snoozes, crashes
)
SELECT
    id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states,
    args,
    0, 'pending', due_at_ms, priority, NULL, NULL, NULL, NULL, FALSE, FALSE, 0, 0, 0, 0
FROM unnest(
        $1::uuid[], $2::text[], $3::text[], $4::smallint[], $5::text[], $6::bigint[], $7::bigint[],
        $8::bytea[], $9::smallint[], $10::text[], $11::bigint[]
    ) AS new (id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash,
        unique_states, args, due_at_ms)
