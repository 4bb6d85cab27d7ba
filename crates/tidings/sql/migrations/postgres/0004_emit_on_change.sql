-- Events that triggers record: `tidings.emit_on_change`. docs/sql.md is the contract.
--
-- An installation is one trigger function in the schema of its table, and one trigger an operation. The function
-- belongs to whoever installed it and runs as them: a subject is an SQL expression, and is never evaluated with
-- the rights of Tidings. Its first line says what was installed; the catalog is the only list of installations,
-- so that none can differ from what is there.

-- Changes that were not recorded because their table is not what it was at the installation: a sample, about one
-- row an hour for each function, so that writers do not wait for each other here.
CREATE TABLE tidings.emission_problem (
    function_name TEXT   NOT NULL,
    problem       TEXT   NOT NULL,
    seen_at_ms    BIGINT NOT NULL
);
CREATE INDEX emission_problem_by_function ON tidings.emission_problem (function_name, seen_at_ms);

-- Installs triggers that record an event of `type` when a row is inserted or deleted, or when a watched column
-- really changes. `subject` and `tenant` are SQL expressions over the row. Called again for the same table and
-- type, it replaces what was installed; with the same arguments it changes nothing and locks nothing.
CREATE FUNCTION tidings.emit_on_change(
    target regclass, columns text[], type text, subject text,
    operations text[] DEFAULT '{insert,update,delete}', tenant text DEFAULT ''''''
) RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    definition jsonb;
BEGIN
    PERFORM tidings.require_type(type);
    PERFORM tidings.check_emission(target, columns, operations);
    definition := jsonb_build_object(
        'layout', 1, 'table', target::text, 'table_oid', target::oid::bigint,
        'relation', (SELECT relname FROM pg_class WHERE oid = target), 'type', type, 'columns', columns,
        'subject', subject, 'tenant', tenant, 'operations', operations, 'key', tidings.key_columns(target));
    IF tidings.is_installed(target, definition) THEN
        RETURN;
    END IF;
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', target);
    -- Another program may have installed it while this one waited.
    IF NOT tidings.is_installed(target, definition) THEN
        PERFORM tidings.check_expressions(target, subject, tenant);
        PERFORM tidings.stop_emitting(target, type);
        PERFORM tidings.install_emission(target, definition);
    END IF;
END
$$;

-- Removes what emit_on_change installed; whether there was anything.
CREATE FUNCTION tidings.stop_emitting(target regclass, type text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made record;
    its_trigger record;
    any_there boolean := FALSE;
BEGIN
    FOR made IN
        SELECT * FROM tidings.installed_emissions() AS there
        WHERE there.target = stop_emitting.target AND there.definition ->> 'type' = stop_emitting.type
    LOOP
        FOR its_trigger IN
            SELECT tgname, tgrelid FROM pg_trigger WHERE tgfoid = made.function_oid AND tgparentid = 0
        LOOP
            EXECUTE format('DROP TRIGGER %I ON %s', its_trigger.tgname, its_trigger.tgrelid::regclass);
        END LOOP;
        EXECUTE format('DROP FUNCTION %s()', made.function_name);
        any_there := TRUE;
    END LOOP;
    RETURN any_there;
END
$$;

-- Refuses what cannot be installed, before anything is.
CREATE FUNCTION tidings.check_emission(target regclass, columns text[], operations text[]) RETURNS void
LANGUAGE plpgsql STABLE AS $$
DECLARE
    sort "char";
    place text;
    persistence "char";
    unknown text;
    known text;
BEGIN
    SELECT class.relkind, class.relnamespace::regnamespace::text, class.relpersistence INTO sort, place, persistence
    FROM pg_class AS class WHERE class.oid = target;
    IF sort IS DISTINCT FROM 'r' AND sort IS DISTINCT FROM 'p' THEN
        RAISE EXCEPTION '% is not a table; only tables have triggers for each row', coalesce(target::text, 'NULL')
            USING ERRCODE = '22023', COLUMN = 'target';
    ELSIF place IN ('tidings', 'pg_catalog', 'information_schema') OR persistence = 't' THEN
        RAISE EXCEPTION '% is temporary, or belongs to Tidings or the server; name a table of your own', target
            USING ERRCODE = '22023', COLUMN = 'target';
    END IF;
    SELECT string_agg(wanted.name, ', ') INTO unknown
    FROM unnest(columns) AS wanted (name)
    WHERE NOT EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = target AND attname = wanted.name AND attnum > 0
            AND NOT attisdropped
    );
    IF unknown IS NOT NULL THEN
        SELECT string_agg(attname, ', ' ORDER BY attnum) INTO known
        FROM pg_attribute WHERE attrelid = target AND attnum > 0 AND NOT attisdropped;
        RAISE EXCEPTION 'table % has no column %; it has: %', target, unknown, known
            USING ERRCODE = '42703', COLUMN = 'columns';
    ELSIF coalesce(cardinality(columns), 0) NOT BETWEEN 1 AND 100
        OR cardinality(columns) <> (SELECT count(DISTINCT name) FROM unnest(columns) AS wanted (name)) THEN
        RAISE EXCEPTION 'columns: name 1 to 100 columns of %, each once', target
            USING ERRCODE = '22023', COLUMN = 'columns';
    ELSIF coalesce(cardinality(operations), 0) = 0 OR NOT operations <@ '{insert,update,delete}'::text[] THEN
        RAISE EXCEPTION 'operations: write one or more of insert, update, delete'
            USING ERRCODE = '22023', COLUMN = 'operations';
    ELSIF NOT has_function_privilege('tidings.emit'::regproc::oid, 'EXECUTE')
        OR NOT has_function_privilege('tidings.note_emission_problem'::regproc::oid, 'EXECUTE') THEN
        RAISE EXCEPTION 'role % may not record events from triggers', current_user
            USING ERRCODE = '42501', HINT = format('GRANT EXECUTE ON FUNCTION tidings.emit, '
                'tidings.note_emission_problem TO %I; see docs/sql.md', current_user);
    END IF;
END
$$;

-- Evaluates the expressions over no row, with the names that the trigger function will know: those of the server.
-- A schema in which others create objects could slip them something to run as the installer.
CREATE FUNCTION tidings.check_expressions(target regclass, subject text, tenant text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    problem text;
BEGIN
    IF subject IS NULL OR tenant IS NULL THEN
        RAISE EXCEPTION 'subject and tenant are SQL expressions, for example ''note/'' || id'
            USING ERRCODE = '22023', COLUMN = 'subject';
    END IF;
    EXECUTE format(E'SELECT (%s\n)::text, (%s\n)::text FROM (SELECT * FROM %s) AS %I WHERE FALSE',
        subject, tenant, target, (SELECT relname FROM pg_class WHERE oid = target));
EXCEPTION WHEN syntax_error_or_access_rule_violation THEN
    GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT;
    RAISE EXCEPTION 'subject or tenant is not an expression over a row of %: %', target, problem
        USING ERRCODE = '22023', COLUMN = 'subject',
        HINT = 'Write SQL over its columns, for example ''note/'' || id; name functions of your own with their schema.';
END
$$;

CREATE FUNCTION tidings.key_columns(target regclass) RETURNS text[] LANGUAGE sql STABLE AS $$
SELECT ARRAY(
    SELECT attname::text
    FROM pg_catalog.pg_index
    JOIN pg_catalog.pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
    WHERE indrelid = target AND indisprimary
    ORDER BY attnum
)
$$;

-- Creates the function and the triggers of a definition, in the name of the caller.
CREATE FUNCTION tidings.install_emission(target regclass, definition jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    type CONSTANT text := definition ->> 'type';
    short CONSTANT text := CASE WHEN length(type) <= 40 THEN type
        ELSE left(type, 27) || '_' || left(md5(type), 12) END;
    operation text;
    place text;
    function_name text;
    changed text;
BEGIN
    SELECT relnamespace::regnamespace::text INTO place FROM pg_class WHERE oid = target;
    function_name := place || '.' || quote_ident('tidings_emit_' || left(translate(type, '.-', '__'), 30) || '_'
        || left(md5(target::oid || type), 12));
    SELECT string_agg(tidings.distinct_condition(attname, atttypid, atttypmod), ' OR ' ORDER BY attnum)
    INTO changed
    FROM pg_attribute
    WHERE attrelid = target AND attnum > 0 AND NOT attisdropped
        AND (definition -> 'columns' ? attname::text OR definition -> 'key' ? attname::text);
    EXECUTE format('CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER '
        'SET search_path = pg_catalog, pg_temp AS %L',
        function_name, tidings.emission_source(target, definition, function_name));
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s() FROM PUBLIC', function_name);
    FOR operation IN SELECT jsonb_array_elements_text(definition -> 'operations') LOOP
        EXECUTE format('CREATE TRIGGER %I AFTER %s ON %s FOR EACH ROW %s EXECUTE FUNCTION %s()',
            'tidings_' || operation || '_' || short, operation, target,
            CASE operation WHEN 'update' THEN format('WHEN (%s)', changed) END, function_name);
    END LOOP;
END
$$;

-- True where a column differs before and after. Types without equality are compared as text.
CREATE FUNCTION tidings.distinct_condition(name name, its_type oid, its_modifier integer) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    EXECUTE format('SELECT NULL::%1$s IS DISTINCT FROM NULL::%1$s', format_type(its_type, its_modifier));
    RETURN format('OLD.%1$I IS DISTINCT FROM NEW.%1$I', name);
EXCEPTION WHEN undefined_function THEN
    RETURN format('OLD.%1$I::text IS DISTINCT FROM NEW.%1$I::text', name);
END
$$;

-- The text of a trigger function. Its queries are planned once a session. A plan that is older than a change of
-- the table fails, and the row is read afresh, as far as the table still has the columns. Where that fails too,
-- there is no subject: the user's write goes on without an event, and the problem is noted.
CREATE FUNCTION tidings.emission_source(target regclass, definition jsonb, function_name text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    read CONSTANT text := tidings.row_query(target, definition);
    relation CONSTANT text := quote_ident(definition ->> 'relation');
    planned CONSTANT text := E'%1$s
            INTO %2$s_subject, %2$s_tenant, %2$s_values FROM (SELECT %3$s.*) AS %4$s;';
    afresh CONSTANT text := 'EXECUTE tidings.row_query(TG_RELID, %1$L) || %2$L
                INTO %3$s_subject, %3$s_tenant, %3$s_values USING %4$s;';
    from_row CONSTANT text := format(' FROM (SELECT ($1).*) AS %s', relation);
BEGIN
    RETURN '-- tidings.emission ' || definition::text || E'\n#variable_conflict use_column\nDECLARE
    before_subject text; before_tenant text; before_values text[];
    after_subject text; after_tenant text; after_values text[];
    problem text;
BEGIN
    BEGIN
        IF TG_OP <> ''INSERT'' THEN
        ' || format(planned, read, 'before', 'OLD', relation) || E'
        END IF;
        IF TG_OP <> ''DELETE'' THEN
        ' || format(planned, read, 'after', 'NEW', relation) || E'
        END IF;
    EXCEPTION WHEN syntax_error_or_access_rule_violation THEN
        BEGIN
            IF TG_OP <> ''INSERT'' THEN
                ' || format(afresh, definition, from_row, 'before', 'OLD') || E'
            END IF;
            IF TG_OP <> ''DELETE'' THEN
                ' || format(afresh, definition, from_row, 'after', 'NEW') || E'
            END IF;
        EXCEPTION WHEN syntax_error_or_access_rule_violation THEN
            GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT;
            PERFORM tidings.note_emission_problem(' || quote_literal(function_name) || E', problem);
            RETURN NULL;
        END;
    END;
    PERFORM tidings.emit(' || quote_literal(definition ->> 'type') || E', lower(TG_OP),
        ' || quote_literal(ARRAY(SELECT jsonb_array_elements_text(definition -> 'columns'))) || E',
        before_subject, after_subject, before_tenant, after_tenant, before_values, after_values);
    RETURN NULL;
END
';
END
$$;

-- The query that reads one row: subject, tenant, and the watched values as JSON text. A column that the table has
-- no more is NULL, one that is NULL in the row is `null`.
CREATE FUNCTION tidings.row_query(target regclass, definition jsonb) RETURNS text LANGUAGE sql STABLE AS $$
SELECT format(E'SELECT (%s\n)::text, (%s\n)::text, ARRAY[%s]::text[]', definition ->> 'subject',
    definition ->> 'tenant', string_agg(
        CASE WHEN attname IS NULL THEN 'NULL'
            ELSE format('coalesce(to_json(%I.%I)::text, %L)', definition ->> 'relation', name, 'null') END,
        ', ' ORDER BY place))
FROM jsonb_array_elements_text(definition -> 'columns') WITH ORDINALITY AS listed (name, place)
LEFT JOIN pg_catalog.pg_attribute ON attrelid = target AND attname = name AND NOT attisdropped
$$;

-- Called by the trigger functions: records what happened to one row. The subject is the last one that was known.
CREATE FUNCTION tidings.emit(
    type text, operation text, columns text[], before_subject text, after_subject text, before_tenant text,
    after_tenant text, before_values text[], after_values text[]
) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    subject CONSTANT text := coalesce(CASE operation WHEN 'insert' THEN after_subject ELSE before_subject END, '');
    tenant CONSTANT text := coalesce(CASE operation WHEN 'insert' THEN after_tenant ELSE before_tenant END, '');
    changed text[] := columns;
    more text := '';
    data text;
BEGIN
    IF operation = 'update' THEN
        changed := tidings.differing(columns, before_values, after_values);
        IF coalesce(after_subject, '') <> subject THEN
            more := more || ',"subject_new":' || to_json(coalesce(after_subject, ''))::text;
        END IF;
        IF coalesce(after_tenant, '') <> tenant THEN
            more := more || ',"tenant_new":' || to_json(coalesce(after_tenant, ''))::text;
        END IF;
        IF changed = '{}' AND more = '' AND array_position(after_values, NULL) IS NULL THEN
            -- Only the primary key changed, and neither the subject nor a watched column is made of it.
            RETURN;
        END IF;
    END IF;
    data := tidings.emitted(operation, columns, before_values, after_values, changed, more);
    IF tidings.payload_problem(data) IS NOT NULL THEN
        -- Rather an event without a value than a write that fails for one.
        data := tidings.emitted(operation, columns, tidings.only_small(before_values),
            tidings.only_small(after_values), changed, more || ',"left_out":' || array_to_json(ARRAY(
                SELECT name FROM unnest(columns, before_values, after_values) AS one (name, before, after)
                WHERE NOT tidings.is_small(before, cardinality(columns))
                    OR NOT tidings.is_small(after, cardinality(columns))
            ))::text);
    END IF;
    PERFORM tidings.record(type, subject, data::json, tenant);
END
$$;

CREATE FUNCTION tidings.emitted(
    operation text, columns text[], before_values text[], after_values text[], changed text[], more text
) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN '{"operation":"' || operation || '","old":' || tidings.emitted_row(columns, before_values)
        || ',"new":' || tidings.emitted_row(columns, after_values)
        || ',"changed":' || array_to_json(changed)::text || more || '}';
END
$$;

CREATE FUNCTION tidings.emitted_row(columns text[], its_values text[]) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    row text := '';
BEGIN
    IF its_values IS NULL THEN
        RETURN 'null';
    END IF;
    -- A loop: a query for each row of a large update would be most of its time.
    FOR place IN 1..cardinality(columns) LOOP
        IF its_values[place] IS NOT NULL THEN
            row := row || ',' || to_json(columns[place])::text || ':' || its_values[place];
        END IF;
    END LOOP;
    RETURN '{' || substr(row, 2) || '}';
END
$$;

CREATE FUNCTION tidings.differing(columns text[], before_values text[], after_values text[]) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    changed text[] := '{}';
BEGIN
    FOR place IN 1..cardinality(columns) LOOP
        IF before_values[place] IS DISTINCT FROM after_values[place] THEN
            changed := changed || columns[place];
        END IF;
    END LOOP;
    RETURN changed;
END
$$;

-- Whether a column's value can be in the data of an event, whatever the others are.
CREATE FUNCTION tidings.is_small(value text, columns integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
SELECT value IS NULL OR (octet_length(value) <= tidings.limit_of('args_bytes_max') / (4 * columns)
    AND tidings.payload_problem('[[' || value || ']]') IS NULL)
$$;

CREATE FUNCTION tidings.only_small(its_values text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
SELECT CASE WHEN its_values IS NOT NULL THEN ARRAY(
    SELECT CASE WHEN tidings.is_small(value, cardinality(its_values)) THEN value ELSE 'null' END
    FROM unnest(its_values) WITH ORDINALITY AS one (value, place)
    ORDER BY place
) END
$$;

-- Called by the trigger functions: a change was not recorded.
CREATE FUNCTION tidings.note_emission_problem(its_function text, its_problem text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now_ms CONSTANT bigint := tidings.now_ms();
BEGIN
    IF EXISTS (
        SELECT FROM tidings.emission_problem WHERE function_name = its_function AND seen_at_ms > now_ms - 3600000
    ) THEN
        RETURN;
    END IF;
    INSERT INTO tidings.emission_problem (function_name, problem, seen_at_ms)
    VALUES (left(its_function, 200), tidings.shown(its_problem), now_ms);
END
$$;

-- The definition in the first line of a trigger function; NULL where it has none that can be read.
CREATE FUNCTION tidings.emission_definition(source text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN substring(source FROM E'^-- tidings[.]emission ([{][^\\n]*[}])\\n')::jsonb;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;

-- The trigger functions that emit_on_change made, and their tables: by the triggers, or, where those are gone,
-- as the first line says.
CREATE FUNCTION tidings.installed_emissions() RETURNS TABLE (
    function_oid oid, function_name text, target oid, definition jsonb
) LANGUAGE sql STABLE AS $$
SELECT made.oid, made.name, coalesce(
    (SELECT tgrelid FROM pg_catalog.pg_trigger WHERE tgfoid = made.oid AND tgparentid = 0 LIMIT 1),
    (SELECT oid FROM pg_catalog.pg_class WHERE oid = (made.definition ->> 'table_oid')::oid
        AND oid::regclass::text = made.definition ->> 'table'),
    to_regclass(made.definition ->> 'table')
), made.definition
FROM (
    SELECT oid, pronamespace::regnamespace::text || '.' || quote_ident(proname) AS name,
        tidings.emission_definition(prosrc) AS definition
    FROM pg_catalog.pg_proc
    WHERE proname LIKE 'tidings@_emit@_%' ESCAPE '@' AND prorettype = 'pg_catalog.trigger'::regtype
) AS made
WHERE made.definition IS NOT NULL
$$;

-- Where an installation does not fit the table that there is.
CREATE FUNCTION tidings.misfits(function_oid oid, target oid, definition jsonb) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    made CONSTANT text := function_oid::regprocedure::text;
    missing text;
    found text[] := '{}';
BEGIN
    IF target IS NULL THEN
        RETURN ARRAY[format('table %s is gone: DROP FUNCTION %s', definition ->> 'table', made)];
    END IF;
    SELECT string_agg(name, ', ') INTO missing
    FROM jsonb_array_elements_text(definition -> 'columns') AS listed (name)
    WHERE NOT EXISTS (
        SELECT FROM pg_catalog.pg_attribute WHERE attrelid = target AND attname = name AND NOT attisdropped
    );
    IF missing IS NOT NULL THEN
        found := found || format('the table has no column %s any more: call tidings.emit_on_change with those '
            'that it has', missing);
    END IF;
    SELECT string_agg(name, ', ') INTO missing
    FROM jsonb_array_elements_text(definition -> 'operations') AS listed (name)
    WHERE NOT EXISTS (
        SELECT FROM pg_catalog.pg_trigger
        WHERE tgfoid = function_oid AND tgrelid = target AND tgenabled IN ('O', 'A')
            AND tgtype & CASE name WHEN 'insert' THEN 4 WHEN 'delete' THEN 8 ELSE 16 END <> 0
    );
    IF missing IS NOT NULL THEN
        found := found || format('its trigger for %s is gone or disabled, so that those are not recorded: call '
            'tidings.emit_on_change again, or tidings.stop_emitting', missing);
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_proc WHERE oid = function_oid
            AND has_function_privilege(proowner, 'tidings.emit'::regproc::oid, 'EXECUTE')
    ) THEN
        found := found || format('the owner of %s may not record events any more: GRANT EXECUTE ON FUNCTION '
            'tidings.emit, tidings.note_emission_problem to it', made);
    END IF;
    RETURN found;
END
$$;

-- Whether just this is installed, and nothing is wrong with it.
CREATE FUNCTION tidings.is_installed(target regclass, definition jsonb) RETURNS boolean LANGUAGE sql VOLATILE AS $$
SELECT EXISTS (
    SELECT FROM tidings.installed_emissions() AS there
    WHERE there.target = is_installed.target AND there.definition = is_installed.definition
        AND tidings.misfits(there.function_oid, there.target, there.definition) = '{}'
)
$$;

-- What is wrong with an installation, in sentences, changes that were lost in the last week included.
CREATE FUNCTION tidings.emission_problems(function_oid oid, its_name text, target oid, definition jsonb)
RETURNS text[] LANGUAGE sql STABLE AS $$
SELECT tidings.misfits(function_oid, target, definition) || ARRAY(
    SELECT format('changes were not recorded between %s and %s: %s',
        to_timestamp(min(seen_at_ms) / 1000), to_timestamp(max(seen_at_ms) / 1000), problem)
    FROM tidings.emission_problem
    WHERE function_name = its_name AND seen_at_ms > tidings.now_ms() - 604800000
    GROUP BY problem
)
$$;

-- What is installed, and what is wrong with it; `problem` is NULL where nothing is.
CREATE FUNCTION tidings.emissions() RETURNS TABLE (
    target text, type text, columns text[], subject text, tenant text, operations text[], problem text
) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
SELECT
    coalesce(there.target::regclass::text, there.definition ->> 'table'), there.definition ->> 'type',
    ARRAY(SELECT jsonb_array_elements_text(there.definition -> 'columns')),
    there.definition ->> 'subject', there.definition ->> 'tenant',
    ARRAY(SELECT jsonb_array_elements_text(there.definition -> 'operations')),
    concat_ws('; ', VARIADIC nullif(
        tidings.emission_problems(there.function_oid, there.function_name, there.target, there.definition), '{}'))
FROM tidings.installed_emissions() AS there
ORDER BY 1, 2
$$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA tidings FROM PUBLIC;
-- What emit_on_change calls as its caller. None of these reaches a table that the caller may not, and
-- require_type tells no more than tidings.record does.
GRANT EXECUTE ON FUNCTION
    tidings.require_type, tidings.limit_of, tidings.shown, tidings.check_emission, tidings.check_expressions,
    tidings.key_columns, tidings.install_emission, tidings.distinct_condition, tidings.emission_source,
    tidings.row_query, tidings.installed_emissions, tidings.emission_definition, tidings.is_installed,
    tidings.misfits
    TO PUBLIC;
