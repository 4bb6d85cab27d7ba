//! What a role may do that was granted the functions, and what it may not.

use crate::fixture::{place, refusal, text};

#[tokio::test]
async fn an_application_role_calls_the_functions_and_reads_no_table() {
    let place = place().await;
    let (client, role) = place.client_as("app").await;
    let admin = place.client().await;
    let record = "SELECT tidings.record('note.changed', '', '{}')";
    assert_eq!(refusal(&client, record).await.0, "42501", "nothing is granted to everybody");
    admin.batch_execute(&format!("GRANT USAGE ON SCHEMA tidings TO {role}")).await.unwrap();
    assert_eq!(refusal(&client, record).await.0, "42501", "nor with the schema");
    admin
        .batch_execute(&format!(
            "GRANT EXECUTE ON FUNCTION tidings.record, tidings.enqueue, tidings.wake TO {role}"
        ))
        .await
        .unwrap();

    assert!(text(&client, record).await.starts_with("evt_"));
    let enqueue = "SELECT tidings.enqueue('note', '{}', unique_key => 'u', idempotency_key => 'k')";
    assert!(text(&client, enqueue).await.starts_with("job_"));
    client.query("SELECT tidings.wake()", &[]).await.unwrap();
    let tables = admin
        .query(
            "SELECT c.oid::regclass::text FROM pg_class AS c WHERE relnamespace = 'tidings'::regnamespace
                AND relkind IN ('r', 'p', 'v')",
            &[],
        )
        .await
        .unwrap();
    assert!(tables.len() > 10);
    for row in &tables {
        let table: &str = row.get(0);
        for query in [format!("SELECT * FROM {table}"), format!("TABLE {table} LIMIT 0")] {
            assert_eq!(refusal(&client, &query).await.0, "42501", "{query}");
        }
    }
    for query in [
        "SELECT tidings.take_key('', 'event', '', gen_random_uuid(), NULL, NULL)",
        "SELECT tidings.emit('note.changed', 'insert', '{}', '', '', '', '', '{}', '{}')",
        "SELECT nextval('tidings.id_order')",
        "SELECT * FROM tidings.emissions()",
    ] {
        assert_eq!(refusal(&client, query).await.0, "42501", "{query}");
    }
    place.drop_roles(&[&role]).await;
}

/// A caller's `search_path` and objects of the same names do not reach into a function that
/// runs as somebody else.
#[tokio::test]
async fn a_callers_own_objects_are_not_used_with_the_rights_of_tidings() {
    let place = place().await;
    let (client, role) = place.client_as("mallory").await;
    place
        .client()
        .await
        .batch_execute(&format!(
            "GRANT USAGE ON SCHEMA tidings TO {role}; CREATE SCHEMA mine AUTHORIZATION {role};
             GRANT EXECUTE ON FUNCTION tidings.record, tidings.enqueue TO {role}"
        ))
        .await
        .unwrap();
    client
        .batch_execute(
            "SET search_path = mine, pg_temp, pg_catalog, tidings;
             CREATE FUNCTION mine.stolen() RETURNS text LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$;
             CREATE FUNCTION mine.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT stolen()::bytea';
             CREATE FUNCTION mine.coalesce_any(text) RETURNS text LANGUAGE sql AS 'SELECT stolen()';
             CREATE FUNCTION mine.octet_length(text) RETURNS integer LANGUAGE sql AS 'SELECT stolen()::int';
             CREATE FUNCTION mine.replace(text, text, text) RETURNS text LANGUAGE sql AS 'SELECT stolen()';
             CREATE TEMP TABLE event_type (name text)",
        )
        .await
        .unwrap();
    text(&client, "SELECT tidings.record('note.changed', 'x', '{}', key => 'k')").await;
    text(&client, "SELECT tidings.enqueue('note', '{}', unique_key => 'k', idempotency_key => 'k')").await;
    place.drop_roles(&[&role]).await;
}

/// A subject is an expression of whoever installs the triggers: it is evaluated as them, also
/// when somebody else writes the row, and writers need no grant.
#[tokio::test]
async fn triggers_run_as_whoever_installed_them_and_writers_need_no_grant() {
    let place = place().await;
    let (owner, owner_role) = place.client_as("owner").await;
    let (writer, writer_role) = place.client_as("writer").await;
    let admin = place.client().await;
    admin
        .batch_execute(&format!(
            "GRANT USAGE ON SCHEMA tidings TO {owner_role};
             GRANT EXECUTE ON FUNCTION tidings.emit_on_change, tidings.stop_emitting TO {owner_role};
             CREATE SCHEMA shop AUTHORIZATION {owner_role}; GRANT USAGE ON SCHEMA shop TO {writer_role};"
        ))
        .await
        .unwrap();
    let table =
        format!("CREATE TABLE shop.note (id int, title text); GRANT ALL ON shop.note TO {writer_role}");
    owner.batch_execute(&table).await.unwrap();
    let install =
        "SELECT tidings.emit_on_change('shop.note', '{title}', 'note.changed', 'current_user || id')";
    let (code, message, _) = refusal(&owner, install).await;
    assert_eq!(code, "42501");
    assert!(
        message.contains(&owner_role) && message.contains("may not record events from triggers"),
        "{message}"
    );
    admin
        .batch_execute(&format!(
            "GRANT EXECUTE ON FUNCTION tidings.emit, tidings.note_emission_problem TO {owner_role}"
        ))
        .await
        .unwrap();
    owner.query(install, &[]).await.unwrap();
    writer.batch_execute("INSERT INTO shop.note VALUES (1, 'a')").await.unwrap();
    let found = crate::fixture::events(&admin).await;
    assert_eq!(found[0].1, format!("{owner_role}1"));

    // Not even the installer reads what only Tidings may read.
    let steal = "SELECT tidings.emit_on_change('shop.note', '{title}', 'note.changed',
                    '(SELECT data FROM tidings.event LIMIT 1)')";
    let (code, message, _) = refusal(&owner, steal).await;
    assert_eq!(code, "22023");
    assert!(message.contains("permission denied"), "{message}");
    // Nobody else attaches the function to a table of their own.
    let borrowed: String =
        text(&admin, "SELECT oid::regproc::text FROM pg_proc WHERE proname LIKE 'tidings_emit_%'").await;
    let attach = format!(
        "CREATE TEMP TABLE mine (id int, title text);
         CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION {borrowed}()"
    );
    let refused = writer.batch_execute(&attach).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501", "{refused:?}");
    // The writer may not install on a table of somebody else either.
    assert_eq!(refusal(&writer, install).await.0, "42501");
    place.drop_roles(&[&owner_role, &writer_role]).await;
}
