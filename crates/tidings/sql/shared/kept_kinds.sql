SELECT name, queue, priority, unique_states
FROM tidings.kind
ORDER BY name
