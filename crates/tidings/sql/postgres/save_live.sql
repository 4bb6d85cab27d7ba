-- A live job stays live: compare the version, write the row, append the facts.
WITH saved AS (
    UPDATE tidings.job
    SET version = new.version, state = new.state, due_at_ms = new.due_at_ms, due_rank = new.due_rank,
    worker = new.worker, started_at_ms = new.started_at_ms, came_from = new.came_from,
    on_unknown = new.on_unknown, cancel_requested = new.cancel_requested,
    accepted_late = new.accepted_late, claims = new.claims, attempts = new.attempts,
    snoozes = new.snoozes, crashes = new.crashes
    FROM unnest(
        $1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::smallint[],
        $7::uuid[], $8::bigint[], $9::text[], $10::text[], $11::boolean[], $12::boolean[],
        $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[]
    ) AS new (id, before_version, version, state, due_at_ms, due_rank, worker, started_at_ms, came_from,
        on_unknown, cancel_requested, accepted_late, claims, attempts, snoozes, crashes)
    WHERE job.id = new.id AND job.version = new.before_version
    RETURNING job.id
), appended AS (
    INSERT INTO tidings.fact (job_id, version, at_ms, name, body)
    SELECT new.job_id, new.version, new.at_ms, new.name, new.body
    FROM unnest(
        $17::uuid[], $18::bigint[], $19::bigint[], $20::text[], $21::text[]
    ) AS new (job_id, version, at_ms, name, body)
    JOIN saved ON saved.id = new.job_id
)
SELECT id FROM saved
