//! Rule: the core reads no clock, draws no random number and touches nothing outside.

use super::Rule;
use super::rust_source::{Token, code, paths};
use super::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "The core has no clock, no randomness, no I/O and no async",
    why: "A rule that is a pure function can be tested on every value, replayed from its facts, and run on \
          two databases alike; time, randomness and ids are arguments. `crates/core/clippy.toml` bans the \
          functions; this rule bans the words and the modules of `std` as well, in `crates/core/src` \
          outside test code, so that a new way to the same source is noticed. `Cargo.toml` of the core is \
          held by the rule on crates.",
    check,
};

/// Words that must not stand in the core, and what to do instead.
#[rustfmt::skip]
const WORDS: &[(&[&str], &str)] = &[
    (&["SystemTime", "Instant", "now"], "time is an argument: take `now: Time`"),
    (&["now_v1", "now_v6", "now_v7", "new_v1", "new_v4", "new_v6"], "a fresh id is an argument"),
    (&["getrandom", "rand", "thread_rng", "OsRng", "RandomState", "DefaultHasher"],
        "randomness is an argument: the caller draws it"),
    (&["HashMap", "HashSet"], "their order is random in each process: use `BTreeMap` or `BTreeSet`"),
    (&["async", "await", "sleep", "Mutex", "RwLock", "Condvar", "mpsc"], "what chooses never waits"),
    (&["TcpStream", "TcpListener", "UdpSocket", "ToSocketAddrs"],
        "the core touches nothing outside: return what should be done"),
    (&["println", "eprintln", "print", "eprint", "dbg"], "the core tells its caller, not the terminal"),
    (&["static", "thread_local"], "the core keeps no state of its own: pass it in (a table is a `const`)"),
];

/// Modules of `std` that must not be named there.
const STD_MODULES: &[&str] = &["env", "fs", "io", "process", "thread", "os", "task", "future"];

fn check(tree: &Tree) -> Vec<Finding> {
    tree.under("crates/core/src/", ".rs").flat_map(|(path, text)| file(path, &code(text))).collect()
}

fn file(path: &str, code: &[Token]) -> Vec<Finding> {
    let words = (0..code.len()).filter_map(|at| {
        let (_, advice) = WORDS.iter().find(|(words, _)| words.contains(&code[at].text.as_str()))?;
        let is_source = match code[at].text.as_str() {
            "now" => is_called_on_a_type(code, at),
            "static" => !is_lifetime(code, at),
            _ => true,
        };
        is_source.then(|| Finding::line(path, code[at].line, format!("`{}`: {advice}", code[at].text)))
    });
    let modules = ["std", "core"].into_iter().flat_map(|root| paths(code, root)).filter_map(|used| {
        let module = used.segments.get(1).filter(|module| STD_MODULES.contains(&module.as_str()))?;
        Some(Finding::line(path, used.line, format!("`std::{module}`: the core touches nothing outside")))
    });
    words.chain(modules).collect()
}

/// `Zoned::now()` reads a clock; a parameter or variable `now` is the time that was passed in.
fn is_called_on_a_type(code: &[Token], at: usize) -> bool {
    at > 0 && code[at - 1].text == "::" && code.get(at + 1).is_some_and(|next| next.text == "(")
}

fn is_lifetime(code: &[Token], at: usize) -> bool {
    at > 0 && code[at - 1].text == "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        RULE.of(&[("crates/core/src/bad.rs", text)]).join("\n")
    }

    #[test]
    fn every_way_to_a_clock_chance_or_the_outside_is_refused() {
        let table = [
            ("fn f() -> u64 { std::time::SystemTime::now() }", "take `now: Time`"),
            ("use std::time::{Duration, Instant};", "take `now: Time`"),
            ("fn f() { jiff::Zoned::now() }", "take `now: Time`"),
            ("let id = Uuid::now_v7();", "a fresh id is an argument"),
            ("use std::{fmt, fs};", "`std::fs`"),
            ("fn f() { std::env::var(name) }", "`std::env`"),
            ("async fn f() {}", "never waits"),
            ("use std::collections::HashMap;", "`BTreeMap`"),
            ("static COUNT: AtomicU32 = AtomicU32::new(0);", "keeps no state"),
            ("fn f() { println!() }", "not the terminal"),
        ];
        for (text, expected) in table {
            assert!(of(text).contains(expected), "{text}\n{}", of(text));
        }
    }

    #[test]
    fn time_as_an_argument_addresses_and_tests_pass() {
        let pure = "// Instant::now\nuse std::net::{IpAddr, SocketAddr};\nuse std::fmt;\n\
                    pub(super) fn due(now: Time) -> &'static str { after(now) }\n\
                    #[cfg(test)]\nmod tests { use std::fs; }";
        assert_eq!(of(pure), "");
    }
}
