//! A database that knows two kinds and two event types, and a plain connection to it.

use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use tidings::core::event::{EventType, Exposure, TypeName};
use tidings::core::route::Subscription;
use tidings::{Attempt, Declaration, JobId, Kind, Outcome, Preset, Tidings};
use tokio_postgres::{Client, NoTls};

/// Unique, if it has a key, until it is finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) text: String,
}

impl Kind for Note {
    const DECLARATION: Declaration = Declaration::new("note");
}

/// Another queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Letter {
    to: String,
}

impl Kind for Letter {
    const DECLARATION: Declaration = Declaration::new("letter").policy(Preset::Mail).queue("mail");
}

/// The notes that a handler has seen, and of which jobs.
pub(crate) type Seen = Arc<Mutex<Vec<(JobId, String)>>>;

async fn see(seen: Seen, attempt: Attempt<Note>) -> Outcome {
    seen.lock().unwrap().push((attempt.job_id, attempt.args.text));
    Outcome::Accepted
}

async fn accept(_: (), _: Attempt<Letter>) -> Outcome {
    Outcome::Accepted
}

pub(crate) struct Place {
    pub(crate) tidings: Tidings,
    pub(crate) seen: Seen,
    pub(crate) database: testkit::postgres::Database,
}

/// A database of its own, which goes with it.
pub(crate) async fn place() -> Place {
    let database = testkit::postgres::database().await;
    let seen = Seen::default();
    let builder = Tidings::builder().kind(Arc::clone(&seen), see).kind((), accept);
    let tidings = builder.open(database.url()).await.unwrap();
    // Starting workers tells the database which kinds there are.
    tidings.work().await.unwrap().stop().await;
    let to_note = Subscription::to_job("none", "note.created", "note").unwrap();
    tidings.declare(&[internal("note.changed"), internal("note.created")], &[to_note]).await.unwrap();
    Place { tidings, seen, database }
}

fn internal(name: &str) -> EventType {
    EventType { name: TypeName::new(name).unwrap(), description: String::new(), exposure: Exposure::Internal }
}

impl Place {
    /// A plain connection, as any program has one.
    pub(crate) async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(self.database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// A connection that acts as a fresh role.
    pub(crate) async fn client_as(&self, role: &str) -> (Client, String) {
        let role = format!("{}_{role}", self.database.name());
        let client = self.client().await;
        let become_it = format!("CREATE ROLE {role}; SET SESSION AUTHORIZATION {role}");
        client.batch_execute(&become_it).await.unwrap();
        (client, role)
    }

    /// Roles outlive their database unless somebody sees to it.
    pub(crate) async fn drop_roles(&self, roles: &[&str]) {
        let client = self.client().await;
        for role in roles {
            client.batch_execute(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}")).await.unwrap();
        }
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        self.client().await.query_one(query, &[]).await.unwrap().get(0)
    }
}

/// The one text that a query gives.
pub(crate) async fn text(client: &Client, query: &str) -> String {
    let row = client.query_one(query, &[]).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
    row.get(0)
}

/// Code, message and named column of the refusal of a query.
pub(crate) async fn refusal(client: &Client, query: &str) -> (String, String, String) {
    let Err(error) = client.query(query, &[]).await else { panic!("{query} was not refused") };
    let error = error.as_db_error().unwrap_or_else(|| panic!("{query}: {error:?}")).clone();
    (error.code().code().into(), error.message().into(), error.column().unwrap_or_default().into())
}

/// Type, subject and data of every event, in the order in which they were written.
pub(crate) async fn events(client: &Client) -> Vec<(String, String, serde_json::Value)> {
    let rows = client.query("SELECT type_name, subject, data FROM tidings.event ORDER BY seq", &[]).await;
    let read = |row: &tokio_postgres::Row| {
        let data: &str = row.get(2);
        (row.get(0), row.get(1), serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}")))
    };
    rows.unwrap().iter().map(read).collect()
}
