//! The HTTP/1.1 side of both servers, the API and the local receiver: accepts
//! connections, bounds them, and stops in good order.
//!
//! Absent on purpose: TLS and HTTP/2. A proxy in front does both.

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections that are served at once; the next ones wait in the listener's backlog.
const CONNECTIONS_MAX: usize = 1_024;
/// How long a request's head may take, and how long a connection may stand idle.
const HEAD_READ_MAX: Duration = Duration::from_secs(30);
/// Largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long requests in flight get to end when the server stops.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// Pause of accepting when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Serves connections until `stop` is ready; then lets requests in flight end.
/// `service_of` is asked for the service of each connection.
pub(crate) async fn serve<S, B>(
    listener: TcpListener,
    service_of: impl Fn(&TcpStream, SocketAddr) -> S,
    stop: impl Future<Output = ()>,
) where
    S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        let accept = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accept => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let service = service_of(&stream, peer);
                let connection = graceful.watch(builder().serve_connection(TokioIo::new(stream), service));
                tokio::spawn(async move {
                    // A client that broke off: its request, if it came whole, was answered or logged.
                    let _ended = connection.await;
                    drop(place);
                });
            }
            Err(problem) => {
                tracing::warn!(%problem, "a connection could not be accepted");
                if tokio::time::timeout(ACCEPT_PAUSE, &mut stop).await.is_ok() {
                    break;
                }
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_MAX, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time; their connections are closed");
    }
}

fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_READ_MAX).max_header_size(HEAD_BYTES_MAX);
    builder
}
