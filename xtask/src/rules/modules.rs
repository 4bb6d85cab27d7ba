//! Rule: a source file says what it is, and holds one noun.

use super::Rule;
use super::rust_source::{is_test_file, test_line_count};
use super::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "A source file opens with what it is, and stays short",
    why: "The first reader of a file should know in a minute what it is, why it exists and what is absent \
          on purpose. Every `.rs` file opens with `//!` (a `tests.rs` says it by its name); it has at most \
          600 lines besides its own tests, and at most 800 with them. One that outgrows this holds a \
          second noun.",
    check,
};

const CODE_LINES_MAX: usize = 600;
const LINES_MAX: usize = 800;

fn check(tree: &Tree) -> Vec<Finding> {
    tree.under("", ".rs").flat_map(|(path, text)| file(path, text)).collect()
}

fn file(path: &str, text: &str) -> Vec<Finding> {
    let mut found = vec![];
    let name_says_it = path.ends_with("/tests.rs");
    if !text.starts_with("//!") && !name_says_it {
        found.push(Finding::file(path, "open it with `//!` and what this file is, and why"));
    }
    let lines = text.lines().count();
    let test_lines = if is_test_file(path) { lines } else { test_line_count(text) };
    for (count, limit, what) in
        [(lines - test_lines, CODE_LINES_MAX, "besides its tests"), (lines, LINES_MAX, "in all")]
    {
        if count > limit {
            let advice = "look for the second noun in it";
            found.push(Finding::file(path, format!("{count} lines {what}, the limit is {limit}: {advice}")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, code_lines: usize, test_lines: usize) -> String {
        let tests =
            format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(test_lines.saturating_sub(3)));
        RULE.of(&[(path, &format!("//! x\n{}{tests}", "f();\n".repeat(code_lines - 1)))]).join("\n")
    }

    #[test]
    fn a_file_without_its_purpose_or_too_long_is_refused() {
        assert!(RULE.of(&[("bench/src/main.rs", "use x;\n//! late")])[0].contains("open it with"));
        assert!(of("crates/core/src/a.rs", 601, 3).contains("601 lines besides its tests"));
        assert!(of("crates/core/src/a.rs", 500, 301).contains("801 lines in all"));
        assert!(of("crates/core/tests/a.rs", 801, 3).contains("lines in all"));
    }

    #[test]
    fn files_at_their_limits_pass() {
        assert_eq!(of("crates/core/src/a.rs", 600, 200), "");
        assert_eq!(of("crates/core/tests/a.rs", 797, 3), "");
        assert!(RULE.of(&[("crates/core/src/guard/tests.rs", "use super::*;")]).is_empty());
    }
}
