//! The event types and subscriptions of the configuration, as checked. What needs the
//! database (is the type declared, does some program carry out the kind) is checked
//! when they are declared there.

use super::checked::PlaceOf;
use super::refused;
use super::written::{SubscriptionWritten, Written};
use crate::problem::Problem;
use crate::subscription;
use std::collections::BTreeSet;
use tidings::core::event::EventType;
use tidings::core::route::{Becomes, Subscription};

/// What is declared when the server starts.
pub(crate) struct Declarations {
    pub(crate) types: Vec<EventType>,
    pub(crate) subscriptions: Vec<Subscription>,
    /// Where they stand, for messages.
    pub(crate) place: String,
}

pub(super) fn declarations(written: &Written, place_of: PlaceOf<'_>) -> Result<Declarations, Problem> {
    let types = once("event_types", &written.event_types, |declared| declared.name.as_str(), place_of)?;
    let named = once("subscriptions", &written.subscriptions, |written| &written.name, place_of)?;
    let subscriptions = named.into_iter().enumerate().map(|(index, written)| {
        checked(written).map_err(|(path, problem)| {
            let path = format!("subscriptions[{index}]{path}");
            refused(&place_of("subscriptions"), &path, &problem)
        })
    });
    let subscriptions = subscriptions.collect::<Result<_, _>>()?;
    Ok(Declarations { types, subscriptions, place: place_of("subscriptions") })
}

/// Of two entries with one name the second would quietly win.
fn once<T: Clone>(
    list: &str,
    entries: &[T],
    name: impl Fn(&T) -> &str,
    place_of: PlaceOf<'_>,
) -> Result<Vec<T>, Problem> {
    let mut seen = BTreeSet::new();
    match entries.iter().position(|entry| !seen.insert(name(entry))) {
        Some(index) => {
            let problem =
                format!("has the name `{}`, which another one has; keep one", name(&entries[index]));
            Err(refused(&place_of(list), &format!("{list}[{index}]"), &problem))
        }
        None => Ok(entries.to_vec()),
    }
}

fn checked(written: SubscriptionWritten) -> Result<Subscription, (String, String)> {
    let SubscriptionWritten { name, pattern, job, expanded, filter, coalesce } = written;
    let becomes = match (job, expanded) {
        (Some(kind), None) => Becomes::Job(kind),
        (None, Some(expander)) => Becomes::Expanded(expander),
        (None, None) | (Some(_), Some(_)) => {
            return Err((String::new(), "must have one of `job` and `expanded`".to_owned()));
        }
    };
    let filter = subscription::filter(filter).map_err(|(path, problem)| (format!(".{path}"), problem))?;
    Ok(Subscription { name, pattern, filter, becomes, coalesce })
}
