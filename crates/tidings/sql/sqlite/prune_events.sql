DELETE FROM tidings_event
WHERE seq IN (
    SELECT seq FROM tidings_event WHERE state = 'fanned_out' AND settled_at_ms < ?1 ORDER BY settled_at_ms LIMIT ?2
)
