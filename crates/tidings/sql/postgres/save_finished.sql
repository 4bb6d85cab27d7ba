-- A live job finishes: it moves to the finished table and its facts are appended.
WITH gone AS (
    DELETE FROM tidings.job
    USING unnest(
        $1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[],
        $7::bigint[], $8::bigint[], $9::bigint[]
    ) AS new (id, before_version, version, state, finished_at_ms, claims, attempts, snoozes, crashes)
    WHERE job.id = new.id AND job.version = new.before_version
    RETURNING
        job.id, job.kind, job.queue, job.priority, job.tenant, job.enqueued_at_ms, job.run_at_ms,
        job.unique_key_hash, job.unique_states, job.args,
        new.version, new.state, new.finished_at_ms, new.claims, new.attempts, new.snoozes,
        new.crashes
), saved AS (
    INSERT INTO tidings.finished_job (
        id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash,
        unique_states, args, version, state, finished_at_ms, claims, attempts, snoozes, crashes
    )
    SELECT * FROM gone
    RETURNING id
), appended AS (
    INSERT INTO tidings.fact (job_id, version, at_ms, name, body)
    SELECT new.job_id, new.version, new.at_ms, new.name, new.body
    FROM unnest(
        $10::uuid[], $11::bigint[], $12::bigint[], $13::text[], $14::text[]
    ) AS new (job_id, version, at_ms, name, body)
    JOIN saved ON saved.id = new.job_id
)
SELECT id FROM saved
