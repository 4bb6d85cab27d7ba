//! The same calls from psql, from Python and from Node: in a transaction, rolled back,
//! refused. What is not installed is skipped, with the reason.

use crate::fixture::{Place, events, place};
use std::process::Stdio;
use testkit::foreign::{DRIVERS_VARIABLE, Foreign};
use tidings::testing::assert_enqueued;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Runs a program with a script on its standard input; what it wrote to its standard output.
async fn run(command: &mut Command, script: &str) -> String {
    let piped = Stdio::piped;
    let mut child =
        command.stdin(piped()).stdout(piped()).stderr(piped()).kill_on_drop(true).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap() + &said
}

/// What every program did: one event and one job are there, nothing of what was rolled back.
async fn holds(place: &Place, language: &str, said: &str) {
    let client = place.client().await;
    let found = events(&client).await;
    assert_eq!(found.len(), 1, "{language}: {found:?}");
    assert_eq!((&*found[0].0, &*found[0].1), ("note.changed", "note/1"));
    assert_eq!(found[0].2["by"], language);
    assert_enqueued(&place.tidings, &crate::fixture::Note { text: format!("from {language}") }).await;
    assert_eq!(place.number("SELECT count(*) FROM tidings.job").await, 1);
    assert_eq!(place.number("SELECT count(*) FROM account").await, 1);
    assert!(said.contains("TD001") && said.contains("declare it first"), "{said}");
    assert!(said.contains("TD002") && said.contains("known kinds are: letter, note"), "{said}");
}

async fn with_account() -> Place {
    let place = place().await;
    place.client().await.batch_execute("CREATE TABLE account (name text)").await.unwrap();
    place
}

#[tokio::test]
async fn psql_records_and_enqueues() {
    let beside_server = testkit::postgres::ensure_installed().map(|folder| folder.join("psql"));
    let Ok(psql) = beside_server.map_err(drop).and_then(|path| path.is_file().then_some(path).ok_or(()))
    else {
        eprintln!("skipped: psql is not installed beside the server");
        return;
    };
    let place = with_account().await;
    let script = r#"
        \set VERBOSITY verbose
        BEGIN;
        INSERT INTO account VALUES ('ann');
        SELECT tidings.record('note.changed', 'note/1', json_build_object('by', 'psql'));
        SELECT tidings.enqueue('note', '{"text": "from psql"}', idempotency_key => 'k');
        COMMIT;
        SELECT tidings.enqueue('note', '{"text": "from psql"}', idempotency_key => 'k');
        BEGIN;
        INSERT INTO account VALUES ('bob');
        SELECT tidings.record('note.changed', 'note/2', '{}');
        SELECT tidings.enqueue('note', '{"text": "gone"}');
        ROLLBACK;
        SELECT tidings.record('note.gone', '', '{}');
        SELECT tidings.enqueue('gone', '{}');
        SELECT tidings.wake();
    "#;
    let said =
        run(Command::new(psql).args(["-X", "-q", "-A", "-t", "-d", place.database.url()]), script).await;
    holds(&place, "psql", &said).await;
    let ids: Vec<&str> = said.lines().filter(|line| line.starts_with("job_")).collect();
    assert_eq!((ids.len(), ids[0]), (3, ids[1]), "{said}");
}

#[tokio::test]
async fn python_records_and_enqueues() {
    let interpreter = match Foreign::from_environment(DRIVERS_VARIABLE).python {
        Ok(interpreter) => interpreter,
        Err(reason) => return eprintln!("skipped: psycopg is not there: {reason}"),
    };
    let place = with_account().await;
    let script = r#"
import sys, psycopg
from psycopg.types.json import Json
with psycopg.connect(sys.argv[1]) as db:
    with db.transaction():
        db.execute("INSERT INTO account VALUES ('ann')")
        record = ("note.changed", "note/1", Json({"by": "python"}))
        [event] = db.execute("SELECT tidings.record(%s, %s, %s)", record).fetchone()
        assert event.startswith("evt_")
        call = ("SELECT tidings.enqueue(%s, %s, priority => %s, idempotency_key => %s)",
                ("note", Json({"text": "from python"}), 1, "k"))
        [job] = db.execute(*call).fetchone()
    with db.transaction():
        assert db.execute(*call).fetchone() == (job,)
    try:
        with db.transaction():
            db.execute("INSERT INTO account VALUES ('bob')")
            db.execute("SELECT tidings.record(%s, %s, %s)", ("note.changed", "note/2", Json({})))
            db.execute("SELECT tidings.enqueue(%s, %s)", ("note", Json({"text": "gone"})))
            raise KeyError("changed my mind")
    except KeyError:
        pass
    for call in ("tidings.record('note.gone', '', '{}')", "tidings.enqueue('gone', '{}')"):
        try:
            with db.transaction():
                db.execute("INSERT INTO account VALUES ('eve')")
                db.execute("SELECT " + call)
        except psycopg.Error as error:
            print(error.sqlstate, error.diag.column_name, error.diag.message_primary, error.diag.message_hint)
    try:
        with db.transaction():
            db.execute("SELECT tidings.enqueue(%s, %s, priority => %s)", ("note", Json({}), 9))
    except psycopg.DataError as error:
        assert error.diag.column_name == "priority"
with psycopg.connect(sys.argv[1], autocommit=True) as db:
    db.execute("SELECT tidings.wake()")
"#;
    let said = run(Command::new(interpreter).args(["-", place.database.url()]), script).await;
    holds(&place, "python", &said).await;
}

#[tokio::test]
async fn node_records_and_enqueues() {
    let folder = match Foreign::from_environment(DRIVERS_VARIABLE).node {
        Ok(folder) => folder,
        Err(reason) => return eprintln!("skipped: pg is not there: {reason}"),
    };
    let place = with_account().await;
    let script = r#"
const { Client } = require('pg');
const assert = require('assert');
(async () => {
  const db = new Client({ connectionString: process.argv[2] });
  await db.connect();
  const one = async (text, values) => Object.values((await db.query(text, values)).rows[0])[0];
  await db.query('BEGIN');
  await db.query("INSERT INTO account VALUES ('ann')");
  const event = await one('SELECT tidings.record($1, $2, $3)', ['note.changed', 'note/1', { by: 'node' }]);
  assert(event.startsWith('evt_'));
  const call = ['SELECT tidings.enqueue($1, $2, idempotency_key => $3)',
    ['note', { text: 'from node' }, 'k']];
  const job = await one(...call);
  await db.query('COMMIT');
  assert.strictEqual(await one(...call), job);
  await db.query('BEGIN');
  await db.query("INSERT INTO account VALUES ('bob')");
  await one('SELECT tidings.record($1, $2, $3)', ['note.changed', 'note/2', {}]);
  await one('SELECT tidings.enqueue($1, $2)', ['note', { text: 'gone' }]);
  await db.query('ROLLBACK');
  for (const refused of ["tidings.record('note.gone', '', '{}')", "tidings.enqueue('gone', '{}')"]) {
    await db.query('BEGIN');
    await db.query("INSERT INTO account VALUES ('eve')");
    await assert.rejects(one('SELECT ' + refused), (error) => {
      console.log(error.code, error.column, error.message, error.hint);
      return true;
    });
    await db.query('ROLLBACK');
  }
  await one('SELECT tidings.wake()');
  await db.end();
})().catch((error) => { console.error(error); process.exit(1); });
"#;
    let mut node = Command::new("node");
    let said = run(node.args(["-", place.database.url()]).current_dir(folder), script).await;
    holds(&place, "node", &said).await;
}
