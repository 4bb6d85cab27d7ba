INSERT INTO tidings_event (id, type_name, tenant, subject, occurred_at_ms, recorded_at_ms, data, due_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?7, ?6, ?7)
