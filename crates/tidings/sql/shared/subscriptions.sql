SELECT name, body
FROM tidings.subscription
ORDER BY name
