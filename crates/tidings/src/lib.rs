//! A durable job layer and delivery library on SQLite and PostgreSQL.
//!
//! A kind is the type of its arguments, its declaration is data, its handler is
//! an async function that returns an outcome. The job layer alone retries, and
//! every attempt leaves evidence.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use tidings::{Attempt, Declaration, Kind, Outcome, Preset, Tidings};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Welcome {
//!     to: String,
//! }
//!
//! impl Kind for Welcome {
//!     const DECLARATION: Declaration = Declaration::new("welcome.send").policy(Preset::Mail);
//! }
//!
//! async fn send(mailer: String, attempt: Attempt<Welcome>) -> Outcome {
//!     println!("{mailer} writes to {}", attempt.args.to);
//!     Outcome::Accepted
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tidings = Tidings::builder().kind("the mailer".to_owned(), send).open("sqlite:app.db").await?;
//! let workers = tidings.work().await?;
//! tidings.enqueue(Welcome { to: "ann".into() }).await?;
//! workers.stop().await;
//! # Ok(()) }
//! ```

mod attempt;
mod builder;
mod client;
pub mod clock;
mod declared;
mod enqueue;
pub mod events;
pub mod expand;
mod in_flight;
pub mod inspect;
pub mod kind;
mod outbox;
mod parts;
pub mod random;
mod relay;
pub mod routing;
mod settings;
pub mod sink;
pub mod store;
pub mod testing;
mod ticker;
mod wait;
mod wake;
mod worker;
mod writer;

#[cfg(feature = "postgres")]
pub mod transaction {
    //! Transactions of an application on the database alone, tried again when the
    //! database gave them up for the sake of another one.

    pub use crate::store::retry::{TRIES_MAX, TransactionError, check, commit, in_transaction, is_conflict};
}

pub use builder::{Builder, OpenRefused};
pub use client::{ActRefused, Tidings};
pub use enqueue::{Enqueue, EnqueueOptions, EnqueueRefused, IDEMPOTENCY_KEPT, Receipt};
pub use events::{EventReceipt, FannedOut, Record, RecordRefused};
pub use kind::{Attempt, Declaration, IntoReport, Kind, Report};
pub use settings::{Retention, Settings, WORKERS_DEFAULT};
pub use tidings_core as core;
pub use tidings_core::fact::{Act, Resolution};
pub use tidings_core::id::JobId;
pub use tidings_core::outcome::Outcome;
pub use tidings_core::policy::{Policy, Preset};
pub use tidings_core::time::{Millis, Time};
pub use wait::{WAITERS_MAX, Waited};
pub use worker::{WorkRefused, Workers};
