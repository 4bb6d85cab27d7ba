-- What may be recorded. An event of a type that is not here is refused by the foreign key below.
CREATE TABLE tidings.event_type (
    name           TEXT   NOT NULL,
    description    TEXT   NOT NULL,
    exposure       TEXT   NOT NULL,
    declared_at_ms BIGINT NOT NULL,
    CONSTRAINT event_type_is_declared_once PRIMARY KEY (name),
    CONSTRAINT exposure_is_known CHECK (exposure IN ('internal', 'external'))
);

-- The kinds that some program carries out: what `tidings.enqueue` may name.
CREATE TABLE tidings.kind (
    name          TEXT     NOT NULL,
    queue         TEXT     NOT NULL,
    priority      SMALLINT NOT NULL,
    unique_states SMALLINT NOT NULL,
    CONSTRAINT kind_is_named_once PRIMARY KEY (name),
    CONSTRAINT kind_priority_is_1_to_4 CHECK (priority BETWEEN 1 AND 4)
);

-- Who gets which events, as data; the body is the subscription as JSON.
CREATE TABLE tidings.subscription (
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT subscription_is_named_once PRIMARY KEY (name)
);

CREATE TABLE tidings.event (
    id             UUID     NOT NULL,
    -- The order in which rows were written; never a cursor: rows commit out of order.
    seq            BIGINT   NOT NULL GENERATED ALWAYS AS IDENTITY,
    type_name      TEXT     NOT NULL,
    tenant         TEXT     NOT NULL,
    subject        TEXT     NOT NULL,
    occurred_at_ms BIGINT   NOT NULL,
    recorded_at_ms BIGINT   NOT NULL,
    data           TEXT     NOT NULL,
    state          TEXT     NOT NULL DEFAULT 'waiting',
    due_at_ms      BIGINT,
    failures       BIGINT   NOT NULL DEFAULT 0,
    settled_at_ms  BIGINT,
    reason         TEXT,
    -- What each subscription whose pattern matched made of it, as JSON.
    became         TEXT,
    CONSTRAINT event_is_named_once PRIMARY KEY (id),
    CONSTRAINT event_type_is_declared FOREIGN KEY (type_name) REFERENCES tidings.event_type (name),
    CONSTRAINT event_state_is_known CHECK (state IN ('waiting', 'fanned_out', 'poisoned')),
    CONSTRAINT due_iff_waiting CHECK ((due_at_ms IS NOT NULL) = (state = 'waiting')),
    CONSTRAINT settled_unless_waiting CHECK ((settled_at_ms IS NULL) = (state = 'waiting')),
    CONSTRAINT reason_iff_poisoned CHECK (state <> 'poisoned' OR reason IS NOT NULL),
    CONSTRAINT became_iff_fanned_out CHECK ((became IS NOT NULL) = (state = 'fanned_out'))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_limit = 2000);
CREATE INDEX event_due ON tidings.event (due_at_ms, seq) WHERE due_at_ms IS NOT NULL;
CREATE INDEX event_by_age ON tidings.event (state, settled_at_ms) WHERE settled_at_ms IS NOT NULL;

-- Open problems, one a subject, however often it fails.
CREATE TABLE tidings.incident (
    id           UUID   NOT NULL,
    source       TEXT   NOT NULL,
    subject      TEXT   NOT NULL,
    reason       TEXT   NOT NULL,
    opened_at_ms BIGINT NOT NULL,
    seen_at_ms   BIGINT NOT NULL,
    times        BIGINT NOT NULL,
    closed_at_ms BIGINT,
    CONSTRAINT incident_is_named_once PRIMARY KEY (id),
    CONSTRAINT incident_source_is_known CHECK (source IN ('event', 'backlog'))
);
CREATE UNIQUE INDEX one_open_incident_a_subject ON tidings.incident (source, subject) WHERE closed_at_ms IS NULL;
