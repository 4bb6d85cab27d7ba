//! One PostgreSQL server with a data directory of its own.

use super::install::{ensure_installed, is_root, server_user};
use super::{connect, settings};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Superuser of every test cluster.
const SUPERUSER: &str = "postgres";

/// How often a start is tried when another program took the free port.
const START_TRIES: usize = 5;

/// How long `pg_ctl` waits for a server to start or stop, in seconds.
const PG_CTL_WAIT_SECONDS: &str = "60";

/// How long a changed setting may take to be seen by new connections.
const RELOAD_LIMIT: Duration = Duration::from_secs(10);

/// What a commit is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Commits do not wait for the disk: for tests.
    Fast,
    /// Commits are on disk before they are answered: for benchmarks.
    Durable,
}

/// A server of the caller's own on 127.0.0.1. Dropping it stops it and removes its data.
#[derive(Debug)]
pub struct Cluster {
    files: Files,
    port: u16,
    /// Whether Drop takes it down; the shared one outlives its process.
    owned: bool,
}

/// Where a cluster lives and how its programs are run.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) programs: PathBuf,
    /// Holds the data directory and the log; removed with the cluster.
    pub(super) home: PathBuf,
}

impl Cluster {
    /// Makes and starts a cluster. Blocks for a second or two.
    ///
    /// # Panics
    /// With what to do, if PostgreSQL is missing or does not start.
    pub fn start(durability: Durability) -> Cluster {
        Cluster::create(durability).unwrap_or_else(|problem| panic!("no PostgreSQL to test with: {problem}"))
    }

    pub(super) fn create(durability: Durability) -> Result<Cluster, String> {
        let files = Files::create(ensure_installed()?)?;
        // Owned from here on: whatever fails below, the directory goes.
        let mut cluster = Cluster { files, port: 0, owned: true };
        cluster.files.init()?;
        for _ in 0..START_TRIES {
            cluster.port = free_port()?;
            cluster.files.append_settings(&settings::lines(cluster.port, durability))?;
            if cluster.files.pg_ctl(&["start"]).is_ok() {
                return Ok(cluster);
            }
        }
        Err(format!("the server did not start; the end of its log: {}", cluster.files.log_tail()))
    }

    /// `postgres://…` of a database on it (`postgres` always exists), as a superuser.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Stops it as an administrator would, and starts it again on the same port.
    ///
    /// # Panics
    /// If it does not come back.
    pub fn restart(&self) {
        self.must(&["restart", "-m", "fast"]);
    }

    /// Starts it again on the same port after a stop.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&self) {
        self.must(&["start"]);
    }

    /// Stops it: open transactions are rolled back, clients are told.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn stop_fast(&self) {
        self.must(&["stop", "-m", "fast"]);
    }

    /// Stops it as a crash would: no checkpoint, recovery at the next start.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn stop_immediate(&self) {
        self.must(&["stop", "-m", "immediate"]);
    }

    /// A copy of it that follows it, and takes no writes until it is promoted. A commit on
    /// the primary is answered when the copy has it as well: a failover loses nothing that
    /// was acknowledged. Blocks for a second or two.
    ///
    /// # Panics
    /// If it cannot be made or started.
    pub async fn standby(&self) -> Cluster {
        let (programs, port) = (self.files.programs.clone(), self.port);
        let made = tokio::task::spawn_blocking(move || Cluster::copy_of(programs, port)).await;
        let standby = made.expect("a copy is made or refused").unwrap_or_else(|problem| panic!("{problem}"));
        self.set("synchronous_standby_names", "*").await;
        self.set("synchronous_commit", "on").await;
        standby
    }

    fn copy_of(programs: PathBuf, primary: u16) -> Result<Cluster, String> {
        let mut cluster = Cluster { files: Files::create(programs)?, port: 0, owned: true };
        let mut command = cluster.files.command("pg_basebackup")?;
        command.args(["-h", "127.0.0.1", "-U", SUPERUSER, "-p", &primary.to_string()]);
        command.args([
            "--write-recovery-conf",
            "--wal-method=stream",
            "--checkpoint=fast",
            "--no-sync",
            "-D",
        ]);
        run(command.arg(cluster.files.data()))?;
        for _ in 0..START_TRIES {
            cluster.port = free_port()?;
            // The last line of a setting counts.
            cluster.files.append_settings(&format!("\nport = {}\n", cluster.port))?;
            if cluster.files.pg_ctl(&["start"]).is_ok() {
                return Ok(cluster);
            }
        }
        Err(format!("the standby did not start; the end of its log: {}", cluster.files.log_tail()))
    }

    /// Makes a primary of a standby: it takes writes when this returns, and waits for no copy.
    ///
    /// # Panics
    /// If it refuses.
    pub async fn promote(&self) {
        self.must(&["promote"]);
        // Copied from the primary it followed, or there would be nobody to answer its commits.
        self.reset("synchronous_standby_names").await;
    }

    /// Where it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        std::net::SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Changes a setting for all new transactions (ALTER SYSTEM, then a reload),
    /// and returns when new connections see it.
    ///
    /// # Panics
    /// If the server refuses it.
    pub async fn set(&self, name: &str, value: &str) {
        self.alter_system(&format!("alter system set {name} = '{}'", value.replace('\'', "''"))).await;
    }

    /// Takes back what [`Cluster::set`] changed.
    ///
    /// # Panics
    /// If the server refuses it.
    pub async fn reset(&self, name: &str) {
        self.alter_system(&format!("alter system reset {name}")).await;
    }

    async fn alter_system(&self, statement: &str) {
        let changed = self.try_alter_system(statement).await;
        changed.unwrap_or_else(|problem| panic!("{statement}: {problem}"));
    }

    async fn try_alter_system(&self, statement: &str) -> Result<(), String> {
        let url = self.url("postgres");
        let before = config_loaded_at(&url).await?;
        super::execute(&url, statement).await?;
        super::execute(&url, "select pg_reload_conf()").await?;
        let give_up = Instant::now() + RELOAD_LIMIT;
        while config_loaded_at(&url).await? == before {
            if Instant::now() > give_up {
                return Err(format!("the server did not reload its configuration within {RELOAD_LIMIT:?}"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Gives the cluster away: it runs on when this handle is dropped.
    pub(super) fn leave_running(mut self) -> Files {
        self.owned = false;
        self.files.clone()
    }

    fn must(&self, arguments: &[&str]) {
        self.files.pg_ctl(arguments).unwrap_or_else(|problem| panic!("{problem}"));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.owned {
            self.files.remove();
        }
    }
}

impl Files {
    fn create(programs: PathBuf) -> Result<Files, String> {
        let directory = tempfile::Builder::new().prefix("tidings-postgres-").tempdir();
        let home = directory.map_err(|error| format!("no temporary directory: {error}"))?.keep();
        if is_root() {
            let (_, user, group) = server_user()?;
            std::os::unix::fs::chown(&home, Some(user), Some(group))
                .map_err(|error| format!("{} could not be given away: {error}", home.display()))?;
        }
        Ok(Files { programs, home })
    }

    pub(super) fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    fn init(&self) -> Result<(), String> {
        let data = self.data();
        let mut command = self.command("initdb")?;
        command.args([
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--username",
            SUPERUSER,
            "-D",
        ]);
        run(command.arg(data))
    }

    fn append_settings(&self, lines: &str) -> Result<(), String> {
        use std::io::Write;
        let path = self.data().join("postgresql.conf");
        let file = fs::OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(lines.as_bytes()))
            .map_err(|error| format!("{} could not be written: {error}", path.display()))
    }

    /// Runs `pg_ctl` on this cluster and waits for what it does.
    pub(super) fn pg_ctl(&self, arguments: &[&str]) -> Result<(), String> {
        let mut command = self.command("pg_ctl")?;
        command.arg("-D").arg(self.data()).arg("-l").arg(self.home.join("log"));
        run(command.args(["-w", "-t", PG_CTL_WAIT_SECONDS]).args(arguments))
    }

    /// Whether its postmaster is alive.
    pub(super) fn is_running(&self) -> bool {
        self.pg_ctl(&["status"]).is_ok()
    }

    /// Stops the server, if it runs, and removes every file of it.
    pub(super) fn remove(&self) {
        if self.data().join("postmaster.pid").exists() {
            let _ = self.pg_ctl(&["stop", "-m", "immediate"]);
        }
        if let Err(error) = fs::remove_dir_all(&self.home) {
            eprintln!("could not remove the test cluster in {}: {error}", self.home.display());
        }
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.home.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(10).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// A program of the installation, to be run as a user that PostgreSQL accepts.
    fn command(&self, program: &str) -> Result<Command, String> {
        let path = self.programs.join(program);
        let mut command = if is_root() {
            let (user, _, _) = server_user()?;
            as_user(user, &path)?
        } else {
            Command::new(path)
        };
        // The home of the cluster is a directory that its user may be in.
        command.current_dir(&self.home);
        Ok(command)
    }
}

fn as_user(user: &str, program: &Path) -> Result<Command, String> {
    if Path::new("/usr/sbin/runuser").exists() || Path::new("/sbin/runuser").exists() {
        let mut command = Command::new("runuser");
        command.args(["-u", user, "--"]).arg(program);
        return Ok(command);
    }
    let (_, id, group) = server_user()?;
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={id}")).arg(format!("--regid={group}"));
    command.arg("--clear-groups").arg("--").arg(program);
    Ok(command)
}

/// Output goes to files: a server that inherits the pipes of a test run would
/// keep them open after it.
fn run(command: &mut Command) -> Result<(), String> {
    let output = tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))?;
    let clone = || output.try_clone().map_err(|error| format!("no second handle of a file: {error}"));
    let status = command.stdin(Stdio::null()).stdout(clone()?).stderr(clone()?).status();
    let status = status.map_err(|error| format!("{command:?} could not be run: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed ({status}): {}", said(output)))
}

fn said(mut output: fs::File) -> String {
    use std::io::{Read, Seek};
    let mut text = String::new();
    let read = output.rewind().and_then(|()| output.read_to_string(&mut text));
    read.map(|_| text.trim().to_owned()).unwrap_or_default()
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

async fn config_loaded_at(url: &str) -> Result<String, String> {
    let client = connect(url).await?;
    let row = client.query_one("select pg_conf_load_time()::text", &[]).await;
    row.map(|row| row.get(0)).map_err(|error| super::readable(&error))
}
