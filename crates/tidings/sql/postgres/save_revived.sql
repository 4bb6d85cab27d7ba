-- A finished job becomes live again: it moves back.
WITH back AS (
    DELETE FROM tidings.finished_job
    USING unnest(
        $1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::smallint[],
        $7::uuid[], $8::bigint[], $9::text[], $10::text[], $11::boolean[], $12::boolean[],
        $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[]
    ) AS new (id, before_version, version, state, due_at_ms, due_rank, worker, started_at_ms, came_from,
        on_unknown, cancel_requested, accepted_late, claims, attempts, snoozes, crashes)
    WHERE finished_job.id = new.id AND finished_job.version = new.before_version
    RETURNING
        finished_job.id, finished_job.kind, finished_job.queue, finished_job.priority,
        finished_job.tenant, finished_job.enqueued_at_ms, finished_job.run_at_ms,
        finished_job.unique_key_hash, finished_job.unique_states, finished_job.args,
        new.version, new.state, new.due_at_ms, new.due_rank, new.worker, new.started_at_ms,
        new.came_from, new.on_unknown, new.cancel_requested, new.accepted_late, new.claims,
        new.attempts, new.snoozes, new.crashes
), saved AS (
    INSERT INTO tidings.job (
        id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash,
        unique_states, args, version, state, due_at_ms, due_rank, worker, started_at_ms, came_from,
        on_unknown, cancel_requested, accepted_late, claims, attempts, snoozes, crashes
    )
    SELECT * FROM back
    RETURNING id
), appended AS (
    INSERT INTO tidings.fact (job_id, version, at_ms, name, body)
    SELECT new.job_id, new.version, new.at_ms, new.name, new.body
    FROM unnest(
        $17::uuid[], $18::bigint[], $19::bigint[], $20::text[], $21::text[]
    ) AS new (job_id, version, at_ms, name, body)
    JOIN saved ON saved.id = new.job_id
)
SELECT id FROM saved
