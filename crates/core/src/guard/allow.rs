//! One exception that an operator makes: an address or a network, optionally
//! with one port, as it is written in the configuration.

use ipnet::IpNet;
use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// The prefix length of the IPv6 block that carries IPv4-mapped addresses.
const MAPPED_PREFIX: u8 = 96;

/// Opens the addresses of `net`, on `port` or on the ports that are open anyway.
///
/// Written `10.1.2.3`, `10.1.2.3:8080`, `10.0.0.0/8`, `10.0.0.0/8:8080`,
/// `fd00::1`, `[fd00::1]:8080`, `fd00::/8` or `[fd00::/8]:8080`. An IPv4-mapped
/// address means the IPv4 one. Behind NAT64 do not open `64:ff9b::/96`: every
/// private IPv4 address lies inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AllowEntry {
    /// The addresses; a single one is a network of full length.
    pub net: IpNet,
    /// The one port that it opens.
    pub port: Option<u16>,
}

/// Why a text is not an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAllowEntry {
    /// Neither an address nor a network.
    #[error("`{given}` is not an address or network: write 10.1.2.3:8080, 10.0.0.0/8 or [fd00::1]:8080")]
    Form {
        /// The text.
        given: String,
    },
    /// What stands after the last colon is not a port.
    #[error("`{given}` has no valid port: it must be 1 to 65535")]
    Port {
        /// The text.
        given: String,
    },
    /// The address is not the first of the network: it may be a slip of the prefix length.
    #[error("`{given}` has bits set behind its prefix: write `{net}`, or the address alone")]
    HostBits {
        /// The text.
        given: String,
        /// The network that it lies in.
        net: IpNet,
    },
}

impl AllowEntry {
    /// Whether the canonical address `ip` is one of the entry's.
    pub(super) fn contains(&self, ip: IpAddr) -> bool {
        self.net.contains(&ip)
    }
}

impl FromStr for AllowEntry {
    type Err = BadAllowEntry;

    fn from_str(text: &str) -> Result<AllowEntry, BadAllowEntry> {
        let (net, port) = split_port(text);
        let port = port.map(|port| parse_port(port, text)).transpose()?;
        let net = parse_net(net).ok_or_else(|| BadAllowEntry::Form { given: text.to_owned() })?;
        if net.trunc() != net {
            return Err(BadAllowEntry::HostBits { given: text.to_owned(), net: net.trunc() });
        }
        Ok(AllowEntry { net: canonical(net), port })
    }
}

/// The part before the port and the port. Colons of a bare IPv6 address are its own.
fn split_port(text: &str) -> (&str, Option<&str>) {
    match (text.strip_prefix('[').and_then(|rest| rest.split_once(']')), text.split_once(':')) {
        (Some((net, "")), _) => (net, None),
        (Some((net, rest)), _) if rest.starts_with(':') => (net, Some(&rest[1..])),
        (None, Some((net, port))) if !port.contains(':') => (net, Some(port)),
        _ => (text, None),
    }
}

fn parse_port(port: &str, given: &str) -> Result<u16, BadAllowEntry> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(port @ 1..) if digits => Ok(port),
        _ => Err(BadAllowEntry::Port { given: given.to_owned() }),
    }
}

/// Strict where `ipnet` is not: it takes `010.0.0.0/8`, which some read as octal.
fn parse_net(text: &str) -> Option<IpNet> {
    let Some((ip, prefix)) = text.split_once('/') else {
        return text.parse::<IpAddr>().ok().map(IpNet::from);
    };
    let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
    IpNet::new(ip.parse().ok()?, prefix.parse().ok().filter(|_| digits)?).ok()
}

/// IPv4-mapped addresses are checked as IPv4, so an entry that names them is kept as IPv4.
fn canonical(net: IpNet) -> IpNet {
    match (net.addr(), net.prefix_len()) {
        (IpAddr::V6(ip), MAPPED_PREFIX..) => mapped(ip, net.prefix_len() - MAPPED_PREFIX).unwrap_or(net),
        _ => net,
    }
}

fn mapped(ip: Ipv6Addr, prefix: u8) -> Option<IpNet> {
    IpNet::new(ip.to_ipv4_mapped()?.into(), prefix).ok()
}

impl TryFrom<String> for AllowEntry {
    type Error = BadAllowEntry;

    fn try_from(text: String) -> Result<AllowEntry, BadAllowEntry> {
        text.parse()
    }
}

/// As it is written in the configuration.
impl fmt::Display for AllowEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let single = self.net.prefix_len() == self.net.max_prefix_len();
        let net = if single { self.net.addr().to_string() } else { self.net.to_string() };
        match (self.port, self.net) {
            (None, _) => f.write_str(&net),
            (Some(port), IpNet::V4(_)) => write!(f, "{net}:{port}"),
            (Some(port), IpNet::V6(_)) => write!(f, "[{net}]:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_are_read_as_they_are_written_and_written_as_they_are_read() {
        for (text, shown) in [
            ("10.1.2.3", "10.1.2.3"),
            ("10.1.2.3/32", "10.1.2.3"),
            ("10.1.2.3:8080", "10.1.2.3:8080"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.0/8:8080", "10.0.0.0/8:8080"),
            ("fd00::1", "fd00::1"),
            ("[fd00::1]", "fd00::1"),
            ("[fd00::1]:8080", "[fd00::1]:8080"),
            ("fd00::/8", "fd00::/8"),
            ("[fd00::/8]:8080", "[fd00::/8]:8080"),
            ("::ffff:10.1.2.3", "10.1.2.3"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::/0", "::/0"),
        ] {
            let entry: AllowEntry = text.parse().unwrap_or_else(|bad| panic!("{text}: {bad}"));
            assert_eq!(entry.to_string(), shown);
            assert_eq!(shown.parse(), Ok(entry));
            assert_eq!(serde_json::from_value::<AllowEntry>(text.into()).expect("the same text"), entry);
        }
    }

    #[test]
    fn what_is_no_entry_is_refused_with_the_reason() {
        let form = |given: &str| BadAllowEntry::Form { given: given.into() };
        let port = |given: &str| BadAllowEntry::Port { given: given.into() };
        for expected in [
            form(""),
            form("localhost"),
            form("localhost:8080"),
            form("10.1.2"),
            form("010.1.2.3"),
            form("010.0.0.0/8"),
            form("10.0.0.0/33"),
            form("10.0.0.0/"),
            form(" 10.0.0.1"),
            form("*"),
            form("fd00::1:8080:1:2:3:4:5:6:7"),
            form("[fd00::1"),
            port("10.1.2.3:"),
            port("10.1.2.3:0"),
            port("10.1.2.3:+80"),
            port("10.1.2.3:65536"),
            form("[fd00::1]8080"),
        ] {
            let (BadAllowEntry::Form { given } | BadAllowEntry::Port { given }) = &expected else {
                unreachable!("only these two are listed")
            };
            assert_eq!(given.parse::<AllowEntry>(), Err(expected.clone()));
        }
        let slip = "10.1.2.3/8".parse::<AllowEntry>().expect_err("an address with a prefix");
        assert!(slip.to_string().contains("10.0.0.0/8"), "{slip}");
    }

    proptest! {
        #[test]
        fn any_text_is_an_entry_or_a_refusal(text in "\\PC{0,30}|[0-9a-f.:/\\[\\]]{0,30}") {
            if let Ok(entry) = text.parse::<AllowEntry>() {
                prop_assert_eq!(entry.to_string().parse(), Ok(entry));
            }
        }
    }
}
