//! A throw-away PostgreSQL: one cluster for all test processes of a checkout,
//! and private ones for tests that stop, crash or misconfigure theirs.
//!
//! It runs the binaries of the machine (`initdb`, `pg_ctl`, `postgres`), as
//! another user when the tests run as root, because the server refuses root.
//! Absent on purpose: containers and downloaded binaries.

mod cluster;
mod install;
mod settings;
mod shared;

pub use cluster::{Cluster, Durability};
pub use install::ensure_installed;
pub use shared::stop_shared;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_postgres::NoTls;

/// Environment variable that names a server to use instead of one's own: the
/// URL of a superuser.
pub const SERVER_VARIABLE: &str = "TIDINGS_TEST_POSTGRES";

/// How long a connection to a test server may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A fresh, empty database. It is dropped, with whoever is connected, when this is.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    server_url: String,
}

impl Database {
    /// `postgres://…` of this database, as a superuser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Best effort: what is left behind goes when the cluster does.
        let statement = format!("drop database if exists {} with (force)", self.name);
        let _ = execute_blocking(self.server_url.clone(), statement);
    }
}

/// A fresh database on the shared cluster, which is started if nobody did yet.
///
/// # Panics
/// With what to do, if no PostgreSQL can be had.
pub async fn database() -> Database {
    let server_url = tokio::task::spawn_blocking(shared::server_url)
        .await
        .expect("looking for the shared cluster does not panic")
        .unwrap_or_else(|problem| panic!("no PostgreSQL to test with: {problem}"));
    database_on(&server_url).await
}

/// A fresh database on the server of that superuser URL.
///
/// # Panics
/// If the server cannot be reached or refuses.
pub async fn database_on(server_url: &str) -> Database {
    let name = unique_name();
    let outcome = execute(server_url, &format!("create database {name} template template0")).await;
    outcome.unwrap_or_else(|error| panic!("could not create a database on {server_url}: {error}"));
    Database { url: with_database(server_url, &name), name, server_url: server_url.to_owned() }
}

fn unique_name() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let counter = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("tidings_test_{}_{}_{counter}", std::process::id(), started.as_micros())
}

/// `server_url` with another database in its path; its query stays.
fn with_database(server_url: &str, database: &str) -> String {
    let (before_query, query) = match server_url.split_once('?') {
        Some((before, query)) => (before, format!("?{query}")),
        None => (server_url, String::new()),
    };
    let authority_at = before_query.find("://").map_or(0, |at| at + 3);
    let path_at = before_query[authority_at..].find('/').map_or(before_query.len(), |at| authority_at + at);
    format!("{}/{database}{query}", &before_query[..path_at])
}

async fn connect(url: &str) -> Result<tokio_postgres::Client, String> {
    let opening = tokio::time::timeout(CONNECT_LIMIT, tokio_postgres::connect(url, NoTls));
    let (client, connection) = opening
        .await
        .map_err(|_| format!("no connection within {CONNECT_LIMIT:?}"))?
        .map_err(|error| readable(&error))?;
    tokio::spawn(connection);
    Ok(client)
}

/// Runs statements on a connection of its own.
async fn execute(url: &str, statements: &str) -> Result<(), String> {
    connect(url).await?.batch_execute(statements).await.map_err(|error| readable(&error))
}

/// As [`execute`], from where no runtime is: a thread with a small one.
fn execute_blocking(url: String, statements: String) -> Result<(), String> {
    let worker = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(execute(&url, &statements))
    });
    worker.join().unwrap_or_else(|_| Err("the connecting thread panicked".to_owned()))
}

fn readable(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(refusal) => format!("{} ({})", refusal.message(), refusal.code().code()),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn a_url_keeps_everything_but_its_database() {
        for (server, expected) in [
            ("postgres://u:p@h:1/postgres", "postgres://u:p@h:1/x"),
            ("postgres://u@h:1", "postgres://u@h:1/x"),
            ("postgres://u@h/db?sslmode=disable&a=/b", "postgres://u@h/x?sslmode=disable&a=/b"),
            ("postgresql://h?sslmode=disable", "postgresql://h/x?sslmode=disable"),
        ] {
            assert_eq!(with_database(server, "x"), expected);
        }
    }
}
