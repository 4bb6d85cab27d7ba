-- When the next job of a queue that is not due yet will be. What is due and was not taken (of a kind that
-- this process does not know, in a paused queue, locked by another worker) is left to the poll: to look
-- again at once would be to look for ever. One index probe a rank.
SELECT min(next.due_at_ms)
FROM unnest($2::smallint[]) AS level (rank)
CROSS JOIN LATERAL (
    SELECT due_at_ms
    FROM tidings.job
    WHERE queue = $1 AND due_rank = level.rank AND due_at_ms > $3
    ORDER BY due_at_ms, id
    LIMIT 1
) AS next
