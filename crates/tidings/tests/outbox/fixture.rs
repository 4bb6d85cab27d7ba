//! An empty database with a clock in the test's hand.

use std::sync::Arc;
use tidings::clock::{Clock, HandClock};
use tidings::core::event::{EventType, Exposure, TypeName};
use tidings::store::{self, OpenOptions, Store};
use tidings::{Builder, Tidings, Time};

pub(crate) const START: Time = Time(1_800_000_000_000);

/// A database of its own, which goes with it.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<HandClock>,
    _folder: Option<tempfile::TempDir>,
    _database: Option<testkit::postgres::Database>,
}

impl Place {
    pub(crate) fn tidings(&self, builder: Builder) -> Tidings {
        let clock: Arc<dyn Clock> = Arc::<HandClock>::clone(&self.clock);
        builder.on(Arc::clone(&self.store), clock).unwrap()
    }
}

pub(crate) async fn sqlite() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("test.db").display());
    let store = store::open(&address, &OpenOptions::default()).await.unwrap();
    Place { store, clock: Arc::new(HandClock::at(START)), _folder: Some(folder), _database: None }
}

pub(crate) async fn postgres() -> Place {
    let database = testkit::postgres::database().await;
    let store = store::open(database.url(), &OpenOptions::default()).await.unwrap();
    Place { store, clock: Arc::new(HandClock::at(START)), _folder: None, _database: Some(database) }
}

pub(crate) fn internal(name: &str) -> EventType {
    EventType { name: TypeName::new(name).unwrap(), description: String::new(), exposure: Exposure::Internal }
}
