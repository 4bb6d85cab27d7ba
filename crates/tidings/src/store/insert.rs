//! New jobs, and who wins when two want the same key.
//!
//! The steps are the same on both databases, and each is one statement for a
//! whole batch: idempotency keys first (a repeat of an earlier call must not
//! touch anything else), then unique keys, then the rows of those that won.
//! [`Plan`] holds the steps; a store only carries them out.

use std::collections::HashMap;
use std::sync::Arc;
use tidings_core::id::JobId;
use tidings_core::job::Job;
use tidings_core::time::Time;
use tidings_core::unique::KeyHash;

/// A job to insert.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Pending, version 0, under a fresh id.
    pub job: Job,
    /// JSON text, checked at the door.
    pub args: Arc<str>,
    /// So that the same call twice enqueues once.
    pub idempotency: Option<Idempotency>,
}

/// An idempotency key and what it was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The key; it belongs to the job's tenant.
    pub key_hash: KeyHash,
    /// Hash of what the caller asked for: the same key for something else is refused.
    pub fingerprint: KeyHash,
    /// Until when the key is remembered.
    pub expires_at: Time,
}

/// What became of a new job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is there.
    New(JobId),
    /// Another job has its unique key, or this call was made before: that job.
    Existing(JobId),
    /// The idempotency key was used for something else: that job.
    KeyReused(JobId),
}

/// One row of the key table.
#[derive(Clone, Debug)]
pub(super) struct KeyRow {
    pub(super) tenant: String,
    pub(super) scope: String,
    pub(super) key_hash: KeyHash,
    pub(super) job_id: JobId,
    pub(super) fingerprint: Option<KeyHash>,
    pub(super) expires_at_ms: Option<i64>,
}

/// Who holds a key.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) job_id: JobId,
    pub(super) fingerprint: Option<KeyHash>,
}

/// A key in full.
pub(super) type KeyName = (String, String, KeyHash);
/// The keys of a step that somebody else holds.
pub(super) type Holders = HashMap<KeyName, Holder>;

const IDEMPOTENCY: &str = "idempotency";

/// A batch on its way in.
pub(super) struct Plan {
    jobs: Vec<NewJob>,
    results: Vec<Option<Inserted>>,
}

impl Plan {
    pub(super) fn new(jobs: Vec<NewJob>) -> Plan {
        let results = vec![None; jobs.len()];
        Plan { jobs, results }
    }

    /// Whether any step with keys is needed.
    pub(super) fn has_keys(&self) -> bool {
        self.jobs.iter().any(|new| new.idempotency.is_some() || new.job.unique.is_some())
    }

    /// Step 1: keys to take, sorted.
    pub(super) fn idempotency_keys(&self) -> Vec<KeyRow> {
        self.undecided(|new| {
            let key = new.idempotency?;
            Some(KeyRow {
                tenant: new.job.tenant.clone(),
                scope: IDEMPOTENCY.to_owned(),
                key_hash: key.key_hash,
                job_id: new.job.id,
                fingerprint: Some(key.fingerprint),
                expires_at_ms: Some(key.expires_at.0),
            })
        })
    }

    /// Step 2: keys to take, sorted.
    pub(super) fn unique_keys(&self) -> Vec<KeyRow> {
        self.undecided(|new| KeyRow::unique(&new.job))
    }

    /// After step 1: jobs whose key somebody else holds are answered with that job.
    pub(super) fn idempotency_lost(&mut self, holders: &Holders) {
        for (new, result) in self.jobs.iter().zip(&mut self.results) {
            let Some(key) = new.idempotency else { continue };
            let name = (new.job.tenant.clone(), IDEMPOTENCY.to_owned(), key.key_hash);
            let Some(holder) = holders.get(&name).filter(|holder| holder.job_id != new.job.id) else {
                continue;
            };
            *result = Some(if holder.fingerprint == Some(key.fingerprint) {
                Inserted::Existing(holder.job_id)
            } else {
                Inserted::KeyReused(holder.job_id)
            });
        }
    }

    /// After step 2, likewise. The pairs are idempotency keys of step 1 that now
    /// have to name the job that was there first.
    pub(super) fn unique_lost(&mut self, holders: &Holders) -> Vec<(JobId, JobId)> {
        let mut repointed = HashMap::new();
        for (new, result) in self.jobs.iter().zip(&mut self.results).filter(|(_, result)| result.is_none()) {
            let Some(key) = KeyRow::unique(&new.job) else { continue };
            let Some(holder) = holders.get(&key.name()).filter(|holder| holder.job_id != new.job.id) else {
                continue;
            };
            *result = Some(Inserted::Existing(holder.job_id));
            if new.idempotency.is_some() {
                repointed.insert(new.job.id, holder.job_id);
            }
        }
        // Later calls of the batch with the same idempotency key were answered in step 1.
        for result in self.results.iter_mut().flatten() {
            if let Inserted::Existing(id) | Inserted::KeyReused(id) = result
                && let Some(holder) = repointed.get(id)
            {
                *id = *holder;
            }
        }
        repointed.into_iter().collect()
    }

    /// Step 3: the rows to write.
    pub(super) fn rows(&self) -> impl Iterator<Item = &NewJob> {
        self.jobs.iter().zip(&self.results).filter(|(_, result)| result.is_none()).map(|(new, _)| new)
    }

    /// The answer for each job, in order.
    pub(super) fn results(self) -> Vec<Inserted> {
        self.jobs
            .iter()
            .zip(self.results)
            .map(|(new, result)| result.unwrap_or(Inserted::New(new.job.id)))
            .collect()
    }

    fn undecided(&self, key: impl Fn(&NewJob) -> Option<KeyRow>) -> Vec<KeyRow> {
        let undecided = self.jobs.iter().zip(&self.results).filter(|(_, result)| result.is_none());
        let mut rows: Vec<KeyRow> = undecided.filter_map(|(new, _)| key(new)).collect();
        rows.sort_by(|a, b| (&a.tenant, &a.scope, a.key_hash).cmp(&(&b.tenant, &b.scope, b.key_hash)));
        rows
    }
}

impl KeyRow {
    /// The job's unique key, if it has one. Its scope is one kind.
    pub(super) fn unique(job: &Job) -> Option<KeyRow> {
        Some(KeyRow {
            tenant: job.tenant.clone(),
            scope: format!("unique:{}", job.kind),
            key_hash: job.unique?.key_hash,
            job_id: job.id,
            fingerprint: None,
            expires_at_ms: None,
        })
    }

    pub(super) fn name(&self) -> KeyName {
        (self.tenant.clone(), self.scope.clone(), self.key_hash)
    }
}
