-- An idempotency key whose job was not inserted, because another holds its unique key, answers with that other.
UPDATE tidings.job_key
SET job_id = new.to_job
FROM unnest($1::uuid[], $2::uuid[]) AS new (from_job, to_job)
WHERE job_key.job_id = new.from_job AND job_key.scope = 'idempotency'
