//! Rule: what a newcomer and the continuous build run stays the same few words.

use super::Rule;
use super::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "Two commands suffice, and they are written down",
    why: "A newcomer needs two commands: one that runs Tidings on its embedded database and one that \
          passes the tests. A command block of README.md holds each of them, `.ci/run` runs the second and \
          nothing else, and CHANGELOG.md has an `Unreleased` section for what a change brings.",
    check,
};

const TEST: &str = "cargo xtask test";

fn check(tree: &Tree) -> Vec<Finding> {
    let text = |path| tree.get(path).unwrap_or_default();
    let readme: Vec<&str> = command_lines(text("README.md")).collect();
    let runs_serve = |line: &&str| line.starts_with("cargo run") && line.contains(" serve");
    let ci: Vec<&str> = text(".ci/run").lines().filter(|line| line.starts_with("cargo")).collect();
    let wanted = [
        (readme.iter().any(runs_serve), "README.md", "a command block holds `cargo run … serve`"),
        (readme.contains(&TEST), "README.md", "a command block holds the line `cargo xtask test`"),
        (ci == [TEST], ".ci/run", "its one cargo command is `cargo xtask test`"),
        (text(".ci/run").contains("set -eu"), ".ci/run", "it stops at the first failure: `set -eu`"),
        (
            text("CHANGELOG.md").contains("\n## [Unreleased]\n"),
            "CHANGELOG.md",
            "it has a section `## [Unreleased]`",
        ),
    ];
    let missing = wanted.into_iter().filter(|(holds, ..)| !holds);
    missing.map(|(_, path, wanted)| Finding::file(path, format!("must hold: {wanted}"))).collect()
}

/// Lines inside the fenced blocks of a page.
fn command_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().map(str::trim).filter(move |line| {
        if line.starts_with("```") {
            inside = !inside;
        }
        inside
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(RULE.of(&[]).len(), 5);
        let said = RULE
            .of(&[("README.md", "Run cargo xtask test."), (".ci/run", "set -eu\ncargo test\n")])
            .join("\n");
        assert!(
            said.contains("README.md: must hold: a command block holds the line `cargo xtask test`"),
            "{said}"
        );
        assert!(said.contains(".ci/run: must hold: its one cargo command"), "{said}");
    }

    #[test]
    fn two_commands_a_changelog_and_the_ci_pass() {
        let files = [
            ("README.md", "```sh\ncargo run -- serve\n```\ntext\n```\ncargo xtask test\n```"),
            (".ci/run", "#!/usr/bin/env bash\nset -eu\ncd x\ncargo xtask test\n"),
            ("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n"),
        ];
        assert!(RULE.of(&files).is_empty());
    }
}
