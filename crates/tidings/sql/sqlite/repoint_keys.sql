-- An idempotency key whose job was not inserted, because another holds its unique key, answers with that other.
UPDATE tidings_job_key
SET job_id = ?2
WHERE job_id = ?1 AND scope = 'idempotency'
