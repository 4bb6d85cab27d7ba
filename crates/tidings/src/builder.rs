//! How an application puts its Tidings together.

use crate::client::Tidings;
use crate::clock::{self, Clock, DatabaseClock};
use crate::declared::Declared;
use crate::events::RecordRefused;
use crate::expand::{Expanded, Expanders};
use crate::kind::{Attempt, IntoReport, Kind, Registry, RegistryRefused, http_call};
use crate::parts::Parts;
use crate::settings::Settings;
use crate::sink::http::HttpSink;
use crate::store::{self, OpenOptions, Store, StoreError};
use crate::wake::Wakes;
use crate::worker::{WorkRefused, Workers};
use std::sync::Arc;
use tidings_core::event::{Event, EventType};
use tidings_core::policy::Policy;
use tidings_core::route::Subscription;
use tidings_core::time::Millis;

/// Collects kinds and settings. See [`Tidings::builder`].
#[derive(Default)]
pub struct Builder {
    registry: Registry,
    settings: Settings,
    refused: Option<RegistryRefused>,
    types: Vec<EventType>,
    subscriptions: Vec<Subscription>,
    expanders: Expanders,
}

/// Why a Tidings could not be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenRefused {
    /// A kind or a setting that cannot be.
    #[error(transparent)]
    Registry(#[from] RegistryRefused),
    /// An event type or subscription that cannot be.
    #[error(transparent)]
    Declaration(#[from] RecordRefused),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Tidings {
    /// Starts with no kinds and the default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts carrying jobs out: one loop for each queue, the sweep, retention.
    ///
    /// # Errors
    /// When the connection pool is too small, a policy changed without its version, or the database is away.
    pub async fn work(&self) -> Result<Workers, WorkRefused> {
        Workers::start(Arc::clone(&self.parts)).await
    }
}

impl Builder {
    /// Adds a kind with its handler. The handler gets a clone of `state` and the attempt.
    #[must_use]
    pub fn kind<K, S, F, Fut>(mut self, state: S, handler: F) -> Builder
    where
        K: Kind,
        S: Clone + Send + Sync + 'static,
        F: Fn(S, Attempt<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoReport> + Send + 'static,
    {
        let added = self.registry.add(state, handler);
        self.note(added);
        self
    }

    /// Adds the kind `http.call`, which sends requests through `sink`.
    #[must_use]
    pub fn http_calls(self, sink: HttpSink) -> Builder {
        self.kind(sink, http_call::run)
    }

    /// Sets a kind's policy over the one that it declares.
    #[must_use]
    pub fn policy(mut self, kind: &str, policy: Policy) -> Builder {
        let set = self.registry.set(kind, Some(policy), None, None);
        self.note(set);
        self
    }

    /// Sets a kind's queue and hard time limit over what it declares.
    #[must_use]
    pub fn configure(mut self, kind: &str, queue: Option<String>, time_limit: Option<Millis>) -> Builder {
        let set = self.registry.set(kind, None, queue, time_limit);
        self.note(set);
        self
    }

    /// Declares an event type when the database is opened.
    #[must_use]
    pub fn event_type(mut self, declared: EventType) -> Builder {
        self.types.push(declared);
        self
    }

    /// Keeps a subscription when the database is opened. One that matches no declared
    /// type is refused then.
    #[must_use]
    pub fn subscribe(mut self, subscription: Subscription) -> Builder {
        self.subscriptions.push(subscription);
        self
    }

    /// Adds an expander, which makes many jobs of one event for the subscriptions that
    /// name it. It is called inside the relay's transaction and must not wait.
    #[must_use]
    pub fn expand(
        mut self,
        name: &str,
        expand: impl Fn(&Event) -> Result<Vec<Expanded>, String> + Send + Sync + 'static,
    ) -> Builder {
        self.expanders.add(name, Arc::new(expand));
        self
    }

    /// Attempts that a queue may have in flight at once in this process.
    #[must_use]
    pub fn workers(mut self, queue: &str, workers: usize) -> Builder {
        self.settings.workers.insert(queue.to_owned(), workers);
        self
    }

    /// Replaces the settings, workers included.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Builder {
        self.settings = settings;
        self
    }

    /// Opens the database at `address` (`sqlite:PATH` or `postgres://…`) and brings its schema up to date.
    ///
    /// # Errors
    /// When a kind or setting cannot be, or the database cannot be opened.
    pub async fn open(self, address: &str) -> Result<Tidings, OpenRefused> {
        self.open_with(address, &OpenOptions::default()).await
    }

    /// Like [`Builder::open`], with options.
    ///
    /// # Errors
    /// When a kind or setting cannot be, or the database cannot be opened.
    pub async fn open_with(self, address: &str, options: &OpenOptions) -> Result<Tidings, OpenRefused> {
        if let Some(refused) = self.refused {
            return Err(refused.into());
        }
        let store = store::open(address, options).await?;
        let clock = Arc::new(DatabaseClock::start(&*store).await?);
        tokio::spawn(clock::keep(Arc::downgrade(&clock), Arc::downgrade(&store)));
        self.declared_on(store, clock).await
    }

    /// On a store that is open, with what is to be declared there.
    pub(crate) async fn declared_on(
        self,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Tidings, OpenRefused> {
        let (types, subscriptions) = (self.types.clone(), self.subscriptions.clone());
        let tidings = self.on(store, clock)?;
        if !types.is_empty() || !subscriptions.is_empty() {
            tidings.declare(&types, &subscriptions).await?;
        }
        Ok(tidings)
    }

    /// On a store that is open, with a clock: what tests use. Event types and subscriptions
    /// are declared by [`Tidings::declare`] then.
    ///
    /// # Errors
    /// When a kind or setting cannot be.
    pub fn on(self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Tidings, RegistryRefused> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let mut queues = self.registry.queues();
        for queue in self.settings.workers.keys() {
            crate::kind::check_name(queue, tidings_core::limits::QUEUE_BYTES_MAX)?;
            queues.insert(queue.clone());
        }
        let wakes = Wakes::start(Arc::clone(&store));
        let terms = Arc::new(self.registry.terms());
        let (registry, settings) = (self.registry, self.settings);
        let (declared, expanders) = (Declared::default(), self.expanders);
        let parts = Parts { store, clock, registry, terms, settings, queues, wakes, declared, expanders };
        Ok(Tidings::new(parts))
    }

    /// The first refusal is the one that `open` tells.
    fn note(&mut self, result: Result<(), RegistryRefused>) {
        if let Err(refused) = result {
            self.refused.get_or_insert(refused);
        }
    }
}
