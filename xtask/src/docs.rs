//! `cargo xtask docs`: rewrites the pages that tests print.
//!
//! A generated page is written by a test whose name contains `docs_page`. The
//! same test fails when the page differs, so `cargo xtask test` notices a page
//! that nobody rewrote.

use crate::{Command, process};

pub(crate) const COMMAND: Command = Command {
    name: "docs",
    arguments: "",
    summary: "rewrite the generated pages in docs/ (tests named `docs_page…`)",
    run: |_| {
        let words = ["test", "--workspace", "--all-features", "--quiet", "docs_page"];
        process::run(process::cargo(&words).env("UPDATE_DOCS", "1"))
    },
};
