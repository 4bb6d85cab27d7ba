//! `cargo xtask bench`: the measurements that the documents quote, built for release.

use crate::{Command, process};
use std::process::ExitCode;

pub(crate) const COMMAND: Command = Command {
    name: "bench",
    arguments: "[bench arguments…]",
    summary: "measure enqueue, drain and latency on both databases",
    run: |arguments| {
        // The server is measured over HTTP as well, as the binary that it is.
        let built = process::run(&mut process::cargo(&["build", "--release", "--package", "tidings-server"]));
        if built != ExitCode::SUCCESS {
            return built;
        }
        process::run(process::cargo(&["run", "--release", "--package", "bench", "--"]).args(arguments))
    },
};
