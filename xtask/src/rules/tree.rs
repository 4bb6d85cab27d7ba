//! The files that rules read, and what rules say of them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

/// Text files by their path from the workspace's root, with `/` between parts.
pub(super) struct Tree(BTreeMap<String, String>);

/// One thing that is wrong.
pub(super) struct Finding {
    path: String,
    line: Option<usize>,
    message: String,
}

impl Finding {
    /// Something wrong with a file as a whole.
    pub(super) fn file(path: &str, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line: None, message: message.into() }
    }

    /// Something wrong on a line, counted from 1.
    pub(super) fn line(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { line: Some(line), ..Finding::file(path, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

impl Tree {
    /// The files of the workspace: all but what tools keep for themselves.
    pub(super) fn of_the_workspace() -> Tree {
        let mut files = BTreeMap::new();
        collect(&crate::process::root(), "", &mut files);
        assert!(files.contains_key("Cargo.toml"), "the workspace's root was not found");
        Tree(files)
    }

    /// A tree for tests of rules.
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        Tree(files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect())
    }

    pub(super) fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Every file, as (path, text).
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Files whose path begins with `prefix` and ends with `suffix`.
    pub(super) fn under<'a>(
        &'a self,
        prefix: &'a str,
        suffix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files().filter(move |(path, _)| path.starts_with(prefix) && path.ends_with(suffix))
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().expect("file names are UTF-8");
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !is_kept_by_a_tool(&name) {
            collect(&entry.path(), &format!("{path}/"), files);
        } else if kind.is_file()
            && name != ".git"
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            files.insert(path, text);
        }
    }
}

fn is_kept_by_a_tool(folder: &str) -> bool {
    let hidden = folder.starts_with('.') && ![".ci", ".cargo", ".github"].contains(&folder);
    hidden || ["target", "node_modules"].contains(&folder)
}
