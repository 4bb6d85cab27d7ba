//! Measures what the documents claim, on both databases, with durable commits.
//!
//! `cargo xtask bench [--sqlite | --postgres | --database ADDRESS] [--jobs N] [--only enqueue|drain|latency|events]`
//!
//! A line is a figure and what it was measured over. What the machine did
//! besides is not known here: run it on a quiet one, more than once.
//! Absent on purpose: any assertion. Speed is read here and tested nowhere.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measuring program prints, and stops at the first surprise"
)]

mod api;
mod drain;
mod enqueue;
mod events;
mod kind;
mod latency;
mod machine;

use std::process::ExitCode;
use std::sync::Arc;
use tidings::store::{self, OpenOptions, Store};

/// What to measure.
struct Options {
    sqlite: bool,
    postgres: bool,
    jobs: usize,
    only: Option<String>,
    /// A database of the caller's, instead of fresh ones.
    address: Option<String>,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            println!(
                "{problem}\nusage: bench [--sqlite | --postgres | --database ADDRESS] [--jobs N] [--only enqueue|drain|latency|events]"
            );
            return ExitCode::from(2);
        }
    };
    println!("{}", machine::describe());
    if let Some(address) = &options.address {
        tokio::runtime::Runtime::new().unwrap().block_on(measure(address, &options));
        return ExitCode::SUCCESS;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        if options.sqlite {
            let folder = tempfile::tempdir().unwrap();
            let address = format!("sqlite:{}", folder.path().join("bench.db").display());
            measure(&address, &options).await;
        }
        if options.postgres {
            let cluster = testkit::postgres::Cluster::start(testkit::postgres::Durability::Durable);
            measure(&cluster.url("postgres"), &options).await;
        }
    });
    ExitCode::SUCCESS
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { sqlite: true, postgres: true, jobs: 100_000, only: None, address: None };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("`{word}` needs a value"));
        match word.as_str() {
            "--sqlite" => options.postgres = false,
            "--postgres" => options.sqlite = false,
            "--jobs" => options.jobs = value()?.parse().map_err(|_| "`--jobs` needs a number")?,
            "--database" => options.address = Some(value()?),
            "--only" => options.only = Some(value()?),
            _ => return Err(format!("`{word}` is not an option")),
        }
    }
    Ok(options)
}

async fn measure(address: &str, options: &Options) {
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| only == name);
    let store: Arc<dyn Store> = store::open(address, &OpenOptions::default()).await.unwrap();
    println!("\n{}: database version {}", store.backend(), machine::database_version(address).await);
    if wanted("latency") {
        latency::at_200_a_second(address).await;
    }
    if wanted("enqueue") {
        enqueue::single(address, options.jobs).await;
        enqueue::batches(address, options.jobs * 2).await;
    }
    if wanted("drain") {
        drain::all(address, options.jobs).await;
    }
    if wanted("events") {
        events::all(address, options.jobs).await;
        api::events(address, options.jobs / 4).await;
    }
}

/// `N/s`, for a line.
fn rate(jobs: usize, elapsed: std::time::Duration) -> String {
    format!("{:.0}/s", jobs as f64 / elapsed.as_secs_f64())
}
