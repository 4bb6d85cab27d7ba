use super::*;
use proptest::prelude::*;

pub(super) fn strict() -> GuardRules {
    GuardRules::default()
}

pub(super) fn trying_out() -> GuardRules {
    GuardRules { allow_private: true, ..GuardRules::default() }
}

pub(super) fn allowing(entries: &[&str]) -> GuardRules {
    let allow = entries.iter().map(|entry| entry.parse().expect("the tests' entries are valid")).collect();
    GuardRules { allow, ..GuardRules::default() }
}

/// `addr` on port 443.
fn https(ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().expect("the tests' addresses are valid"), 443)
}

#[test]
fn special_ipv4_ranges_are_refused_from_first_to_last_and_their_neighbours_pass() {
    for (before, first, last, after) in [
        ("", "0.0.0.0", "0.255.255.255", "1.0.0.0"),
        ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
        ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"),
        ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"),
        ("168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"),
        ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"),
        ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"),
        ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
        ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"),
        ("192.31.195.255", "192.31.196.0", "192.31.196.255", "192.31.197.0"),
        ("192.52.192.255", "192.52.193.0", "192.52.193.255", "192.52.194.0"),
        ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"),
        ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"),
        ("192.175.47.255", "192.175.48.0", "192.175.48.255", "192.175.49.0"),
        ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"),
        ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"),
        ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"),
        ("223.255.255.255", "224.0.0.0", "239.255.255.255", ""),
        ("", "240.0.0.0", "255.255.255.255", ""),
    ] {
        check_range(before, first, last, after);
        // What systems connect to as IPv4 is checked as IPv4.
        let mapped = |ip: &str| if ip.is_empty() { String::new() } else { format!("::ffff:{ip}") };
        check_range(&mapped(before), &mapped(first), &mapped(last), &mapped(after));
    }
}

#[test]
fn only_the_public_ipv6_block_passes_and_not_all_of_it() {
    let ones = "ffff:ffff:ffff:ffff:ffff";
    for (before, first, last, after) in [
        ("", "::", "::1", ""),
        ("", "::7f00:1", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"),
        ("2000:ffff::", "2001::", &format!("2001:1ff:ffff:{ones}"), "2001:200::"),
        (&format!("2001:db7:ffff:{ones}"), "2001:db8::", &format!("2001:db8:ffff:{ones}"), "2001:db9::"),
        (&format!("2001:ffff:ffff:{ones}"), "2002::", &format!("2002:ffff:ffff:{ones}"), "2003::"),
        (
            &format!("2620:4f:7fff:{ones}"),
            "2620:4f:8000::",
            &format!("2620:4f:8000:{ones}"),
            "2620:4f:8001::",
        ),
        (&format!("3ffe:ffff:ffff:{ones}"), "3fff::", &format!("3fff:fff:ffff:{ones}"), "3fff:1000::"),
        (&format!("3fff:ffff:ffff:{ones}"), "4000::", &format!("ffff:ffff:ffff:{ones}"), ""),
    ] {
        check_range(before, first, last, after);
    }
    for ip in [
        "::127.0.0.1",
        "::ffff:0:7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "100::1",
        "100:0:0:1::1",
        "2001:0:4136:e378::1",
        "2002:7f00:1::",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ] {
        assert!(check_address(https(ip), &strict()).is_err(), "{ip}");
    }
    for ip in ["2606:4700::1111", "2a00:1450:4001:800::200e", "2620:fe::fe"] {
        assert_eq!(check_address(https(ip), &strict()), Ok(()), "{ip}");
    }
}

/// An empty text stands for a neighbour that is itself special.
fn check_range(before: &str, first: &str, last: &str, after: &str) {
    for ip in [first, last] {
        let refusal = check_address(https(ip), &strict());
        assert!(matches!(refusal, Err(Blocked::Address { .. })), "{ip}: {refusal:?}");
        assert_eq!(check_address(https(ip), &trying_out()), Ok(()), "{ip}");
    }
    for ip in [before, after].into_iter().filter(|ip| !ip.is_empty()) {
        assert_eq!(check_address(https(ip), &strict()), Ok(()), "{ip}");
    }
}

#[test]
fn one_forbidden_answer_refuses_them_all_in_either_order() {
    let public = https("93.184.216.34");
    for private in [https("::1"), https("10.0.0.5"), https("::ffff:10.0.0.5")] {
        for answers in [[public, private], [private, public]] {
            let refusal = check_addresses(&answers, &strict());
            assert!(matches!(refusal, Err(Blocked::Address { .. })), "{answers:?}");
        }
    }
    assert_eq!(check_addresses(&[public, https("2606:4700::1111")], &strict()), Ok(()));
}

#[test]
fn no_answer_at_all_is_refused_whatever_the_rules() {
    for rules in [strict(), trying_out(), allowing(&["0.0.0.0/0", "::/0"])] {
        assert_eq!(check_addresses(&[], &rules), Err(Blocked::NoAddress));
    }
}

#[test]
fn an_entry_opens_itself_and_nothing_else() {
    let rules = allowing(&["10.1.2.3:8080", "10.2.0.0/16", "[fd00::1]:9000"]);
    for (address, open) in [
        ("10.1.2.3:8080", true),
        ("[::ffff:10.1.2.3]:8080", true),
        ("10.1.2.3:443", false),
        ("10.1.2.3:8081", false),
        ("10.1.2.4:8080", false),
        ("10.2.255.255:443", true),
        ("10.2.255.255:8080", false),
        ("10.3.0.0:443", false),
        ("[fd00::1]:9000", true),
        ("[fd00::2]:9000", false),
        ("127.0.0.1:8080", false),
        ("93.184.216.34:443", true),
        ("93.184.216.34:8080", false),
        ("93.184.216.34:0", false),
    ] {
        let address = address.parse().expect("the tests' addresses are valid");
        assert_eq!(check_address(address, &rules).is_ok(), open, "{address}");
    }
    let mixed: Vec<SocketAddr> = ["10.1.2.3:8080", "10.1.2.4:8080"]
        .map(|address| address.parse().expect("the tests' addresses are valid"))
        .into();
    assert!(check_addresses(&mixed, &rules).is_err(), "an allowed and a forbidden answer");
    assert_eq!(check_addresses(&mixed[..1], &rules), Ok(()));
}

proptest! {
    #[test]
    fn an_address_passes_as_itself_exactly_when_it_passes_mapped(ip in any::<[u8; 4]>()) {
        let plain = std::net::Ipv4Addr::from(ip);
        let mapped = SocketAddr::new(plain.to_ipv6_mapped().into(), 443);
        let plain = SocketAddr::new(plain.into(), 443);
        prop_assert_eq!(check_address(plain, &strict()), check_address(mapped, &strict()));
    }
}
