//! The receiver's TLS side: certificates made for tests, and a stream that is
//! plain or encrypted.
//!
//! `tls/make.sh` makes the certificates anew. They are valid for
//! `hooks.example.com`, `localhost` and 127.0.0.1, and signed by an authority
//! that nothing trusts unless a test says so.

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

const AUTHORITY: &[u8] = include_bytes!("../../tls/authority.der");
const VALID: &[u8] = include_bytes!("../../tls/receiver.der");
const EXPIRED: &[u8] = include_bytes!("../../tls/expired.der");
const KEY: &[u8] = include_bytes!("../../tls/receiver.key.der");

/// How a receiver behaves in the TLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Shows a valid certificate of [`authority`].
    Valid,
    /// Shows a certificate that expired in 2024.
    Expired,
    /// Shows a valid certificate and demands one of the client. Under TLS 1.3 a
    /// client without one learns of it only after its own handshake is done.
    DemandsClientCertificate,
}

/// The authority that signed the receiver's certificates, in DER.
pub fn authority() -> CertificateDer<'static> {
    CertificateDer::from_slice(AUTHORITY)
}

pub(super) fn acceptor(tls: Tls) -> TlsAcceptor {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions");
    let builder = match tls {
        Tls::DemandsClientCertificate => {
            let mut roots = RootCertStore::empty();
            roots.add(authority()).expect("the test authority is a well-formed certificate");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .expect("one root is enough for a verifier");
            builder.with_client_cert_verifier(verifier)
        }
        Tls::Valid | Tls::Expired => builder.with_no_client_auth(),
    };
    let certificate = if tls == Tls::Expired { EXPIRED } else { VALID };
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let config = builder
        .with_single_cert(vec![CertificateDer::from_slice(certificate)], key)
        .expect("the test key belongs to the test certificate");
    TlsAcceptor::from(Arc::new(config))
}

/// A connection, encrypted or not.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// The TCP connection underneath.
    pub(super) fn tcp(&self) -> &TcpStream {
        match self {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => tls.get_ref().0,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Stream::Tls(tls) => Pin::new(tls).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Stream::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }
}
