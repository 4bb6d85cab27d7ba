-- Jobs that somebody still has to look at. A finished job moves out, so that
-- this table and its one index stay as small as the work that is left.
-- A CHECK says `a OR b`, not `IN (a, b)`: SQLite would build a temporary table for the list at every write.
CREATE TABLE tidings_job (
    id               BLOB     NOT NULL,
    version          INTEGER   NOT NULL,
    kind             TEXT     NOT NULL,
    queue            TEXT     NOT NULL,
    priority         INTEGER NOT NULL,
    tenant           TEXT     NOT NULL,
    enqueued_at_ms   INTEGER   NOT NULL,
    run_at_ms        INTEGER   NOT NULL,
    unique_key_hash  BLOB,
    unique_states    INTEGER,
    state            TEXT     NOT NULL,
    -- When it next needs attention, whatever for: start, retry, or a lease that is over.
    due_at_ms        INTEGER,
    -- 0 while a worker has it, else its priority: leases that are over are found
    -- without walking the backlog, and in the same index.
    due_rank         INTEGER NOT NULL,
    worker           BLOB,
    started_at_ms    INTEGER,
    came_from        TEXT,
    on_unknown       TEXT,
    cancel_requested INTEGER  NOT NULL,
    accepted_late    INTEGER  NOT NULL,
    claims           INTEGER   NOT NULL,
    attempts         INTEGER   NOT NULL,
    snoozes          INTEGER   NOT NULL,
    crashes          INTEGER   NOT NULL,
    -- JSON text; its bytes are kept exactly, which `json` and `jsonb` do not promise.
    args             TEXT     NOT NULL,
    CONSTRAINT job_is_named_once PRIMARY KEY (id),
    CONSTRAINT live_state_is_known
        CHECK (
            state = 'pending' OR state = 'running' OR state = 'retryable' OR state = 'snoozed' OR state = 'unknown'
        ),
    CONSTRAINT due_unless_held CHECK (due_at_ms IS NOT NULL OR state = 'unknown'),
    CONSTRAINT leased_iff_running CHECK (
        (state = 'running') = (worker IS NOT NULL)
        AND (worker IS NULL) = (started_at_ms IS NULL)
        AND (worker IS NULL) = (came_from IS NULL)
        AND (worker IS NULL) = (on_unknown IS NULL)
    ),
    CONSTRAINT leases_rank_apart CHECK (due_rank = CASE state WHEN 'running' THEN 0 ELSE priority END),
    CONSTRAINT asked_only_while_running CHECK (state = 'running' OR NOT (cancel_requested OR accepted_late)),
    CONSTRAINT priority_is_1_to_4 CHECK (priority BETWEEN 1 AND 4),
    CONSTRAINT unique_key_has_its_states CHECK ((unique_key_hash IS NULL) = (unique_states IS NULL)),
    CONSTRAINT counters_do_not_fall_below_zero
        CHECK (version >= 0 AND claims >= 0 AND attempts >= 0 AND snoozes >= 0 AND crashes >= 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX tidings_job_due ON tidings_job (queue, due_rank, due_at_ms, id) WHERE due_at_ms IS NOT NULL;
CREATE INDEX tidings_job_held ON tidings_job (id) WHERE due_at_ms IS NULL;

CREATE TABLE tidings_finished_job (
    id              BLOB     NOT NULL,
    version         INTEGER   NOT NULL,
    kind            TEXT     NOT NULL,
    queue           TEXT     NOT NULL,
    priority        INTEGER NOT NULL,
    tenant          TEXT     NOT NULL,
    enqueued_at_ms  INTEGER   NOT NULL,
    run_at_ms       INTEGER   NOT NULL,
    unique_key_hash BLOB,
    unique_states   INTEGER,
    state           TEXT     NOT NULL,
    finished_at_ms  INTEGER   NOT NULL,
    claims          INTEGER   NOT NULL,
    attempts        INTEGER   NOT NULL,
    snoozes         INTEGER   NOT NULL,
    crashes         INTEGER   NOT NULL,
    args            TEXT     NOT NULL,
    CONSTRAINT finished_job_is_named_once PRIMARY KEY (id),
    CONSTRAINT finished_state_is_known CHECK (state = 'completed' OR state = 'discarded' OR state = 'cancelled')
) STRICT;
CREATE INDEX tidings_finished_job_by_age ON tidings_finished_job (state, finished_at_ms);

-- What happened, never edited. Facts younger than the horizon cannot be deleted.
CREATE TABLE tidings_fact (
    job_id  BLOB    NOT NULL,
    version INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    CONSTRAINT fact_is_written_once PRIMARY KEY (job_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE tidings_fact_horizon (
    one           INTEGER NOT NULL,
    kept_since_ms INTEGER NOT NULL,
    CONSTRAINT there_is_one_horizon PRIMARY KEY (one),
    CONSTRAINT it_is_the_one CHECK (one = 1)
) STRICT;
INSERT INTO tidings_fact_horizon (one, kept_since_ms) VALUES (1, -9223372036854775808);
CREATE TRIGGER tidings_facts_are_append_only BEFORE UPDATE ON tidings_fact
BEGIN
    SELECT RAISE(ABORT, 'facts are append-only: UPDATE of tidings_fact is refused');
END;
CREATE TRIGGER tidings_facts_are_kept BEFORE DELETE ON tidings_fact
WHEN OLD.at_ms >= (SELECT kept_since_ms FROM tidings_fact_horizon)
BEGIN
    SELECT RAISE(ABORT, 'facts are append-only: DELETE of tidings_fact is refused; old facts leave by retention');
END;

-- Keys that two jobs may not share: unique keys while a job is in their states,
-- idempotency keys until they expire. The primary key is the race.
CREATE TABLE tidings_job_key (
    tenant        TEXT   NOT NULL,
    scope         TEXT   NOT NULL,
    key_hash      BLOB  NOT NULL,
    job_id        BLOB   NOT NULL,
    fingerprint   BLOB,
    expires_at_ms INTEGER,
    CONSTRAINT key_has_one_holder PRIMARY KEY (tenant, scope, key_hash)
) STRICT;
CREATE INDEX tidings_job_key_of_job ON tidings_job_key (job_id);
CREATE INDEX tidings_job_key_expiry ON tidings_job_key (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

CREATE TABLE tidings_paused_queue (
    queue        TEXT   NOT NULL,
    paused_at_ms INTEGER NOT NULL,
    actor        TEXT   NOT NULL,
    reason       TEXT   NOT NULL,
    CONSTRAINT queue_is_paused_once PRIMARY KEY (queue)
) STRICT;

CREATE TABLE tidings_policy (
    name    TEXT   NOT NULL,
    version INTEGER NOT NULL,
    body    TEXT   NOT NULL,
    CONSTRAINT policy_version_means_one_thing PRIMARY KEY (name, version)
) STRICT;

CREATE TABLE tidings_api_key (
    id            TEXT   NOT NULL,
    key_hash      BLOB  NOT NULL,
    scope         TEXT   NOT NULL,
    tenant        TEXT   NOT NULL,
    created_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER,
    CONSTRAINT api_key_is_named_once PRIMARY KEY (id),
    CONSTRAINT api_key_scope_is_known CHECK (scope = 'enqueue' OR scope = 'read' OR scope = 'operate' OR scope = 'admin')
) STRICT;

-- For people: every job with readable times.
CREATE VIEW tidings_job_view AS
SELECT 'job_' || lower(hex(id)) AS id, kind, queue, priority, tenant, state,
       strftime('%Y-%m-%dT%H:%M:%fZ', due_at_ms / 1000.0, 'unixepoch') AS due_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', enqueued_at_ms / 1000.0, 'unixepoch') AS enqueued_at,
       NULL AS finished_at, claims, attempts, snoozes, crashes, args
FROM tidings_job
UNION ALL
SELECT 'job_' || lower(hex(id)), kind, queue, priority, tenant, state, NULL,
       strftime('%Y-%m-%dT%H:%M:%fZ', enqueued_at_ms / 1000.0, 'unixepoch'),
       strftime('%Y-%m-%dT%H:%M:%fZ', finished_at_ms / 1000.0, 'unixepoch'),
       claims, attempts, snoozes, crashes, args
FROM tidings_finished_job;
