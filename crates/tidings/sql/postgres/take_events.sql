-- Events that are not fanned out, oldest due first, locked. By their state, never by a cursor over `seq`: rows
-- commit late.
SELECT
    id, type_name, tenant, subject, occurred_at_ms, data, seq, recorded_at_ms, state, due_at_ms, failures, settled_at_ms, reason, became
FROM tidings.event
WHERE due_at_ms <= $1
ORDER BY due_at_ms, seq
LIMIT $2
FOR NO KEY UPDATE SKIP LOCKED
