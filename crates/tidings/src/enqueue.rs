//! A job on its way in: what a caller may say of it, and the checks at the door.
//!
//! Everything is checked here, before any database is asked, so that a refusal
//! names the field and says what to write.

use crate::kind::{BadArgs, Kind, Registry};
use crate::random;
use crate::store::outbox::KeptKind;
use crate::store::{Idempotency, NewJob, StoreError};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;
use tidings_core::id::JobId;
use tidings_core::job::{Counters, Job, Priority, State, Wait};
use tidings_core::limits;
use tidings_core::payload::{self, PayloadRefused};
use tidings_core::time::{Millis, Time};
use tidings_core::unique::{KeyHash, Unique};

/// How long an idempotency key is remembered.
pub const IDEMPOTENCY_KEPT: Millis = Millis::from_hours(72);

/// A job and how it is to be enqueued.
#[derive(Clone, Debug)]
pub struct Enqueue<K> {
    args: K,
    options: EnqueueOptions,
}

/// What a caller may say of a job besides its kind and arguments. Every part may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnqueueOptions {
    /// Another queue than the kind's.
    pub queue: Option<String>,
    /// Another priority than the kind's.
    pub priority: Option<Priority>,
    /// Not before this. A time that has passed means now.
    pub run_at: Option<Time>,
    /// Another unique key than the arguments give.
    pub unique_key: Option<String>,
    /// Whose it is.
    pub tenant: Option<String>,
    /// So that the same call twice enqueues once. Belongs to the tenant.
    pub idempotency_key: Option<String>,
}

impl<K: Kind> From<K> for Enqueue<K> {
    fn from(args: K) -> Enqueue<K> {
        Enqueue::new(args)
    }
}

impl<K: Kind> Enqueue<K> {
    /// As the kind declares it, now.
    pub fn new(args: K) -> Enqueue<K> {
        Enqueue { args, options: EnqueueOptions::default() }
    }

    /// Not before `time`.
    #[must_use]
    pub fn run_at(mut self, time: Time) -> Enqueue<K> {
        self.options.run_at = Some(time);
        self
    }

    /// In another queue.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Enqueue<K> {
        self.options.queue = Some(queue.into());
        self
    }

    /// With another priority.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Enqueue<K> {
        self.options.priority = Some(priority);
        self
    }

    /// With another unique key.
    #[must_use]
    pub fn unique_key(mut self, key: impl Into<String>) -> Enqueue<K> {
        self.options.unique_key = Some(key.into());
        self
    }

    /// For a tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Enqueue<K> {
        self.options.tenant = Some(tenant.into());
        self
    }

    /// Once, however often it is called with this key.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Enqueue<K> {
        self.options.idempotency_key = Some(key.into());
        self
    }
}

/// What a caller gets for work still in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The job.
    pub id: JobId,
    /// The job was there already: it has the same unique key, or the call was made before.
    pub existing: bool,
}

/// Why a job was not enqueued.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EnqueueRefused {
    /// No handler of that name.
    #[error("there is no kind `{kind}`; known kinds are: {known}")]
    UnknownKind {
        /// What was named.
        kind: String,
        /// What there is.
        known: String,
    },
    /// Nobody would ever take it.
    #[error("there is no queue `{queue}`; known queues are: {known}")]
    UnknownQueue {
        /// What was named.
        queue: String,
        /// What there is.
        known: String,
    },
    /// The arguments are not what the kind takes.
    #[error("{0}")]
    BadArgs(#[from] BadArgs),
    /// The arguments are not JSON that can be kept.
    #[error("args {0}")]
    BadPayload(#[from] PayloadRefused),
    /// A field that is too long, empty, or has control characters.
    #[error("{field} {problem}")]
    BadField {
        /// Which.
        field: &'static str,
        /// What is wrong and what to write.
        problem: String,
    },
    /// The idempotency key was used for another call.
    #[error("the idempotency key was used for another call, which made {0}; use a fresh key for a new call")]
    KeyReused(JobId),
    /// Too many jobs in one call.
    #[error("{given} jobs in one call; at most {most} are taken", most = limits::BATCH_MAX)]
    BatchTooLarge {
        /// How many.
        given: usize,
    },
    /// The database did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A job as the SQL function is told of it, checked.
#[cfg(feature = "sqlx")]
pub(crate) struct Told {
    pub(crate) kind: &'static str,
    /// JSON text.
    pub(crate) args: String,
    pub(crate) options: EnqueueOptions,
}

/// Checks what a caller gave and makes a job of it.
pub(crate) struct Door<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) queues: &'a BTreeSet<String>,
    pub(crate) now: Time,
}

impl Door<'_> {
    /// A job of a typed kind.
    pub(crate) fn typed<K: Kind>(&self, job: &Enqueue<K>) -> Result<NewJob, EnqueueRefused> {
        let args = serde_json::to_string(&job.args).map_err(|error| BadArgs {
            path: "args".into(),
            problem: format!("do not become JSON: {error}"),
        })?;
        self.admit(K::DECLARATION.name, args, &job.options)
    }

    /// A job of a typed kind as the SQL function is told of it.
    #[cfg(feature = "sqlx")]
    pub(crate) fn told<K: Kind>(&self, job: Enqueue<K>) -> Result<Told, EnqueueRefused> {
        let admitted = self.typed(&job)?;
        let Enqueue { args, mut options } = job;
        // Its own key, which only the program knows that has the kind.
        options.unique_key = options.unique_key.or_else(|| args.unique_key());
        Ok(Told { kind: K::DECLARATION.name, args: admitted.args.as_ref().to_owned(), options })
    }

    /// A job of a kind by name, with its arguments as JSON text.
    pub(crate) fn admit(
        &self,
        kind: &str,
        args: String,
        options: &EnqueueOptions,
    ) -> Result<NewJob, EnqueueRefused> {
        let registered = self.registry.get(kind).ok_or_else(|| EnqueueRefused::UnknownKind {
            kind: kind.chars().take(limits::KIND_BYTES_MAX).collect(),
            known: self.registry.names().join(", "),
        })?;
        payload::check(&args)?;
        let own_key = registered.check(&args)?;
        let queue = options.queue.clone().unwrap_or_else(|| registered.queue.clone());
        if !self.queues.contains(&queue) {
            let known = self.queues.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(EnqueueRefused::UnknownQueue { queue, known });
        }
        let tenant = options.tenant.clone().unwrap_or_default();
        if !tenant.is_empty() {
            check_text("tenant", &tenant, limits::TENANT_BYTES_MAX)?;
        }
        let unique_key = options.unique_key.clone().or(own_key);
        let unique = unique_key
            .map(|key| {
                check_text("unique_key", &key, limits::KEY_BYTES_MAX)?;
                Ok::<_, EnqueueRefused>(Unique {
                    key_hash: KeyHash::of(&key),
                    states: registered.unique_states(),
                })
            })
            .transpose()?;
        let run_at = self.run_at(options.run_at)?;
        let priority = options.priority.unwrap_or(registered.priority());
        let job = Job {
            id: random::job_id(self.now),
            version: 0,
            kind: kind.to_owned(),
            queue,
            priority,
            tenant,
            enqueued_at: self.now,
            run_at,
            unique,
            state: State::Waiting { why: Wait::Fresh, due_at: run_at },
            counters: Counters::default(),
        };
        let idempotency = self.idempotency(&job, &args, options)?;
        Ok(NewJob { job, args: Arc::from(args), idempotency })
    }

    fn run_at(&self, asked: Option<Time>) -> Result<Time, EnqueueRefused> {
        let run_at = asked.unwrap_or(self.now).max(self.now);
        if run_at.since(self.now) > limits::RUN_AT_AHEAD_MAX {
            let problem = "is more than 100 years ahead; write an earlier time".to_owned();
            return Err(EnqueueRefused::BadField { field: "run_at", problem });
        }
        Ok(run_at)
    }

    fn idempotency(
        &self,
        job: &Job,
        args: &str,
        options: &EnqueueOptions,
    ) -> Result<Option<Idempotency>, EnqueueRefused> {
        let Some(key) = &options.idempotency_key else { return Ok(None) };
        check_text("idempotency key", key, limits::KEY_BYTES_MAX)?;
        Ok(Some(Idempotency {
            key_hash: KeyHash::of(key),
            fingerprint: fingerprint(job, args, options),
            expires_at: self.now + IDEMPOTENCY_KEPT,
        }))
    }
}

/// A job that an event became. Its kind was declared by some program; its arguments
/// are decoded by the one that carries it out.
pub(crate) fn relayed(kind: &KeptKind, args: String, tenant: &str, now: Time) -> NewJob {
    let priority = Priority::try_from(i64::from(kind.priority)).unwrap_or_default();
    let job = Job {
        id: random::job_id(now),
        version: 0,
        kind: kind.name.clone(),
        queue: kind.queue.clone(),
        priority,
        tenant: tenant.to_owned(),
        enqueued_at: now,
        run_at: now,
        unique: None,
        state: State::Waiting { why: Wait::Fresh, due_at: now },
        counters: Counters::default(),
    };
    NewJob { job, args: Arc::from(args), idempotency: None }
}

/// What makes two calls the same: all that the caller said.
fn fingerprint(job: &Job, args: &str, options: &EnqueueOptions) -> KeyHash {
    let mut hash = Sha256::new();
    let run_at = options.run_at.map_or(String::new(), |time| time.0.to_string());
    let unique_key = options.unique_key.as_deref().unwrap_or_default();
    for part in [&*job.kind, &*job.queue, &job.priority.get().to_string(), &run_at, unique_key, args] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    KeyHash(hash.finalize().into())
}

fn check_text(field: &'static str, text: &str, bytes_max: usize) -> Result<(), EnqueueRefused> {
    let problem = if text.is_empty() {
        "is empty; leave it out instead".to_owned()
    } else if text.len() > bytes_max {
        format!("is {} bytes long; at most {bytes_max} are taken", text.len())
    } else if text.chars().any(char::is_control) {
        "has control characters; write plain text".to_owned()
    } else {
        return Ok(());
    };
    Err(EnqueueRefused::BadField { field, problem })
}
