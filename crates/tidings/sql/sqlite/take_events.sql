-- Events that are not fanned out, oldest due first.
SELECT
    id, type_name, tenant, subject, occurred_at_ms, data, seq, recorded_at_ms, state, due_at_ms, failures, settled_at_ms, reason, became
FROM tidings_event
WHERE due_at_ms <= ?1
ORDER BY due_at_ms, seq
LIMIT ?2
