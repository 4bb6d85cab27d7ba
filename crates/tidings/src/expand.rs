//! Expanders: what makes many jobs of one event, each for its own receiver.
//!
//! A function, not data, because who the receivers are is the expander's own affair.
//! It is called inside the relay's transaction: it must be quick, and must not wait.
//! One that panics is one that failed: the event waits and says so.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tidings_core::event::Event;

/// One job that an expander makes of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// Its kind, which some program must carry out.
    pub kind: String,
    /// Its arguments as JSON text.
    pub args: String,
}

/// Makes jobs of an event, or says why it cannot.
pub type Expand = Arc<dyn Fn(&Event) -> Result<Vec<Expanded>, String> + Send + Sync>;

/// The expanders of a process, by name.
#[derive(Clone, Default)]
pub(crate) struct Expanders(BTreeMap<String, Expand>);

impl Expanders {
    pub(crate) fn add(&mut self, name: &str, expand: Expand) {
        self.0.insert(name.to_owned(), expand);
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn expand(&self, name: &str, event: &Event) -> Result<Vec<Expanded>, String> {
        let expand = self.0.get(name).ok_or_else(|| {
            let known = self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("this program has no expander `{name}`; it has: {known}")
        })?;
        // A panic would take the thread with it that writes for everybody.
        catch_unwind(AssertUnwindSafe(|| expand(event)))
            .unwrap_or_else(|panic| Err(format!("the expander panicked: {}", panic_text(&*panic))))
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}

impl fmt::Debug for Expanders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
