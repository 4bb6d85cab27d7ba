SELECT
    id, type_name, tenant, subject, occurred_at_ms, data, seq, recorded_at_ms, state, due_at_ms, failures, settled_at_ms, reason, became
FROM tidings.event
WHERE ($1 = '' OR state = $1) AND ($2 = '' OR type_name = $2) AND ($3 = '' OR subject = $3)
    AND ($4 = '' OR tenant = $4) AND id < $5
ORDER BY id DESC
LIMIT $6
