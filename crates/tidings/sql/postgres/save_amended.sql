-- A finished job stays finished: a late report was added, or it settled the job.
WITH saved AS (
    UPDATE tidings.finished_job
    SET version = new.version, state = new.state, finished_at_ms = new.finished_at_ms,
    claims = new.claims, attempts = new.attempts, snoozes = new.snoozes, crashes = new.crashes
    FROM unnest(
        $1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[],
        $7::bigint[], $8::bigint[], $9::bigint[]
    ) AS new (id, before_version, version, state, finished_at_ms, claims, attempts, snoozes, crashes)
    WHERE finished_job.id = new.id AND finished_job.version = new.before_version
    RETURNING finished_job.id
), appended AS (
    INSERT INTO tidings.fact (job_id, version, at_ms, name, body)
    SELECT new.job_id, new.version, new.at_ms, new.name, new.body
    FROM unnest(
        $10::uuid[], $11::bigint[], $12::bigint[], $13::text[], $14::text[]
    ) AS new (job_id, version, at_ms, name, body)
    JOIN saved ON saved.id = new.job_id
)
SELECT id FROM saved
