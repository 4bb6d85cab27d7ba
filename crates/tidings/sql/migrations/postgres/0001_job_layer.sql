-- Jobs that somebody still has to look at. A finished job moves out, so that
-- this table and its one index stay as small as the work that is left.
CREATE TABLE tidings.job (
    id               UUID     NOT NULL,
    version          BIGINT   NOT NULL,
    kind             TEXT     NOT NULL,
    queue            TEXT     NOT NULL,
    priority         SMALLINT NOT NULL,
    tenant           TEXT     NOT NULL,
    enqueued_at_ms   BIGINT   NOT NULL,
    run_at_ms        BIGINT   NOT NULL,
    unique_key_hash  BYTEA,
    unique_states    SMALLINT,
    state            TEXT     NOT NULL,
    -- When it next needs attention, whatever for: start, retry, or a lease that is over.
    due_at_ms        BIGINT,
    -- 0 while a worker has it, else its priority: leases that are over are found
    -- without walking the backlog, and in the same index.
    due_rank         SMALLINT NOT NULL,
    worker           UUID,
    started_at_ms    BIGINT,
    came_from        TEXT,
    on_unknown       TEXT,
    cancel_requested BOOLEAN  NOT NULL,
    accepted_late    BOOLEAN  NOT NULL,
    claims           BIGINT   NOT NULL,
    attempts         BIGINT   NOT NULL,
    snoozes          BIGINT   NOT NULL,
    crashes          BIGINT   NOT NULL,
    -- JSON text; its bytes are kept exactly, which `json` and `jsonb` do not promise.
    args             TEXT     NOT NULL,
    CONSTRAINT job_is_named_once PRIMARY KEY (id),
    CONSTRAINT live_state_is_known
        CHECK (state IN ('pending', 'running', 'retryable', 'snoozed', 'unknown')),
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
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_cost_limit = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.05
);
CREATE INDEX job_due ON tidings.job (queue, due_rank, due_at_ms, id) WHERE due_at_ms IS NOT NULL;
CREATE INDEX job_held ON tidings.job (id) WHERE due_at_ms IS NULL;

CREATE TABLE tidings.finished_job (
    id              UUID     NOT NULL,
    version         BIGINT   NOT NULL,
    kind            TEXT     NOT NULL,
    queue           TEXT     NOT NULL,
    priority        SMALLINT NOT NULL,
    tenant          TEXT     NOT NULL,
    enqueued_at_ms  BIGINT   NOT NULL,
    run_at_ms       BIGINT   NOT NULL,
    unique_key_hash BYTEA,
    unique_states   SMALLINT,
    state           TEXT     NOT NULL,
    finished_at_ms  BIGINT   NOT NULL,
    claims          BIGINT   NOT NULL,
    attempts        BIGINT   NOT NULL,
    snoozes         BIGINT   NOT NULL,
    crashes         BIGINT   NOT NULL,
    args            TEXT     NOT NULL,
    CONSTRAINT finished_job_is_named_once PRIMARY KEY (id),
    CONSTRAINT finished_state_is_known CHECK (state IN ('completed', 'discarded', 'cancelled'))
);
CREATE INDEX finished_job_by_age ON tidings.finished_job (state, finished_at_ms);

-- What happened, never edited. A partition holds one week; retention drops whole ones.
CREATE TABLE tidings.fact (
    job_id  UUID   NOT NULL,
    version BIGINT NOT NULL,
    at_ms   BIGINT NOT NULL,
    name    TEXT   NOT NULL,
    body    TEXT   NOT NULL,
    CONSTRAINT fact_is_written_once PRIMARY KEY (job_id, version, at_ms)
) PARTITION BY RANGE (at_ms);
CREATE TABLE tidings.fact_otherwise PARTITION OF tidings.fact DEFAULT;

-- Facts younger than the horizon cannot be deleted.
CREATE TABLE tidings.fact_horizon (
    one           SMALLINT NOT NULL,
    kept_since_ms BIGINT   NOT NULL,
    CONSTRAINT there_is_one_horizon PRIMARY KEY (one),
    CONSTRAINT it_is_the_one CHECK (one = 1)
);
INSERT INTO tidings.fact_horizon (one, kept_since_ms) VALUES (1, -9223372036854775808);

CREATE FUNCTION tidings.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at_ms < (SELECT kept_since_ms FROM tidings.fact_horizon) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'facts are append-only: % of tidings.fact is refused', TG_OP
        USING HINT = 'Old facts leave by retention.';
END
$$;
CREATE TRIGGER facts_are_append_only BEFORE UPDATE OR DELETE ON tidings.fact
    FOR EACH ROW EXECUTE FUNCTION tidings.refuse_change();
-- Of a partition it is refused too: triggers of a statement are not passed on to partitions.
CREATE TRIGGER facts_are_not_truncated BEFORE TRUNCATE ON tidings.fact
    FOR EACH STATEMENT EXECUTE FUNCTION tidings.refuse_change();
CREATE TRIGGER facts_are_not_truncated BEFORE TRUNCATE ON tidings.fact_otherwise
    FOR EACH STATEMENT EXECUTE FUNCTION tidings.refuse_change();

-- Keys that two jobs may not share: unique keys while a job is in their states,
-- idempotency keys until they expire. The primary key is the race.
CREATE TABLE tidings.job_key (
    tenant        TEXT   NOT NULL,
    scope         TEXT   NOT NULL,
    key_hash      BYTEA  NOT NULL,
    job_id        UUID   NOT NULL,
    fingerprint   BYTEA,
    expires_at_ms BIGINT,
    CONSTRAINT key_has_one_holder PRIMARY KEY (tenant, scope, key_hash)
);
CREATE INDEX job_key_of_job ON tidings.job_key (job_id);
CREATE INDEX job_key_expiry ON tidings.job_key (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

CREATE TABLE tidings.paused_queue (
    queue        TEXT   NOT NULL,
    paused_at_ms BIGINT NOT NULL,
    actor        TEXT   NOT NULL,
    reason       TEXT   NOT NULL,
    CONSTRAINT queue_is_paused_once PRIMARY KEY (queue)
);

CREATE TABLE tidings.policy (
    name    TEXT   NOT NULL,
    version BIGINT NOT NULL,
    body    TEXT   NOT NULL,
    CONSTRAINT policy_version_means_one_thing PRIMARY KEY (name, version)
);

CREATE TABLE tidings.api_key (
    id            TEXT   NOT NULL,
    key_hash      BYTEA  NOT NULL,
    scope         TEXT   NOT NULL,
    tenant        TEXT   NOT NULL,
    created_at_ms BIGINT NOT NULL,
    revoked_at_ms BIGINT,
    CONSTRAINT api_key_is_named_once PRIMARY KEY (id),
    CONSTRAINT api_key_scope_is_known CHECK (scope IN ('enqueue', 'read', 'operate', 'admin'))
);

-- For people: every job with readable times.
CREATE VIEW tidings.job_view AS
SELECT id, kind, queue, priority, tenant, state, to_timestamp(due_at_ms / 1000.0) AS due_at,
       to_timestamp(enqueued_at_ms / 1000.0) AS enqueued_at, NULL::timestamptz AS finished_at,
       claims, attempts, snoozes, crashes, args
FROM tidings.job
UNION ALL
SELECT id, kind, queue, priority, tenant, state, NULL,
       to_timestamp(enqueued_at_ms / 1000.0), to_timestamp(finished_at_ms / 1000.0),
       claims, attempts, snoozes, crashes, args
FROM tidings.finished_job;
