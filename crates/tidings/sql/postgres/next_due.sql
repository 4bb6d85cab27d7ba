-- When the next waiting job of a queue comes due. One index probe a rank. What is due already and
-- was not taken (paused, locked, or of an unknown kind) is no reason to look again at once.
SELECT min(next.due_at_ms)
FROM unnest($2::smallint[]) AS level (rank)
CROSS JOIN LATERAL (
    SELECT due_at_ms
    FROM tidings.job
    WHERE queue = $1 AND due_rank = level.rank AND due_at_ms > $3
    ORDER BY due_at_ms, id
    LIMIT 1
) AS next
