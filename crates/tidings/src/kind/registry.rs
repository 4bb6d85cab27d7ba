//! The kinds that a process knows.

use super::{Attempt, Declaration, IntoReport, Kind, Report};
use crate::random;
use crate::sink::http::Trail;
use crate::store::terms::{KeptKind, Terms, TermsOfKinds};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tidings_core::evidence::Evidence;
use tidings_core::id::JobId;
use tidings_core::job::Priority;
use tidings_core::limits;
use tidings_core::outcome::{Effect, FailureKind, Outcome};
use tidings_core::policy::{OnUnknown, Policy};
use tidings_core::time::{Millis, Time};
use tidings_core::unique::UniqueStates;

/// An attempt before its arguments are decoded.
#[derive(Clone)]
pub(crate) struct RawAttempt {
    pub(crate) args: Arc<str>,
    pub(crate) job_id: JobId,
    pub(crate) number: i64,
    pub(crate) tenant: String,
    pub(crate) started_at: Time,
    pub(crate) policy: Arc<Policy>,
    pub(crate) trail: Trail,
}

type Handler = Arc<dyn Fn(RawAttempt) -> BoxFuture<'static, Report> + Send + Sync>;

/// A kind with its handler.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) declaration: Declaration,
    pub(crate) queue: String,
    pub(crate) time_limit: Millis,
    pub(crate) policy: Arc<Policy>,
    pub(crate) handler: Handler,
    check: fn(&str) -> Result<Option<String>, BadArgs>,
    on_unknown: fn(&Policy, &str) -> OnUnknown,
    shown: fn(&str) -> Option<String>,
}

/// What everybody may know of a kind, as it is set in this process.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Whose workers take it.
    pub queue: String,
    /// When it is tried again.
    pub policy: Arc<Policy>,
    /// Hard limit of one attempt.
    pub time_limit: Millis,
}

/// Arguments that do not decode to their kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct BadArgs {
    /// The field, like `args.headers.accept`.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A kind or a setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryRefused {
    /// Two handlers for one name.
    #[error("kind `{0}` is registered twice; a kind has one handler")]
    Twice(String),
    /// A setting for a kind that is not there.
    #[error("there is no kind `{kind}`; known kinds are: {known}")]
    UnknownKind {
        /// What was named.
        kind: String,
        /// What there is.
        known: String,
    },
    /// A name that cannot be one.
    #[error("`{0}` cannot be the name of a kind or queue: use 1 to {1} of a-z, 0-9, `.`, `_` and `-`")]
    BadName(String, usize),
    /// A time limit that cannot be one.
    #[error("kind `{kind}` has a time limit of {time_limit_ms} ms; write 1 to {most}", most = limits::TIME_LIMIT_MAX.0)]
    BadTimeLimit {
        /// Which kind.
        kind: String,
        /// What was written.
        time_limit_ms: i64,
    },
}

/// Every kind of a process, by name.
#[derive(Clone, Default)]
pub struct Registry {
    kinds: BTreeMap<String, Registered>,
}

impl Registry {
    /// Adds a kind. Its handler gets a clone of `state` for each attempt.
    ///
    /// # Errors
    /// When the name or the time limit cannot be, or the name is taken.
    pub fn add<K, S, F, Fut>(&mut self, state: S, handler: F) -> Result<(), RegistryRefused>
    where
        K: Kind,
        S: Clone + Send + Sync + 'static,
        F: Fn(S, Attempt<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoReport> + Send + 'static,
    {
        let declaration = K::DECLARATION;
        let registered = Registered {
            declaration,
            queue: declaration.queue.to_owned(),
            time_limit: declaration.time_limit,
            policy: Arc::new(declaration.policy.policy()),
            handler: Arc::new(move |raw| match decode::<K>(&raw.args) {
                Ok(args) => {
                    let RawAttempt { args: _, job_id, number, tenant, started_at, policy, trail } = raw;
                    let attempt = Attempt { args, job_id, number, tenant, started_at, policy, trail };
                    handler(state.clone(), attempt).map(IntoReport::into_report).boxed()
                }
                Err(bad) => std::future::ready(undecodable(&bad)).boxed(),
            }),
            check: |args| decode::<K>(args).map(|args| args.unique_key()),
            on_unknown: |policy, args| match decode::<K>(args) {
                Ok(args) => args.on_unknown(policy),
                // Its handler will discard it; until then, nothing is sent again by itself.
                Err(_) => OnUnknown::Hold,
            },
            shown: |args| match decode::<K>(args) {
                Ok(decoded) => Some(decoded.without_secrets().unwrap_or_else(|| args.to_owned())),
                Err(_) => None,
            },
        };
        let name = declaration.name;
        check_name(name, limits::KIND_BYTES_MAX)?;
        registered.check_settings()?;
        if self.kinds.insert(name.to_owned(), registered).is_some() {
            return Err(RegistryRefused::Twice(name.to_owned()));
        }
        Ok(())
    }

    /// Sets a kind's policy, queue or time limit over what it declares.
    ///
    /// # Errors
    /// When there is no such kind, or the value cannot be.
    pub fn set(
        &mut self,
        kind: &str,
        policy: Option<Policy>,
        queue: Option<String>,
        time_limit: Option<Millis>,
    ) -> Result<(), RegistryRefused> {
        let known = self.names().join(", ");
        let registered = self
            .kinds
            .get_mut(kind)
            .ok_or_else(|| RegistryRefused::UnknownKind { kind: kind.to_owned(), known })?;
        registered.policy = policy.map_or_else(|| Arc::clone(&registered.policy), Arc::new);
        registered.queue = queue.unwrap_or_else(|| registered.queue.clone());
        registered.time_limit = time_limit.unwrap_or(registered.time_limit);
        registered.check_settings()
    }

    /// The names of the kinds, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.kinds.keys().map(String::as_str).collect()
    }

    /// The kinds as they are set.
    pub fn declared(&self) -> Vec<Declared> {
        self.kinds
            .iter()
            .map(|(name, kind)| Declared {
                name: name.clone(),
                queue: kind.queue.clone(),
                policy: Arc::clone(&kind.policy),
                time_limit: kind.time_limit,
            })
            .collect()
    }

    /// The queues that the kinds name, sorted.
    pub fn queues(&self) -> BTreeSet<String> {
        self.kinds.values().map(|kind| kind.queue.clone()).collect()
    }

    /// Arguments of a stored job as they may be shown: without secrets. `None` where
    /// this process does not know the kind, or cannot read them: they might hold one.
    pub fn shown_args(&self, kind: &str, args: &str) -> Option<String> {
        self.kinds.get(kind).and_then(|kind| (kind.shown)(args))
    }

    /// What other programs may know of these kinds.
    pub(crate) fn kept(&self) -> Vec<KeptKind> {
        let kept = |(name, kind): (&String, &Registered)| KeptKind {
            name: name.clone(),
            queue: kind.queue.clone(),
            priority: kind.priority().get(),
            unique_states: kind.unique_states(),
        };
        self.kinds.iter().map(kept).collect()
    }

    pub(crate) fn get(&self, kind: &str) -> Option<&Registered> {
        self.kinds.get(kind)
    }

    /// The terms on which a store takes these kinds.
    pub fn terms(&self) -> TermsOfKinds {
        let terms: HashMap<String, Terms> =
            self.kinds.iter().map(|(name, kind)| (name.clone(), kind.terms())).collect();
        TermsOfKinds::new(terms, random::draw)
    }
}

impl Registered {
    /// Decodes arguments; their unique key, if they have one.
    pub(crate) fn check(&self, args: &str) -> Result<Option<String>, BadArgs> {
        (self.check)(args)
    }

    pub(crate) fn priority(&self) -> Priority {
        self.declaration.priority
    }

    pub(crate) fn unique_states(&self) -> UniqueStates {
        self.declaration.unique_states
    }

    fn terms(&self) -> Terms {
        Terms {
            policy: Arc::clone(&self.policy),
            lease: Millis(self.time_limit.0 + limits::LEASE_MARGIN.0),
            on_unknown: self.on_unknown,
        }
    }

    fn check_settings(&self) -> Result<(), RegistryRefused> {
        check_name(&self.queue, limits::QUEUE_BYTES_MAX)?;
        if !(1..=limits::TIME_LIMIT_MAX.0).contains(&self.time_limit.0) {
            let (kind, time_limit_ms) = (self.declaration.name.to_owned(), self.time_limit.0);
            return Err(RegistryRefused::BadTimeLimit { kind, time_limit_ms });
        }
        Ok(())
    }
}

/// Names of kinds and queues go into notifications and metrics: short, plain words.
pub(crate) fn check_name(name: &str, bytes_max: usize) -> Result<(), RegistryRefused> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > bytes_max || !name.chars().all(plain) {
        return Err(RegistryRefused::BadName(name.chars().take(80).collect(), bytes_max));
    }
    Ok(())
}

fn decode<K: Serialize + DeserializeOwned>(args: &str) -> Result<K, BadArgs> {
    let mut json = serde_json::Deserializer::from_str(args);
    let decoded: K = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { "args".to_owned() } else { format!("args.{path}") };
        BadArgs { path, problem: without_the_value(&without_the_place(error.inner())) }
    })?;
    if is_array(args) && !serde_json::to_string(&decoded).is_ok_and(|text| is_array(&text)) {
        let problem = "is an array; write an object, so that each value has its name".to_owned();
        return Err(BadArgs { path: "args".to_owned(), problem });
    }
    Ok(decoded)
}

/// A struct is also read from an array of its fields in order, which nobody means.
fn is_array(json: &str) -> bool {
    json.trim_start().starts_with('[')
}

/// The path says where a value is wrong; line and column are those of text that the
/// caller, who may have given a flag or a larger document, never saw.
fn without_the_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    if error.is_data() { text.strip_suffix(&place).unwrap_or(&text).to_owned() } else { text }
}

/// `invalid type: string "whsec_…", expected a map` repeats what was given, and that
/// may be a secret: the message is kept as evidence and may be logged.
fn without_the_value(problem: &str) -> String {
    for what in ["invalid type", "invalid value"] {
        if let Some((_, expected)) =
            problem.strip_prefix(what).and_then(|rest| rest.rsplit_once(", expected "))
        {
            return format!("{what}, expected {expected}");
        }
    }
    problem.to_owned()
}

/// Arguments that do not decode today will not decode tomorrow.
fn undecodable(bad: &BadArgs) -> Report {
    Report {
        outcome: Outcome::discard(format!("the arguments do not decode to the kind: {bad}")),
        evidence: Evidence::plain(Effect::None, Some(FailureKind::BadArguments)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_about_bad_arguments_never_repeats_them() {
        #[derive(serde::Serialize, serde::Deserialize, Debug)]
        struct Args {
            secret: u8,
        }
        for (args, expected) in [
            (r#"{"secret": "s3cr3t, expected x"}"#, "args.secret: invalid type, expected u8"),
            (r#"{"secret": 987654}"#, "args.secret: invalid value, expected u8"),
            (r#"{"secret": ["s3cr3t"]}"#, "args.secret: invalid type, expected u8"),
            (r#""s3cr3t""#, "args: invalid type, expected struct Args"),
            (r#"{"other": "s3cr3t"}"#, "args: missing field `secret`"),
            ("[7]", "args: is an array; write an object, so that each value has its name"),
        ] {
            let said = decode::<Args>(args).unwrap_err().to_string();
            assert_eq!(said, expected);
            assert!(!said.contains("s3cr3t") && !said.contains("987654"), "{said}");
        }
    }

    #[test]
    fn a_kind_whose_arguments_are_an_array_takes_one() {
        assert_eq!(decode::<Vec<u8>>(" [1, 2]"), Ok(vec![1, 2]));
        assert_eq!(decode::<(u8, String)>(r#"[1, "a"]"#), Ok((1, "a".to_owned())));
    }
}
