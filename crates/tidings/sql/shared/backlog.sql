-- Counted up to a bound: nothing here walks a whole table.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM tidings.event WHERE due_at_ms IS NOT NULL LIMIT $1) AS some_waiting),
    (SELECT recorded_at_ms FROM tidings.event WHERE due_at_ms IS NOT NULL ORDER BY due_at_ms, seq LIMIT 1),
    (SELECT count(*) FROM (SELECT 1 FROM tidings.event WHERE state = 'poisoned' AND settled_at_ms IS NOT NULL LIMIT $1) AS some_poisoned)
