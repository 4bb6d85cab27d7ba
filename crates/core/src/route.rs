//! Which subscriptions get an event, what each match becomes, and why the others
//! do not.
//!
//! A subscription is data. Routing a batch is a pure function of events and
//! subscriptions; the relay carries out what it says in one transaction.
//!
//! Absent on purpose: a record for subscriptions whose pattern does not match. That
//! can be said of any event at any time from the two of them.

use crate::event::{Event, EventId, EventRefused, TypeName};
use crate::limits;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A named consumer of event types.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    /// Its name.
    pub name: String,
    /// Which types.
    pub pattern: Pattern,
    /// Which events of them: every condition must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<Condition>,
    /// What each match becomes.
    pub becomes: Becomes,
    /// Within one batch, the latest event of a subject stands for the ones before it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub coalesce: bool,
}

/// What a match becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Becomes {
    /// One job of this kind, whose arguments are the event.
    Job(String),
    /// The jobs that the expander of this name makes of it.
    Expanded(String),
}

/// Dotted words in which `*` stands for one word, and as the last word for one or more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

/// One condition on an event's data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Where in the data: dotted field names, like `order.status`.
    pub field: String,
    /// What must be there.
    #[serde(flatten)]
    pub test: Test,
}

/// See [`Condition`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Just this value.
    Equals(Value),
    /// A string that begins so.
    Prefix(String),
}

/// What a subscription made of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "became", rename_all = "snake_case")]
pub enum Verdict {
    /// It is to become a job.
    Matched,
    /// A condition of the filter does not hold.
    Filtered {
        /// The field of the first that does not.
        field: String,
    },
    /// A later event of the same subject in the same batch stands for it.
    Coalesced {
        /// Which.
        into: EventId,
    },
}

/// Why a subscription or pattern was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteRefused {
    /// Not a pattern.
    #[error(
        "`{0}` is not a pattern of event types: write dotted words in which `*` stands for a word, like `note.*`"
    )]
    BadPattern(String),
    /// Nothing that is declared can match.
    #[error(
        "subscription `{subscription}` matches no declared event type: `{pattern}`; declared are: {known}"
    )]
    MatchesNothing {
        /// Which subscription.
        subscription: String,
        /// Its pattern.
        pattern: String,
        /// What there is.
        known: String,
    },
    /// Nobody would ever do what a match becomes.
    #[error("subscription `{subscription}` {problem}")]
    NobodyTakesIt {
        /// Which subscription.
        subscription: String,
        /// What it names, and what there is.
        problem: String,
    },
    /// A subscription that cannot be.
    #[error("subscription `{subscription}`: {problem}")]
    BadSubscription {
        /// Which.
        subscription: String,
        /// What is wrong and what to write.
        problem: String,
    },
}

impl Pattern {
    /// Checks a pattern.
    ///
    /// # Errors
    /// When it is not dotted words and stars.
    pub fn new(pattern: &str) -> Result<Pattern, RouteRefused> {
        let without_stars: String =
            pattern.split('.').map(|word| if word == "*" { "x" } else { word }).collect::<Vec<_>>().join(".");
        TypeName::new(&without_stars).map(|_| Pattern(pattern.to_owned())).map_err(|_: EventRefused| {
            RouteRefused::BadPattern(crate::text::safe(pattern, limits::TYPE_BYTES_MAX))
        })
    }

    /// Whether an event of this type is meant.
    pub fn matches(&self, type_name: &TypeName) -> bool {
        let mut words = type_name.as_str().split('.');
        let mut pattern = self.0.split('.').peekable();
        while let Some(expected) = pattern.next() {
            let Some(word) = words.next() else { return false };
            if expected == "*" && pattern.peek().is_none() {
                return true;
            }
            if expected != "*" && expected != word {
                return false;
            }
        }
        words.next().is_none()
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pattern {
    type Error = RouteRefused;

    fn try_from(text: String) -> Result<Pattern, RouteRefused> {
        Pattern::new(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.0
    }
}

impl Subscription {
    /// Every event that the pattern means becomes one job of `kind`.
    ///
    /// # Errors
    /// When the pattern is not one.
    pub fn to_job(name: &str, pattern: &str, kind: &str) -> Result<Subscription, RouteRefused> {
        Subscription::to(name, pattern, Becomes::Job(kind.to_owned()))
    }

    /// Every event that the pattern means becomes what the expander makes of it.
    ///
    /// # Errors
    /// When the pattern is not one.
    pub fn to_expander(name: &str, pattern: &str, expander: &str) -> Result<Subscription, RouteRefused> {
        Subscription::to(name, pattern, Becomes::Expanded(expander.to_owned()))
    }

    fn to(name: &str, pattern: &str, becomes: Becomes) -> Result<Subscription, RouteRefused> {
        let pattern = Pattern::new(pattern)?;
        Ok(Subscription { name: name.to_owned(), pattern, filter: Vec::new(), becomes, coalesce: false })
    }

    /// The latest event of a subject stands for the ones before it in a batch.
    #[must_use]
    pub fn coalescing(mut self) -> Subscription {
        self.coalesce = true;
        self
    }

    /// Only events whose data holds this as well.
    #[must_use]
    pub fn only(mut self, field: &str, test: Test) -> Subscription {
        self.filter.push(Condition { field: field.to_owned(), test });
        self
    }

    /// Checks what can be checked without a database.
    ///
    /// # Errors
    /// When the name or the filter cannot be, or no declared type can match.
    pub fn check(&self, declared: &[TypeName]) -> Result<(), RouteRefused> {
        let bad = |problem: &str| {
            Err(RouteRefused::BadSubscription {
                subscription: self.name.clone(),
                problem: problem.to_owned(),
            })
        };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
        if self.name.is_empty() || self.name.len() > limits::KIND_BYTES_MAX || !self.name.chars().all(plain) {
            return bad("its name must be 1 to 128 of a-z, 0-9, `.`, `_` and `-`");
        }
        if self.filter.len() > limits::FILTER_CONDITIONS_MAX {
            return bad("its filter has more than 20 conditions; split it");
        }
        if self.coalesce && matches!(self.becomes, Becomes::Expanded(_)) {
            return bad("what is expanded is never coalesced: each event must reach everybody");
        }
        if !declared.iter().any(|name| self.pattern.matches(name)) {
            return Err(RouteRefused::MatchesNothing {
                subscription: self.name.clone(),
                pattern: self.pattern.as_str().to_owned(),
                known: declared.iter().map(TypeName::as_str).collect::<Vec<_>>().join(", "),
            });
        }
        Ok(())
    }
}

impl Becomes {
    /// Checks that what it names is there: a kind that some program carries out, or an
    /// expander of this program.
    ///
    /// # Errors
    /// What `subscription` names, and what there is.
    pub fn check(
        &self,
        subscription: &str,
        kinds: &[String],
        expanders: &[String],
    ) -> Result<(), RouteRefused> {
        let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let problem = match self {
            Becomes::Job(kind) if !kinds.contains(kind) => format!(
                "makes jobs of kind `{kind}`, which no program carries out: start one that does, or name another; \
                 known kinds are: {}",
                list(kinds)
            ),
            Becomes::Expanded(expander) if !expanders.contains(expander) => format!(
                "names the expander `{expander}`, which this program does not have; it has: {}",
                list(expanders)
            ),
            Becomes::Job(_) | Becomes::Expanded(_) => return Ok(()),
        };
        Err(RouteRefused::NobodyTakesIt { subscription: subscription.to_owned(), problem })
    }
}

/// What each subscription whose pattern matches makes of each event of a batch, in
/// the order of the subscriptions. Events come oldest first.
pub fn route(events: &[Event], subscriptions: &[Subscription]) -> Vec<Vec<(usize, Verdict)>> {
    let mut verdicts: Vec<Vec<(usize, Verdict)>> = events
        .iter()
        .map(|event| {
            let data = subscriptions.iter().any(|subscription| !subscription.filter.is_empty());
            let data: Value =
                if data { serde_json::from_str(&event.data).unwrap_or(Value::Null) } else { Value::Null };
            subscriptions
                .iter()
                .enumerate()
                .filter(|(_, subscription)| subscription.pattern.matches(&event.type_name))
                .map(|(index, subscription)| (index, filtered(subscription, &data)))
                .collect()
        })
        .collect();
    coalesce(events, subscriptions, &mut verdicts);
    verdicts
}

fn filtered(subscription: &Subscription, data: &Value) -> Verdict {
    match subscription.filter.iter().find(|condition| !condition.holds(data)) {
        Some(failed) => Verdict::Filtered { field: failed.field.clone() },
        None => Verdict::Matched,
    }
}

/// From the newest back: the first match of a subject stands for the ones before
/// it. An event without a subject stands for nothing but itself.
fn coalesce(events: &[Event], subscriptions: &[Subscription], verdicts: &mut [Vec<(usize, Verdict)>]) {
    let mut latest: BTreeMap<(usize, &str, &str), EventId> = BTreeMap::new();
    for (event, verdicts) in events.iter().zip(verdicts).rev() {
        for (index, verdict) in verdicts {
            if *verdict != Verdict::Matched || !subscriptions[*index].coalesce || event.subject.is_empty() {
                continue;
            }
            let key = (*index, event.tenant.as_str(), event.subject.as_str());
            match latest.get(&key) {
                Some(into) => *verdict = Verdict::Coalesced { into: *into },
                None => {
                    latest.insert(key, event.id);
                }
            }
        }
    }
}

impl Condition {
    fn holds(&self, data: &Value) -> bool {
        let found = self.field.split('.').try_fold(data, |value, name| value.get(name));
        match (&self.test, found) {
            (Test::Equals(expected), Some(found)) => expected == found,
            (Test::Prefix(prefix), Some(Value::String(found))) => found.starts_with(prefix.as_str()),
            (Test::Equals(_) | Test::Prefix(_), _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;
    use uuid::Uuid;

    fn event(number: u128, type_name: &str, subject: &str, data: &str) -> Event {
        Event {
            id: EventId(Uuid::from_u128(number)),
            type_name: TypeName::new(type_name).unwrap(),
            tenant: String::new(),
            subject: subject.into(),
            occurred_at: Time(0),
            data: data.into(),
        }
    }

    fn subscription(text: &str) -> Subscription {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_star_is_one_word_and_at_the_end_one_or_more() {
        for (pattern, type_name, matches) in [
            ("note.created", "note.created", true),
            ("note.created", "note.created.twice", false),
            ("note.*", "note.created", true),
            ("note.*", "note.tag.added", true),
            ("note.*", "note", false),
            ("*", "anything.at.all", true),
            ("*.created", "note.created", true),
            ("*.created", "a.note.created", false),
            ("corpus.*.created", "corpus.note.created", true),
            ("corpus.*.created", "corpus.note.deleted", false),
        ] {
            let matched = Pattern::new(pattern).unwrap().matches(&TypeName::new(type_name).unwrap());
            assert_eq!(matched, matches, "{pattern} and {type_name}");
        }
        for bad in ["", "note.**", "no*te", "note.", "Note.*"] {
            assert!(Pattern::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_condition_of_a_filter_must_hold_and_the_first_that_does_not_is_named() {
        let paid = subscription(
            r#"{"name": "paid", "pattern": "order.*", "becomes": {"job": "ship"},
                "filter": [{"field": "order.status", "equals": "paid"}, {"field": "country", "prefix": "D"}]}"#,
        );
        for (data, verdict) in [
            (r#"{"order": {"status": "paid"}, "country": "DE"}"#, Verdict::Matched),
            (
                r#"{"order": {"status": "paid"}, "country": "FR"}"#,
                Verdict::Filtered { field: "country".into() },
            ),
            (r#"{"order": "paid", "country": "DE"}"#, Verdict::Filtered { field: "order.status".into() }),
            ("7", Verdict::Filtered { field: "order.status".into() }),
        ] {
            let routed = route(&[event(1, "order.changed", "", data)], std::slice::from_ref(&paid));
            assert_eq!(routed, [[(0, verdict)]], "{data}");
        }
    }

    #[test]
    fn the_latest_of_a_subject_stands_for_the_ones_before_it_only_where_asked_for() {
        let index = subscription(
            r#"{"name": "index", "pattern": "note.*", "becomes": {"job": "index"}, "coalesce": true}"#,
        );
        let hook = subscription(r#"{"name": "hook", "pattern": "*", "becomes": {"expanded": "webhooks"}}"#);
        let events = [
            event(1, "note.changed", "note/1", "{}"),
            event(2, "note.changed", "note/2", "{}"),
            event(3, "note.changed", "note/1", "{}"),
            event(4, "note.changed", "", "{}"),
            event(5, "note.changed", "", "{}"),
        ];
        let routed = route(&events, &[index, hook]);
        let into_3 = Verdict::Coalesced { into: events[2].id };
        let of = |event: usize| routed[event][0].1.clone();
        assert_eq!(
            [of(0), of(1), of(2), of(3), of(4)],
            [into_3, Verdict::Matched, Verdict::Matched, Verdict::Matched, Verdict::Matched]
        );
        assert!(routed.iter().all(|verdicts| verdicts[1] == (1, Verdict::Matched)), "webhooks get every one");
    }

    #[test]
    fn a_subscription_that_can_match_nothing_is_refused() {
        let declared = [TypeName::new("note.created").unwrap()];
        let typo = subscription(r#"{"name": "index", "pattern": "notes.*", "becomes": {"job": "index"}}"#);
        let refusal = typo.check(&declared).unwrap_err().to_string();
        assert!(refusal.contains("`notes.*`") && refusal.contains("note.created"), "{refusal}");
    }

    #[test]
    fn a_subscription_whose_jobs_nobody_takes_is_refused_with_what_there_is() {
        let (kinds, expanders) = (["http.call".to_owned()], []);
        let check = |becomes: Becomes| becomes.check("index", &kinds, &expanders);
        assert_eq!(check(Becomes::Job("http.call".into())), Ok(()));
        for (becomes, expected) in [
            (Becomes::Job("note.index".into()), "`note.index`, which no program carries out"),
            (Becomes::Job("note.index".into()), "known kinds are: http.call"),
            (
                Becomes::Expanded("webhooks".into()),
                "`webhooks`, which this program does not have; it has: none",
            ),
        ] {
            let refusal = check(becomes).unwrap_err().to_string();
            assert!(refusal.contains(expected) && refusal.contains("`index`"), "{refusal}");
        }
    }
}
