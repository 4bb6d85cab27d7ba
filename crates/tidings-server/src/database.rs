//! Which database, and the door to it.
//!
//! The address may hold a password; what is printed or logged of it never does.

use crate::config::Config;
use crate::problem::{Problem, Sort};
use std::fmt;
use std::path::Path;
use tidings::sink::http::HttpSink;
use tidings::store::OpenOptions;
use tidings::{Builder, Tidings};

/// The address of a database. Shown, it has no password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    written: String,
}

/// Who may bring the schema up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    /// `serve` and `migrate`: they may make the database, too.
    Migrate,
    /// Every other command: it must not change the schema under a running server.
    AsItIs,
}

impl Address {
    /// Takes an address of a form that exists. What is wrong is said without repeating it.
    pub(crate) fn parse(written: String) -> Result<Address, String> {
        if let Some(path) = written.strip_prefix("sqlite:") {
            return match path {
                "" => Err("names no file; write `sqlite:PATH`, like sqlite:tidings.db".to_owned()),
                ":memory:" => {
                    Err("is in memory, which keeps nothing; name a file, like sqlite:tidings.db".to_owned())
                }
                _ => Ok(Address { written }),
            };
        }
        if written.starts_with("postgres://") || written.starts_with("postgresql://") {
            return Ok(Address { written });
        }
        Err("is not the address of a database; write `sqlite:PATH` or `postgres://USER@HOST/NAME`".to_owned())
    }

    /// The file of a SQLite database.
    fn file(&self) -> Option<&Path> {
        self.written.strip_prefix("sqlite:").map(Path::new)
    }
}

/// Without the password, and without the query, which may hold one.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.written.split_once("://").filter(|_| self.file().is_none()) else {
            return f.write_str(&self.written);
        };
        let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
        // The last `@`: an unescaped one in a password must not show what stands before it.
        match rest.rsplit_once('@') {
            None => write!(f, "{scheme}://{rest}"),
            Some((who, place)) => {
                let user = who.split_once(':').map_or(who, |(user, _)| user);
                write!(f, "{scheme}://{user}@{place}")
            }
        }
    }
}

/// Opens the database with the kinds of this program.
pub(crate) async fn open(config: &Config, schema: Schema) -> Result<Tidings, Problem> {
    let address = &config.database;
    if schema == Schema::AsItIs
        && let Some(file) = address.file()
        && !file.exists()
    {
        let detail = format!(
            "there is no database at {address}: `tidings serve` or `tidings migrate` makes one; \
             or name another with --database"
        );
        return Err(Problem::new(Sort::DatabaseUnavailable, detail));
    }
    let options = OpenOptions { migrate: schema == Schema::Migrate, ..config.open.clone() };
    Ok(builder(config)?.open_with(&address.written, &options).await?)
}

/// The kinds that this program knows, as they are configured.
fn builder(config: &Config) -> Result<Builder, Problem> {
    let sink = HttpSink::new(config.http.clone())
        .map_err(|error| Problem::new(Sort::BadConfiguration, error.to_string()))?;
    let mut builder = Tidings::builder().settings(config.settings.clone()).http_calls(sink);
    for kind in &config.kinds {
        builder = builder.configure(&kind.name, kind.queue.clone(), kind.time_limit);
        if let Some(policy) = &kind.policy {
            builder = builder.policy(&kind.name, policy.clone());
        }
    }
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (written, shown) in [
            ("sqlite:tidings.db", "sqlite:tidings.db"),
            ("postgres://ann:s3cret@db:5432/app", "postgres://ann@db:5432/app"),
            ("postgresql://ann:s3c@ret@db/app", "postgresql://ann@db/app"),
            ("postgres://db/app?user=ann&password=s3cret", "postgres://db/app"),
            ("postgres://ann@db/app", "postgres://ann@db/app"),
            ("postgres://db", "postgres://db"),
        ] {
            assert_eq!(Address::parse(written.to_owned()).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_repeated() {
        for written in ["", "tidings.db", "mysql://ann:s3cret@db/app", "sqlite:", "sqlite::memory:"] {
            let refusal = Address::parse(written.to_owned()).err().unwrap();
            assert!(!refusal.contains("s3cret") && refusal.contains("sqlite:"), "{refusal}");
        }
    }
}
