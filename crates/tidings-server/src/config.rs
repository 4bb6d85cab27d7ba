//! The settings of a process: as written, then as checked.
//!
//! [`written`] reads the file and lays the environment over it, [`settings`] lists
//! every setting once (its page in `docs/` is printed from that list), and
//! [`checked`] makes values of it. Behind that door nothing knows of files,
//! variables or flags.
//!
//! What says more precisely wins: flag, environment, file, default.

mod checked;
mod outbox;
#[cfg(test)]
mod page;
mod settings;
mod written;

pub(crate) use checked::Config;
pub(crate) use outbox::Declarations;

use crate::environment::Environment;
use crate::problem::{Problem, Sort};
use std::collections::BTreeMap;
use std::path::PathBuf;
use written::Written;

/// What the command line says of settings; it wins over everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) database: Option<String>,
    pub(crate) listen: Option<String>,
    pub(crate) allow_private: bool,
    pub(crate) workers: Option<usize>,
}

/// Where each setting was written that is not from the file, for messages.
type Origins = BTreeMap<String, String>;

/// A setting that cannot be: where it stands, what is wrong, what to write.
fn refused(place: &str, path: &str, problem: &str) -> Problem {
    Problem::new(Sort::BadConfiguration, format!("{place}: `{path}` {problem}")).field(path)
}

impl Config {
    /// Reads file, environment and flags, and checks what comes of them.
    pub(crate) fn read(flags: &Flags, environment: &Environment) -> Result<Config, Problem> {
        let file = flags.config.clone().or_else(|| environment.get("TIDINGS_CONFIG").map(PathBuf::from));
        let place =
            file.as_ref().map_or_else(|| "configuration".to_owned(), |file| file.display().to_string());
        let mut table = match &file {
            Some(file) => written::table(&read_file(file)?, &place)?,
            None => toml::Table::new(),
        };
        let mut origins = Origins::new();
        settings::overlay(&mut table, environment, &mut origins)?;
        let mut written = Written::of_table(table, |path| place_of(&origins, path, &place))?;
        apply(flags, &mut written, &mut origins);
        let admin_key = environment.secret("TIDINGS_ADMIN_KEY")?;
        checked::check(&written, admin_key, &|path| place_of(&origins, path, &place))
    }
}

fn place_of(origins: &Origins, path: &str, file: &str) -> String {
    origins.get(path).map_or_else(|| file.to_owned(), Clone::clone)
}

fn read_file(file: &std::path::Path) -> Result<String, Problem> {
    std::fs::read_to_string(file).map_err(|error| {
        let detail = format!("{}: the configuration file cannot be read: {error}", file.display());
        Problem::new(Sort::BadConfiguration, detail)
    })
}

fn apply(flags: &Flags, written: &mut Written, origins: &mut Origins) {
    let mut says = |path: &str| origins.insert(path.to_owned(), format!("--{}", path.replace('_', "-")));
    if let Some(database) = &flags.database {
        written.database = Some(database.clone());
        says("database");
    }
    if let Some(listen) = &flags.listen {
        written.listen = Some(listen.clone());
        says("listen");
    }
    if let Some(workers) = flags.workers {
        written.workers = Some(workers);
        says("workers");
    }
    if flags.allow_private {
        written.allow_private = Some(true);
        says("allow_private");
    }
}

#[cfg(test)]
mod tests;
