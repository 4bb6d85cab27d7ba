-- The claim alone: what a worker takes. No fact; the claim stands on the row.
UPDATE tidings.job
SET version = new.version, state = 'running', due_at_ms = new.due_at_ms, due_rank = 0, worker = $1,
    started_at_ms = $2, came_from = new.came_from, on_unknown = new.on_unknown, claims = new.claims
FROM unnest(
        $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::bigint[]
    ) AS new (id, version, due_at_ms, came_from, on_unknown, claims)
WHERE job.id = new.id
