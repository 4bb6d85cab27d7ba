//! `emit_on_change`: an event for every real change of a watched column, and for nothing else.

use crate::fixture::{Place, events, place};
use bytes::Bytes;
use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_postgres::Client;

/// A table of notes whose title and body are watched.
async fn watched(place: &Place) -> Client {
    let client = place.client().await;
    client
        .batch_execute(
            "CREATE TABLE note (id int PRIMARY KEY, title text, body text, touched_at timestamptz);
             SELECT tidings.emit_on_change('note', '{title,body}', 'note.changed', '''note/'' || id')",
        )
        .await
        .unwrap();
    client
}

/// Subject and data of what the statements emitted.
async fn emitted(client: &Client, statements: &str) -> Vec<(String, Value)> {
    client.batch_execute("DELETE FROM tidings.event").await.unwrap();
    client.batch_execute(statements).await.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    events(client).await.into_iter().map(|(_, subject, data)| (subject, data)).collect()
}

fn note(id: i32, data: Value) -> (String, Value) {
    (format!("note/{id}"), data)
}

#[tokio::test]
async fn insert_update_and_delete_emit_the_watched_columns_before_and_after() {
    let place = place().await;
    let client = watched(&place).await;
    assert_eq!(
        emitted(&client, "INSERT INTO note VALUES (1, 'a', NULL, now())").await,
        [note(
            1,
            json!({"operation": "insert", "old": null, "new": {"title": "a", "body": null},
                        "changed": ["title", "body"]})
        )]
    );
    assert_eq!(
        emitted(&client, "UPDATE note SET title = 'b'").await,
        [note(
            1,
            json!({"operation": "update", "old": {"title": "a", "body": null},
                        "new": {"title": "b", "body": null}, "changed": ["title"]})
        )]
    );
    assert_eq!(
        emitted(&client, "DELETE FROM note").await,
        [note(
            1,
            json!({"operation": "delete", "old": {"title": "b", "body": null}, "new": null,
                        "changed": ["title", "body"]})
        )]
    );
}

#[tokio::test]
async fn what_changes_no_watched_column_emits_nothing() {
    let place = place().await;
    let client = watched(&place).await;
    client
        .batch_execute("INSERT INTO note VALUES (1, 'a', NULL, NULL), (2, NULL, NULL, NULL)")
        .await
        .unwrap();
    for nothing in [
        "UPDATE note SET touched_at = now()",
        "UPDATE note SET title = title, body = NULL",
        "UPDATE note SET title = 'a' WHERE id = 1",
        "INSERT INTO note VALUES (1, 'a', NULL, NULL) ON CONFLICT (id) DO UPDATE SET title = excluded.title",
        "INSERT INTO note VALUES (1, 'a', NULL, NULL) ON CONFLICT DO NOTHING",
        "DELETE FROM note WHERE id = 3",
        "BEGIN; UPDATE note SET title = 'b'; ROLLBACK",
    ] {
        assert_eq!(emitted(&client, nothing).await, [], "{nothing}");
    }
}

#[tokio::test]
async fn to_and_from_null_is_a_change() {
    let place = place().await;
    let client = watched(&place).await;
    client.batch_execute("INSERT INTO note VALUES (1, NULL, NULL, NULL)").await.unwrap();
    for (statement, old, new) in [
        ("UPDATE note SET body = ''", json!(null), json!("")),
        ("UPDATE note SET body = NULL", json!(""), json!(null)),
    ] {
        let found = emitted(&client, statement).await;
        assert_eq!((&found[0].1["old"]["body"], &found[0].1["new"]["body"]), (&old, &new));
        assert_eq!(found[0].1["changed"], json!(["body"]));
    }
}

/// An upsert is what it did.
#[tokio::test]
async fn an_upsert_emits_what_it_did() {
    let place = place().await;
    let client = watched(&place).await;
    let upsert = "INSERT INTO note VALUES (1, 'x', NULL, now()) ON CONFLICT (id) DO UPDATE SET title = 'y'";
    for operation in ["insert", "update"] {
        assert_eq!(emitted(&client, upsert).await[0].1["operation"], operation);
    }
}

/// A change of the key alone is one too: what knows the thing by its old name has to hear of it.
#[tokio::test]
async fn a_changed_key_keeps_the_last_known_subject_and_says_the_new_one() {
    let place = place().await;
    let client = watched(&place).await;
    client.batch_execute("INSERT INTO note VALUES (1, 'a', NULL, NULL)").await.unwrap();
    let found = emitted(&client, "UPDATE note SET id = 2").await;
    assert_eq!(found[0].0, "note/1");
    assert_eq!((&found[0].1["subject_new"], &found[0].1["changed"]), (&json!("note/2"), &json!([])));
    let found = emitted(&client, "UPDATE note SET id = 3, title = 'b'").await;
    assert_eq!((&*found[0].0, &found[0].1["subject_new"]), ("note/2", &json!("note/3")));
    assert_eq!(found[0].1["changed"], json!(["title"]));
    assert_eq!(emitted(&client, "DELETE FROM note").await[0].0, "note/3");
}

#[tokio::test]
async fn copy_and_statements_of_many_rows_emit_for_every_row() {
    let place = place().await;
    let client = watched(&place).await;
    let copy = client.copy_in("COPY note (id, title) FROM STDIN").await.unwrap();
    let lines: String = (1..=2_000).map(|id| format!("{id}\ttitle {id}\n")).collect();
    let mut copy = std::pin::pin!(copy);
    copy.send(Bytes::from(lines)).await.unwrap();
    assert_eq!(copy.finish().await.unwrap(), 2_000);
    assert_eq!(events(&client).await.len(), 2_000);

    let found = emitted(&client, "UPDATE note SET title = 'x' WHERE id % 2 = 0").await;
    assert_eq!(found.len(), 1_000);
    let found = emitted(&client, "UPDATE note SET title = 'x', touched_at = now()").await;
    assert_eq!(found.len(), 1_000, "the others have it already");
    let subjects: std::collections::BTreeSet<String> =
        found.into_iter().map(|(subject, _)| subject).collect();
    assert_eq!(subjects.len(), 1_000);
    let found = emitted(&client, "DELETE FROM note").await;
    assert_eq!(found.len(), 2_000);
    assert!(found.iter().all(|(_, data)| data["old"]["title"] == "x"));
}

#[tokio::test]
async fn rows_of_a_partitioned_table_emit_and_one_that_moves_is_deleted_and_inserted() {
    let place = place().await;
    let client = place.client().await;
    client
        .batch_execute(
            "CREATE TABLE part (id int, shard int, v text, PRIMARY KEY (id, shard)) PARTITION BY LIST (shard);
             CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
             SELECT tidings.emit_on_change('part', '{v}', 'note.changed', '''part/'' || part.id');
             CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2)",
        )
        .await
        .unwrap();
    let operations = |found: Vec<(String, Value)>| -> Vec<String> {
        found.iter().map(|(_, data)| data["operation"].as_str().unwrap().to_owned()).collect()
    };
    let found = emitted(&client, "INSERT INTO part VALUES (1, 1, 'a'), (2, 2, 'b')").await;
    assert_eq!(found[1].0, "part/2");
    assert_eq!(operations(emitted(&client, "UPDATE part SET v = 'c'").await), ["update", "update"]);
    let moved = emitted(&client, "UPDATE part SET shard = 2 WHERE id = 1").await;
    assert_eq!(operations(moved), ["delete", "insert"]);
}

#[tokio::test]
async fn every_type_of_column_can_be_watched() {
    let place = place().await;
    let client = place.client().await;
    client
        .batch_execute(
            "CREATE TYPE pair AS (a int, b text);
             CREATE TABLE odd (id int, j json, b jsonb, p point, x xml, n numeric, f float8, y bytea,
                 t timestamptz, a int[], c pair, i bigint, \"Mixed Case\" text, old text, new text,
                 problem text, before_subject text);
             SELECT tidings.emit_on_change('odd',
                 '{j,b,p,x,n,f,y,t,a,c,i,\"Mixed Case\",old,new,problem,before_subject}', 'note.changed',
                 'old || problem || odd.id')",
        )
        .await
        .unwrap();
    let insert = r#"SET TIME ZONE 'UTC';
        INSERT INTO odd VALUES (1, '{"z": 1, "a": 1e2}', '{"z": 1}', '(1,2)', '<a/>', 'NaN', 'Infinity',
            '\x00ff', '2026-01-01', '{1,NULL}', '(1,x)', 9223372036854775807, 'm', 'o', 'n', 'p', 's')"#;
    let found = emitted(&client, insert).await;
    assert_eq!(found[0].0, "op1");
    assert_eq!(
        found[0].1["new"],
        json!({"j": {"z": 1, "a": 1e2}, "b": {"z": 1}, "p": "(1,2)", "x": "<a/>", "n": "NaN", "f": "Infinity",
               "y": "\\x00ff", "t": "2026-01-01T00:00:00+00:00", "a": [1, null], "c": {"a": 1, "b": "x"},
               "i": 9_223_372_036_854_775_807_i64, "Mixed Case": "m", "old": "o", "new": "n", "problem": "p",
               "before_subject": "s"})
    );
    assert_eq!(emitted(&client, "UPDATE odd SET j = j, p = p, x = x, id = 2").await, []);
    let found = emitted(&client, r#"UPDATE odd SET p = '(1,3)', "Mixed Case" = 'M'"#).await;
    assert_eq!(found[0].1["changed"], json!(["p", "Mixed Case"]));
}

/// Rather an event without a value than a write that fails for one.
#[tokio::test]
async fn a_value_that_no_event_can_hold_is_left_out_and_named() {
    let place = place().await;
    let client = watched(&place).await;
    let found = emitted(&client, "INSERT INTO note VALUES (1, 'a', repeat('x', 300000), NULL)").await;
    assert_eq!(found[0].1["new"], json!({"title": "a", "body": null}));
    assert_eq!(found[0].1["left_out"], json!(["body"]));
    let found = emitted(&client, "UPDATE note SET body = 'short'").await;
    assert_eq!((&found[0].1["new"]["body"], &found[0].1["changed"]), (&json!("short"), &json!(["body"])));
    let found =
        emitted(&client, "UPDATE note SET title = repeat('x', 140000), body = repeat('y', 140000)").await;
    assert_eq!(found[0].1["left_out"], json!(["title", "body"]));

    client
        .batch_execute(
            "CREATE TABLE loose (id int, j json);
             SELECT tidings.emit_on_change('loose', '{id,j}', 'note.changed', '''loose/'' || id')",
        )
        .await
        .unwrap();
    for value in
        [r#"{"a": "\ud800"}"#, r#"["x\u0000", 1e999]"#, &format!("{}{}", "[".repeat(64), "]".repeat(64))]
    {
        let found = emitted(&client, &format!("INSERT INTO loose VALUES (1, '{value}')")).await;
        assert_eq!(found[0].1["left_out"], json!(["j"]), "{value}");
        assert_eq!(found[0].1["new"], json!({"id": 1, "j": null}));
    }
}

/// A subject that no event can have is the user's to mend: change and event fail together.
#[tokio::test]
async fn a_subject_that_is_refused_fails_the_change_with_the_reason() {
    let place = place().await;
    let client = place.client().await;
    client
        .batch_execute(
            "CREATE TABLE page (slug text, v int);
             SELECT tidings.emit_on_change('page', '{v}', 'note.changed', 'slug')",
        )
        .await
        .unwrap();
    let (code, message, field) =
        crate::fixture::refusal(&client, r"INSERT INTO page VALUES (E'a\nb', 1)").await;
    assert_eq!(
        (&*code, &*message, &*field),
        ("22023", "subject has control characters; write plain text", "subject")
    );
    assert_eq!(place.number("SELECT count(*) FROM page").await, 0);
    assert_eq!(emitted(&client, "INSERT INTO page VALUES (NULL, 1)").await[0].0, "");
}

#[tokio::test]
async fn a_tenant_is_an_expression_too() {
    let place = place().await;
    let client = place.client().await;
    client
        .batch_execute(
            "CREATE TABLE page (id int, owner text, v int);
             SELECT tidings.emit_on_change('page', '{v,owner}', 'note.changed', '''page/'' || id',
                 tenant => 'owner')",
        )
        .await
        .unwrap();
    client.batch_execute("INSERT INTO page VALUES (1, 'ann', 1)").await.unwrap();
    let found = emitted(&client, "UPDATE page SET owner = 'bob'").await;
    assert_eq!(found[0].1["tenant_new"], json!("bob"));
    assert_eq!(place.number("SELECT count(*) FROM tidings.event WHERE tenant = 'ann'").await, 1);
}
