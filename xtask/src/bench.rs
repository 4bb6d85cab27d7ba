//! `cargo xtask bench`: the measurements that the documents quote, built for release.

use crate::{Command, process};

pub(crate) const COMMAND: Command = Command {
    name: "bench",
    arguments: "[bench arguments…]",
    summary: "measure enqueue, drain and latency on both databases",
    run: |arguments| {
        process::run(process::cargo(&["run", "--release", "--package", "bench", "--"]).args(arguments))
    },
};
