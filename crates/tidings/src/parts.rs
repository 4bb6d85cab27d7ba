//! What the client and the workers of a process share.

use crate::clock::Clock;
use crate::declared::Declared;
use crate::expand::Expanders;
use crate::kind::Registry;
use crate::settings::Settings;
use crate::store::{Store, TermsOfKinds};
use crate::wake::Wakes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The shared parts of a process, each for itself: there is nothing to do to the whole.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registry: Registry,
    pub(crate) terms: Arc<TermsOfKinds>,
    pub(crate) settings: Settings,
    pub(crate) queues: BTreeSet<String>,
    pub(crate) wakes: Wakes,
    pub(crate) declared: Declared,
    pub(crate) expanders: Expanders,
}
