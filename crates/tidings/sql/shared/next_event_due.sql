-- What is due already is left out: somebody else may have it.
SELECT min(due_at_ms) FROM tidings.event WHERE due_at_ms > $1
