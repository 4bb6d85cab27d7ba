SELECT name, description, exposure
FROM tidings.event_type
ORDER BY name
