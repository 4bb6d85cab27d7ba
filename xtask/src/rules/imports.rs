//! Rule: inside the library, a module imports only what its line allows.

use super::Rule;
use super::rust_source::{SourcePath, code, is_test_file, paths};
use super::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "A module of the library uses only the modules that its line allows",
    why: "What chooses never waits, and what waits never chooses: a sink that could read the store, or a \
          store that could call the worker, would soon hold a rule twice. Checked on every `crate::…` and \
          `super::…` path in `crates/tidings/src` outside test code, against the table `MAY_USE` in \
          `xtask/src/rules/imports.rs`. A module may always use itself, what lies inside it and what it \
          lies in; `lib.rs`, which only lists and re-exports, is not read. A module without a line is \
          refused.",
    check,
};

/// One module of the library: what it may use of the others, and why.
struct Line {
    module: &'static str,
    may_use: &'static [&'static str],
    because: &'static str,
}

const fn line(module: &'static str, may_use: &'static [&'static str], because: &'static str) -> Line {
    Line { module, may_use, because }
}

/// Everybody may use these; they use nothing.
const COMMON: &[&str] = &[];

/// Who may use whom. All of them may use the core.
#[rustfmt::skip]
const MAY_USE: &[Line] = &[
    line("random", &[], "the one source of ids, jitter and keys"),
    line("settings", &[], "values; whoever reads a file makes them"),
    line("store", &[], "promises that hold for every database; the rules are the core's"),
    line("store::rows", &["store"], "between a row and the core's types"),
    line("store::sql", &[], "the list of the statements"),
    line("store::terms", &[], "what a store needs to know of a kind"),
    line("store::retry", &["store", "random"], "tries a transaction again, and is handed nothing that can send"),
    line("store::postgres", &["store", "store::rows", "store::sql", "store::retry"], "binds; never the other database, never the worker"),
    line("store::sqlite", &["store", "store::rows", "store::sql"], "binds; never the other database, never the worker"),
    line("sink", &[], "gets a request and a deadline, returns what happened; never sees the store"),
    line("kind", &["sink", "store::terms", "random"],
        "a declaration and a handler, which may send; the terms on which a store takes its jobs"),
    line("clock", &["store"], "one clock: the database's"),
    line("wake", &["store"], "hints; they carry no data"),
    line("writer", &["store"], "groups what is to be written into few transactions"),
    line("enqueue", &["store", "kind", "random"], "the checks at the door, before a database is asked"),
    line("declared", &[], "the event types that this process knows of"),
    line("expand", &[], "functions that make many jobs of one event"),
    line("events", &["store", "enqueue", "random", "client"], "what the host application does with events"),
    line("relay", &["store", "enqueue", "expand", "random", "parts"],
        "has the core route what was recorded, has the store insert and mark it"),
    line("routing", &["store", "events", "client"], "what people do with subscriptions, and what those made of an event"),
    line("inspect", &["store"], "the read model: asks, never changes"),
    line("wait", &["store", "wake", "enqueue"], "looks a job up when a hint says that it may have changed"),
    line("parts", &["store", "kind", "clock", "wake", "settings", "declared", "expand"], "what client and workers of a process share"),
    line("client", &["store", "kind", "wait", "writer", "enqueue", "inspect", "parts"],
        "what the host application calls"),
    line("outbox", &["store", "store::sqlite", "store::postgres", "store::retry", "kind", "client", "enqueue", "events"],
        "enqueues and records in the caller's transaction, which is one of either database"),
    line("outbox::in_sqlx", &["store", "store::postgres", "kind", "client", "enqueue", "events"],
        "calls the public SQL functions in a transaction of sqlx"),
    line("attempt", &["kind", "sink", "store", "writer", "parts"],
        "runs one handler under its limit, has the core decide, has the writer write"),
    line("in_flight", &[], "finds the handler that a cancel means"),
    line("worker", &["store", "kind", "random", "settings", "writer", "attempt", "in_flight", "ticker", "parts"],
        "claims, and hands over to attempts"),
    line("ticker", &["store", "in_flight", "parts", "relay"], "what is due by the clock: sweeps, retention"),
    line("builder", &["store", "kind", "sink", "clock", "wake", "settings", "parts", "client", "worker", "declared", "events", "expand"],
        "puts the parts together, and decides nothing else"),
    line("testing", &["client", "kind", "random", "store", "ticker", "attempt", "relay"],
        "drives the real parts with a hand-held clock"),
    line("testing::throw_away", &["client", "builder", "clock", "random", "store::sqlite"],
        "a database and a clock for one test"),
];

const SRC: &str = "crates/tidings/src/";

fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.under(SRC, ".rs").filter(|(path, _)| !is_test_file(path));
    files
        .filter(|(path, _)| *path != "crates/tidings/src/lib.rs")
        .flat_map(|(path, text)| file(path, text))
        .collect()
}

fn file(path: &str, text: &str) -> Vec<Finding> {
    let here = module_of(path);
    let Some(line) = line_of(&here) else {
        let advice = "say what it may use, and why, in `MAY_USE` of xtask/src/rules/imports.rs: add a line";
        return vec![Finding::file(path, format!("`{here}` is not in the table of modules; {advice}"))];
    };
    let code = code(text);
    let from_root = paths(&code, "crate");
    let from_here = paths(&code, "super");
    let used = from_root.iter().chain(&from_here);
    used.filter_map(|used| refusal(line, &here, used).map(|message| Finding::line(path, used.line, message)))
        .collect()
}

/// Why `used` may not stand in the module `here`, if it may not.
fn refusal(line: &Line, here: &str, used: &SourcePath) -> Option<String> {
    let target = absolute(here, used)?;
    let Some(other) = line_of(&target) else {
        return Some(match target.as_str() {
            "*" | "self" => format!("`crate::{target}` hides which modules are used: name them"),
            _ => format!(
                "`crate::{target}` is not in the table: name the module that holds it, or add its line"
            ),
        });
    };
    let within = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}::"));
    let related = within(other.module, line.module) || within(line.module, other.module);
    if related || COMMON.contains(&other.module) || line.may_use.contains(&other.module) {
        return None;
    }
    let allowed =
        if line.may_use.is_empty() { "no other module".to_owned() } else { line.may_use.join(", ") };
    Some(format!("`{}` ({}) may use {allowed}; not `{}`", line.module, line.because, other.module))
}

/// The path from the crate's root, without `crate`; none for one that stays
/// inside the module that it stands in.
fn absolute(here: &str, used: &SourcePath) -> Option<String> {
    let ups = used.segments.iter().take_while(|segment| *segment == "super").count();
    let below = if ups == 0 { &used.segments[1..] } else { &used.segments[ups..] };
    let here: Vec<&str> = here.split("::").collect();
    let base = if ups == 0 { &[] } else { &here[..here.len().saturating_sub(ups)] };
    let base_is_root = base.is_empty();
    let all: Vec<&str> = base.iter().copied().chain(below.iter().map(String::as_str)).collect();
    let stays = !base_is_root && all.len() <= base.len();
    (!stays && !all.is_empty()).then(|| all.join("::"))
}

/// The line for a path: of the longest module in the table that it lies in.
fn line_of(path: &str) -> Option<&'static Line> {
    let lies_in = |line: &&Line| path == line.module || path.starts_with(&format!("{}::", line.module));
    MAY_USE.iter().filter(lies_in).max_by_key(|line| line.module.len())
}

/// `crates/tidings/src/store/postgres.rs` is `store::postgres`.
fn module_of(path: &str) -> String {
    let inside = path.trim_start_matches(SRC).trim_end_matches(".rs");
    inside.trim_end_matches("/mod").replace('/', "::")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str, text: &str) -> String {
        RULE.of(&[(&format!("{SRC}{file}"), text)]).join("\n")
    }

    #[test]
    fn what_the_table_does_not_allow_is_refused_where_it_stands() {
        let table = [
            ("sink/http.rs", "//! x\nuse crate::store::Store;", "sink/http.rs:2: `sink`"),
            ("sink.rs", "use crate::{kind::Kind, store::Store};", "not `store`"),
            ("sink.rs", "fn f(store: &crate::store::Store) {}", "not `store`"),
            ("store/sqlite.rs", "use super::postgres::Pool;", "not `store::postgres`"),
            ("store/postgres.rs", "use super::{rows, sqlite};", "not `store::sqlite`"),
            ("store/postgres/claim.rs", "use super::super::sqlite::Writer;", "not `store::sqlite`"),
            ("store/rows.rs", "use super::super::worker::Worker;", "not `worker`"),
            ("worker.rs", "use crate::store::postgres::Pool;", "not `store::postgres`"),
            ("worker.rs", "use crate::*;", "hides which modules"),
            ("worker.rs", "use crate::Tidings;", "not in the table"),
            ("worker.rs", "use super::inspect::Page;", "not `inspect`"),
            ("utilities.rs", "", "add a line"),
        ];
        for (file, text, expected) in table {
            let said = of(file, text);
            assert!(said.contains(expected), "{file}: {text}\n{said}");
        }
    }

    #[test]
    fn what_the_table_allows_and_what_is_not_code_passes() {
        let table = [
            ("worker.rs", "use crate::{settings::Settings, store::{Store, Claim}, parts::Parts};"),
            ("store.rs", "pub mod postgres; use crate::store::postgres::Pool; use self::rows;"),
            ("store/postgres.rs", "use super::{Store, rows::job, sql};"),
            ("store/postgres/claim.rs", "use super::Pool; use super::super::rows; use crate::store::Claim;"),
            (
                "sink/http.rs",
                "// use crate::store::Store;\n#[cfg(test)]\nmod tests { use crate::store; use super::*; }",
            ),
            (
                "sink/http/connect.rs",
                "use super::Limits; use super::super::Trail; pub(in crate::sink) fn f() {}",
            ),
        ];
        for (file, text) in table {
            assert_eq!(of(file, text), "", "{file}: {text}");
        }
        assert!(RULE.of(&[("crates/tidings/src/lib.rs", "pub use crate::anything::At;")]).is_empty());
    }

    #[test]
    fn every_module_that_a_line_names_has_its_own_line() {
        for line in MAY_USE {
            assert!(!line.because.is_empty(), "{}", line.module);
            for used in line.may_use {
                assert!(MAY_USE.iter().any(|other| other.module == *used), "{} uses {used}", line.module);
            }
        }
    }
}
