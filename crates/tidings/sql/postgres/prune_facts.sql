-- Facts whose week had no partition; the others leave with their partition.
WITH old AS (
    SELECT job_id, version, at_ms FROM tidings.fact_otherwise
    WHERE at_ms < $1
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
DELETE FROM tidings.fact_otherwise USING old
WHERE fact_otherwise.job_id = old.job_id AND fact_otherwise.version = old.version
    AND fact_otherwise.at_ms = old.at_ms
