//! Finding PostgreSQL's programs on this machine, or installing them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs that a cluster needs, side by side in one directory.
const PROGRAMS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// Directories that hold one installation per version, outside of PATH.
const VERSIONED: [&str; 3] = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"];

/// File that keeps Debian's package from starting a system-wide cluster.
const DEBIAN_CLUSTER_CONFIG: &str = "/etc/postgresql-common/createcluster.conf";

/// The directory with PostgreSQL's programs; installs the package first where
/// that is possible (root on Debian or a relative), saying so on stderr.
///
/// # Errors
/// What is missing and what to do about it.
pub fn ensure_installed() -> Result<PathBuf, String> {
    if let Some(directory) = find() {
        return Ok(directory);
    }
    if !is_root() || !Path::new("/usr/bin/apt-get").exists() {
        return Err(format!(
            "initdb, pg_ctl and postgres were not found together in PATH or under {}; install PostgreSQL \
             (on Debian: apt-get install postgresql), or set {} to the URL of a superuser",
            VERSIONED[0],
            super::SERVER_VARIABLE
        ));
    }
    eprintln!("PostgreSQL is not installed; running: apt-get install -y postgresql");
    keep_debian_from_starting_a_cluster();
    install_with_apt()?;
    find()
        .ok_or_else(|| "apt-get installed postgresql, but its programs were not found afterwards".to_owned())
}

/// The newest directory that holds all programs.
pub(super) fn find() -> Option<PathBuf> {
    let in_path = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let candidates = in_path.unwrap_or_default().into_iter().chain(versioned_directories());
    newest(candidates.filter_map(|directory| installation(&directory)))
}

/// The version and the real directory of an installation; a directory of
/// links to it is as good as the directory itself.
fn installation(directory: &Path) -> Option<(Vec<u32>, PathBuf)> {
    let real = fs::canonicalize(directory.join("postgres")).ok()?.parent()?.to_path_buf();
    if !PROGRAMS.iter().all(|program| real.join(program).is_file()) {
        return None;
    }
    let output = Command::new(real.join("postgres")).arg("--version").output().ok()?;
    Some((version(&String::from_utf8_lossy(&output.stdout))?, real))
}

fn versioned_directories() -> Vec<PathBuf> {
    let roots = VERSIONED.iter().filter_map(|root| fs::read_dir(root).ok());
    roots.flat_map(|entries| entries.flatten()).map(|entry| entry.path().join("bin")).collect()
}

fn newest(installations: impl Iterator<Item = (Vec<u32>, PathBuf)>) -> Option<PathBuf> {
    installations.max().map(|(_, directory)| directory)
}

/// `[15, 18]` of "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)".
fn version(line: &str) -> Option<Vec<u32>> {
    let word = line.split_whitespace().nth(2)?;
    let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
    digits.split('.').map(|part| part.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok()).collect()
}

fn keep_debian_from_starting_a_cluster() {
    let path = Path::new(DEBIAN_CLUSTER_CONFIG);
    if path.exists() {
        return;
    }
    let written = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = written.and_then(|()| fs::write(path, "create_main_cluster = false\n"));
    if let Err(error) = written {
        eprintln!("could not write {DEBIAN_CLUSTER_CONFIG} ({error}); a system cluster may be started");
    }
}

fn install_with_apt() -> Result<(), String> {
    if apt(&["install", "-y", "postgresql"])? {
        return Ok(());
    }
    // A fresh container has no package lists yet.
    if apt(&["update"])? && apt(&["install", "-y", "postgresql"])? {
        return Ok(());
    }
    Err("apt-get install -y postgresql failed (its output is above)".to_owned())
}

fn apt(arguments: &[&str]) -> Result<bool, String> {
    let status = Command::new("apt-get")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["-q", "-o", "Dpkg::Options::=--force-confold"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status();
    status.map(|status| status.success()).map_err(|error| format!("apt-get could not be run: {error}"))
}

/// Whether this process runs as root, which PostgreSQL refuses to.
pub(super) fn is_root() -> bool {
    user_id(&[]) == Some(0)
}

/// The user that runs the server when we are root: its name and numbers.
pub(super) fn server_user() -> Result<(&'static str, u32, u32), String> {
    for name in ["postgres", "nobody"] {
        let group =
            Command::new("id").args(["-g", name]).output().ok().and_then(|output| number(&output.stdout));
        if let (Some(user), Some(group)) = (user_id(&[name]), group) {
            return Ok((name, user, group));
        }
    }
    Err("PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody` to run it as"
        .to_owned())
}

fn user_id(of: &[&str]) -> Option<u32> {
    let output = Command::new("id").arg("-u").args(of).output().ok()?;
    number(&output.stdout)
}

fn number(output: &[u8]) -> Option<u32> {
    std::str::from_utf8(output).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_wins_whatever_its_directory_is_called() {
        let found = [
            (vec![9, 6, 24], PathBuf::from("/z")),
            (vec![15, 18], PathBuf::from("/a")),
            (vec![15, 4], PathBuf::from("/b")),
        ];
        assert_eq!(newest(found.into_iter()), Some(PathBuf::from("/a")));
    }

    #[test]
    fn a_version_line_is_read_in_every_known_form() {
        for (line, expected) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some(vec![15, 18])),
            ("postgres (PostgreSQL) 18.1\n", Some(vec![18, 1])),
            ("postgres (PostgreSQL) 19devel\n", Some(vec![19])),
            ("something else", None),
        ] {
            assert_eq!(version(line), expected, "{line}");
        }
    }

    #[test]
    fn a_directory_that_lacks_a_program_is_no_installation() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("postgres"), "").unwrap();
        assert_eq!(installation(directory.path()), None);
    }
}
