//! A database of either sort, a few kinds, and handlers that play a script.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidings::clock::HandClock;
use tidings::inspect::{AttemptEndView, JobView};
use tidings::store::{self, OpenOptions};
use tidings::{
    Act, Attempt, Declaration, JobId, Kind, Millis, Outcome, Preset, Tidings, Time, Waited, core::job::Job,
};
use tidings_core::outcome::AttemptOutcome;
use tokio::sync::Notify;

/// 2026-11-30T12:00:00Z.
pub(crate) const NOW: Time = Time(1_796_040_000_000);

/// What should happen in milliseconds and has not happened by then will not happen.
const NEVER: Duration = Duration::from_secs(20);

/// Runs each of these tests on both databases.
macro_rules! on_both_stores {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(crate::fixture::Database::sqlite()).await;
            })+
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(crate::fixture::Database::postgres().await).await;
            })+
        }
    };
}

/// An empty database, gone with this value.
pub(crate) struct Database {
    pub(crate) address: String,
    _keep: Keep,
}

enum Keep {
    Folder { _folder: tempfile::TempDir },
    Postgres { _database: testkit::postgres::Database },
}

impl Database {
    pub(crate) fn sqlite() -> Database {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("jobs.db").display());
        Database { address, _keep: Keep::Folder { _folder: folder } }
    }

    pub(crate) async fn postgres() -> Database {
        let database = testkit::postgres::database().await;
        Database { address: database.url().to_owned(), _keep: Keep::Postgres { _database: database } }
    }

    /// By the database's own clock.
    pub(crate) async fn open(&self, builder: tidings::Builder) -> Tidings {
        builder.open(&self.address).await.unwrap()
    }

    /// By a clock in the hand, which shows [`NOW`].
    pub(crate) async fn held(&self, builder: tidings::Builder) -> Held {
        self.held_by(&Arc::new(HandClock::at(NOW)), builder).await
    }

    /// By a clock that others share.
    pub(crate) async fn held_by(&self, clock: &Arc<HandClock>, builder: tidings::Builder) -> Held {
        let store = store::open(&self.address, &OpenOptions::default()).await.unwrap();
        let tidings = builder.on(store, clock.clone()).unwrap();
        Held { clock: Arc::clone(clock), tidings }
    }
}

/// A Tidings and the clock it goes by.
pub(crate) struct Held {
    pub(crate) clock: Arc<HandClock>,
    tidings: Tidings,
}

impl Deref for Held {
    type Target = Tidings;

    fn deref(&self) -> &Tidings {
        &self.tidings
    }
}

impl Held {
    pub(crate) async fn drain(&self) -> usize {
        tidings::testing::drain(self).await.unwrap()
    }

    /// Turns the clock to when the job is due next, and carries out what is due then.
    pub(crate) async fn drain_when_due(&self, id: JobId) -> Millis {
        let due_at = job(self, id).await.state.due_at().expect("a job that is still due");
        let waited = due_at.since(self.now());
        self.clock.set(due_at.max(self.now()));
        self.drain().await;
        waited
    }
}

/// A kind whose arguments are one text.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident: $declaration:expr;)+) => {
        $($(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub(crate) struct $kind {
            pub(crate) text: String,
        }

        impl Kind for $kind {
            const DECLARATION: Declaration = $declaration;
        }

        impl $kind {
            pub(crate) fn new(text: &str) -> $kind {
                $kind { text: text.to_owned() }
            }
        })+
    };
}

kinds! {
    /// Retries by the preset `default`.
    Note: Declaration::new("note");
    /// Holds what is unknown; another queue than a note's.
    Letter: Declaration::new("letter").policy(Preset::Mail).queue("mail");
    /// 18 attempts over 5.3 days.
    Hook: Declaration::new("hook").policy(Preset::Webhook).queue("hooks");
    /// A tenth of a second, then it is cancelled.
    Swift: Declaration::new("swift").time_limit(Millis(100));
}

/// Handlers' outcomes in order; the last one repeats. It keeps who came.
#[derive(Clone)]
pub(crate) struct Script(Arc<Mutex<Played>>);

/// What is still to come, and which attempts came.
type Played = (VecDeque<Outcome>, Vec<(JobId, i64)>);

impl Script {
    pub(crate) fn new(outcomes: impl IntoIterator<Item = Outcome>) -> Script {
        Script(Arc::new(Mutex::new((outcomes.into_iter().collect(), Vec::new()))))
    }

    pub(crate) fn accepting() -> Script {
        Script::new([Outcome::Accepted])
    }

    /// The attempts that were made, in order.
    pub(crate) fn attempts(&self) -> Vec<i64> {
        self.0.lock().unwrap().1.iter().map(|(_, number)| *number).collect()
    }

    /// The jobs that came, in order.
    pub(crate) fn jobs(&self) -> Vec<JobId> {
        self.0.lock().unwrap().1.iter().map(|(id, _)| *id).collect()
    }
}

/// A handler that plays its script.
pub(crate) async fn play<K>(script: Script, attempt: Attempt<K>) -> Outcome {
    let mut script = script.0.lock().unwrap();
    script.1.push((attempt.job_id, attempt.number));
    if script.0.len() > 1 { script.0.pop_front().unwrap() } else { script.0.front().unwrap().clone() }
}

/// A handler that says when it has begun, and goes on when it is told to.
#[derive(Clone, Default)]
pub(crate) struct Gate {
    begun: Arc<Notify>,
    open: Arc<Notify>,
    dropped: Arc<Notify>,
}

impl Gate {
    pub(crate) async fn begun(&self) {
        soon("a handler begins", self.begun.notified()).await;
    }

    pub(crate) fn begin(&self) {
        self.begun.notify_one();
    }

    pub(crate) fn open(&self) {
        self.open.notify_one();
    }

    /// The handler's future is gone, whether it came to its end or not.
    pub(crate) async fn dropped(&self) {
        soon("a handler's future is dropped", self.dropped.notified()).await;
    }
}

pub(crate) async fn wait_at_gate<K>(gate: Gate, _attempt: Attempt<K>) -> Outcome {
    let _guard = Guard(Arc::clone(&gate.dropped));
    gate.begin();
    gate.open.notified().await;
    Outcome::Accepted
}

struct Guard(Arc<Notify>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Panics, with what was waited for, when it does not happen.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::time::timeout(NEVER, event).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

pub(crate) async fn view(tidings: &Tidings, id: JobId) -> JobView {
    tidings.job(id).await.unwrap().expect("the job is there")
}

pub(crate) async fn job(tidings: &Tidings, id: JobId) -> Job {
    let stored = tidings.store().load(&[id]).await.unwrap().pop().flatten();
    stored.expect("the job is there").job
}

/// The word for the job's state.
pub(crate) async fn state(tidings: &Tidings, id: JobId) -> &'static str {
    job(tidings, id).await.state.name().as_str()
}

/// How the last attempt ended.
pub(crate) async fn last_end(tidings: &Tidings, id: JobId) -> AttemptEndView {
    view(tidings, id).await.attempts.pop().and_then(|attempt| attempt.end).expect("an attempt that has ended")
}

/// What each attempt came to, in order; `None` while it is in flight.
pub(crate) async fn outcomes(tidings: &Tidings, id: JobId) -> Vec<(i64, Option<AttemptOutcome>)> {
    let attempts = view(tidings, id).await.attempts;
    attempts.iter().map(|attempt| (attempt.attempt, attempt.end.as_ref().map(|end| end.outcome))).collect()
}

/// The job, once it has finished or is held.
pub(crate) async fn settled(tidings: &Tidings, id: JobId) -> Job {
    match tidings.wait(id, NEVER).await.unwrap() {
        Waited::Settled(job) => *job,
        Waited::Receipt(_) => panic!("{id} did not settle: {:#?}", view(tidings, id).await),
    }
}

pub(crate) fn act(reason: &str) -> Act {
    Act { actor: "ann".into(), reason: reason.into() }
}
