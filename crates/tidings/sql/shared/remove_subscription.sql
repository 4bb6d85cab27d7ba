DELETE FROM tidings.subscription
WHERE name = $1
