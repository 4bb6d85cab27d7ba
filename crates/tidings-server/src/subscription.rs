//! A subscription as people write it, in the configuration, the API and the command
//! line alike, as it is shown to them, and how one is kept and found by its name.

use crate::problem::{Problem, Sort};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tidings::core::route::{Becomes, Condition, Pattern, RouteRefused, Subscription, Test};
use tidings::{RecordRefused, Tidings};

/// One condition of a filter as it is written: a field, and one of the tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConditionWritten {
    pub(crate) field: String,
    /// Any value, also `null`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub(crate) equals: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prefix: Option<String>,
}

/// Absent and `null` are two things.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A subscription without its name, which stands in the path or the command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubscriptionBody {
    pub(crate) name: Option<String>,
    pub(crate) pattern: Pattern,
    #[serde(default)]
    pub(crate) filter: Vec<ConditionWritten>,
    pub(crate) becomes: Becomes,
    #[serde(default)]
    pub(crate) coalesce: bool,
}

/// A subscription as it is shown, every member always there.
#[derive(Debug, Serialize)]
pub(crate) struct SubscriptionDocument {
    pub(crate) name: String,
    pub(crate) pattern: Pattern,
    pub(crate) filter: Vec<Condition>,
    pub(crate) becomes: Becomes,
    pub(crate) coalesce: bool,
}

impl ConditionWritten {
    /// The condition; where it has not exactly one test, what to write.
    fn checked(self) -> Result<Condition, String> {
        let ConditionWritten { field, equals, prefix } = self;
        let test = match (equals, prefix) {
            (Some(value), None) => Test::Equals(value),
            (None, Some(prefix)) => Test::Prefix(prefix),
            (None, None) | (Some(_), Some(_)) => {
                return Err("must have one of `equals` and `prefix`".to_owned());
            }
        };
        if field.split('.').any(str::is_empty) {
            return Err("must name a field of the data: dotted names, like `order.status`".to_owned());
        }
        Ok(Condition { field, test })
    }
}

/// The conditions, or the path of the first that cannot be and what is wrong.
pub(crate) fn filter(written: Vec<ConditionWritten>) -> Result<Vec<Condition>, (String, String)> {
    let placed = |(index, written): (usize, ConditionWritten)| {
        written.checked().map_err(|problem| (format!("filter[{index}]"), problem))
    };
    written.into_iter().enumerate().map(placed).collect()
}

impl SubscriptionBody {
    /// Under this name; or the path of what cannot be and what is wrong.
    pub(crate) fn named(self, name: String) -> Result<Subscription, (String, String)> {
        if self.name.is_some_and(|own| own != name) {
            return Err(("name".into(), "differs from the name in the path; leave it out".into()));
        }
        let filter = filter(self.filter)?;
        Ok(Subscription {
            name,
            pattern: self.pattern,
            filter,
            becomes: self.becomes,
            coalesce: self.coalesce,
        })
    }
}

impl From<Subscription> for SubscriptionDocument {
    fn from(subscription: Subscription) -> SubscriptionDocument {
        let Subscription { name, pattern, filter, becomes, coalesce } = subscription;
        SubscriptionDocument { name, pattern, filter, becomes, coalesce }
    }
}

/// Every subscription, by name.
pub(crate) async fn all(tidings: &Tidings) -> Result<Vec<SubscriptionDocument>, Problem> {
    Ok(tidings.subscriptions().await?.into_iter().map(SubscriptionDocument::from).collect())
}

/// The one of that name.
pub(crate) async fn one(tidings: &Tidings, name: &str) -> Result<SubscriptionDocument, Problem> {
    let found = all(tidings).await?.into_iter().find(|subscription| subscription.name == name);
    found.ok_or_else(|| no_such(name))
}

/// Keeps one after every check; whether it is a new one.
pub(crate) async fn keep(
    tidings: &Tidings,
    name: String,
    body: SubscriptionBody,
) -> Result<(SubscriptionDocument, bool), Problem> {
    let subscription = body.named(name).map_err(|(path, problem)| {
        Problem::new(Sort::InvalidField, format!("`{path}` {problem}")).field(path)
    })?;
    let new = tidings.subscriptions().await?.iter().all(|kept| kept.name != subscription.name);
    subscribe(tidings, std::slice::from_ref(&subscription)).await?;
    Ok((subscription.into(), new))
}

/// Keeps subscriptions after every check of the library, and one of this program's own.
pub(crate) async fn subscribe(
    tidings: &Tidings,
    subscriptions: &[Subscription],
) -> Result<(), RecordRefused> {
    subscriptions.iter().try_for_each(takes_events)?;
    tidings.subscribe(subscriptions).await
}

/// A call says where to send what. An event does not, so that every such job would be
/// discarded.
fn takes_events(subscription: &Subscription) -> Result<(), RouteRefused> {
    if subscription.becomes == Becomes::Job("http.call".to_owned()) {
        let problem = "makes jobs of kind `http.call`, whose arguments are a request and not an event; \
                       name a kind of a program of yours that takes events";
        return Err(RouteRefused::NobodyTakesIt {
            subscription: subscription.name.clone(),
            problem: problem.into(),
        });
    }
    Ok(())
}

/// Forgets the one of that name.
pub(crate) async fn remove(tidings: &Tidings, name: &str) -> Result<(), Problem> {
    one(tidings, name).await?;
    Ok(tidings.unsubscribe(name).await?)
}

fn no_such(name: &str) -> Problem {
    let detail = format!(
        "there is no subscription `{}`; `tidings subscriptions list` shows those that there are",
        crate::print::shown(name)
    );
    Problem::new(Sort::NoSuchSubscription, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Subscription, (String, String)> {
        serde_json::from_str::<SubscriptionBody>(body).unwrap().named("index".into())
    }

    #[test]
    fn what_is_shown_can_be_written_back() {
        let body = r#"{"pattern": "note.*", "becomes": {"job": "index"}, "coalesce": true,
            "filter": [{"field": "a.b", "equals": null}, {"field": "c", "prefix": "D"}]}"#;
        let subscription = read(body).unwrap();
        assert_eq!(subscription.filter[0].test, Test::Equals(Value::Null));
        let shown = serde_json::to_string(&SubscriptionDocument::from(subscription.clone())).unwrap();
        assert_eq!(read(&shown), Ok(subscription));
    }

    #[test]
    fn a_condition_has_a_field_and_exactly_one_test() {
        for (filter, path) in [
            (r#"[{"field": "a", "equals": 1}, {"field": "a"}]"#, "filter[1]"),
            (r#"[{"field": "a", "equals": 1, "prefix": "b"}]"#, "filter[0]"),
            (r#"[{"field": "a..b", "equals": 1}]"#, "filter[0]"),
            (r#"[{"field": "", "prefix": "b"}]"#, "filter[0]"),
        ] {
            let body = format!(r#"{{"pattern": "*", "becomes": {{"job": "x"}}, "filter": {filter}}}"#);
            assert_eq!(read(&body).unwrap_err().0, path, "{filter}");
        }
    }
}
