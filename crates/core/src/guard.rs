//! Where Tidings may connect to. Whoever names a URL makes this host open a
//! connection, and this host can reach what they cannot: loopback, the private
//! network, the cloud's metadata service. The guard says no before a socket is
//! opened.
//!
//! Two checks, both needed. [`Target::parse`] checks the URL's form, its port,
//! and the host where it is an address or a name that never is public.
//! [`check_addresses`] checks what the name resolved to, all of it, right
//! before each connection: a name can change its mind between two look-ups.
//! The connection then goes to one of the checked addresses and nowhere else.
//!
//! An operator's exceptions ([`AllowEntry`]) are exact: an entry opens its own
//! addresses and nothing else. A name with one allowed and one forbidden
//! address is refused.
//!
//! Absent on purpose: looking names up and connecting (the shell does it), and
//! a switch that turns the form checks off. An unknown address is a refused one.

mod address;
mod allow;
mod target;

pub use allow::{AllowEntry, BadAllowEntry};
pub use target::Target;

use std::net::{IpAddr, SocketAddr};

/// Port of https: always open.
const HTTPS_PORT: u16 = 443;
/// Port of plain http: open where plain http is.
const HTTP_PORT: u16 = 80;

/// What the operator allows beyond the public Internet on the usual ports.
#[derive(Clone, Debug, Default)]
pub struct GuardRules {
    /// Loopback, private and other special addresses, single-label and
    /// special-use names, any port and plain http are allowed. For trying things
    /// out: it makes everything reachable that this host can reach.
    pub allow_private: bool,
    /// Exact exceptions: an address or network, optionally with one port. An
    /// entry opens itself and nothing else.
    ///
    /// With a port it opens that port at those addresses, also for plain http
    /// when the URL names the address itself. Without one it opens the addresses
    /// on the ports that are open anyway. It opens no name: one that never is
    /// public (`localhost`) stays refused.
    pub allow: Vec<AllowEntry>,
    /// Ports allowed besides 443 (an allow entry with that port also opens it).
    pub extra_ports: Vec<u16>,
    /// Allow plain http to allowed targets, and with it port 80.
    pub allow_http: bool,
}

impl GuardRules {
    /// Whether the port is open at every allowed address.
    fn opens_port(&self, port: u16) -> bool {
        port == HTTPS_PORT || (port == HTTP_PORT && self.allow_http) || self.extra_ports.contains(&port)
    }

    /// Whether some entry names exactly this address and port.
    fn opens_exactly(&self, ip: IpAddr, port: u16) -> bool {
        self.allow.iter().any(|entry| entry.port == Some(port) && entry.contains(ip))
    }

    /// Whether some entry opens this address on the ports that are open anyway.
    fn opens_address(&self, ip: IpAddr) -> bool {
        self.allow.iter().any(|entry| entry.port.is_none() && entry.contains(ip))
    }
}

/// Why a target is refused. What it says is safe to show: never userinfo, path
/// or query of the URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    /// Longer than a URL may be, as given or as it would be sent.
    #[error("the URL has {bytes} bytes: shorten it to at most {max}", max = crate::limits::URL_BYTES_MAX)]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A character that parsers of URLs drop or read in different ways.
    #[error("the URL contains {what}, which parsers read differently: percent-encode or remove it")]
    Character {
        /// Which sort of character.
        what: &'static str,
    },
    /// No scheme, or no `//` and host after it.
    #[error("this is not an absolute URL: write it as https://host/path")]
    NotAbsolute,
    /// Neither https nor http.
    #[error("the scheme `{scheme}` cannot be delivered to: use https")]
    Scheme {
        /// The scheme, in lower case.
        scheme: String,
    },
    /// Plain http where it is not allowed.
    #[error("{origin} is plain http, open to all on the way: use https, or allow http in the configuration")]
    PlainHttp {
        /// Scheme, host and port.
        origin: String,
    },
    /// The parser does not take it.
    #[error("the URL cannot be read ({0}): write it as https://host/path")]
    Malformed(url::ParseError),
    /// A user name or password in the URL.
    #[error(
        "the URL has a user name or password before the host: remove it and send credentials as a header"
    )]
    UserInfo,
    /// A `#` part, which is never sent.
    #[error("the URL has a fragment, which is never sent: remove the `#` and what follows")]
    Fragment,
    /// A port that is not open.
    #[error("port {port} is not allowed: use 443, or allow it in the configuration")]
    Port {
        /// The port.
        port: u16,
    },
    /// A name that is not a host name, or never one of the public Internet.
    #[error("the host name `{name}` is not allowed ({why}): use a public host name")]
    Name {
        /// The name, in its ASCII form.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An address that is not public and that no entry allows.
    #[error("the address {ip} is not allowed ({why}): use a public one, or allow `{entry}`")]
    Address {
        /// The address, an IPv4-mapped one as IPv4.
        ip: IpAddr,
        /// What it is.
        why: &'static str,
        /// The entry that would open it.
        entry: AllowEntry,
    },
    /// The name resolved to nothing.
    #[error("the host name has no address: check its DNS records")]
    NoAddress,
}

/// Checks what a name resolved to. Every answer of the resolver must pass, else
/// none is used; an empty list is refused.
pub fn check_addresses(addresses: &[SocketAddr], rules: &GuardRules) -> Result<(), Blocked> {
    if addresses.is_empty() {
        return Err(Blocked::NoAddress);
    }
    addresses.iter().try_for_each(|address| check_address(*address, rules))
}

/// Checks one address with the port that would be connected to.
pub fn check_address(address: SocketAddr, rules: &GuardRules) -> Result<(), Blocked> {
    let (ip, port) = (address.ip().to_canonical(), address.port());
    if port == 0 {
        return Err(Blocked::Port { port });
    }
    if rules.allow_private || rules.opens_exactly(ip, port) {
        return Ok(());
    }
    match address::not_public(ip) {
        Some(why) if !rules.opens_address(ip) => {
            let entry = AllowEntry { net: ip.into(), port: Some(port) };
            Err(Blocked::Address { ip, why, entry })
        }
        _ if rules.opens_port(port) => Ok(()),
        _ => Err(Blocked::Port { port }),
    }
}

#[cfg(test)]
mod tests;
