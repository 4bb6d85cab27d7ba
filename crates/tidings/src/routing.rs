//! Subscriptions as people change them and look at them: kept after every check, and
//! what each of them made, or is to make, of one event.
//!
//! Absent on purpose: a record of subscriptions whose pattern does not match. Those
//! that are kept are asked again whenever somebody looks.

use crate::client::Tidings;
use crate::events::RecordRefused;
use crate::store::StoreError;
use crate::store::outbox::StoredEvent;
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use tidings_core::event::EventId;
use tidings_core::id::JobId;
use tidings_core::job::Job;
use tidings_core::relay::RelayState;
use tidings_core::route::{self, Subscription, Verdict};

/// What a subscription made of an event, or is to make of it.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Its name.
    pub subscription: String,
    /// What it decided.
    pub decided: Decided,
}

/// See [`Decision`].
#[derive(Clone, Debug)]
pub enum Decided {
    /// It became these jobs.
    Became(Vec<MadeJob>),
    /// It is to become jobs; the problem is why that cannot be, as far as it is known.
    ToBecome {
        /// In words.
        problem: Option<String>,
    },
    /// A condition on this field of the data does not hold.
    Filtered {
        /// Which.
        field: String,
    },
    /// A later event of the same subject stands for it.
    Coalesced {
        /// Which.
        into: EventId,
    },
    /// Its pattern does not match the type.
    NotMatched {
        /// The pattern.
        pattern: String,
    },
    /// Its pattern matches by now; it was made or changed after the fan-out.
    CameLater,
}

/// A job that an event became.
#[derive(Clone, Debug)]
pub struct MadeJob {
    /// Which.
    pub id: JobId,
    /// As it stands; `None`: it is past its retention.
    pub job: Option<Job>,
}

/// As the relay writes it.
#[derive(Deserialize)]
struct Became {
    subscription: String,
    #[serde(flatten)]
    verdict: Verdict,
    #[serde(default)]
    jobs: Vec<JobId>,
}

impl Tidings {
    /// Keeps subscriptions, for every process on this database, after every check.
    ///
    /// # Errors
    /// When one cannot be, matches no declared type, or names a kind that no program
    /// carries out or an expander that this one does not have. None is kept then.
    pub async fn subscribe(&self, subscriptions: &[Subscription]) -> Result<(), RecordRefused> {
        let declared = self.declare_known().await?;
        let (kinds, expanders) = (self.known_kinds().await?, self.parts.expanders.names());
        for subscription in subscriptions {
            subscription.check(&declared)?;
            subscription.becomes.check(&subscription.name, &kinds, &expanders)?;
        }
        Ok(self.parts.store.keep_subscriptions(subscriptions).await?)
    }

    /// The kinds that this program or, as the database says, some other one carries out, sorted.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn known_kinds(&self) -> Result<Vec<String>, StoreError> {
        let kept = self.parts.store.kept_kinds().await?;
        let own = self.parts.registry.names().into_iter().map(str::to_owned);
        let all: BTreeSet<String> = own.chain(kept.into_iter().map(|kind| kind.name)).collect();
        Ok(all.into_iter().collect())
    }

    /// What each subscription made of an event, those first whose pattern matched; of
    /// one that waits or is set aside, what each is to make of it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn decisions(&self, event: &StoredEvent) -> Result<Vec<Decision>, StoreError> {
        let kept = self.parts.store.subscriptions().await?;
        let mut decisions = match event.state {
            RelayState::FannedOut { .. } => self.made(event).await?,
            RelayState::Waiting { .. } | RelayState::Poisoned { .. } => self.to_be_made(event, &kept).await?,
        };
        let asked: BTreeSet<String> = decisions.iter().map(|made| made.subscription.clone()).collect();
        for subscription in kept.into_iter().filter(|kept| !asked.contains(&kept.name)) {
            let decided = if subscription.pattern.matches(&event.event.type_name) {
                Decided::CameLater
            } else {
                Decided::NotMatched { pattern: subscription.pattern.as_str().to_owned() }
            };
            decisions.push(Decision { subscription: subscription.name, decided });
        }
        Ok(decisions)
    }

    async fn made(&self, event: &StoredEvent) -> Result<Vec<Decision>, StoreError> {
        let became: Vec<Became> =
            serde_json::from_str(event.became.as_deref().unwrap_or("[]")).map_err(|error| {
                StoreError::CorruptRow { row: event.event.id.to_string(), what: format!("became: {error}") }
            })?;
        let ids: Vec<JobId> = became.iter().flat_map(|became| became.jobs.iter().copied()).collect();
        let stored = if ids.is_empty() { Vec::new() } else { self.parts.store.load(&ids).await? };
        let mut jobs: HashMap<JobId, Job> =
            stored.into_iter().flatten().map(|stored| (stored.job.id, stored.job)).collect();
        let decision = |became: Became| {
            let made = became.jobs.into_iter().map(|id| MadeJob { id, job: jobs.remove(&id) }).collect();
            let decided = match became.verdict {
                Verdict::Matched => Decided::Became(made),
                Verdict::Filtered { field } => Decided::Filtered { field },
                Verdict::Coalesced { into } => Decided::Coalesced { into },
            };
            Decision { subscription: became.subscription, decided }
        };
        Ok(became.into_iter().map(decision).collect())
    }

    async fn to_be_made(
        &self,
        event: &StoredEvent,
        kept: &[Subscription],
    ) -> Result<Vec<Decision>, StoreError> {
        let (kinds, expanders) = (self.known_kinds().await?, self.parts.expanders.names());
        let verdicts = route::route(std::slice::from_ref(&event.event), kept).pop().unwrap_or_default();
        let decision = |(index, verdict): (usize, Verdict)| {
            let Subscription { name, becomes, .. } = &kept[index];
            let decided = match verdict {
                Verdict::Matched => {
                    let checked = becomes.check(name, &kinds, &expanders);
                    Decided::ToBecome { problem: checked.err().map(|refused| refused.to_string()) }
                }
                Verdict::Filtered { field } => Decided::Filtered { field },
                Verdict::Coalesced { into } => Decided::Coalesced { into },
            };
            Decision { subscription: name.clone(), decided }
        };
        Ok(verdicts.into_iter().map(decision).collect())
    }
}
