-- What any language calls inside its own transaction. docs/sql.md is the contract.
--
-- What an application calls runs as the owner of this schema (SECURITY DEFINER) on a fixed search_path and
-- holds no dynamic SQL. The helpers below it run as their caller and reach no table that the caller may not.
-- Absent on purpose: NOTIFY inside the caller's transaction. It takes a lock that all commits share.

-- The limits of the library's core; a test compares each number.
CREATE FUNCTION tidings.limit_of(what text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
SELECT CASE what
    WHEN 'args_bytes_max' THEN 262144
    WHEN 'args_depth_max' THEN 64
    WHEN 'type_bytes_max' THEN 128
    WHEN 'subject_bytes_max' THEN 512
    WHEN 'tenant_bytes_max' THEN 128
    WHEN 'key_bytes_max' THEN 1024
    WHEN 'run_at_ahead_max_ms' THEN 3162240000000
    WHEN 'idempotency_kept_ms' THEN 259200000
END::bigint
$$;

CREATE FUNCTION tidings.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

-- An instant in milliseconds. `infinity` is none.
CREATE FUNCTION tidings.to_ms(instant timestamptz, field text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF NOT isfinite(instant) THEN
        RAISE EXCEPTION '% is %; write a time', field, instant USING ERRCODE = '22023', COLUMN = field;
    END IF;
    RETURN floor(extract(epoch FROM instant) * 1000)::bigint;
END
$$;

-- Ids are UUIDs of version 7, laid out as the library lays them out: the millisecond, 26 bits that rise with
-- every id, 48 random bits.
CREATE SEQUENCE tidings.id_order AS integer MINVALUE 0 MAXVALUE 67108863 START 0 CACHE 32 CYCLE;

CREATE FUNCTION tidings.new_id(at_ms bigint DEFAULT NULL) RETURNS uuid LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    place CONSTANT integer := nextval('tidings.id_order');
    random_hex CONSTANT text := right(gen_random_uuid()::text, 12);
BEGIN
    RETURN (lpad(to_hex(coalesce(at_ms, tidings.now_ms())), 12, '0')
        || to_hex(28672 | (place >> 14)) || to_hex(32768 | (place & 16383)) || random_hex)::uuid;
END
$$;

-- What two calls must have in common to be the same: each part with its length in eight bytes before it, hashed.
CREATE FUNCTION tidings.fingerprint(VARIADIC parts text[]) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    part text;
    bytes bytea;
    whole bytea := '';
BEGIN
    FOREACH part IN ARRAY parts LOOP
        bytes := convert_to(part, 'UTF8');
        whole := whole || int8send(octet_length(bytes)) || bytes;
    END LOOP;
    RETURN sha256(whole);
END
$$;

-- Text of a caller inside a message: short, one line.
CREATE FUNCTION tidings.shown(value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
SELECT coalesce(regexp_replace(left(value, 128), E'[\\u0001-\\u001f\\u007f-\\u009f]', '?', 'g'), 'NULL')
$$;

CREATE FUNCTION tidings.check_text(field text, value text, bytes_max bigint) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF octet_length(value) > bytes_max THEN
        RAISE EXCEPTION '% is % bytes long; at most % are taken', field, octet_length(value), bytes_max
            USING ERRCODE = '22023', COLUMN = field;
    ELSIF value ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' THEN
        RAISE EXCEPTION '% has control characters; write plain text', field
            USING ERRCODE = '22023', COLUMN = field;
    END IF;
END
$$;

-- A key is text that is there.
CREATE FUNCTION tidings.check_key(field text, value text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF value = '' THEN
        RAISE EXCEPTION '% is empty; leave it out instead', field USING ERRCODE = '22023', COLUMN = field;
    END IF;
    PERFORM tidings.check_text(field, value, tidings.limit_of('key_bytes_max'));
END
$$;

-- Why JSON cannot be kept and sent as it is; NULL when it can. The type `json` has checked the syntax, and
-- lets through what receivers' parsers do not: lone surrogates, numbers beyond a double, any depth it can bear.
CREATE FUNCTION tidings.payload_problem(payload text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    bytes_max CONSTANT bigint := tidings.limit_of('args_bytes_max');
    depth_max CONSTANT bigint := tidings.limit_of('args_depth_max');
    -- A number this long, or with an exponent of three digits, may be beyond a double.
    suspect CONSTANT text := E'[0-9]{200}|[eE][+]?[0-9]{3}';
    may_be_deep boolean;
    bare text;
BEGIN
    IF octet_length(payload) > bytes_max THEN
        RETURN format('is %s bytes long; at most %s are taken. Store large data elsewhere and send a reference',
            octet_length(payload), bytes_max);
    END IF;
    IF payload ~* E'\\\\ud[89a-f]' THEN
        -- Escaped backslashes first, then pairs that are whole; what is left has no partner.
        bare := regexp_replace(replace(payload, E'\\\\', '-'),
            E'\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}', '-', 'g');
        IF bare ~* E'\\\\ud[89a-f]' THEN
            RETURN 'is not taken as JSON: lone surrogate; write both halves of the pair, or the character itself';
        END IF;
    END IF;
    may_be_deep := length(payload) - length(translate(payload, '[{', '')) > depth_max;
    IF NOT may_be_deep AND payload !~ suspect THEN
        RETURN NULL;
    END IF;
    bare := regexp_replace(payload, E'"[^"\\\\]*(\\\\.[^"\\\\]*)*"', '', 'g');
    IF bare ~ suspect AND tidings.has_number_beyond_double(bare) THEN
        RETURN 'is not taken as JSON: number out of range; send it as a string';
    END IF;
    IF may_be_deep THEN
        bare := regexp_replace(bare, '[^][{}]', '', 'g');
        -- Each pass takes the innermost level away.
        FOR level IN 1..depth_max LOOP
            EXIT WHEN bare = '';
            bare := regexp_replace(bare, E'\\[\\]|\\{\\}', '', 'g');
        END LOOP;
        IF bare <> '' THEN
            RETURN format('is not taken as JSON: nested deeper than %s levels', depth_max);
        END IF;
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION tidings.has_number_beyond_double(bare text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM regexp_matches(bare, E'[0-9]+(?:[.][0-9]+)?(?:[eE][+-]?[0-9]+)?', 'g') AS number (digits)
        WHERE digits[1] ~ E'[0-9]{200}|[eE][+]?[0-9]{3}' AND digits[1]::numeric > 1.7976931348623157e308
    );
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN TRUE;
END
$$;

CREATE FUNCTION tidings.check_payload(field text, payload text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    problem CONSTANT text := CASE WHEN payload IS NULL THEN 'is null; give JSON, for example {}'
        ELSE tidings.payload_problem(payload) END;
BEGIN
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '% %', field, problem USING ERRCODE = '22023', COLUMN = field;
    END IF;
END
$$;

-- Refuses an event type that nobody declared. Also for roles that install triggers.
CREATE FUNCTION tidings.require_type(type text) RETURNS void LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known text;
BEGIN
    IF EXISTS (SELECT FROM tidings.event_type WHERE name = type) THEN
        RETURN;
    END IF;
    IF type IS NULL OR octet_length(type) > tidings.limit_of('type_bytes_max')
        OR type !~ '^[a-z0-9_-]+([.][a-z0-9_-]+)*$' THEN
        RAISE EXCEPTION '`%` is not an event type: write dotted words of a-z, 0-9, `_` and `-`, at most % bytes, '
            'like `note.created`', tidings.shown(type), tidings.limit_of('type_bytes_max')
            USING ERRCODE = '22023', COLUMN = 'type';
    END IF;
    SELECT string_agg(first.name, ', ' ORDER BY first.name) INTO known
    FROM (SELECT name FROM tidings.event_type ORDER BY name LIMIT 100) AS first;
    RAISE EXCEPTION 'event type `%` is not declared; declare it first. Declared types are: %',
        type, coalesce(known, 'none')
        USING ERRCODE = 'TD001', COLUMN = 'type',
        HINT = 'Declare it in the configuration, through the API at /v1/event-types, or in the library.';
END
$$;

-- Who has a key, after an attempt to take it for `wanted_by`: the insert is the race, as in the library.
CREATE FUNCTION tidings.take_key(
    tenant text, scope text, key_hash bytea, wanted_by uuid, fingerprint bytea, expires_at_ms bigint,
    OUT holder uuid, OUT holder_fingerprint bytea
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    FOR tries IN 1..100 LOOP
        INSERT INTO tidings.job_key (tenant, scope, key_hash, job_id, fingerprint, expires_at_ms)
        VALUES (take_key.tenant, take_key.scope, take_key.key_hash, wanted_by, take_key.fingerprint,
            take_key.expires_at_ms)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            holder := wanted_by;
            RETURN;
        END IF;
        SELECT held.job_id, held.fingerprint INTO holder, holder_fingerprint
        FROM tidings.job_key AS held
        WHERE held.tenant = take_key.tenant AND held.scope = take_key.scope AND held.key_hash = take_key.key_hash;
        IF FOUND THEN
            RETURN;
        END IF;
        -- It was given up between the two statements: once more.
    END LOOP;
    RAISE EXCEPTION 'the key changes hands too often; try again' USING ERRCODE = '40001';
END
$$;

-- Records an event: its id.
CREATE FUNCTION tidings.record(
    type text, subject text, data json, tenant text DEFAULT '', key text DEFAULT NULL,
    occurred_at timestamptz DEFAULT NULL
) RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now_ms CONSTANT bigint := tidings.now_ms();
    id CONSTANT uuid := tidings.new_id(now_ms);
    owner CONSTANT text := coalesce(tenant, '');
    fingerprint bytea;
    held record;
BEGIN
    PERFORM tidings.require_type(type);
    IF subject IS NULL THEN
        RAISE EXCEPTION 'subject is null; write '''' for an event without one'
            USING ERRCODE = '22023', COLUMN = 'subject';
    END IF;
    PERFORM tidings.check_payload('data', data::text);
    PERFORM tidings.check_text('subject', subject, tidings.limit_of('subject_bytes_max'));
    PERFORM tidings.check_text('tenant', owner, tidings.limit_of('tenant_bytes_max'));
    IF key IS NOT NULL THEN
        PERFORM tidings.check_key('key', key);
        fingerprint := tidings.fingerprint(type, subject, data::text);
        held := tidings.take_key(owner, 'event', sha256(convert_to(key, 'UTF8')), id, fingerprint,
            now_ms + tidings.limit_of('idempotency_kept_ms'));
        IF held.holder <> id THEN
            IF held.holder_fingerprint IS DISTINCT FROM fingerprint THEN
                RAISE EXCEPTION 'the key was used for another event, evt_%; use a fresh key for a new event',
                    replace(held.holder::text, '-', '') USING ERRCODE = 'TD004', COLUMN = 'key';
            END IF;
            RETURN 'evt_' || replace(held.holder::text, '-', '');
        END IF;
    END IF;
    INSERT INTO tidings.event (id, type_name, tenant, subject, occurred_at_ms, recorded_at_ms, data, due_at_ms)
    VALUES (id, type, owner, subject, coalesce(tidings.to_ms(occurred_at, 'occurred_at'), now_ms), now_ms,
        data::text, now_ms);
    RETURN 'evt_' || replace(id::text, '-', '');
END
$$;

-- Enqueues a job: its id, or the id of the job that has its unique key.
CREATE FUNCTION tidings.enqueue(
    kind text, args json, queue text DEFAULT NULL, priority integer DEFAULT NULL,
    run_at timestamptz DEFAULT NULL, unique_key text DEFAULT NULL, tenant text DEFAULT '',
    idempotency_key text DEFAULT NULL
) RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now_ms CONSTANT bigint := tidings.now_ms();
    id CONSTANT uuid := tidings.new_id(now_ms);
    owner CONSTANT text := coalesce(tenant, '');
    asked_ms CONSTANT bigint := tidings.to_ms(run_at, 'run_at');
    due_ms CONSTANT bigint := greatest(coalesce(asked_ms, now_ms), now_ms);
    unique_hash CONSTANT bytea := sha256(convert_to(unique_key, 'UTF8'));
    declared tidings.kind;
    its_queue text;
    its_priority integer;
    fingerprint bytea;
    held record;
BEGIN
    declared := tidings.find_kind(kind);
    its_queue := coalesce(queue, declared.queue);
    its_priority := coalesce(priority, declared.priority);
    PERFORM tidings.check_payload('args', args::text);
    PERFORM tidings.require_queue(its_queue);
    IF its_priority NOT BETWEEN 1 AND 4 THEN
        RAISE EXCEPTION 'priority % does not exist: write 1 (most urgent), 2, 3 or 4', its_priority
            USING ERRCODE = '22023', COLUMN = 'priority';
    END IF;
    PERFORM tidings.check_text('tenant', owner, tidings.limit_of('tenant_bytes_max'));
    PERFORM tidings.check_key('unique_key', unique_key);
    PERFORM tidings.check_key('idempotency_key', idempotency_key);
    IF due_ms - now_ms > tidings.limit_of('run_at_ahead_max_ms') THEN
        RAISE EXCEPTION 'run_at is more than 100 years ahead; write an earlier time'
            USING ERRCODE = '22023', COLUMN = 'run_at';
    END IF;
    -- Keys in the library's order: idempotency first, so that a repeated call touches nothing else.
    IF idempotency_key IS NOT NULL THEN
        fingerprint := tidings.fingerprint(kind, its_queue, its_priority::text, coalesce(asked_ms::text, ''),
            coalesce(unique_key, ''), args::text);
        held := tidings.take_key(owner, 'idempotency', sha256(convert_to(idempotency_key, 'UTF8')), id, fingerprint,
            now_ms + tidings.limit_of('idempotency_kept_ms'));
        IF held.holder <> id AND held.holder_fingerprint IS DISTINCT FROM fingerprint THEN
            RAISE EXCEPTION 'the idempotency key was used for another call, which made job_%; use a fresh key for '
                'a new call', replace(held.holder::text, '-', '')
                USING ERRCODE = 'TD004', COLUMN = 'idempotency_key';
        ELSIF held.holder <> id THEN
            RETURN 'job_' || replace(held.holder::text, '-', '');
        END IF;
    END IF;
    IF unique_key IS NOT NULL THEN
        held := tidings.take_key(owner, 'unique:' || kind, unique_hash, id, NULL, NULL);
        IF held.holder <> id THEN
            -- Whoever repeats the call gets the job that was there first.
            UPDATE tidings.job_key AS own SET job_id = held.holder
            WHERE own.job_id = id AND own.scope = 'idempotency';
            RETURN 'job_' || replace(held.holder::text, '-', '');
        END IF;
    END IF;
    INSERT INTO tidings.job (
        id, kind, queue, priority, tenant, enqueued_at_ms, run_at_ms, unique_key_hash, unique_states, args, version,
        state, due_at_ms, due_rank, cancel_requested, accepted_late, claims, attempts, snoozes, crashes
    ) VALUES (
        id, kind, its_queue, its_priority, owner, now_ms, due_ms, unique_hash,
        CASE WHEN unique_key IS NOT NULL THEN declared.unique_states END, args::text, 0,
        'pending', due_ms, its_priority, FALSE, FALSE, 0, 0, 0, 0
    );
    RETURN 'job_' || replace(id::text, '-', '');
END
$$;

-- The declaration of a kind. Programs that carry kinds out keep the table.
CREATE FUNCTION tidings.find_kind(wanted text) RETURNS tidings.kind LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_kind tidings.kind;
    known text;
BEGIN
    SELECT * INTO found_kind FROM tidings.kind WHERE name = wanted;
    IF FOUND THEN
        RETURN found_kind;
    END IF;
    SELECT string_agg(first.name, ', ' ORDER BY first.name) INTO known
    FROM (SELECT name FROM tidings.kind ORDER BY name LIMIT 100) AS first;
    RAISE EXCEPTION 'there is no kind `%`; known kinds are: %', tidings.shown(wanted), coalesce(known, 'none')
        USING ERRCODE = 'TD002', COLUMN = 'kind',
        HINT = 'A kind is known once a program that carries it out has been started on this database.';
END
$$;

CREATE FUNCTION tidings.require_queue(wanted text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    known text;
BEGIN
    IF EXISTS (SELECT FROM tidings.kind WHERE queue = wanted) THEN
        RETURN;
    END IF;
    SELECT string_agg(first.queue, ', ' ORDER BY first.queue) INTO known
    FROM (SELECT DISTINCT queue FROM tidings.kind ORDER BY queue LIMIT 100) AS first;
    RAISE EXCEPTION 'there is no queue `%`; known queues are: %', tidings.shown(wanted), coalesce(known, 'none')
        USING ERRCODE = 'TD003', COLUMN = 'queue', HINT = 'Leave it out for the queue of the kind.';
END
$$;

-- Says that something was committed. Only a hint, for after the commit; without it a poll finds the work.
CREATE FUNCTION tidings.wake() RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
SELECT pg_notify('tidings', 'q: e:')
$$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA tidings FROM PUBLIC;
