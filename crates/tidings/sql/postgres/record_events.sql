INSERT INTO tidings.event (id, type_name, tenant, subject, occurred_at_ms, recorded_at_ms, data, due_at_ms)
SELECT id, type_name, tenant, subject, occurred_at_ms, $7, data, $7
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[])
    WITH ORDINALITY AS new (id, type_name, tenant, subject, occurred_at_ms, data, place)
ORDER BY place
