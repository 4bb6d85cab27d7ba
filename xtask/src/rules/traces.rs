//! Rule: the tree speaks of Tidings, not of the machine that it was written on.

use super::Rule;
use super::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "No path of a developer's machine stands in the tree",
    why: "A path that exists on one machine breaks on every other, and says more about its author than \
          about Tidings. Checked as text in every file.",
    check,
};

/// Written in two parts, so that this file does not hold them.
const PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    for (path, text) in tree.files() {
        for (at, line) in text.lines().enumerate() {
            let held = PATHS.iter().filter(|held| line.contains(**held));
            found.extend(
                held.map(|held| Finding::line(path, at + 1, format!("holds the machine path `{held}`"))),
            );
        }
    }
    found
}

#[test]
fn a_machine_path_is_refused_in_any_file() {
    let text = format!("first line\nsee {}notes", PATHS[0]);
    assert_eq!(RULE.of(&[("docs/a.md", &text)]).len(), 1);
    assert!(RULE.of(&[("docs/a.md", "the network, the root cause")]).is_empty());
}
