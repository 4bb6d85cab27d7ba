//! Rule: pages name tests and commands that exist.

use super::Rule;
use super::rust_source::tokens;
use super::tree::{Finding, Tree};
use std::collections::BTreeSet;

pub(super) const RULE: Rule = Rule {
    name: "A page names the test that writes it, and commands that exist",
    why: "Documents drift when nothing ties them to the code. A page with a line `Written by …` names, in \
          backticks, a test whose name contains `docs_page`, or that test's file (it fails when the page \
          differs, and `cargo xtask docs` runs it); every such test has its page; and every `cargo xtask \
          …` in a document is a command.",
    check,
};

const MARK: &str = "Written by ";
const COMMAND: &str = "cargo xtask ";

fn check(tree: &Tree) -> Vec<Finding> {
    let tests = docs_tests(tree);
    let mut named = BTreeSet::new();
    let mut found = vec![];
    for (path, text) in tree.under("", ".md") {
        for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
            if path.starts_with("docs/") && line.starts_with(MARK) {
                let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
                let writers = tests
                    .iter()
                    .filter(|(test, file)| quoted.contains(&test.as_str()) || quoted.contains(file));
                let before = named.len();
                named.extend(writers.map(|(test, _)| test));
                if named.len() == before {
                    let message =
                        "names no test (or its file) whose name contains `docs_page`, or one of another page";
                    found.push(Finding::line(path, number, message));
                }
            }
            found.extend(unknown_commands(line).map(|word| {
                Finding::line(
                    path,
                    number,
                    format!("`{COMMAND}{word}` is not a command: see `cargo xtask help`"),
                )
            }));
        }
    }
    let pageless = tests.iter().filter(|(test, _)| !named.contains(test));
    found.extend(
        pageless.map(|(test, file)| Finding::file(file, format!("no page in docs/ says `{MARK}… {test}`"))),
    );
    found
}

/// All test functions that write pages, as (name, file).
fn docs_tests(tree: &Tree) -> Vec<(String, &str)> {
    let mut found = vec![];
    for (path, text) in tree.under("", ".rs").filter(|(_, text)| text.contains("docs_page")) {
        let code = tokens(text);
        let functions =
            code.windows(2).filter(|pair| pair[0].text == "fn" && pair[1].text.contains("docs_page"));
        found.extend(functions.map(|pair| (pair[1].text.clone(), path)));
    }
    found
}

fn unknown_commands<'a>(line: &'a str) -> impl Iterator<Item = &'a str> {
    let word =
        |rest: &'a str| rest.split(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap_or_default();
    let is_known =
        |word: &&str| word.is_empty() || crate::COMMANDS.iter().any(|command| command.name == *word);
    line.split(COMMAND).skip(1).map(word).filter(move |word| !is_known(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: (&str, &str) = ("crates/core/tests/job_states.rs", "#[test]\nfn docs_page_job_states() {}");
    const PAGE: &str = "# Job states\n\nWritten by the test `docs_page_job_states`; do not edit.";

    #[test]
    fn a_page_whose_writer_is_gone_and_a_writer_without_a_page_are_refused() {
        let said = RULE.of(&[TEST, ("docs/job-states.md", "\nWritten by `docs_page_states`.")]).join("\n");
        assert!(said.contains("docs/job-states.md:2: names no test"), "{said}");
        assert!(said.contains("no page in docs/ says `Written by … docs_page_job_states`"), "{said}");
    }

    #[test]
    fn a_command_that_does_not_exist_is_refused() {
        let said =
            RULE.of(&[("CONTRIBUTING.md", "run `cargo xtask tset`, then `cargo xtask check`")]).join("\n");
        assert!(said.contains("`cargo xtask tset` is not a command"), "{said}");
        assert!(!said.contains("check`"), "{said}");
    }

    #[test]
    fn a_page_with_its_writer_passes() {
        assert!(RULE.of(&[TEST, ("docs/job-states.md", PAGE)]).is_empty());
        let by_file = "Written by `crates/core/tests/job_states.rs` (`cargo xtask docs`); do not edit.";
        assert!(RULE.of(&[TEST, ("docs/job-states.md", by_file)]).is_empty());
    }
}
