-- In batches, skipping what another process prunes: two pruners never wait for each other.
WITH old AS (
    SELECT id FROM tidings.finished_job
    WHERE state = $1 AND finished_at_ms < $2
    ORDER BY finished_at_ms
    LIMIT $3
    FOR UPDATE SKIP LOCKED
), keys AS (
    DELETE FROM tidings.job_key USING old WHERE job_key.job_id = old.id AND scope <> 'idempotency'
)
DELETE FROM tidings.finished_job USING old WHERE finished_job.id = old.id
