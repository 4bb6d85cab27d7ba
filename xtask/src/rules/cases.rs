//! Rule: every row of the table of cases names a test that exists, or says when it comes.

use super::Rule;
use super::rust_source::tokens;
use super::tree::{Finding, Tree};
use std::collections::BTreeSet;

pub(super) const RULE: Rule = Rule {
    name: "A row of the cases names tests that exist, or says with which part it comes",
    why: "`docs/cases.md` says what Tidings promises of failures that others reported. A promise whose test was \
          renamed or removed is a promise that nobody keeps. Every name in backticks in the last column of a \
          row is a function of some Rust file; a row without one says `later: …`, or what makes a test \
          needless; no row stands twice.",
    check,
};

const PAGE: &str = "docs/cases.md";

fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.get(PAGE) else { return vec![] };
    let functions = functions(tree);
    let mut seen = BTreeSet::new();
    let mut found = vec![];
    for (number, line) in page.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let Some((id, held_by)) = row(line) else { continue };
        if !seen.insert(id) {
            found.push(Finding::line(PAGE, number, format!("{id} stands there already: one row a case")));
        }
        let names: Vec<&str> = held_by.split('`').skip(1).step_by(2).collect();
        for name in names.iter().filter(|name| !functions.contains(**name)) {
            found.push(Finding::line(
                PAGE,
                number,
                format!("`{name}` is no function of the tree: name the test"),
            ));
        }
        if held_by.is_empty() {
            found.push(Finding::line(
                PAGE,
                number,
                format!("{id} says nothing: name its test, or `later: …`"),
            ));
        }
    }
    found
}

/// The case and the last column of a row: `| RT1 | … | held by |`.
fn row(line: &str) -> Option<(&str, &str)> {
    let cells: Vec<&str> =
        line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let (id, held_by) = (*cells.first()?, *cells.last()?);
    let is_case = id.len() > 2 && id.chars().take(2).all(|c| c.is_ascii_uppercase());
    let numbered = id.get(2..).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()));
    (is_case && numbered && cells.len() > 1).then_some((id, held_by))
}

/// The names of all functions, those of tests among them.
fn functions(tree: &Tree) -> BTreeSet<String> {
    let files = tree.under("", ".rs");
    let code = files.flat_map(|(_, text)| {
        let code = tokens(text);
        let named = code.windows(2).filter(|pair| pair[0].text == "fn");
        named.map(|pair| pair[1].text.clone()).collect::<Vec<_>>()
    });
    code.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: (&str, &str) = ("crates/core/tests/policy.rs", "#[test]\nfn a_delay_is_capped() {}");

    #[test]
    fn a_row_whose_test_is_gone_or_that_says_nothing_or_stands_twice_is_refused() {
        let page =
            "| id | held by |\n|---|---|\n| RT1 | `a_delay_is_cut` |\n| RT2 | |\n| RT1 | later: mail |";
        let said = RULE.of(&[TEST, (PAGE, page)]).join("\n");
        assert!(said.contains("docs/cases.md:3: `a_delay_is_cut` is no function"), "{said}");
        assert!(said.contains("docs/cases.md:4: RT2 says nothing"), "{said}");
        assert!(said.contains("docs/cases.md:5: RT1 stands there already"), "{said}");
    }

    #[test]
    fn rows_with_their_tests_or_their_part_pass() {
        let page = "See `cargo xtask test`.\n\n| id | promise | held by |\n|---|---|---|\n\
                    | RT1 | It is capped. | `a_delay_is_capped`; more later: mail |\n| SM1 | | later: mail |";
        assert!(RULE.of(&[TEST, (PAGE, page)]).is_empty());
    }
}
