//! A search index that is kept in step with an application's notes.
//!
//! Every change of a note is recorded as an event with the change itself: on PostgreSQL
//! by triggers that Tidings installs, on SQLite in the application's transaction. A
//! subscription makes a job of the latest change of each note, and the job reads the note
//! as it is by then. A second job builds the whole index anew, while changes go on.
//!
//! ```sh
//! cargo run -p tidings --example search_index
//! cargo run -p tidings --example search_index postgres://user:password@host/name
//! ```
#![allow(clippy::print_stdout, reason = "it shows what it does")]

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidings::core::event::{EventType, Exposure, TypeName};
use tidings::core::route::Subscription;
use tidings::store::outbox::EventFilter;
use tidings::{Attempt, Builder, Declaration, FannedOut, Kind, Millis, Outcome, Record, Tidings};
use tokio::sync::Mutex;

type Failed = Box<dyn Error + Send + Sync>;

/// What an event about a note becomes: of the event, this job needs only to which note
/// it happened. What the note says is read when the job runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct IndexNote {
    subject: String,
}

impl Kind for IndexNote {
    const DECLARATION: Declaration = Declaration::new("search.index").queue("search");
}

/// Builds the index anew.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reindex {}

impl Kind for Reindex {
    const DECLARATION: Declaration =
        Declaration::new("search.reindex").queue("search").time_limit(Millis::from_minutes(10));

    /// One at a time.
    fn unique_key(&self) -> Option<String> {
        Some("all".to_owned())
    }
}

async fn index_note(search: Arc<Search>, attempt: Attempt<IndexNote>) -> Result<Outcome, Failed> {
    let subject = &attempt.args.subject;
    let Some(id) = subject.strip_prefix("note/").and_then(|id| id.parse().ok()) else {
        return Ok(Outcome::discard(format!("`{subject}` is no note")));
    };
    search.refresh(id).await?;
    Ok(Outcome::Accepted)
}

async fn reindex(search: Arc<Search>, _attempt: Attempt<Reindex>) -> Result<Outcome, Failed> {
    search.rebuild().await?;
    Ok(Outcome::Accepted)
}

/// The kinds, event types and subscriptions of this application.
fn declared(search: &Arc<Search>) -> Result<Builder, Failed> {
    let changed = EventType {
        name: TypeName::new("note.changed")?,
        description: "A note was written, changed or removed".to_owned(),
        exposure: Exposure::Internal,
    };
    // Of the changes of a note that are fanned out together, the latest covers the rest.
    let subscription = Subscription::to_job("search", "note.*", "search.index")?.coalescing();
    let builder = Tidings::builder().kind(Arc::clone(search), index_note).kind(Arc::clone(search), reindex);
    Ok(builder.event_type(changed).subscribe(subscription))
}

/// The application on a database, with its index in a file of its own.
async fn open(address: &str, index: &Path) -> Result<(Tidings, Arc<Search>), Failed> {
    let search = Arc::new(Search::open(Notes::open(address).await?, index)?);
    let tidings = declared(&search)?.open(address).await?;
    search.notes.emit_on_change().await?;
    Ok((tidings, search))
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "sqlite:./search.db".to_owned());
    let (tidings, search) = open(&address, Path::new("./search-index.db")).await?;
    let workers = tidings.work().await?;

    search.notes.write(&tidings, 1, "Bread", "Flour, water, salt and time").await?;
    search.notes.write(&tidings, 2, "Soup", "Water, salt, onions").await?;
    search.notes.write(&tidings, 2, "Onion soup", "Water, salt, onions and bread").await?;
    in_step(&tidings).await?;
    println!("notes about bread: {:?}", search.find("bread").await?);

    search.notes.remove(&tidings, 1).await?;
    in_step(&tidings).await?;
    println!("after the first was removed: {:?}", search.find("bread").await?);

    let receipt = tidings.enqueue(Reindex {}).await?;
    tidings.wait(receipt.id, Duration::from_secs(60)).await?;
    println!("after the index was built anew: {:?}", search.find("bread").await?);
    workers.stop().await;
    Ok(())
}

/// Waits until the index knows of every change that was committed by now.
async fn in_step(tidings: &Tidings) -> Result<(), Failed> {
    // Only a hint: a poll would find the events as well.
    tidings.wake_relay();
    let lately = EventFilter { type_name: "note.changed".into(), limit: 100, ..EventFilter::default() };
    for stored in tidings.events(&lately).await? {
        let waited = tidings.await_fanout(stored.event.id, Duration::from_secs(30)).await?;
        let FannedOut::Jobs(jobs) = waited else { return Err("the relay is behind".into()) };
        for job in jobs {
            tidings.wait(job, Duration::from_secs(30)).await?;
        }
    }
    Ok(())
}

/// A note of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    id: i64,
    title: String,
    body: String,
}

/// The application's own tables, on the database that Tidings is opened on.
enum Notes {
    Sqlite(Mutex<rusqlite::Connection>),
    Postgres(Mutex<tokio_postgres::Client>),
}

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS note (id BIGINT PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL)";
const WRITE: &str = "INSERT INTO note (id, title, body) VALUES ($1, $2, $3)
                     ON CONFLICT (id) DO UPDATE SET title = excluded.title, body = excluded.body";
const REMOVE: &str = "DELETE FROM note WHERE id = $1";
const PAGE: &str = "SELECT id, title, body FROM note WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3";

impl Notes {
    async fn open(address: &str) -> Result<Notes, Failed> {
        if let Some(path) = address.strip_prefix("sqlite:") {
            let connection = rusqlite::Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(10))?;
            connection.execute_batch(TABLE)?;
            return Ok(Notes::Sqlite(Mutex::new(connection)));
        }
        let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute(TABLE).await?;
        Ok(Notes::Postgres(Mutex::new(client)))
    }

    /// Has the database record every change of a note, whoever makes it. At each start: with
    /// the same arguments it changes nothing.
    async fn emit_on_change(&self) -> Result<(), Failed> {
        if let Notes::Postgres(client) = self {
            let install =
                "SELECT tidings.emit_on_change('note', '{title,body}', 'note.changed', $$'note/' || id$$)";
            client.lock().await.batch_execute(install).await?;
        }
        Ok(())
    }

    async fn write(&self, tidings: &Tidings, id: i64, title: &str, body: &str) -> Result<(), Failed> {
        match self {
            Notes::Sqlite(connection) => {
                let mut connection = connection.lock().await;
                let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                tx.execute(WRITE, (id, title, body))?;
                tidings.record_in_sqlite(&tx, changed(id))?;
                tx.commit()?;
            }
            // Plain SQL, as from any language: the triggers record.
            Notes::Postgres(client) => {
                client.lock().await.execute(WRITE, &[&id, &title, &body]).await?;
            }
        }
        Ok(())
    }

    async fn remove(&self, tidings: &Tidings, id: i64) -> Result<(), Failed> {
        match self {
            Notes::Sqlite(connection) => {
                let mut connection = connection.lock().await;
                let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                tx.execute(REMOVE, [id])?;
                tidings.record_in_sqlite(&tx, changed(id))?;
                tx.commit()?;
            }
            Notes::Postgres(client) => {
                client.lock().await.execute(REMOVE, &[&id]).await?;
            }
        }
        Ok(())
    }

    /// The first notes after `after` and up to `last`, by id.
    async fn page(&self, after: i64, last: i64, limit: i64) -> Result<Vec<Note>, Failed> {
        match self {
            Notes::Sqlite(connection) => {
                let connection = connection.lock().await;
                let mut query = connection.prepare_cached(PAGE)?;
                let notes = query.query_map([after, last, limit], |row| {
                    Ok(Note { id: row.get(0)?, title: row.get(1)?, body: row.get(2)? })
                })?;
                Ok(notes.collect::<Result<_, _>>()?)
            }
            Notes::Postgres(client) => {
                let rows = client.lock().await.query(PAGE, &[&after, &last, &limit]).await?;
                let note =
                    |row: &tokio_postgres::Row| Note { id: row.get(0), title: row.get(1), body: row.get(2) };
                Ok(rows.iter().map(note).collect())
            }
        }
    }
}

/// What is recorded of a change on SQLite. The note itself is read when the job runs.
fn changed(id: i64) -> Record {
    Record::json("note.changed", "{}").subject(format!("note/{id}"))
}

/// The index: a full-text table in a file of its own, which one process writes.
struct Search {
    notes: Notes,
    /// Held from reading a note to writing it to the index, so that of two jobs the later
    /// writer has read later, too.
    index: Mutex<rusqlite::Connection>,
}

/// Notes that are indexed in one transaction while the index is built anew.
const NOTES_A_PAGE: i64 = 500;

impl Search {
    fn open(notes: Notes, path: &Path) -> Result<Search, Failed> {
        let index = rusqlite::Connection::open(path)?;
        index.execute_batch("CREATE VIRTUAL TABLE IF NOT EXISTS note_index USING fts5 (title, body)")?;
        Ok(Search { notes, index: Mutex::new(index) })
    }

    /// Brings the index in step with one note, which may be gone.
    async fn refresh(&self, id: i64) -> Result<(), Failed> {
        let mut index = self.index.lock().await;
        let note = self.notes.page(id - 1, id, 1).await?;
        replace(&mut index, id - 1, id, &note)
    }

    /// Brings it in step with all of them, a page at a time: searches and changes go on.
    async fn rebuild(&self) -> Result<(), Failed> {
        let mut after = i64::MIN;
        while after < i64::MAX {
            let mut index = self.index.lock().await;
            let page = self.notes.page(after, i64::MAX, NOTES_A_PAGE).await?;
            // The last page covers all that comes after it: what is there only in the index goes.
            let last = page.last().map_or(i64::MAX, |note| note.id);
            replace(&mut index, after, last, &page)?;
            after = last;
        }
        Ok(())
    }

    /// The titles of the notes that have these words, the best first.
    async fn find(&self, words: &str) -> Result<Vec<String>, Failed> {
        let index = self.index.lock().await;
        let mut query = index
            .prepare_cached("SELECT title FROM note_index WHERE note_index MATCH ?1 ORDER BY rank, rowid")?;
        let titles = query.query_map([words], |row| row.get(0))?;
        Ok(titles.collect::<Result<_, _>>()?)
    }
}

/// Makes `notes` what the index has of the ids after `after` and up to `last`.
fn replace(index: &mut rusqlite::Connection, after: i64, last: i64, notes: &[Note]) -> Result<(), Failed> {
    let tx = index.transaction()?;
    tx.execute("DELETE FROM note_index WHERE rowid > ?1 AND rowid <= ?2", [after, last])?;
    for Note { id, title, body } in notes {
        tx.execute("INSERT INTO note_index (rowid, title, body) VALUES (?1, ?2, ?3)", (id, title, body))?;
    }
    Ok(tx.commit()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop at a surprise")]
mod tests {
    use super::*;
    use tidings::testing::{drain, relay};

    struct App {
        tidings: Tidings,
        search: Arc<Search>,
        _folder: tempfile::TempDir,
        _database: Option<testkit::postgres::Database>,
    }

    async fn on_sqlite() -> App {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("app.db").display());
        app(&address, folder, None).await
    }

    async fn on_postgres() -> App {
        let database = testkit::postgres::database().await;
        let address = database.url().to_owned();
        app(&address, tempfile::tempdir().unwrap(), Some(database)).await
    }

    async fn app(
        address: &str,
        folder: tempfile::TempDir,
        database: Option<testkit::postgres::Database>,
    ) -> App {
        let (tidings, search) = open(address, &folder.path().join("index.db")).await.unwrap();
        App { tidings, search, _folder: folder, _database: database }
    }

    impl App {
        async fn write(&self, id: i64, title: &str, body: &str) {
            self.search.notes.write(&self.tidings, id, title, body).await.unwrap();
        }

        async fn find(&self, words: &str) -> Vec<String> {
            self.search.find(words).await.unwrap()
        }

        /// Fans out and carries out; how many jobs ran.
        async fn catch_up(&self) -> usize {
            relay(&self.tidings).await.unwrap();
            drain(&self.tidings).await.unwrap()
        }
    }

    async fn keeps_in_step(app: App) {
        for n in 0..10 {
            app.write(1, "Bread", &format!("Flour, water and {n} g of salt")).await;
        }
        app.write(2, "Soup", "Water and onions").await;
        assert_eq!(app.catch_up().await, 2, "the latest change of each note covers the rest");
        assert_eq!(app.find("water").await, ["Soup", "Bread"]);
        assert_eq!((app.find("9").await.len(), app.find("8").await.len()), (1, 0));

        app.search.notes.remove(&app.tidings, 1).await.unwrap();
        app.write(2, "Soup", "Broth").await;
        assert_eq!(app.catch_up().await, 2);
        assert!(app.find("water").await.is_empty());
        assert_eq!(app.find("broth").await, ["Soup"]);
    }

    async fn is_built_anew(app: App) {
        for id in 0..1_200 {
            app.write(id, &format!("Note {id}"), "salt").await;
        }
        // An index that was lost, but for notes that there never were.
        let strays = "INSERT INTO note_index (rowid, title, body) VALUES (-5, 'stray', 'salt'), (9999, 'stray', 'salt')";
        app.search.index.lock().await.execute_batch(strays).unwrap();
        let first = app.tidings.enqueue(Reindex {}).await.unwrap();
        let second = app.tidings.enqueue(Reindex {}).await.unwrap();
        assert_eq!((second.id, second.existing), (first.id, true), "one at a time");
        assert_eq!(drain(&app.tidings).await.unwrap(), 1);
        assert_eq!(app.find("salt").await.len(), 1_200);
        assert!(app.find("stray").await.is_empty());
    }

    #[tokio::test]
    async fn the_index_follows_the_notes_on_sqlite() {
        keeps_in_step(on_sqlite().await).await;
    }

    #[tokio::test]
    async fn the_index_follows_the_notes_on_postgres() {
        keeps_in_step(on_postgres().await).await;
    }

    #[tokio::test]
    async fn an_index_that_was_lost_is_built_anew_on_sqlite() {
        is_built_anew(on_sqlite().await).await;
    }

    #[tokio::test]
    async fn an_index_that_was_lost_is_built_anew_on_postgres() {
        is_built_anew(on_postgres().await).await;
    }

    /// As the program itself does it: workers, hints and receipts.
    #[tokio::test]
    async fn a_reader_that_waits_sees_its_own_change_on_postgres() {
        let app = on_postgres().await;
        let workers = app.tidings.work().await.unwrap();
        for n in 0..5 {
            app.write(1, &format!("Version {n}"), "salt").await;
            in_step(&app.tidings).await.unwrap();
            assert_eq!(app.find("salt").await, [format!("Version {n}")]);
        }
        workers.stop().await;
    }
}
