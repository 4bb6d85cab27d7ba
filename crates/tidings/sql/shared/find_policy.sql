SELECT body
FROM tidings.policy
WHERE name = $1 AND version = $2
