//! The commands about events: record, look, declare, subscribe.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Record {
    /// The event's type, like `note.created`; it must be declared
    #[arg(value_name = "TYPE")]
    pub(crate) type_name: String,
    /// What happened, as JSON; `-` reads it from stdin
    #[arg(long, value_name = "JSON", conflicts_with = "data_file")]
    pub(crate) data: Option<String>,
    /// A file with what happened, as JSON; `-` is stdin
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) data_file: Option<PathBuf>,
    /// To what it happened, like `note/42`
    #[arg(long, value_name = "TEXT")]
    pub(crate) subject: Option<String>,
    /// Whose event it is
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// The same call twice with this key records once
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// When it happened, if not now (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub(crate) occurred_at: Option<String>,
    /// Wait so long for a running server to fan it out, and say which jobs it became
    #[arg(long, value_name = "SECONDS")]
    pub(crate) wait: Option<u64>,
}

#[derive(Subcommand)]
pub(crate) enum Events {
    /// List events, newest first
    List(EventsList),
    /// Show one event: its data, what each subscription made of it, and why others made nothing
    Show {
        /// The event's id
        id: String,
    },
    /// Put back an event that was set aside
    Requeue {
        /// The event's id
        id: String,
    },
    /// Say how many events wait for their fan-out, since when, and how many are set aside
    Backlog,
}

#[derive(Args)]
pub(crate) struct EventsList {
    /// Only events in this state: waiting, fanned_out or poisoned
    #[arg(long)]
    pub(crate) state: Option<String>,
    /// Only events of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) type_name: Option<String>,
    /// Only events of this subject
    #[arg(long)]
    pub(crate) subject: Option<String>,
    /// Only events of this tenant
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// How many [default: 50]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<String>,
    /// Where the page begins, as the page before said
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum EventTypes {
    /// List the declared event types
    List,
    /// Declare an event type, or say something else of a declared one
    Declare {
        /// Its name: dotted words, like `note.created`
        name: String,
        /// What happened when an event of it is recorded
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        description: String,
        /// Who may learn of it: `internal`, or `external` for endpoints outside as well
        #[arg(long, value_name = "WHO", default_value = "internal", value_parser = ["internal", "external"])]
        exposure: String,
    },
}

#[derive(Subcommand)]
pub(crate) enum Subscriptions {
    /// List the subscriptions
    List,
    /// Show one subscription
    Show {
        /// Its name
        name: String,
    },
    /// Make a subscription, or change the one of that name
    Set(Box<SubscriptionSet>),
    /// Forget a subscription; events that it matched stay what they are
    Remove {
        /// Its name
        name: String,
    },
}

#[derive(Args)]
pub(crate) struct SubscriptionSet {
    /// Its name
    pub(crate) name: String,
    /// Which event types, like `note.*`: a `*` is one word, and as the last word one or more
    #[arg(long)]
    pub(crate) pattern: String,
    #[command(flatten)]
    pub(crate) becomes: BecomesFlags,
    /// A condition on the data, `{"field": "order.status", "equals": "paid"}` or with `prefix`;
    /// with several every one must hold
    #[arg(long = "filter", value_name = "JSON")]
    pub(crate) filter: Vec<String>,
    /// Within one batch, the latest event of a subject stands for the ones before it
    #[arg(long)]
    pub(crate) coalesce: bool,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct BecomesFlags {
    /// Each match becomes one job of this kind
    #[arg(long, value_name = "KIND")]
    pub(crate) job: Option<String>,
    /// Each match becomes the jobs that this expander makes of it
    #[arg(long, value_name = "NAME")]
    pub(crate) expanded: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Incidents {
    /// List open incidents, newest first
    List {
        /// `open`, or `all` for closed ones too [default: open]
        #[arg(long)]
        state: Option<String>,
        /// How many [default: 50]
        #[arg(long, value_name = "NUMBER")]
        limit: Option<String>,
    },
}
