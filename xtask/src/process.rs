//! Starts other programs: where they run, and what is said about it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Output};

/// Folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the workspace's folder").to_owned()
}

/// Folder for what the commands install for themselves; `cargo clean` removes it.
pub(crate) fn target() -> PathBuf {
    // `join` takes an absolute path as it is.
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The cargo that started us, with `words`, at the workspace's root.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(words);
    command
}

/// Says what is run, runs it to its end with our own input and output, and
/// hands back its exit code (1 where a signal ended it or it did not start).
pub(crate) fn run(command: &mut Command) -> ExitCode {
    say(&format!("running {}", line(command)));
    match command.status() {
        Ok(status) => exit_code(status),
        Err(error) => {
            say(&format!("cannot start {}: {error}", line(command)));
            ExitCode::FAILURE
        }
    }
}

/// Runs a command whose output only matters when it fails: the error is the
/// command with the last lines of what it wrote to stderr, on one line.
pub(crate) fn run_quietly(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(Output { status, .. }) if status.success() => Ok(()),
        Ok(Output { status, stderr, stdout }) => {
            let told = if stderr.trim_ascii().is_empty() { stdout } else { stderr };
            Err(format!("`{}` failed ({status}): {}", line(command), tail(&String::from_utf8_lossy(&told))))
        }
        Err(error) => Err(format!("cannot start `{}`: {error}", line(command))),
    }
}

/// Tells the person at the terminal; never on stdout, which belongs to what is run.
pub(crate) fn say(text: &str) {
    eprintln!("xtask: {text}");
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn tail(text: &str) -> String {
    const LINES_MAX: usize = 4;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join(" | ")
}
