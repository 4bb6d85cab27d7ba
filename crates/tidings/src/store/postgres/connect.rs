//! How a connection is made: address, TLS, time limits.
//!
//! TLS goes by the URL's `sslmode`. With `require` the server's certificate is
//! verified against the public roots; `prefer`, the default, uses TLS only where
//! the server is not on this machine, since a local server's own certificate
//! names nobody.

use crate::store::StoreError;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

const PORT_DEFAULT: u16 = 5432;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A half-open connection is noticed within about this time.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes connections to one database.
#[derive(Clone)]
pub(super) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    pub(super) fn new(url: &str) -> Result<Connector, StoreError> {
        // The driver's message may repeat a part of the URL, and with it a password.
        let mut config: Config = url.parse().map_err(|_| {
            StoreError::BadAddress(
                "the PostgreSQL address is not understood: write postgres://USER:PASSWORD@HOST:PORT/NAME"
                    .into(),
            )
        })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.keepalives_idle(KEEPALIVE_IDLE);
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
        if config.get_application_name().is_none() {
            config.application_name("tidings");
        }
        let wants_tls = match config.get_ssl_mode() {
            SslMode::Disable => false,
            SslMode::Prefer => !config.get_hosts().iter().all(is_local),
            _ => true,
        };
        let tls = wants_tls.then(tls_connector).transpose()?;
        if tls.is_none() {
            config.ssl_mode(SslMode::Disable);
        }
        Ok(Connector { config, tls })
    }

    pub(super) fn pool(&self, size: usize, wait: Duration) -> Result<Pool, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let config = self.config.clone();
        let manager = match &self.tls {
            Some(tls) => Manager::from_config(config, tls.clone(), recycling),
            None => Manager::from_config(config, NoTls, recycling),
        };
        Pool::builder(manager)
            .max_size(size)
            .wait_timeout(Some(wait))
            .create_timeout(Some(wait))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::BadAddress(format!("the connection pool cannot be made: {error}")))
    }

    /// Where it connects to, for messages: hosts, ports and the database's name.
    pub(super) fn place(&self) -> String {
        let ports = self.config.get_ports();
        let host = |(index, host): (usize, &Host)| {
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(PORT_DEFAULT);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(folder) => format!("{}:{port}", folder.display()),
            }
        };
        let hosts: Vec<String> = self.config.get_hosts().iter().enumerate().map(host).collect();
        let name = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        format!("{}/{name}", hosts.join(","))
    }

    /// The settings, for a connection outside the pool.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn tls(&self) -> Option<&MakeRustlsConnect> {
        self.tls.as_ref()
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn tls_connector() -> Result<MakeRustlsConnect, StoreError> {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // The provider is passed explicitly: a library installs no process default.
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::BadAddress(format!("TLS cannot be set up: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
