//! From a checked URL to a connection that a request may go over.
//!
//! Resolve, have every answer checked, connect to a checked address and nowhere
//! else, and speak TLS where the URL says so. Nothing of the request is sent here,
//! so whatever fails here had no effect on the receiver.

use super::limits::Clock;
use super::{Inner, Trail, tls};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use tidings_core::classify::Ending;
use tidings_core::evidence::Phase;
use tidings_core::guard::{self, Target};
use tidings_core::text;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Most addresses of one name that are tried.
const ADDRESSES_TRIED_MAX: usize = 8;

/// A connection, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// The TCP connection underneath.
    fn tcp(&self) -> &TcpStream;
}

impl Stream for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Stream for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Opens a connection to the target, or says why there is none.
pub(super) async fn open(
    sink: &Inner,
    target: &Target,
    clock: &Clock,
    trail: &Trail,
) -> Result<Box<dyn Stream>, Ending> {
    let addresses = checked_addresses(sink, target, clock, trail).await?;
    let tcp = connect(&addresses, clock, trail).await?;
    if target.is_https() {
        return Ok(Box::new(handshake(sink, target, tcp, clock, trail).await?));
    }
    Ok(Box::new(tcp))
}

async fn checked_addresses(
    sink: &Inner,
    target: &Target,
    clock: &Clock,
    trail: &Trail,
) -> Result<Vec<SocketAddr>, Ending> {
    let port = target.port();
    let addresses = match target.host() {
        url::Host::Ipv4(ip) => vec![SocketAddr::from((ip, port))],
        url::Host::Ipv6(ip) => vec![SocketAddr::from((ip, port))],
        url::Host::Domain(name) => {
            trail.enter(Phase::Dns);
            resolve(sink, name, port, clock).await?
        }
    };
    guard::check_addresses(&addresses, &sink.guard)
        .map_err(|blocked| Ending::Blocked(text::reason(&blocked.to_string())))?;
    Ok(addresses)
}

async fn resolve(sink: &Inner, name: &str, port: u16, clock: &Clock) -> Result<Vec<SocketAddr>, Ending> {
    let limit_ms = sink.limits.dns_ms;
    let failed = |what: String| Ending::DnsFailed(text::reason(&what));
    let answer = timeout_at(clock.deadline_from_now(limit_ms), sink.resolver.resolve(name, port)).await;
    let mut addresses = answer
        .map_err(|_| failed(format!("no answer for {name} in time (limit {limit_ms} ms)")))?
        .map_err(|error| failed(format!("{name}: {error}; check its DNS records")))?;
    if addresses.is_empty() {
        return Err(failed(format!("{name} has no address; check its DNS records")));
    }
    // A resolver names hosts, not ports.
    addresses.iter_mut().for_each(|address| address.set_port(port));
    Ok(addresses)
}

/// Tries one checked address after the other. No byte of a request is sent by this.
async fn connect(addresses: &[SocketAddr], clock: &Clock, trail: &Trail) -> Result<TcpStream, Ending> {
    trail.enter(Phase::Connect);
    let all_until = clock.deadline_from_now(clock.limits.connect_all_ms);
    let mut failures = Vec::new();
    for address in addresses.iter().take(ADDRESSES_TRIED_MAX) {
        let until = all_until.min(clock.deadline_from_now(clock.limits.connect_ms));
        match timeout_at(until, TcpStream::connect(address)).await {
            Ok(Ok(tcp)) => {
                prepare(&tcp, addresses, trail)?;
                return Ok(tcp);
            }
            Ok(Err(error)) => failures.push(format!("{address}: {error}")),
            Err(_) => failures.push(format!("{address}: no answer in time")),
        }
    }
    Err(Ending::ConnectFailed(text::reason(&failures.join("; "))))
}

fn prepare(tcp: &TcpStream, checked: &[SocketAddr], trail: &Trail) -> Result<(), Ending> {
    let lost = |error: std::io::Error| Ending::ConnectFailed(format!("lost at once: {error}"));
    let peer = tcp.peer_addr().map_err(lost)?;
    let is_checked = |address: &SocketAddr| address.ip() == peer.ip() && address.port() == peer.port();
    if !checked.iter().any(is_checked) {
        let reason =
            format!("connected to {peer}, which is not an address that was checked; nothing was sent");
        return Err(Ending::Blocked(reason));
    }
    trail.connected_to(peer);
    // The request is written in few large pieces; waiting for more gains nothing.
    tcp.set_nodelay(true).map_err(lost)
}

async fn handshake(
    sink: &Inner,
    target: &Target,
    tcp: TcpStream,
    clock: &Clock,
    trail: &Trail,
) -> Result<TlsStream<TcpStream>, Ending> {
    trail.enter(Phase::Tls);
    let limit_ms = clock.limits.tls_ms;
    let name = server_name(target)?;
    let connecting = TlsConnector::from(sink.tls.clone()).connect(name, tcp);
    match timeout_at(clock.deadline_from_now(limit_ms), connecting).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(Ending::TlsFailed(text::reason(&tls::explain(&error)))),
        Err(_) => Err(Ending::TlsFailed(format!("it took too long (limit {limit_ms} ms)"))),
    }
}

fn server_name(target: &Target) -> Result<ServerName<'static>, Ending> {
    let name = match target.host() {
        url::Host::Domain(name) => ServerName::try_from(name.to_owned()),
        url::Host::Ipv4(ip) => Ok(ServerName::from(std::net::IpAddr::from(ip))),
        url::Host::Ipv6(ip) => Ok(ServerName::from(std::net::IpAddr::from(ip))),
    };
    name.map_err(|_| {
        Ending::TlsFailed("the host's name cannot be in a certificate; check the URL".to_owned())
    })
}
