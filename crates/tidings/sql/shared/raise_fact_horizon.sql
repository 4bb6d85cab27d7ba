-- The database refuses to delete a fact that is younger than the horizon.
UPDATE tidings.fact_horizon
SET kept_since_ms = $1
WHERE kept_since_ms < $1
