//! An application that invites people to its board.
//!
//! The new member and the invitation are written in one transaction of the
//! application: both are there, or neither. The mail goes out afterwards, as a job
//! that is tried again while the mailer is busy, and its evidence says how it went.
//!
//! ```sh
//! cargo run -p tidings --example invitation
//! cargo run -p tidings --example invitation postgres://user:password@host/name
//! ```
#![allow(clippy::print_stdout, reason = "it shows what it does")]

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidings::core::policy::{BackoffData, PolicyData};
use tidings::transaction::in_transaction;
use tidings::{
    Attempt, Builder, Declaration, EnqueueRefused, JobId, Kind, Millis, Outcome, Preset, Receipt, Tidings,
    Waited,
};

/// A job: the type of its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Invitation {
    member: String,
    to: String,
}

impl Kind for Invitation {
    const DECLARATION: Declaration = Declaration::new("invitation.send")
        .queue("mail")
        .policy(Preset::Invitation)
        .time_limit(Millis::from_seconds(10));

    /// One invitation to an address at a time.
    fn unique_key(&self) -> Option<String> {
        Some(self.to.clone())
    }
}

/// Carries an invitation out. It only says how it went; whether and when to try again
/// is the policy's.
async fn send(mailer: Mailer, attempt: Attempt<Invitation>) -> Outcome {
    let Invitation { member, to } = &attempt.args;
    // The job's id is the same at every attempt: the mailer can tell a repeat by it.
    match mailer.deliver(to, &format!("Dear {member}, you are invited."), attempt.job_id).await {
        Ok(()) => Outcome::Accepted,
        Err(MailError::Busy) => Outcome::retryable("the mailer answered 451: try again later"),
        Err(MailError::NoSuchAddress) => Outcome::discard(format!("`{to}` is no address")),
    }
}

/// The kinds of this application, with the state of their handlers.
fn kinds(mailer: Mailer) -> Builder {
    Tidings::builder().kind(mailer, send)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "sqlite:./invitation.db".to_owned());
    // The declared policy waits for minutes. Whoever runs this should not have to.
    let soon = PolicyData {
        preset: Some(Preset::Invitation),
        backoff: Some(BackoffData::Steps { steps_ms: vec![300, 600] }),
        jitter: Some(tidings::core::policy::JitterData::None),
        ..PolicyData::default()
    };
    let builder = kinds(Mailer::busy(2)).policy("invitation.send", soon.check("invitation-demo")?);
    let tidings = builder.open(&address).await?;
    let mut board = Board::open(&address).await?;

    let refused = board.invite(&tidings, "Bob", "bob@example.com", Then::Fail).await;
    println!(
        "a transaction that failed: {}",
        refused.err().map_or_else(String::new, |error| error.to_string())
    );
    println!("  it left {}", board.left(&tidings, "Bob").await?);

    let receipt = board.invite(&tidings, "Ann", "ann@example.com", Then::Commit).await?;
    println!("a transaction that was committed: {}", receipt.id);
    println!("  it left {}", board.left(&tidings, "Ann").await?);
    // Only a hint, given after the commit: a poll would find the job as well.
    tidings.wake_kind::<Invitation>();

    let workers = tidings.work().await?;
    match tidings.wait(receipt.id, Duration::from_secs(30)).await? {
        Waited::Settled(job) => println!("the job is {}", job.state.name().as_str()),
        Waited::Receipt(receipt) => println!("not yet; look up {} later", receipt.id),
    }
    show_evidence(&tidings, receipt.id).await?;
    workers.stop().await;
    Ok(())
}

async fn show_evidence(tidings: &Tidings, id: JobId) -> Result<(), Box<dyn Error>> {
    let view = tidings.job(id).await?.ok_or("the job is past its retention")?;
    for attempt in view.attempts {
        let Some(end) = attempt.end else { continue };
        let took = end.at.since(attempt.started_at).0;
        print!("  attempt {}: {} after {took} ms", attempt.attempt, end.outcome.as_str());
        if let Some(delay_ms) = end.delay_ms {
            print!(", {}; again after {delay_ms} ms by policy {}", end.reason, end.policy);
        }
        println!();
    }
    Ok(())
}

/// The application's own database: the same one that Tidings is opened on.
enum Board {
    Sqlite(rusqlite::Connection),
    Postgres(tokio_postgres::Client),
}

/// How the transaction of an invitation goes on.
#[derive(Clone, Copy)]
enum Then {
    Commit,
    Fail,
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS board_member (name TEXT NOT NULL, email TEXT NOT NULL)";

/// Whatever goes wrong in a transaction of this application.
#[derive(Debug, thiserror::Error)]
enum InviteFailed {
    #[error("the board is full")]
    BoardIsFull,
    #[error(transparent)]
    Enqueue(#[from] EnqueueRefused),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
}

impl tidings::transaction::TransactionError for InviteFailed {
    fn is_conflict(&self) -> bool {
        tidings::transaction::is_conflict(self)
    }
}

impl Board {
    async fn open(address: &str) -> Result<Board, Box<dyn Error>> {
        if let Some(path) = address.strip_prefix("sqlite:") {
            let connection = rusqlite::Connection::open(path)?;
            connection.execute_batch(TABLE)?;
            return Ok(Board::Sqlite(connection));
        }
        let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute(TABLE).await?;
        Ok(Board::Postgres(client))
    }

    /// Adds a member and enqueues the invitation, in one transaction.
    async fn invite(
        &mut self,
        tidings: &Tidings,
        name: &str,
        email: &str,
        then: Then,
    ) -> Result<Receipt, InviteFailed> {
        let invitation = Invitation { member: name.to_owned(), to: email.to_owned() };
        match self {
            Board::Sqlite(connection) => {
                let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                tx.execute("INSERT INTO board_member (name, email) VALUES (?1, ?2)", [name, email])?;
                let receipt = tidings.enqueue_in_sqlite(&tx, invitation)?;
                go_on(then)?;
                tx.commit()?;
                Ok(receipt)
            }
            Board::Postgres(client) => {
                let tidings = tidings.clone();
                in_transaction(client, async move |tx| {
                    let Invitation { member, to } = &invitation;
                    tx.execute("INSERT INTO board_member (name, email) VALUES ($1, $2)", &[member, to])
                        .await?;
                    let receipt = tidings.enqueue_in_postgres(tx, invitation.clone()).await?;
                    go_on(then)?;
                    Ok(receipt)
                })
                .await
            }
        }
    }

    /// What there is of a member, in words.
    async fn left(&self, tidings: &Tidings, name: &str) -> Result<String, Box<dyn Error>> {
        let count = "SELECT count(*) FROM board_member WHERE name = $1";
        let members: i64 = match self {
            Board::Sqlite(connection) => connection.query_row(count, [name], |row| row.get(0))?,
            Board::Postgres(client) => client.query_one(count, &[&name]).await?.get(0),
        };
        let filter = tidings::store::JobFilter {
            kind: "invitation.send".into(),
            limit: 100,
            ..tidings::store::JobFilter::default()
        };
        let jobs = tidings.jobs(&filter).await?.len();
        Ok(format!("{members} member named {name} and {jobs} invitation(s)"))
    }
}

/// What else the application does in its transaction, and may fail at.
fn go_on(then: Then) -> Result<(), InviteFailed> {
    match then {
        Then::Commit => Ok(()),
        Then::Fail => Err(InviteFailed::BoardIsFull),
    }
}

/// Pretends to send mail.
#[derive(Clone)]
struct Mailer {
    /// How often it is still busy.
    busy: Arc<AtomicU32>,
}

enum MailError {
    Busy,
    NoSuchAddress,
}

impl Mailer {
    fn busy(times: u32) -> Mailer {
        Mailer { busy: Arc::new(AtomicU32::new(times)) }
    }

    async fn deliver(&self, to: &str, _text: &str, _id: JobId) -> Result<(), MailError> {
        tokio::task::yield_now().await;
        if !to.contains('@') {
            return Err(MailError::NoSuchAddress);
        }
        let left = self.busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() { Err(MailError::Busy) } else { Ok(()) }
    }
}

/// A test of a job is one line; three more hold the clock.
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop at a surprise")]
mod tests {
    use super::*;
    use tidings::testing::{assert_enqueued, drain, perform, refute_enqueued, throw_away};

    fn invitation() -> Invitation {
        Invitation { member: "Ann".into(), to: "ann@example.com".into() }
    }

    #[tokio::test]
    async fn an_invitation_is_accepted() {
        let app = throw_away(kinds(Mailer::busy(0))).await;
        assert_eq!(perform(&app, invitation()).await.outcome, Outcome::Accepted);
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_not_tried_again() {
        let app = throw_away(kinds(Mailer::busy(0))).await;
        let nobody = Invitation { to: "nobody".into(), ..invitation() };
        assert_eq!(perform(&app, nobody).await.outcome, Outcome::discard("`nobody` is no address"));
    }

    #[tokio::test]
    async fn a_mailer_that_is_busy_twice_costs_two_attempts_and_less_than_a_minute() {
        let app = throw_away(kinds(Mailer::busy(2))).await;
        let id = app.enqueue(invitation()).await.unwrap().id;
        assert_eq!(drain(&app).await.unwrap(), 1);
        assert_eq!(app.drain_after(Millis::from_seconds(20)).await, 1);
        assert_eq!(app.drain_after(Millis::from_seconds(30)).await, 1);
        let view = app.job(id).await.unwrap().unwrap();
        assert_eq!((view.job.state.name().as_str(), view.attempts.len()), ("completed", 3));
    }

    #[tokio::test]
    async fn member_and_invitation_are_there_together_or_not_at_all() {
        let app = throw_away(kinds(Mailer::busy(0))).await;
        let mut board = Board::open(&format!("sqlite:{}", app.file().display())).await.unwrap();
        board.invite(&app, "Ann", "ann@example.com", Then::Fail).await.unwrap_err();
        refute_enqueued::<Invitation>(&app).await;
        board.invite(&app, "Ann", "ann@example.com", Then::Commit).await.unwrap();
        assert_enqueued(&app, &invitation()).await;
        assert_eq!(board.left(&app, "Ann").await.unwrap(), "1 member named Ann and 1 invitation(s)");
    }
}
