-- When the next waiting job of a queue is due. One index probe a rank.
SELECT min(next.due_at_ms)
FROM unnest($2::smallint[]) AS level (rank)
CROSS JOIN LATERAL (
    SELECT due_at_ms
    FROM tidings.job
    WHERE queue = $1 AND due_rank = level.rank AND due_at_ms IS NOT NULL
    ORDER BY due_at_ms, id
    LIMIT 1
) AS next
