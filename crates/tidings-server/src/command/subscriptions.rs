//! `tidings subscriptions`.

use super::Context;
use crate::cli::{BecomesFlags, SubscriptionSet, Subscriptions};
use crate::exit::Exit;
use crate::print::shown;
use crate::problem::{Problem, Sort};
use crate::subscription::{self, ConditionWritten, SubscriptionBody, SubscriptionDocument};
use crate::table;
use serde_json::json;
use tidings::Tidings;
use tidings::core::route::{Becomes, Pattern, Test};

pub(crate) async fn run(
    context: &Context,
    tidings: &Tidings,
    subscriptions: Subscriptions,
) -> Result<Exit, Problem> {
    match subscriptions {
        Subscriptions::List => {
            let all = subscription::all(tidings).await?;
            context.style.result(|| text_of(&all), &json!({ "subscriptions": all }))?;
        }
        Subscriptions::Show { name } => {
            let one = subscription::one(tidings, &name).await?;
            context.style.result(|| text_of(std::slice::from_ref(&one)), &one)?;
        }
        Subscriptions::Set(set) => {
            let name = set.name.clone();
            let (kept, new) = subscription::keep(tidings, name, body(*set)?).await?;
            let what = if new { "is made" } else { "is changed" };
            context.style.result(|| format!("{} {what}", kept.name), &kept)?;
        }
        Subscriptions::Remove { name } => {
            subscription::remove(tidings, &name).await?;
            let document = json!({ "name": name, "removed": true });
            context.style.result(|| format!("{} is removed", shown(&name)), &document)?;
        }
    }
    Ok(Exit::Done)
}

fn body(set: SubscriptionSet) -> Result<SubscriptionBody, Problem> {
    let SubscriptionSet { name: _, pattern, becomes, filter, coalesce } = set;
    // Exactly one of them is set: the parser sees to it.
    let becomes = match becomes {
        BecomesFlags { job: Some(kind), .. } => Becomes::Job(kind),
        BecomesFlags { job: None, expanded } => Becomes::Expanded(expanded.unwrap_or_default()),
    };
    let condition = |text: &String| -> Result<ConditionWritten, Problem> {
        serde_json::from_str(text).map_err(|error| {
            let detail = format!(
                "--filter: {error}; write `{{\"field\": \"order.status\", \"equals\": \"paid\"}}`, or `prefix` \
                 in place of `equals`"
            );
            Problem::new(Sort::InvalidField, detail).field("filter")
        })
    };
    let filter = filter.iter().map(condition).collect::<Result<_, _>>()?;
    let pattern = Pattern::new(&pattern).map_err(Problem::from)?;
    Ok(SubscriptionBody { name: None, pattern, filter, becomes, coalesce })
}

fn text_of(subscriptions: &[SubscriptionDocument]) -> String {
    if subscriptions.is_empty() {
        return "No subscriptions: tidings subscriptions set NAME.".to_owned();
    }
    table::of(
        ["NAME", "PATTERN", "BECOMES", "FILTER", "COALESCES"],
        subscriptions.iter().map(|subscription| {
            let becomes = match &subscription.becomes {
                Becomes::Job(kind) => format!("job {}", shown(kind)),
                Becomes::Expanded(expander) => format!("expanded {}", shown(expander)),
            };
            let filter: Vec<String> = subscription
                .filter
                .iter()
                .map(|condition| match &condition.test {
                    Test::Equals(value) => format!("{} = {value}", condition.field),
                    Test::Prefix(prefix) => format!("{} begins with {prefix}", condition.field),
                })
                .collect();
            let coalesces = if subscription.coalesce { "yes" } else { "no" }.to_owned();
            let pattern = subscription.pattern.as_str().to_owned();
            [shown(&subscription.name), pattern, becomes, shown(&filter.join(", ")), coalesces]
        }),
    )
}
