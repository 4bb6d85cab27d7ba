//! Rule: every SQL file is listed, and both databases have the same ones.

use super::Rule;
use super::tree::{Finding, Tree};
use std::collections::BTreeSet;

pub(super) const RULE: Rule = Rule {
    name: "Every SQL file is listed, and both databases have the same ones",
    why: "A statement that nobody lists is never prepared by a test, and a behaviour that only one \
          database has is found by a user. Each file under `crates/tidings/sql` is named in \
          `store/sql.rs`; `sql/postgres` and `sql/sqlite` hold the same names, and so do \
          `sql/migrations/postgres` and `sql/migrations/sqlite`; what is one text for both lies in \
          `sql/shared`. That each is prepared on its database is a test of the library.",
    check,
};

const SQL: &str = "crates/tidings/sql/";
const LIST: &str = "crates/tidings/src/store/sql.rs";
/// Folders whose files have the same names, in pairs.
const TWINS: &[(&str, &str)] = &[("postgres/", "sqlite/"), ("migrations/postgres/", "migrations/sqlite/")];
const SHARED: &str = "shared/";

fn check(tree: &Tree) -> Vec<Finding> {
    let listed: BTreeSet<&str> = tree.get(LIST).map(listed_words).into_iter().flatten().collect();
    let mut found = vec![];
    for (path, _) in tree.under(SQL, "") {
        let inside = path.trim_start_matches(SQL);
        let folder = &inside[..inside.rfind('/').map_or(0, |slash| slash + 1)];
        let is_known = folder == SHARED || TWINS.iter().any(|(one, other)| [one, other].contains(&&folder));
        if !is_known || !path.ends_with(".sql") {
            found.push(Finding::file(path, "here lie only .sql files, each in a folder that the rule names"));
        } else if !listed.contains(stem(path)) {
            found.push(Finding::file(path, format!("is not listed in {LIST}")));
        }
    }
    for (one, other) in TWINS {
        found.extend(missing(tree, one, other));
        found.extend(missing(tree, other, one));
    }
    found
}

/// Files of one database that the other lacks.
fn missing(tree: &Tree, one: &str, other: &str) -> Vec<Finding> {
    let (one, other) = (format!("{SQL}{one}"), format!("{SQL}{other}"));
    let twins = tree.under(&one, ".sql").map(|(path, _)| (path, path.replacen(&one, &other, 1)));
    let lonely = twins.filter(|(_, twin)| tree.get(twin).is_none());
    lonely.map(|(path, twin)| Finding::file(path, format!("has no twin {twin}"))).collect()
}

/// Words of a list, outside comments.
fn listed_words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
}

fn stem(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".sql")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "// old_one\nstatements! { shared: [load_job], by_backend: [take_due] }\n\
        include_str!(\"../../sql/migrations/sqlite/0001_jobs.sql\")";

    fn of(paths: &[&str]) -> String {
        let files: Vec<(&str, &str)> =
            paths.iter().map(|path| (*path, "select 1")).chain([(LIST, LISTED)]).collect();
        RULE.of(&files).join("\n")
    }

    #[test]
    fn a_file_that_is_unlisted_or_has_no_twin_is_refused() {
        let table = [
            ("crates/tidings/sql/shared/old_one.sql", "is not listed"),
            ("crates/tidings/sql/shared/load.sql", "is not listed"),
            (
                "crates/tidings/sql/postgres/take_due.sql",
                "has no twin crates/tidings/sql/sqlite/take_due.sql",
            ),
            (
                "crates/tidings/sql/sqlite/take_due.sql",
                "has no twin crates/tidings/sql/postgres/take_due.sql",
            ),
            ("crates/tidings/sql/mysql/take_due.sql", "in a folder that the rule names"),
            ("crates/tidings/sql/take_due.sql", "in a folder that the rule names"),
            ("crates/tidings/sql/shared/notes.txt", "only .sql files"),
            ("crates/tidings/sql/migrations/sqlite/0001_jobs.sql", "has no twin"),
            ("crates/tidings/sql/migrations/sqlite/0002_lanes.sql", "is not listed"),
        ];
        for (path, expected) in table {
            assert!(of(&[path]).contains(expected), "{path}\n{}", of(&[path]));
        }
    }

    #[test]
    fn listed_files_in_pairs_pass() {
        let paths =
            ["shared/load_job", "postgres/take_due", "sqlite/take_due"].map(|p| format!("{SQL}{p}.sql"));
        assert_eq!(of(&paths.each_ref().map(String::as_str)), "");
    }
}
