//! Which addresses are public. IPv4 is a list of what is not (the IANA special
//! registry and one cloud's service address); IPv6 is the one block that is
//! handed out, less what inside it is special, so that everything new or odd is
//! refused by construction.
//!
//! Absent on purpose: addresses that carry an IPv4 address inside (6to4,
//! Teredo, NAT64, IPv4-compatible) are refused, never unpacked. Only
//! IPv4-mapped ones are unpacked, by the caller, since systems connect to them
//! as IPv4. Behind NAT64 a receiver that has IPv4 only is thus refused.

use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

/// An IPv6 network within its first three groups.
const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

const V4_NOT_PUBLIC: [(Ipv4Net, &str); 19] = [
    (v4(0, 0, 0, 0, 8), "this host"),
    (v4(10, 0, 0, 0, 8), "private network"),
    (v4(100, 64, 0, 0, 10), "shared by a carrier's customers"),
    (v4(127, 0, 0, 0, 8), "loopback"),
    (v4(168, 63, 129, 16, 32), "service address of a cloud"),
    (v4(169, 254, 0, 0, 16), "link-local, where clouds keep their metadata"),
    (v4(172, 16, 0, 0, 12), "private network"),
    (v4(192, 0, 0, 0, 24), "protocol assignments"),
    (v4(192, 0, 2, 0, 24), "documentation"),
    (v4(192, 31, 196, 0, 24), "AS112 service"),
    (v4(192, 52, 193, 0, 24), "multicast tunnels"),
    (v4(192, 88, 99, 0, 24), "6to4 relays"),
    (v4(192, 168, 0, 0, 16), "private network"),
    (v4(192, 175, 48, 0, 24), "AS112 service"),
    (v4(198, 18, 0, 0, 15), "benchmarks"),
    (v4(198, 51, 100, 0, 24), "documentation"),
    (v4(203, 0, 113, 0, 24), "documentation"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(240, 0, 0, 0, 4), "reserved"),
];

/// The block that public IPv6 addresses are handed out from.
const V6_PUBLIC: Ipv6Net = v6(0x2000, 0, 0, 3);

const V6_NOT_PUBLIC: [(Ipv6Net, &str); 5] = [
    (v6(0x2001, 0, 0, 23), "protocol assignments and tunnels"),
    (v6(0x2001, 0xdb8, 0, 32), "documentation"),
    (v6(0x2002, 0, 0, 16), "6to4, which hides an IPv4 address"),
    (v6(0x2620, 0x4f, 0x8000, 48), "AS112 service"),
    (v6(0x3fff, 0, 0, 20), "documentation"),
];

/// What a canonical address is when it is not public, in words; `None` when it is public.
pub(super) fn not_public(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => V4_NOT_PUBLIC.iter().find(|(net, _)| net.contains(&ip)).map(|(_, why)| *why),
        IpAddr::V6(ip) if ip.is_loopback() => Some("loopback"),
        IpAddr::V6(ip) if !V6_PUBLIC.contains(&ip) => Some("not of the public block 2000::/3"),
        IpAddr::V6(ip) => V6_NOT_PUBLIC.iter().find(|(net, _)| net.contains(&ip)).map(|(_, why)| *why),
    }
}
