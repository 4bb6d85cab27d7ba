//! The configuration as checked: values that cannot be bad any more.

use super::outbox::{self, Declarations};
use super::refused;
use super::settings::SETTINGS;
use super::written::{Http, Limits, Retention as RetentionWritten, Written};
use crate::database::Address;
use crate::problem::{Problem, Sort};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use tidings::core::guard::GuardRules;
use tidings::core::policy::PolicyData;
use tidings::sink::http::{HttpLimits, HttpSinkConfig};
use tidings::store::OpenOptions;
use tidings::{Millis, Policy, Preset, Retention, Settings};

/// Everything that a process is told. Made by [`Config::read`].
pub(crate) struct Config {
    /// Where the API listens.
    pub(crate) listen: SocketAddr,
    /// Which database.
    pub(crate) database: Address,
    /// How it is opened.
    pub(crate) open: OpenOptions,
    /// How the process works.
    pub(crate) settings: Settings,
    /// Where requests may go.
    pub(crate) http: HttpSinkConfig,
    /// What is set over what kinds declare.
    pub(crate) kinds: Vec<KindConfig>,
    /// What `serve` declares in the database.
    pub(crate) declarations: Declarations,
    /// An admin key from outside the database.
    pub(crate) admin_key: Option<String>,
}

/// What is set over what one kind declares.
pub(crate) struct KindConfig {
    pub(crate) name: String,
    pub(crate) policy: Option<Policy>,
    pub(crate) queue: Option<String>,
    pub(crate) time_limit: Option<Millis>,
}

/// Where a setting stands, for messages.
pub(super) type PlaceOf<'a> = &'a dyn Fn(&str) -> String;

pub(super) fn check(
    written: &Written,
    admin_key: Option<String>,
    place_of: PlaceOf<'_>,
) -> Result<Config, Problem> {
    let policies = policies(&written.policies, place_of)?;
    let kinds = kinds(written, &policies, place_of)?;
    let open = OpenOptions {
        pool_size: positive("pool_size", written.pool_size, OpenOptions::default().pool_size, place_of)?,
        ..OpenOptions::default()
    };
    Ok(Config {
        listen: listen(written.listen.as_deref(), place_of)?,
        database: database(written.database.clone(), place_of)?,
        open,
        settings: settings(written, place_of)?,
        http: http(&written.http, written.allow_private.unwrap_or(false), place_of)?,
        kinds,
        declarations: outbox::declarations(written, place_of)?,
        admin_key: admin_key.map(checked_key).transpose()?,
    })
}

fn listen(written: Option<&str>, place_of: PlaceOf<'_>) -> Result<SocketAddr, Problem> {
    let text = written.unwrap_or(default_of("listen"));
    text.parse().map_err(|_| {
        let problem = format!("is `{text}`; write an IP address and a port, like 127.0.0.1:7070");
        refused(&place_of("listen"), "listen", &problem)
    })
}

fn default_of(path: &str) -> &'static str {
    SETTINGS
        .iter()
        .find(|setting| setting.path == path)
        .map(|setting| setting.default)
        .expect("it is asked for settings of the list")
}

fn database(written: Option<String>, place_of: PlaceOf<'_>) -> Result<Address, Problem> {
    let text = written.unwrap_or_else(|| default_of("database").to_owned());
    Address::parse(text).map_err(|problem| refused(&place_of("database"), "database", &problem))
}

fn settings(written: &Written, place_of: PlaceOf<'_>) -> Result<Settings, Problem> {
    let defaults = Settings::default();
    let workers_default = positive("workers", written.workers, defaults.workers_default, place_of)?;
    let mut workers = BTreeMap::new();
    for (name, queue) in &written.queues {
        let path = format!("queues.{name}.workers");
        workers.insert(name.clone(), positive(&path, queue.workers, workers_default, place_of)?);
    }
    Ok(Settings {
        workers,
        workers_default,
        poll: millis("poll_ms", written.poll_ms, defaults.poll, place_of)?,
        stop_grace: match written.stop_grace_ms {
            // No grace at all is a choice that somebody may make.
            Some(0) => Duration::ZERO,
            written => millis("stop_grace_ms", written, defaults.stop_grace, place_of)?,
        },
        retention: retention(&written.retention, place_of)?,
        ..defaults
    })
}

/// More workers or connections than this are a slip.
const NUMBER_MAX: usize = 10_000;
/// A day, beyond which a number is a slip of the unit.
const MILLIS_MAX: u64 = 86_400_000;

fn positive(
    path: &str,
    written: Option<usize>,
    default: usize,
    place_of: PlaceOf<'_>,
) -> Result<usize, Problem> {
    match written {
        Some(number @ 1..=NUMBER_MAX) => Ok(number),
        Some(other) => {
            Err(refused(&place_of(path), path, &format!("is {other}; write a number from 1 to {NUMBER_MAX}")))
        }
        None => Ok(default),
    }
}

fn millis(
    path: &str,
    written: Option<u64>,
    default: Duration,
    place_of: PlaceOf<'_>,
) -> Result<Duration, Problem> {
    match written {
        Some(ms @ 1..=MILLIS_MAX) => Ok(Duration::from_millis(ms)),
        Some(other) => {
            Err(refused(&place_of(path), path, &format!("is {other}; write 1 to {MILLIS_MAX} milliseconds")))
        }
        None => Ok(default),
    }
}

/// A hundred years, beyond which a number is a slip of the unit.
const HOURS_MAX: i64 = 876_000;

fn retention(written: &RetentionWritten, place_of: PlaceOf<'_>) -> Result<Retention, Problem> {
    let RetentionWritten { completed_hours, discarded_hours, cancelled_hours, events_hours, evidence_hours } =
        *written;
    let defaults = Retention::default();
    let hours = |path: &str, hours: Option<i64>, default: Millis| match hours {
        None => Ok(default),
        Some(hours @ 1..=HOURS_MAX) => Ok(Millis::from_hours(hours)),
        Some(other) => {
            let problem = format!("is {other}; write 1 to {HOURS_MAX} hours");
            Err(refused(&place_of(path), path, &problem))
        }
    };
    Ok(Retention {
        completed: hours("retention.completed_hours", completed_hours, defaults.completed)?,
        discarded: hours("retention.discarded_hours", discarded_hours, defaults.discarded)?,
        cancelled: hours("retention.cancelled_hours", cancelled_hours, defaults.cancelled)?,
        events: hours("retention.events_hours", events_hours, defaults.events)?,
        facts: hours("retention.evidence_hours", evidence_hours, defaults.facts)?,
    })
}

fn http(written: &Http, allow_private: bool, place_of: PlaceOf<'_>) -> Result<HttpSinkConfig, Problem> {
    let mut allow = Vec::new();
    for (index, entry) in written.allow.iter().flatten().enumerate() {
        let path = "http.allow";
        allow.push(entry.parse().map_err(|bad| {
            refused(&place_of(path), &format!("{path}[{index}]"), &format!("cannot be taken: {bad}"))
        })?);
    }
    let extra_ports = written.ports.clone().unwrap_or_default();
    if extra_ports.contains(&0) {
        return Err(refused(&place_of("http.ports"), "http.ports", "names port 0; write 1 to 65535"));
    }
    Ok(HttpSinkConfig {
        guard: GuardRules {
            allow_private,
            allow,
            extra_ports,
            allow_http: written.plain_http.unwrap_or(false),
        },
        limits: http_limits(&written.limits, place_of)?,
        ..HttpSinkConfig::default()
    })
}

fn http_limits(written: &Limits, place_of: PlaceOf<'_>) -> Result<HttpLimits, Problem> {
    let defaults = HttpLimits::default();
    let limit = |name: &str, ms: Option<u64>, default: u64| match ms {
        None => Ok(default),
        Some(ms @ 1..=MILLIS_MAX) => Ok(ms),
        Some(other) => {
            let path = format!("http.limits.{name}");
            let problem = format!("is {other}; write 1 to {MILLIS_MAX} milliseconds");
            Err(refused(&place_of(&path), &path, &problem))
        }
    };
    Ok(HttpLimits {
        dns_ms: limit("dns_ms", written.dns_ms, defaults.dns_ms)?,
        connect_ms: limit("connect_ms", written.connect_ms, defaults.connect_ms)?,
        connect_all_ms: limit("connect_all_ms", written.connect_all_ms, defaults.connect_all_ms)?,
        tls_ms: limit("tls_ms", written.tls_ms, defaults.tls_ms)?,
        write_ms: limit("write_ms", written.write_ms, defaults.write_ms)?,
        first_byte_ms: limit("first_byte_ms", written.first_byte_ms, defaults.first_byte_ms)?,
        head_ms: limit("head_ms", written.head_ms, defaults.head_ms)?,
        body_ms: limit("body_ms", written.body_ms, defaults.body_ms)?,
        total_ms: limit("total_ms", written.total_ms, defaults.total_ms)?,
    })
}

fn policies(
    written: &BTreeMap<String, PolicyData>,
    place_of: PlaceOf<'_>,
) -> Result<BTreeMap<String, Policy>, Problem> {
    let mut policies = BTreeMap::new();
    for (name, data) in written {
        let path = format!("policies.{name}");
        if Preset::by_name(name).is_some() {
            let problem = "has the name of a preset; choose another, and name the preset in `preset`";
            return Err(refused(&place_of(&path), &path, problem));
        }
        let policy = data
            .clone()
            .check(name)
            .map_err(|bad| refused(&place_of(&path), &path, &format!("cannot be taken: {bad}")))?;
        policies.insert(name.clone(), policy);
    }
    Ok(policies)
}

fn kinds(
    written: &Written,
    policies: &BTreeMap<String, Policy>,
    place_of: PlaceOf<'_>,
) -> Result<Vec<KindConfig>, Problem> {
    let find = |kind: &str, name: &str| {
        policies.get(name).cloned().or_else(|| Preset::by_name(name).map(Preset::policy)).ok_or_else(|| {
            let path = format!("kinds.{kind}.policy");
            let presets = Preset::ALL.map(Preset::name);
            let known: Vec<&str> = policies.keys().map(String::as_str).chain(presets).collect();
            let problem =
                format!("names the policy `{name}`, which is not there; there are {}", known.join(", "));
            refused(&place_of(&path), &path, &problem)
        })
    };
    written
        .kinds
        .iter()
        .map(|(name, kind)| {
            Ok(KindConfig {
                name: name.clone(),
                policy: kind.policy.as_ref().map(|policy| find(name, policy)).transpose()?,
                queue: kind.queue.clone(),
                time_limit: kind.time_limit_ms.map(Millis),
            })
        })
        .collect()
}

/// It is compared as it is: a blank at its end would lock everybody out.
fn checked_key(key: String) -> Result<String, Problem> {
    if key.chars().any(|c| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
        let detail = "TIDINGS_ADMIN_KEY: the key has blanks or characters that are not ASCII; \
                      write a long random text, as `openssl rand -hex 32` prints it";
        return Err(Problem::new(Sort::BadConfiguration, detail));
    }
    Ok(key)
}
