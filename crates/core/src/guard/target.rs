//! A URL that may be delivered to, as far as can be said without looking its
//! name up.
//!
//! Two parsers that read one text differently are how guards are fooled: the
//! check sees one host, the client connects to another. So the raw text is
//! refused where parsers are known to differ, then parsed once, and from there
//! on only the parsed URL is checked, sent, shown and stored. Nobody gets the
//! raw host again; a resolver would read `0x7f.1` as loopback.

use super::{Blocked, GuardRules, check_address};
use crate::limits::URL_BYTES_MAX;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use url::{Host, Url};

/// Longest host name and longest label, in bytes (RFC 1035).
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Longest scheme that an error repeats, in bytes.
const SCHEME_BYTES_MAX: usize = 32;

/// Names that never are public hosts, with everything below them: special-use
/// names, suffixes that RFC 6762 (appendix G) found in private use, and those
/// of clusters and service directories (`cluster.local` is under `local`).
const NOT_PUBLIC_SUFFIXES: [&str; 18] = [
    "alt",
    "consul",
    "corp",
    "example",
    "home",
    "home.arpa",
    "i2p",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "svc",
    "test",
];

/// A URL that passed the checks that need no name resolution. `Debug` shows the
/// origin alone: path and query may hold secrets.
#[derive(Clone)]
pub struct Target {
    url: Url,
}

impl Target {
    /// Checks the raw text, parses it once and checks the result. The form is
    /// checked whatever the rules allow: no control characters, blanks,
    /// backslashes, userinfo or fragment, an absolute http or https URL, a port
    /// above zero, a well-formed host name.
    pub fn parse(raw: &str, rules: &GuardRules) -> Result<Target, Blocked> {
        check_length(raw)?;
        check_characters(raw)?;
        let rest = check_scheme(raw)?;
        check_authority(rest)?;
        let mut url = Url::parse(raw).map_err(Blocked::Malformed)?;
        if url.fragment().is_some() {
            return Err(Blocked::Fragment);
        }
        drop_trailing_dot(&mut url)?;
        check_length(url.as_str())?;
        let target = Target { url };
        target.check_host(rules)?;
        Ok(target)
    }

    /// The URL in the one form that is stored and sent.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether it is https and not plain http.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host: an address, or a name in its ASCII form without a trailing dot.
    pub fn host(&self) -> Host<&str> {
        self.url.host().expect("an http URL has a host")
    }

    /// The port that is connected to.
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().expect("http and https have default ports")
    }

    /// `https://example.com:8443`: what may be logged and shown.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    fn check_host(&self, rules: &GuardRules) -> Result<(), Blocked> {
        let port = self.port();
        if port == 0 {
            return Err(Blocked::Port { port });
        }
        let ip = match self.host() {
            Host::Ipv4(ip) => IpAddr::V4(ip),
            Host::Ipv6(ip) => IpAddr::V6(ip).to_canonical(),
            Host::Domain(name) => return self.check_name(name, rules),
        };
        check_address(SocketAddr::new(ip, port), rules)?;
        let plain_allowed = rules.allow_http || rules.allow_private || rules.opens_exactly(ip, port);
        self.check_plain(plain_allowed)
    }

    /// A name's addresses, and with them which entry opens its port, are only
    /// known after resolution: [`super::check_addresses`] has the last word.
    fn check_name(&self, name: &str, rules: &GuardRules) -> Result<(), Blocked> {
        check_form(name)?;
        if rules.allow_private {
            return Ok(());
        }
        check_public(name)?;
        let port = self.port();
        if !rules.opens_port(port) && !rules.allow.iter().any(|entry| entry.port == Some(port)) {
            return Err(Blocked::Port { port });
        }
        self.check_plain(rules.allow_http)
    }

    fn check_plain(&self, allowed: bool) -> Result<(), Blocked> {
        if self.is_https() || allowed { Ok(()) } else { Err(Blocked::PlainHttp { origin: self.origin() }) }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.origin()).finish()
    }
}

fn check_length(url: &str) -> Result<(), Blocked> {
    if url.len() > URL_BYTES_MAX { Err(Blocked::TooLong { bytes: url.len() }) } else { Ok(()) }
}

/// Parsers drop tabs and line breaks, trim blanks, and take `\` for `/` or not.
fn check_characters(raw: &str) -> Result<(), Blocked> {
    let what = raw.chars().find_map(|character| match character {
        '\\' => Some("a backslash"),
        c if c.is_control() => Some("a control character"),
        c if c.is_whitespace() => Some("a blank"),
        _ => None,
    });
    what.map_or(Ok(()), |what| Err(Blocked::Character { what }))
}

/// The text after `https://` or `http://`.
fn check_scheme(raw: &str) -> Result<&str, Blocked> {
    let (scheme, rest) = raw.split_once("://").ok_or(Blocked::NotAbsolute)?;
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if scheme.is_empty() || scheme.len() > SCHEME_BYTES_MAX || !scheme.bytes().all(is_scheme) {
        return Err(Blocked::NotAbsolute);
    }
    match scheme.to_ascii_lowercase() {
        scheme if scheme == "https" || scheme == "http" => Ok(rest),
        scheme => Err(Blocked::Scheme { scheme }),
    }
}

/// Parsers skip slashes before the host and forget an empty user name.
fn check_authority(rest: &str) -> Result<(), Blocked> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        Err(Blocked::UserInfo)
    } else if authority.is_empty() {
        Err(Blocked::NotAbsolute)
    } else {
        Ok(())
    }
}

/// `example.com.` and `example.com` are one host; it is sent and checked without the dot.
fn drop_trailing_dot(url: &mut Url) -> Result<(), Blocked> {
    let Some(Host::Domain(name)) = url.host() else { return Ok(()) };
    let Some(stripped) = name.strip_suffix('.') else { return Ok(()) };
    let stripped = stripped.to_owned();
    // Parsing the host again reads `127.0.0.1.` as the address that it is.
    url.set_host(Some(&stripped)).map_err(Blocked::Malformed)
}

/// Whether `name` is a host name: dot-separated labels of letters, digits, `-` and `_`.
fn check_form(name: &str) -> Result<(), Blocked> {
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label) {
        Ok(())
    } else {
        Err(Blocked::Name { name: name.to_owned(), why: "not a well-formed host name" })
    }
}

/// Whether `name` could be a host of the public Internet.
fn check_public(name: &str) -> Result<(), Blocked> {
    let is_under = |suffix: &str| {
        name.strip_suffix(suffix).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    let why = if NOT_PUBLIC_SUFFIXES.iter().any(|suffix| is_under(suffix)) {
        "it never is a public host"
    } else if !name.contains('.') {
        "it has no dot"
    } else {
        return Ok(());
    };
    Err(Blocked::Name { name: name.to_owned(), why })
}

#[cfg(test)]
mod tests;
