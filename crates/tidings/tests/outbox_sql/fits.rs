//! Installing, replacing and removing triggers, and what happens when a table is altered under them.

use crate::fixture::{Place, events, place, refusal, text};
use serde_json::json;
use tidings::store::OpenOptions;
use tidings::store::postgres::PostgresStore;
use tokio_postgres::Client;

const INSTALL: &str = "SELECT tidings.emit_on_change('note', '{title,body}', 'note.changed',
    $$'note/' || coalesce(slug, id::text)$$)";

async fn watched(place: &Place) -> Client {
    let client = place.client().await;
    client
        .batch_execute("CREATE TABLE note (id int PRIMARY KEY, slug text, title text, body text, extra int)")
        .await
        .unwrap();
    client.query(INSTALL, &[]).await.unwrap();
    client
}

async fn triggers(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'tidings@_%' ESCAPE '@'").await
}

async fn functions(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM pg_proc WHERE proname LIKE 'tidings@_emit@_%' ESCAPE '@'").await
}

/// What is wrong, as a start of the program says it too.
async fn problem(place: &Place) -> String {
    let store = PostgresStore::open(place.database.url(), &OpenOptions::default()).await.unwrap();
    let broken = store.broken_emissions().await.unwrap();
    broken.iter().map(|broken| format!("{} {}: {}", broken.table, broken.type_name, broken.problem)).collect()
}

#[tokio::test]
async fn called_again_it_replaces_what_it_installed_and_with_the_same_arguments_it_locks_nothing() {
    let place = place().await;
    let client = watched(&place).await;
    assert_eq!((triggers(&place).await, functions(&place).await), (3, 1));
    // Somebody reads the table, which would keep a trigger from being dropped.
    let reader = place.client().await;
    reader.batch_execute("BEGIN; LOCK TABLE note IN ROW EXCLUSIVE MODE").await.unwrap();
    client.batch_execute("SET lock_timeout = '10s'").await.unwrap();
    client.query(INSTALL, &[]).await.unwrap();
    reader.batch_execute("COMMIT").await.unwrap();

    let inserts = "SELECT tidings.emit_on_change('note', '{id}', 'note.changed', 'id', '{insert}')";
    client.query(inserts, &[]).await.unwrap();
    assert_eq!((triggers(&place).await, functions(&place).await), (1, 1));
    client.query("SELECT tidings.emit_on_change('note', '{id}', 'note.created', 'id')", &[]).await.unwrap();
    assert_eq!(
        (triggers(&place).await, functions(&place).await),
        (4, 2),
        "another type is another installation"
    );
    client.batch_execute("INSERT INTO note VALUES (7)").await.unwrap();
    let types: Vec<String> = events(&client).await.into_iter().map(|event| event.0).collect();
    assert_eq!(types, ["note.changed", "note.created"]);
    let listed = "SELECT string_agg(concat_ws(' ', target, type, columns, subject, operations), '; ')
                  FROM tidings.emissions()";
    let listed = text(&client, listed).await;
    assert_eq!(
        listed,
        "public.note note.changed {id} id {insert}; public.note note.created {id} id {insert,update,delete}"
    );

    for there in [true, false] {
        let stop =
            client.query_one("SELECT tidings.stop_emitting('note', 'note.changed')", &[]).await.unwrap();
        assert_eq!(stop.get::<_, bool>(0), there);
    }
    client.query("SELECT tidings.stop_emitting('note', 'note.created')", &[]).await.unwrap();
    assert_eq!((triggers(&place).await, functions(&place).await), (0, 0));
    client.batch_execute("INSERT INTO note VALUES (8)").await.unwrap();
    assert_eq!(events(&client).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_install_at_once_install_once() {
    let place = place().await;
    place
        .client()
        .await
        .batch_execute("CREATE TABLE note (id int, slug text, title text, body text)")
        .await
        .unwrap();
    let mut programs = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let client = place.client().await;
        programs.spawn(async move { client.query(INSTALL, &[]).await.map(drop) });
    }
    while let Some(installed) = programs.join_next().await {
        installed.unwrap().unwrap();
    }
    assert_eq!((triggers(&place).await, functions(&place).await), (3, 1));
}

#[tokio::test]
async fn what_cannot_be_installed_is_refused_with_what_to_do() {
    let place = place().await;
    let client = place.client().await;
    client
        .batch_execute(
            "CREATE TABLE note (id int, title text); CREATE VIEW seen AS SELECT * FROM note;
             CREATE TEMP TABLE passing (id int);
             CREATE FUNCTION mine(int) RETURNS text LANGUAGE sql AS 'SELECT 1'",
        )
        .await
        .unwrap();
    for (call, code, message) in [
        (
            "'note', '{titel}', 'note.changed', 'id'",
            "42703",
            "table public.note has no column titel; it has: id, title",
        ),
        ("'note', '{}', 'note.changed', 'id'", "22023", "name 1 to 100 columns"),
        ("'note', NULL, 'note.changed', 'id'", "22023", "name 1 to 100 columns"),
        ("'note', '{id,id}', 'note.changed', 'id'", "22023", "each once"),
        ("'note', '{id}', 'note.gone', 'id'", "TD001", "is not declared"),
        (
            "'note', '{id}', 'note.changed', 'it'",
            "22023",
            "not an expression over a row of public.note: column \"it\" does not exist",
        ),
        (
            "'note', '{id}', 'note.changed', 'id ||'",
            "22023",
            "not an expression over a row of public.note: syntax error",
        ),
        ("'note', '{id}', 'note.changed', NULL", "22023", "are SQL expressions"),
        (
            "'note', '{id}', 'note.changed', 'id', tenant => 'nobody'",
            "22023",
            "column \"nobody\" does not exist",
        ),
        (
            "'note', '{id}', 'note.changed', 'id', '{truncate}'",
            "22023",
            "write one or more of insert, update, delete",
        ),
        (
            "'note', '{id}', 'note.changed', 'id', '{}'",
            "22023",
            "write one or more of insert, update, delete",
        ),
        ("'seen', '{id}', 'note.changed', 'id'", "22023", "public.seen is not a table"),
        ("NULL, '{id}', 'note.changed', 'id'", "22023", "NULL is not a table"),
        ("'tidings.job', '{id}', 'note.changed', 'id'", "22023", "name a table of your own"),
        ("'passing', '{id}', 'note.changed', 'id'", "22023", "passing is temporary"),
        ("'note', '{id}', 'note.changed', 'mine(id)'", "22023", "function mine(integer) does not exist"),
        ("'gone', '{id}', 'note.changed', 'id'", "42P01", "does not exist"),
    ] {
        let found = refusal(&client, &format!("SELECT tidings.emit_on_change({call})")).await;
        assert_eq!(found.0, code, "{call}: {found:?}");
        assert!(found.1.contains(message), "{call}: {found:?}");
    }
    assert_eq!((triggers(&place).await, functions(&place).await), (0, 0));
    assert_eq!(problem(&place).await, "");
}

/// The server itself says which trigger needs the column, before anything is dropped.
#[tokio::test]
async fn a_watched_column_is_not_dropped_unnoticed() {
    let place = place().await;
    let client = watched(&place).await;
    let (code, ..) = refusal(&client, "ALTER TABLE note DROP COLUMN title").await;
    assert_eq!(code, "2BP01");
    let refused = client.batch_execute("ALTER TABLE note DROP COLUMN title").await.unwrap_err();
    let detail = refused.as_db_error().unwrap().detail().unwrap().to_owned();
    assert!(
        detail.contains("trigger tidings_update_note.changed on table note depends on column title"),
        "{detail}"
    );
    // As docs/sql.md says to do it.
    client
        .batch_execute(
            "BEGIN; SELECT tidings.emit_on_change('note', '{body}', 'note.changed', '''note/'' || id');
             ALTER TABLE note DROP COLUMN title; COMMIT; INSERT INTO note (id, body) VALUES (1, 'b')",
        )
        .await
        .unwrap();
    assert_eq!(events(&client).await[0].2["new"], json!({"body": "b"}));
    assert_eq!(problem(&place).await, "");
}

/// In open sessions and in new ones; the event has what the table still has.
#[tokio::test]
async fn a_column_that_was_dropped_all_the_same_breaks_no_write_and_is_said() {
    let place = place().await;
    let old_session = watched(&place).await;
    old_session.batch_execute("INSERT INTO note (id, title, body) VALUES (1, 'a', 'b')").await.unwrap();
    old_session.batch_execute("ALTER TABLE note DROP COLUMN title CASCADE").await.unwrap();
    let said = problem(&place).await;
    assert!(
        said.starts_with("public.note note.changed: the table has no column title any more: call"),
        "{said}"
    );
    assert!(
        said.contains("its trigger for update is gone or disabled, so that those are not recorded"),
        "{said}"
    );

    old_session
        .batch_execute("INSERT INTO note (id, body) VALUES (2, 'b'); UPDATE note SET body = 'c'")
        .await
        .unwrap();
    let new_session = place.client().await;
    new_session
        .batch_execute("INSERT INTO note (id, body) VALUES (3, 'b'); DELETE FROM note WHERE id = 1")
        .await
        .unwrap();
    let found = events(&old_session).await;
    let subjects: Vec<&str> = found.iter().map(|event| &*event.1).collect();
    assert_eq!(subjects, ["note/1", "note/2", "note/3", "note/1"]);
    assert_eq!(found[2].2["new"], json!({"body": "b"}));

    new_session.query(&INSTALL.replace("title,", ""), &[]).await.unwrap();
    assert_eq!(problem(&place).await, "");
}

#[tokio::test]
async fn a_renamed_column_breaks_no_write_and_is_said() {
    let place = place().await;
    let client = watched(&place).await;
    client.batch_execute("INSERT INTO note (id, title) VALUES (1, 'a')").await.unwrap();
    client.batch_execute("ALTER TABLE note RENAME COLUMN title TO heading").await.unwrap();
    let said = problem(&place).await;
    assert!(said.contains("the table has no column title any more"), "{said}");
    for session in [client, place.client().await] {
        let before = events(&session).await.len();
        session.batch_execute("UPDATE note SET heading = heading || 'x'").await.unwrap();
        assert_eq!(events(&session).await.len(), before + 1, "the change is not lost");
    }
}

#[tokio::test]
async fn a_subject_that_cannot_be_told_any_more_breaks_no_write_and_is_said() {
    let place = place().await;
    let client = watched(&place).await;
    client.batch_execute("ALTER TABLE note DROP COLUMN slug").await.unwrap();
    for _ in 0..3 {
        client
            .batch_execute("INSERT INTO note (id) SELECT coalesce(max(id), 0) + 1 FROM note")
            .await
            .unwrap();
    }
    assert_eq!(place.number("SELECT count(*) FROM note").await, 3);
    assert_eq!(events(&client).await, []);
    let said = problem(&place).await;
    assert!(
        said.contains("changes were not recorded between") && said.contains("column \"slug\" does not exist"),
        "{said}"
    );
    assert_eq!(place.number("SELECT count(*) FROM tidings.emission_problem").await, 1, "a sample, not a log");
}

/// Sessions keep plans; a type that changed under them must not fail a write.
#[tokio::test]
async fn a_column_whose_type_changed_breaks_no_write_in_open_sessions() {
    let place = place().await;
    let client = watched(&place).await;
    let install = "SELECT tidings.emit_on_change('note', '{title}', 'note.changed',
                       $$id || coalesce(extra::text, '')$$)";
    client.query(install, &[]).await.unwrap();
    client.batch_execute("INSERT INTO note (id, extra) VALUES (1, 10)").await.unwrap();
    for alter in ["TYPE bigint", "TYPE text", "TYPE numeric USING extra::numeric"] {
        client.batch_execute(&format!("ALTER TABLE note ALTER COLUMN extra {alter}")).await.unwrap();
        client.batch_execute("UPDATE note SET title = coalesce(title, '') || 'x'").await.unwrap();
    }
    client
        .batch_execute("ALTER TABLE note ADD COLUMN more text; ALTER TABLE note DROP COLUMN body")
        .await
        .unwrap();
    client.batch_execute("UPDATE note SET title = 'y'").await.unwrap();
    let found = events(&client).await;
    let subjects: Vec<&str> = found.iter().map(|event| &*event.1).collect();
    assert_eq!(subjects, ["110"; 5]);
    assert_eq!(found[4].2["new"], json!({"title": "y"}));
    let (code, message, _) = refusal(&client, "ALTER TABLE note ALTER COLUMN title TYPE varchar(9)").await;
    assert_eq!(code, "0A000", "{message}");
}

#[tokio::test]
async fn a_table_may_be_renamed_and_moved_and_goes_without_a_trace() {
    let place = place().await;
    let client = watched(&place).await;
    client
        .batch_execute(
            "CREATE SCHEMA elsewhere; ALTER TABLE note RENAME TO notes;
             ALTER TABLE notes SET SCHEMA elsewhere",
        )
        .await
        .unwrap();
    client.batch_execute("INSERT INTO elsewhere.notes (id, title) VALUES (1, 'a')").await.unwrap();
    assert_eq!(events(&client).await[0].1, "note/1");
    assert_eq!(problem(&place).await, "");
    let listed = text(&client, "SELECT target FROM tidings.emissions()").await;
    assert_eq!(listed, "elsewhere.notes");

    client.batch_execute("ALTER TABLE elsewhere.notes DISABLE TRIGGER USER").await.unwrap();
    assert!(problem(&place).await.contains("trigger for insert, update, delete is gone or disabled"));
    client.batch_execute("DROP TABLE elsewhere.notes").await.unwrap();
    let said = problem(&place).await;
    assert!(
        said.contains("table public.note is gone: DROP FUNCTION public.tidings_emit_note_changed_"),
        "{said}"
    );
}

/// What is no definition of ours is not read as one.
#[tokio::test]
async fn somebody_elses_function_of_a_like_name_is_left_alone() {
    let place = place().await;
    let client = watched(&place).await;
    for body in ["-- tidings.emission {broken}", "-- tidings.emission {\"a\": \"\\ud800\"}", "-- nothing"] {
        let create = format!(
            "CREATE OR REPLACE FUNCTION tidings_emit_mine() RETURNS trigger LANGUAGE plpgsql
             AS $f${body}\nBEGIN END$f$"
        );
        client.batch_execute(&create).await.unwrap();
        assert_eq!(place.number("SELECT count(*) FROM tidings.emissions()").await, 1, "{body}");
    }
}
