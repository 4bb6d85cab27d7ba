SELECT
    id, type_name, tenant, subject, occurred_at_ms, data, seq, recorded_at_ms, state, due_at_ms, failures, settled_at_ms, reason, became
FROM tidings_event
WHERE id = ?1 AND state = 'waiting'
