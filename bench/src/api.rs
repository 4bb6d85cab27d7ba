//! How many events a second the server takes over HTTP: the built binary, a loopback
//! connection for each caller, each answer after its commit.

use crate::rate;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const CALLERS: usize = 64;
const KEY: &str = "tdk_of-a-measurement-that-nobody-else-can-reach-000";
const CONFIG: &str = "[[event_types]]\nname = \"bench.noted\"\n";

/// The server, stopped when it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

pub(crate) async fn events(database: &str, events: usize) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("tidings.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let server = start(database, &config).await;
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let callers: Vec<_> =
        (0..CALLERS).map(|_| tokio::spawn(call(server.address.clone(), Arc::clone(&next), events))).collect();
    for caller in callers {
        caller.await.unwrap();
    }
    println!(
        "  record over the API, {CALLERS} callers: {} ({events} events)",
        rate(events, started.elapsed())
    );
}

async fn start(database: &str, config: &std::path::Path) -> Server {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let child = Command::new(binary())
        .args(["serve", "--listen", &address, "--database", database, "--config"])
        .arg(config)
        .env("TIDINGS_ADMIN_KEY", KEY)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server { child, address };
    while TcpStream::connect(&server.address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server
}

/// Beside this program: `cargo xtask bench` builds both.
fn binary() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("tidings")
}

async fn call(address: String, next: Arc<AtomicUsize>, events: usize) {
    let mut stream = BufReader::new(TcpStream::connect(&address).await.unwrap());
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= events {
            return;
        }
        let body = format!(r#"{{"type":"bench.noted","subject":"n/{number}","data":{{"n":{number}}}}}"#);
        let request = format!(
            "POST /v1/events HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.get_mut().write_all(request.as_bytes()).await.unwrap();
        answered(&mut stream).await;
    }
}

/// Reads one answer, which must be a 202.
async fn answered(stream: &mut BufReader<TcpStream>) {
    let (mut line, mut length, mut first) = (String::new(), 0, true);
    loop {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        assert!(!first || line.contains(" 202 "), "{line}");
        first = false;
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
}
