//! The house rules that neither the compiler nor clippy checks.
//!
//! A rule is a pure function from the tree's files to what is wrong with them,
//! and stands in [`RULES`], from which its page in `docs/` is printed. Beside
//! each rule a test shows it a bad sample, so that it has been seen to fail.
//!
//! Absent on purpose: exceptions in the code that a rule reads. Whoever needs
//! one adds a line with its reason to the table of the rule.

mod cases;
mod ci;
mod imports;
mod manifests;
mod modules;
mod pages;
mod purity;
mod retries;
mod rust_source;
mod statements;
mod traces;
mod tree;

use std::fmt::Write;
use tree::{Finding, Tree};

/// Every house rule.
const RULES: &[Rule] = &[
    imports::RULE,
    manifests::RULE,
    purity::RULE,
    retries::RULE,
    statements::RULE,
    modules::RULE,
    pages::RULE,
    cases::RULE,
    traces::RULE,
    ci::RULE,
];

/// One house rule.
struct Rule {
    /// What must be true, as a sentence.
    name: &'static str,
    /// Why, and how it is checked.
    why: &'static str,
    /// What is wrong with the tree; empty when nothing is.
    check: fn(&Tree) -> Vec<Finding>,
}

impl Rule {
    /// What the rule says of a few files: for its own tests.
    fn of(&self, files: &[(&str, &str)]) -> Vec<String> {
        (self.check)(&Tree::of(files)).iter().map(Finding::to_string).collect()
    }
}

#[test]
fn the_tree_keeps_every_house_rule() {
    let tree = Tree::of_the_workspace();
    let mut broken = String::new();
    for rule in RULES {
        let findings = (rule.check)(&tree);
        if !findings.is_empty() {
            writeln!(broken, "\n{}\n  ({})", rule.name, rule.why).unwrap();
        }
        for finding in findings {
            writeln!(broken, "  {finding}").unwrap();
        }
    }
    assert!(broken.is_empty(), "\nHouse rules that are broken:\n{broken}");
}

#[test]
fn docs_page_house_rules() {
    let mut page = String::from(
        "# House rules\n\nWritten by the test `docs_page_house_rules` (`cargo xtask docs`); do not edit. \
         The rules that rustc and clippy check stand in `Cargo.toml`, `clippy.toml` and \
         `crates/core/clippy.toml`, each with its reason.\n",
    );
    for rule in RULES {
        write!(page, "\n## {}\n\n{}\n", rule.name, rule.why).unwrap();
    }
    let path = crate::process::root().join("docs/house-rules.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/house-rules.md differs from the rules: run `cargo xtask docs`");
}
