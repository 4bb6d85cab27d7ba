//! Rule: between crates, each depends only on what its line allows.

use super::Rule;
use super::tree::{Finding, Tree};
use toml::{Table, Value};

pub(super) const RULE: Rule = Rule {
    name: "A crate depends only on the crates that its line allows",
    why: "The core stays free of clocks, randomness, databases and async because it cannot name them; the \
          server reaches the databases through the library only. Checked on every `Cargo.toml` against the \
          table `CRATES` in `xtask/src/rules/manifests.rs`, which also asks that each crate takes the \
          workspace's lints. A crate without a line is refused.",
    check,
};

/// One crate of ours.
struct Line {
    manifest: &'static str,
    /// Crates of ours that it may depend on.
    ours: &'static [&'static str],
    /// Crates of ours that its tests may depend on besides.
    ours_in_tests: &'static [&'static str],
    /// Crates of others that it must not depend on.
    never: &'static [&'static str],
    because: &'static str,
}

const OURS: &[&str] = &["tidings-core", "tidings", "tidings-server", "testkit", "xtask", "bench"];

/// Sources of time, randomness, I/O and waiting.
#[rustfmt::skip]
const IMPURE: &[&str] = &[
    "tokio", "futures-util", "async-trait", "rand", "getrandom", "fastrand", "rusqlite", "tokio-postgres",
    "deadpool-postgres", "hyper", "hyper-util", "http-body-util", "axum", "rustls", "tokio-rustls", "jiff",
    "chrono", "tracing",
];
const DRIVERS: &[&str] = &["rusqlite", "tokio-postgres", "deadpool-postgres", "tokio-postgres-rustls"];

#[rustfmt::skip]
const CRATES: &[Line] = &[
    Line { manifest: "crates/core/Cargo.toml", ours: &[], ours_in_tests: &[], never: IMPURE,
        because: "the rules get time, randomness and ids as arguments and wait for nothing" },
    Line { manifest: "crates/tidings/Cargo.toml", ours: &["tidings-core"], ours_in_tests: &["testkit"],
        never: &[], because: "the library acts on what the core decides" },
    Line { manifest: "crates/tidings-server/Cargo.toml", ours: &["tidings", "tidings-core"],
        ours_in_tests: &["testkit"], never: DRIVERS,
        because: "the binary uses the library as any other program would" },
    Line { manifest: "crates/testkit/Cargo.toml", ours: &[], ours_in_tests: &[], never: &[],
        because: "what judges the code does not use it" },
    Line { manifest: "xtask/Cargo.toml", ours: &["testkit"], ours_in_tests: &[], never: &[],
        because: "commands work while the library does not compile" },
    Line { manifest: "bench/Cargo.toml", ours: &["tidings", "tidings-core", "testkit"], ours_in_tests: &[],
        never: &[], because: "it measures what users would call" },
];

fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.under("", "/Cargo.toml");
    manifests.flat_map(|(path, text)| manifest(path, text)).collect()
}

fn manifest(path: &str, text: &str) -> Vec<Finding> {
    let Some(line) = CRATES.iter().find(|line| line.manifest == path) else {
        let advice = "add a line to `CRATES` in xtask/src/rules/manifests.rs";
        return vec![Finding::file(path, format!("this crate is not in the table of crates; {advice}"))];
    };
    let table: Table = match text.parse() {
        Ok(table) => table,
        Err(error) => return vec![Finding::file(path, format!("is not TOML: {error}"))],
    };
    let mut found = vec![];
    for (section, name) in dependencies(&table) {
        let is_test = section == "dev-dependencies";
        let allowed =
            line.ours.contains(&name.as_str()) || (is_test && line.ours_in_tests.contains(&name.as_str()));
        let refused = (OURS.contains(&name.as_str()) && !allowed) || line.never.contains(&name.as_str());
        if refused {
            found.push(Finding::file(path, format!("[{section}] must not list `{name}`: {}", line.because)));
        }
    }
    if table.get("lints").and_then(|lints| lints.get("workspace")) != Some(&Value::Boolean(true)) {
        found.push(Finding::file(
            path,
            "add `[lints]` with `workspace = true`: the lints hold for every crate",
        ));
    }
    found
}

/// Every dependency as (section, package name), also those of one platform.
fn dependencies(manifest: &Table) -> Vec<(&'static str, String)> {
    let platforms = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let places = std::iter::once(manifest).chain(platforms.filter_map(Value::as_table));
    let mut found = vec![];
    for place in places {
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (key, value) in place.get(section).and_then(Value::as_table).into_iter().flatten() {
                let renamed = value.get("package").and_then(Value::as_str);
                found.push((section, renamed.unwrap_or(key).to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINTS: &str = "\n[lints]\nworkspace = true\n";

    fn of(path: &str, text: &str) -> String {
        RULE.of(&[(path, &format!("{text}{LINTS}"))]).join("\n")
    }

    #[test]
    fn a_dependency_against_the_table_is_refused_with_the_reason() {
        let table = [
            ("crates/core/Cargo.toml", "[dependencies]\ntokio = \"1\"", "`tokio`: the rules get time"),
            ("crates/core/Cargo.toml", "[dev-dependencies]\nrand.workspace = true", "`rand`"),
            ("crates/core/Cargo.toml", "[dependencies]\nchance = { package = \"getrandom\" }", "`getrandom`"),
            ("crates/core/Cargo.toml", "[target.'cfg(unix)'.dependencies]\nhyper = \"1\"", "`hyper`"),
            ("crates/core/Cargo.toml", "[dependencies]\ntidings.workspace = true", "`tidings`"),
            ("crates/tidings/Cargo.toml", "[dependencies]\ntestkit.workspace = true", "`testkit`"),
            ("crates/tidings-server/Cargo.toml", "[dependencies]\nrusqlite.workspace = true", "`rusqlite`"),
            ("crates/testkit/Cargo.toml", "[dependencies]\ntidings-core.workspace = true", "`tidings-core`"),
            ("crates/second-core/Cargo.toml", "", "add a line"),
        ];
        for (path, text, expected) in table {
            let said = of(path, text);
            assert!(said.contains(expected), "{path}: {text}\n{said}");
        }
        assert!(RULE.of(&[("bench/Cargo.toml", "")])[0].contains("[lints]"));
    }

    #[test]
    fn tests_of_the_library_may_use_the_test_kit() {
        assert_eq!(of("crates/tidings/Cargo.toml", "[dev-dependencies]\ntestkit.workspace = true"), "");
        assert_eq!(of("crates/core/Cargo.toml", "[dependencies]\nserde.workspace = true"), "");
    }
}
