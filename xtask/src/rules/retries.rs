//! Rule: only the job layer tries again, and only the job layer waits.

use super::Rule;
use super::rust_source::{Token, code, is_test_file};
use super::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "Nothing outside the job layer tries again, or waits for a time",
    why: "Retry has one owner: three nested layers of three tries turn one failure into 27 requests, and \
          none of them is in the evidence. A retry needs one of three things, and each leaves words: an \
          option of a client or a crate for retrying (allowed nowhere), a wait between two tries (`sleep`, \
          `interval`), or a loop that counts tries (a `for` over a range whose variable is `_` or is named \
          after tries, or a counter such as `retries`). The latter two are allowed to the files of the \
          table `ALLOWED` in `xtask/src/rules/retries.rs`, each with its reason; to some only the wait, \
          for a deadline that moves. Read are the library, the server and the examples, outside comments, \
          literals and test code; the core, where policies live, cannot wait at all by its own rule. A \
          deadline (`timeout`) is not a wait. A line of the table that is not needed any more is refused \
          too. What text cannot show, a test counts: requests on the wire against attempts recorded.",
    check,
};

/// Crates that retry on their own; `deny.toml` bans them too.
const CRATES: &[&str] = &["backoff", "backon", "tokio_retry", "tokio_retry2", "again"];

/// Options of clients that retry on their own.
#[rustfmt::skip]
const OPTIONS: &[&str] = &[
    "RetryLayer", "RetryPolicy", "RetryTransientMiddleware", "ExponentialBackoff",
    "retry_canceled_requests", "set_max_retries", "max_retries", "with_retries",
    "with_retry", "retry_if", "retry_notify", "set_redirect", "FollowRedirect", "follow_redirects",
];

/// Functions that wait until a time.
const WAITS: &[&str] = &["sleep", "sleep_until", "interval", "interval_at", "park_timeout", "wait_timeout"];

/// Counters of tries. (`attempts` is a word of the domain and is not one.)
const COUNTERS: &[&str] = &["retries", "retry_count", "retries_left", "tries", "tries_left", "attempts_left"];

/// What a file of the table below may do.
#[derive(Clone, Copy, PartialEq)]
enum May {
    Wait,
    WaitAndTry,
}

/// Files that may wait, by the beginning of their path: the job layer, which
/// may loop as well, and deadlines that `timeout` cannot express.
#[rustfmt::skip]
const ALLOWED: &[(&str, May, &str)] = &[
    ("crates/tidings/src/worker", May::WaitAndTry,
        "waits for due work and the stop; asks a failing database again"),
    ("crates/tidings/src/attempt", May::WaitAndTry,
        "the hard time limit; a report whose outcome is known waits for a database that is away"),
    ("crates/tidings/src/wait", May::Wait, "a caller stands and waits for a job, for a time"),
    ("crates/tidings/src/ticker", May::WaitAndTry, "runs what is due by the clock"),
    ("crates/tidings/src/wake", May::WaitAndTry, "listens again after its connection broke; polls without it"),
    ("crates/tidings/src/clock", May::WaitAndTry, "asks the database for the time now and then"),
    ("crates/tidings/src/store/retry", May::WaitAndTry,
        "a transaction that the database refused, without anything that can send"),
    ("crates/tidings/src/store/save", May::WaitAndTry,
        "decides again when someone else wrote first: compare-and-set, on the database alone"),
    ("crates/tidings/src/store/sqlite", May::WaitAndTry,
        "the change of the journal, which the busy timeout does not cover"),
    ("crates/tidings/src/store/postgres/connect", May::Wait, "the limit of waiting for a pooled connection"),
    ("crates/tidings/src/store/postgres/listen", May::WaitAndTry, "listens again after its connection broke"),
    ("crates/tidings/src/sink/http/exchange", May::Wait, "a deadline that moves with the phase; it sends once"),
];

/// What is shipped and can wait. The test kit, the benchmarks and the commands drive it.
const READ: &[&str] = &[
    "crates/core/src/",
    "crates/tidings/src/",
    "crates/tidings-server/src/",
    "examples/",
    "crates/tidings/examples/",
];

fn check(tree: &Tree) -> Vec<Finding> {
    let is_read = |path: &str| READ.iter().any(|folder| path.starts_with(folder)) && !is_test_file(path);
    let read: Vec<(&str, Vec<Token>)> = tree
        .under("", ".rs")
        .filter(|(path, _)| is_read(path))
        .map(|(path, text)| (path, code(text)))
        .collect();
    let mut found: Vec<Finding> = read.iter().flat_map(|(path, code)| file(path, code)).collect();
    for (allowed, ..) in ALLOWED {
        let mut covered = read.iter().filter(|(path, _)| covers(allowed, path)).peekable();
        let exists = covered.peek().is_some();
        if exists && covered.all(|(path, code)| waits(path, code).is_empty() && tries(path, code).is_empty())
        {
            found.push(Finding::file(allowed, "neither waits nor loops: remove its line from `ALLOWED`"));
        }
    }
    found
}

fn file(path: &str, code: &[Token]) -> Vec<Finding> {
    let allowed = ALLOWED.iter().find(|(allowed, ..)| covers(allowed, path)).map(|(_, may, _)| *may);
    let mut found = options(path, code);
    if allowed.is_none() {
        found.extend(waits(path, code));
    }
    if allowed != Some(May::WaitAndTry) {
        found.extend(tries(path, code));
    }
    found
}

/// `crates/tidings/src/worker` covers `worker.rs` and what lies in `worker/`.
fn covers(allowed: &str, path: &str) -> bool {
    path.strip_prefix(allowed).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn options(path: &str, code: &[Token]) -> Vec<Finding> {
    let is_option = |at: &usize| {
        let turned_off = code.get(at + 1).is_some_and(|t| t.text == "(")
            && code.get(at + 2).is_some_and(|t| t.text == "false");
        let word = code[*at].text.as_str();
        (OPTIONS.contains(&word) && !turned_off) || (CRATES.contains(&word) && begins_path(code, *at))
    };
    let said = |at: usize| {
        let advice = "it would try again on its own; classify the failure and let the job's policy decide";
        Finding::line(path, code[at].line, format!("`{}`: {advice}", code[at].text))
    };
    (0..code.len()).filter(is_option).map(said).collect()
}

/// `backoff::retry(…)` names a crate; `policy.backoff` and `policy::backoff::Step` do not.
fn begins_path(code: &[Token], at: usize) -> bool {
    let follows_path = at > 0 && ["::", "."].contains(&code[at - 1].text.as_str());
    !follows_path && code.get(at + 1).is_some_and(|next| next.text == "::")
}

fn waits(path: &str, code: &[Token]) -> Vec<Finding> {
    named(path, code, WAITS, "waits for a time: a due time in the database waits instead").collect()
}

fn tries(path: &str, code: &[Token]) -> Vec<Finding> {
    let counters = named(path, code, COUNTERS, "counts tries: the job's policy counts them");
    let loops = (0..code.len()).filter(|at| is_loop_of_tries(&code[*at..])).map(|at| {
        let advice = "the job's policy decides whether to try again";
        Finding::line(path, code[at].line, format!("this `for` reads like a loop of tries: {advice}"))
    });
    counters.chain(loops).collect()
}

fn named(path: &str, code: &[Token], words: &[&str], problem: &str) -> impl Iterator<Item = Finding> {
    let held = code.iter().filter(|token| words.contains(&token.text.as_str()));
    held.map(move |token| Finding::line(path, token.line, format!("`{}` {problem}", token.text)))
}

/// `for _ in 0..3 {`, `for attempt in 1..=max {`.
fn is_loop_of_tries(code: &[Token]) -> bool {
    let [word, variable, inside, rest @ ..] = code else { return false };
    let named_after_tries =
        ["attempt", "retr", "try", "tries"].iter().any(|part| variable.text.contains(part));
    let mut head = rest.iter().take_while(|token| token.text != "{");
    let is_range = head.clone().zip(head.by_ref().skip(1)).any(|(a, b)| a.text == "." && b.text == ".");
    word.text == "for" && inside.text == "in" && (variable.text == "_" || named_after_tries) && is_range
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str, text: &str) -> String {
        RULE.of(&[(file, text)]).join("\n")
    }

    #[test]
    fn every_way_to_try_again_is_refused_outside_the_job_layer() {
        let sink = "crates/tidings/src/sink/http.rs";
        let table = [
            ("async fn f() { loop { send().await; tokio::time::sleep(PAUSE).await; } }", "`sleep` waits"),
            ("use std::thread::sleep as nap;", "`sleep` waits"),
            ("let mut ticks = tokio::time::interval(PERIOD);", "`interval` waits"),
            ("for _ in 0..3 { send()?; }", "loop of tries"),
            ("for attempt in 1..=limit { send()?; }", "loop of tries"),
            ("let mut retries = 0; while retries < 3 { retries += 1; }", "`retries` counts"),
            ("builder.retry_canceled_requests(true);", "try again on its own"),
            ("ServiceBuilder::new().layer(RetryLayer::new(policy))", "try again on its own"),
            ("backoff::future::retry(policy, send)", "try again on its own"),
        ];
        for (text, expected) in table {
            assert!(of(sink, text).contains(expected), "{text}\n{}", of(sink, text));
        }
        assert!(of("crates/tidings/src/worker.rs", "sleep(); f(RetryLayer)").contains("RetryLayer"));
        let deadline = "crates/tidings/src/sink/http/exchange.rs";
        assert!(of(deadline, "sleep_until(due); for _ in 0..3 {}").contains("loop of tries"));
        assert_eq!(of(deadline, "sleep_until(due)"), "");
    }

    #[test]
    fn the_job_layer_waits_and_the_rest_has_deadlines() {
        let table = [
            ("crates/tidings/src/worker/claim.rs", "tokio::time::sleep(PAUSE).await"),
            (
                "crates/tidings/src/sink/http.rs",
                "builder.retry_canceled_requests(false); timeout(limit, send()).await",
            ),
            ("crates/tidings/src/sink/http.rs", "// sleep\nlet said = \"sleep\"; for header in headers {}"),
            (
                "crates/tidings/src/kind.rs",
                "let policy = Policy { backoff, ..default }; policy::backoff::Step::first(again)",
            ),
            ("crates/tidings-server/src/cli/trace.rs", "for attempt in &job.attempts { print(attempt) }"),
            ("crates/testkit/src/receiver.rs", "tokio::time::sleep(PAUSE).await"),
            ("crates/tidings/tests/store.rs", "for _ in 0..3 { enqueue() }"),
        ];
        for (file, text) in table {
            assert_eq!(of(file, text), "", "{file}: {text}");
        }
    }

    #[test]
    fn an_exception_that_is_not_needed_is_refused() {
        assert!(of("crates/tidings/src/ticker.rs", "fn f() {}").contains("remove its line"));
    }
}
