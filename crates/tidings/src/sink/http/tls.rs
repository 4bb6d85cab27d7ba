//! TLS as the sink speaks it, and its failures in words that say what to do.
//!
//! The provider is passed explicitly: a library installs no process default.
//! Absent on purpose: early data (it can be replayed) and any way to skip the
//! verification of a certificate.

use super::HttpSinkError;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use std::io;
use std::sync::Arc;

/// Trusts the public authorities and the given ones.
pub(super) fn client_config(
    extra_roots: Vec<CertificateDer<'static>>,
) -> Result<Arc<ClientConfig>, HttpSinkError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for (index, root) in extra_roots.into_iter().enumerate() {
        let bad = |error: Error| HttpSinkError::BadRoot { number: index + 1, problem: error.to_string() };
        roots.add(root).map_err(bad)?;
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.enable_early_data = false;
    Ok(Arc::new(config))
}

/// Why a handshake failed, for an operator.
pub(super) fn explain(error: &io::Error) -> String {
    match error.get_ref().and_then(|source| source.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(problem)) => explain_certificate(problem),
        Some(Error::AlertReceived(alert)) => {
            format!("the receiver refused it (alert {alert:?}); check its TLS configuration")
        }
        Some(Error::InvalidMessage(_)) => {
            "the receiver does not speak TLS on this port; check the URL's scheme and port".to_owned()
        }
        Some(Error::PeerIncompatible(problem)) => {
            format!("no common TLS version or cipher ({problem:?}); the receiver needs TLS 1.2 or 1.3")
        }
        Some(other) => other.to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the receiver closed the connection".to_owned()
        }
        None => error.to_string(),
    }
}

fn explain_certificate(problem: &CertificateError) -> String {
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the receiver's certificate has expired; it must be renewed there".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the receiver's certificate is not valid yet; check the clocks of both sides".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the receiver's certificate is for another name; check the URL's host or the certificate"
                .to_owned()
        }
        CertificateError::UnknownIssuer => {
            "the receiver's certificate is signed by nobody that is trusted; it needs \
             a public one with its whole chain, or its authority must be added to the configuration"
                .to_owned()
        }
        other => format!("the receiver's certificate is not acceptable: {other}"),
    }
}
