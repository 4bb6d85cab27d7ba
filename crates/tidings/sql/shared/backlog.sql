-- Counted up to a bound: nothing here walks a whole table. An event that is due again later may be the oldest; beyond
-- the bound the age does not matter any more, the number alone raises the alert.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM tidings.event WHERE due_at_ms IS NOT NULL LIMIT $1) AS some_waiting),
    (SELECT min(recorded_at_ms) FROM (
        SELECT recorded_at_ms FROM tidings.event WHERE due_at_ms IS NOT NULL ORDER BY due_at_ms, seq LIMIT $1
    ) AS first_due),
    (SELECT count(*) FROM (SELECT 1 FROM tidings.event WHERE state = 'poisoned' AND settled_at_ms IS NOT NULL LIMIT $1) AS some_poisoned)
