SELECT args
FROM tidings.job
WHERE id = $1 AND version = $2
