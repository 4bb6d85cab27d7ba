//! Pages of `docs/` that are printed from the code: compared, or rewritten where
//! `UPDATE_DOCS` is set.

/// Fails when the page differs from what the code prints.
#[expect(clippy::disallowed_methods, reason = "a test is told by the environment to rewrite a page")]
pub(crate) fn check(name: &str, expected: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/{name} differs from the code: run `cargo xtask docs`");
}
