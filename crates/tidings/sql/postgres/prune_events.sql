WITH old AS (
    SELECT id FROM tidings.event
    WHERE state = 'fanned_out' AND settled_at_ms < $1
    ORDER BY settled_at_ms
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
DELETE FROM tidings.event USING old WHERE event.id = old.id
