//! The cluster that all test processes of one checkout share.
//!
//! The first process that needs it starts it and writes where it is into a file
//! under the target directory; later ones find it there. A file lock keeps two
//! from starting one at once. It keeps running between test runs, which makes
//! them quick, until [`stop_shared`].

use super::SERVER_VARIABLE;
use super::cluster::{Cluster, Durability, Files};
use std::env;
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Superuser URL of the server that tests share.
pub(super) fn server_url() -> Result<String, String> {
    static FOUND: OnceLock<Result<String, String>> = OnceLock::new();
    if let Ok(url) = env::var(SERVER_VARIABLE) {
        return Ok(url);
    }
    FOUND.get_or_init(|| Home::of_this_checkout().find_or_start()).clone()
}

/// Stops the shared cluster of this checkout and removes its data. Returns
/// whether there was one.
///
/// # Errors
/// If the lock or the state file cannot be used.
pub fn stop_shared() -> Result<bool, String> {
    Home::of_this_checkout().stop()
}

/// The directory that holds the lock and the state file.
struct Home(PathBuf);

/// What the state file says of a running cluster.
struct State {
    url: String,
    files: Files,
}

impl Home {
    fn of_this_checkout() -> Home {
        Home(target_directory().join("testkit"))
    }

    fn find_or_start(&self) -> Result<String, String> {
        let _lock = self.lock()?;
        if let Some(state) = self.read() {
            if state.answers() {
                return Ok(state.url);
            }
            // It died with its machine or was killed: what is left is of no use.
            state.files.remove();
        }
        let cluster = Cluster::create(Durability::Fast)?;
        let url = cluster.url("postgres");
        self.write(&State { url: url.clone(), files: cluster.leave_running() })?;
        Ok(url)
    }

    fn stop(&self) -> Result<bool, String> {
        let _lock = self.lock()?;
        let Some(state) = self.read() else { return Ok(false) };
        state.files.remove();
        fs::remove_file(self.state_path()).map_err(|error| self.problem("removed", &error))?;
        Ok(true)
    }

    /// Held until the file is closed, by this process's end at the latest.
    fn lock(&self) -> Result<File, String> {
        let opened = fs::create_dir_all(&self.0).and_then(|()| File::create(self.0.join("postgres.lock")));
        let file = opened.map_err(|error| self.problem("opened", &error))?;
        file.lock().map_err(|error| self.problem("locked", &error))?;
        Ok(file)
    }

    fn read(&self) -> Option<State> {
        let text = fs::read_to_string(self.state_path()).ok()?;
        let mut lines = text.lines();
        let url = lines.next()?.to_owned();
        let files = Files { programs: lines.next()?.into(), home: lines.next()?.into() };
        Some(State { url, files })
    }

    fn write(&self, state: &State) -> Result<(), String> {
        let (programs, home) = (state.files.programs.display(), state.files.home.display());
        let text = format!("{}\n{programs}\n{home}\n", state.url);
        fs::write(self.state_path(), text).map_err(|error| self.problem("written", &error))
    }

    fn state_path(&self) -> PathBuf {
        self.0.join("postgres.state")
    }

    fn problem(&self, what: &str, error: &std::io::Error) -> String {
        format!("the state of the shared test cluster in {} could not be {what}: {error}", self.0.display())
    }
}

impl State {
    /// A process number may be somebody else's by now, so the port is asked too.
    fn answers(&self) -> bool {
        let address = self.url.split('@').nth(1).and_then(|rest| rest.split('/').next());
        self.files.is_running() && address.is_some_and(|address| TcpStream::connect(address).is_ok())
    }
}

/// Cargo's target directory: told by the environment, or the one that this
/// program was built into, or the one beside the workspace's manifest.
fn target_directory() -> PathBuf {
    if let Some(directory) = env::var_os("CARGO_TARGET_DIR") {
        return PathBuf::from(directory);
    }
    let program = env::current_exe().unwrap_or_default();
    let built_into = program.ancestors().find(|directory| directory.join("CACHEDIR.TAG").is_file());
    let beside_manifest = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    built_into.map_or_else(beside_manifest, Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_started_once_found_again_and_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let home = || Home(directory.path().join("testkit"));
        let urls: Vec<String> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..3).map(|_| scope.spawn(|| home().find_or_start().unwrap())).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert!(urls.iter().all(|url| *url == urls[0]), "{urls:?}");

        let files = home().read().unwrap().files;
        assert!(files.is_running());
        assert_eq!(home().stop(), Ok(true));
        assert!(!files.home.exists());
        assert_eq!(home().stop(), Ok(false));
    }

    #[test]
    fn a_cluster_that_died_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home(directory.path().join("testkit"));
        home.find_or_start().unwrap();
        let died = home.read().unwrap().files;
        died.pg_ctl(&["stop", "-m", "immediate"]).unwrap();

        home.find_or_start().unwrap();
        let running = home.read().unwrap().files;
        assert!(running.is_running() && running.home != died.home);
        assert!(!died.home.exists());
        home.stop().unwrap();
    }
}
