UPDATE tidings.event
SET state = 'fanned_out', due_at_ms = NULL, settled_at_ms = $2, became = new.became
FROM unnest($1::uuid[], $3::text[]) AS new (id, became)
WHERE event.id = new.id AND event.state = 'waiting'
