//! Turning a name into addresses.

use std::io;
use std::net::SocketAddr;

/// Resolves names. The sink sets its own time limit around it, asks it once per
/// attempt, never for an IP literal, and has the guard check every answer.
#[async_trait::async_trait]
pub trait Resolve: Send + Sync {
    /// Addresses of `host` (ASCII, no trailing dot), with `port`.
    ///
    /// # Errors
    /// Whatever kept the name from being resolved, worded for an operator.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The system's resolver (`getaddrinfo`). It cannot be cancelled: after the
/// sink's time limit a look-up goes on in a thread of its own and is ignored.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait::async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}
