use super::settings::{Form, SETTINGS};
use super::written::Written;
use super::*;
use std::time::Duration;
use tidings::Millis;
use tidings::core::event::Exposure;
use tidings::core::route::{Subscription, Test};

fn read_file_text(text: &str) -> Result<Config, Problem> {
    read(text, &[], &Flags::default())
}

fn read(text: &str, variables: &[(&str, &str)], flags: &Flags) -> Result<Config, Problem> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidings.toml");
    std::fs::write(&file, text).unwrap();
    Config::read(&Flags { config: Some(file), ..flags.clone() }, &Environment::with(variables))
}

fn refusal(text: &str) -> String {
    read_file_text(text).err().expect("it is refused").to_string()
}

/// Everything set; a new setting is a compile error here.
fn all_set() -> Written {
    let limits = written::Limits {
        dns_ms: Some(1),
        connect_ms: Some(1),
        connect_all_ms: Some(1),
        tls_ms: Some(1),
        write_ms: Some(1),
        first_byte_ms: Some(1),
        head_ms: Some(1),
        body_ms: Some(1),
        total_ms: Some(1),
    };
    Written {
        listen: Some("127.0.0.1:1".into()),
        database: Some("sqlite:x".into()),
        pool_size: Some(1),
        workers: Some(1),
        poll_ms: Some(1),
        stop_grace_ms: Some(1),
        allow_private: Some(true),
        http: written::Http {
            allow: Some(vec!["10.0.0.0/8".into()]),
            ports: Some(vec![8080]),
            plain_http: Some(true),
            limits,
        },
        retention: written::Retention {
            completed_hours: Some(1),
            discarded_hours: Some(1),
            cancelled_hours: Some(1),
            events_hours: Some(1),
            evidence_hours: Some(1),
        },
        queues: BTreeMap::new(),
        kinds: BTreeMap::new(),
        policies: BTreeMap::new(),
        event_types: Vec::new(),
        subscriptions: Vec::new(),
    }
}

fn leaves(prefix: &str, value: &toml::Value, paths: &mut Vec<String>) {
    let toml::Value::Table(table) = value else {
        paths.push(prefix.to_owned());
        return;
    };
    for (name, inner) in table {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        leaves(&path, inner, paths);
    }
}

#[test]
fn every_setting_is_in_the_list() {
    let mut paths = Vec::new();
    leaves("", &toml::Value::try_from(all_set()).unwrap(), &mut paths);
    let mut listed: Vec<&str> = SETTINGS.iter().map(|setting| setting.path).collect();
    paths.sort();
    listed.sort_unstable();
    assert_eq!(paths, listed);
}

#[test]
fn every_setting_can_come_from_the_environment() {
    let value = |form| match form {
        Form::Text | Form::Secret | Form::Number => "1",
        Form::Flag => "true",
        Form::Texts => "10.0.0.0/8, 127.0.0.1:9090",
        Form::Numbers => "8080,8443",
    };
    for setting in SETTINGS {
        let variable = setting.variable();
        let mut table = toml::Table::new();
        let mut origins = Origins::new();
        let environment = Environment::with(&[(&variable, value(setting.form))]);
        settings::overlay(&mut table, &environment, &mut origins).unwrap();
        assert_eq!(origins[setting.path], variable);
        let written = Written::of_table(table, |_| String::new()).unwrap();
        assert_ne!(written, Written::default(), "{variable} sets something");
    }
}

#[test]
fn every_default_of_the_list_is_the_default_of_the_code() {
    let checked = read_file_text("").unwrap();
    let written = |path: &str| {
        SETTINGS.iter().find(|setting| setting.path == path).map(|setting| setting.default).unwrap()
    };
    let ms = |span: Duration| span.as_millis().to_string();
    let hours = |span: Millis| (span.0 / 3_600_000).to_string();
    let limits = checked.http.limits;
    let retention = checked.settings.retention;
    for (path, value) in [
        ("listen", checked.listen.to_string()),
        ("database", checked.database.to_string()),
        ("pool_size", checked.open.pool_size.to_string()),
        ("workers", checked.settings.workers_default.to_string()),
        ("poll_ms", ms(checked.settings.poll)),
        ("stop_grace_ms", ms(checked.settings.stop_grace)),
        ("allow_private", checked.http.guard.allow_private.to_string()),
        ("http.plain_http", checked.http.guard.allow_http.to_string()),
        ("http.limits.dns_ms", limits.dns_ms.to_string()),
        ("http.limits.connect_ms", limits.connect_ms.to_string()),
        ("http.limits.connect_all_ms", limits.connect_all_ms.to_string()),
        ("http.limits.tls_ms", limits.tls_ms.to_string()),
        ("http.limits.write_ms", limits.write_ms.to_string()),
        ("http.limits.first_byte_ms", limits.first_byte_ms.to_string()),
        ("http.limits.head_ms", limits.head_ms.to_string()),
        ("http.limits.body_ms", limits.body_ms.to_string()),
        ("http.limits.total_ms", limits.total_ms.to_string()),
        ("retention.completed_hours", hours(retention.completed)),
        ("retention.discarded_hours", hours(retention.discarded)),
        ("retention.cancelled_hours", hours(retention.cancelled)),
        ("retention.events_hours", hours(retention.events)),
        ("retention.evidence_hours", hours(retention.facts)),
    ] {
        assert_eq!(written(path), value, "{path}");
    }
    assert!(checked.http.guard.allow.is_empty() && checked.http.guard.extra_ports.is_empty());
}

#[test]
fn a_flag_wins_over_the_environment_which_wins_over_the_file() {
    let file = "database = \"sqlite:file.db\"\nlisten = \"127.0.0.1:1\"\nworkers = 1\n";
    let variables = [("TIDINGS_LISTEN", "127.0.0.1:2"), ("TIDINGS_WORKERS", "2")];
    let flags = Flags { workers: Some(3), ..Flags::default() };
    let config = read(file, &variables, &flags).unwrap();
    assert_eq!(config.database.to_string(), "sqlite:file.db");
    assert_eq!(config.listen.to_string(), "127.0.0.1:2");
    assert_eq!(config.settings.workers_default, 3);
}

#[test]
fn a_whole_file_becomes_values() {
    let config = read_file_text(
        r#"
        database = "postgresql://ann:s3cret@db/app"
        [http]
        allow = ["127.0.0.1:9090", "10.0.0.0/8"]
        ports = [8443]
        [queues.bulk]
        workers = 3
        [kinds."http.call"]
        policy = "patient"
        queue = "bulk"
        time_limit_ms = 1500
        [policies.patient]
        preset = "webhook"
        attempts = 4
        "#,
    )
    .unwrap();
    assert_eq!(config.http.guard.allow.len(), 2);
    assert_eq!(config.http.guard.extra_ports, [8443]);
    assert_eq!(config.settings.workers["bulk"], 3);
    let kind = &config.kinds[0];
    assert_eq!((kind.name.as_str(), kind.queue.as_deref()), ("http.call", Some("bulk")));
    assert_eq!(kind.time_limit, Some(Millis(1500)));
    let policy = kind.policy.as_ref().unwrap();
    assert_eq!((policy.label().as_str(), policy.attempts_max()), ("patient@1", 4));
}

#[test]
fn event_types_and_subscriptions_become_declarations() {
    let config = read_file_text(
        r#"
        [[event_types]]
        name = "order.paid"
        exposure = "external"
        [[event_types]]
        name = "note.changed"
        description = "Somebody changed a note."
        [[subscriptions]]
        name = "index"
        pattern = "note.*"
        job = "search.index"
        filter = [{ field = "lang", equals = "de" }, { field = "title", prefix = "D" }]
        coalesce = true
        [[subscriptions]]
        name = "webhooks"
        pattern = "*"
        expanded = "webhooks"
        "#,
    )
    .unwrap();
    let declarations = config.declarations;
    let exposures: Vec<_> = declarations.types.iter().map(|declared| declared.exposure).collect();
    assert_eq!(exposures, [Exposure::External, Exposure::Internal]);
    let index = Subscription::to_job("index", "note.*", "search.index")
        .unwrap()
        .coalescing()
        .only("lang", Test::Equals("de".into()))
        .only("title", Test::Prefix("D".into()));
    let webhooks = Subscription::to_expander("webhooks", "*", "webhooks").unwrap();
    assert_eq!(declarations.subscriptions, [index, webhooks]);
}

#[test]
fn a_refusal_names_place_field_and_what_to_write() {
    for (text, expected) in [
        ("listn = \"x\"", "unknown field `listn`"),
        ("[http]\nalow = []", "unknown field `alow`"),
        ("workers = \"many\"", "`workers` cannot be taken"),
        ("workers = 0", "`workers` is 0; write a number from 1 to 10000"),
        ("workers = 100000000000", "write a number from 1 to 10000"),
        ("poll_ms = 18446744073709551", "`poll_ms` is 18446744073709551; write 1 to 86400000"),
        ("stop_grace_ms = 86400001", "write 1 to 86400000"),
        ("listen = \"localhost\"", "write an IP address and a port"),
        ("database = \"mysql://ann:s3cret@db\"", "write `sqlite:PATH`"),
        ("[http]\nallow = [\"10.0.0.1\", \"everything\"]", "`http.allow[1]`"),
        ("[http.limits]\ntotal_ms = 0", "`http.limits.total_ms` is 0"),
        ("[retention]\ncompleted_hours = -1", "`retention.completed_hours` is -1"),
        ("[kinds.\"http.call\"]\npolicy = \"nice\"", "there are default, mail, webhook"),
        ("[policies.p]\nattempts = 0", "attempts is 0"),
        ("[policies.webhook]\nattempts = 3", "has the name of a preset"),
        (
            "[[event_types]]\nname = \"Note\"",
            "`event_types[0].name` cannot be taken: `Note` is not an event type",
        ),
        ("[[event_types]]\nname = \"a\"\nexposure = \"public\"", "`event_types[0].exposure` cannot be taken"),
        ("[[event_types]]\nname = \"a\"\n[[event_types]]\nname = \"a\"", "`event_types[1]` has the name `a`"),
        ("[[subscriptions]]\nname = \"s\"\npattern = \"a\"", "must have one of `job` and `expanded`"),
        ("[[subscriptions]]\nname = \"s\"\npattern = \"a**\"", "`subscriptions[0].pattern` cannot be taken"),
        (
            "[[subscriptions]]\nname = \"s\"\npattern = \"a\"\njob = \"j\"\nfilter = [{field = \"x\"}]",
            "`subscriptions[0].filter[0]` must have one of `equals` and `prefix`",
        ),
        ("x = ", "line 1: this is not TOML"),
        ("database = \"postgres://ann:s3cret@db", "line 1: this is not TOML"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(expected), "{text}\n  gives {refusal}");
        assert!(refusal.contains("tidings.toml"), "{refusal}");
        assert!(!refusal.contains("s3cret"), "{refusal}");
    }
}

#[test]
fn a_refusal_names_the_variable_or_the_flag_that_it_came_from() {
    let variable = read("", &[("TIDINGS_POOL_SIZE", "lots")], &Flags::default()).err().unwrap().to_string();
    assert!(variable.contains("TIDINGS_POOL_SIZE") && variable.contains("whole number"), "{variable}");
    let misspelt = read("", &[("TIDINGS_POOLSIZE", "3")], &Flags::default()).err().unwrap().to_string();
    assert!(misspelt.contains("`TIDINGS_POOLSIZE` is no setting"), "{misspelt}");
    let flags = Flags { listen: Some("here".into()), ..Flags::default() };
    let flag = read("", &[], &flags).err().unwrap().to_string();
    assert!(flag.contains("--listen"), "{flag}");
}

#[test]
fn a_secret_may_stand_in_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "tdk_from_a_file\n").unwrap();
    let path = file.to_str().unwrap();
    let config = read("", &[("TIDINGS_ADMIN_KEY_FILE", path)], &Flags::default()).unwrap();
    assert_eq!(config.admin_key.as_deref(), Some("tdk_from_a_file"));
    let both = [("TIDINGS_ADMIN_KEY_FILE", path), ("TIDINGS_ADMIN_KEY", "tdk_x")];
    let refusal = read("", &both, &Flags::default()).err().unwrap().to_string();
    assert!(refusal.contains("both set") && !refusal.contains("tdk_x"), "{refusal}");
}
