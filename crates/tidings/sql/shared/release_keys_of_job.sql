-- An idempotency key outlives its job: the same call again must not enqueue again.
DELETE FROM tidings.job_key
WHERE job_id = $1 AND scope <> 'idempotency'
