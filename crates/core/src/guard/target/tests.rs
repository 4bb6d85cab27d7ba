use super::super::tests::{allowing, strict, trying_out};
use super::*;
use proptest::prelude::*;

/// The parsed URL, or the name of the refusal's variant.
fn kind(result: Result<Target, Blocked>) -> String {
    match result {
        Ok(target) => target.url().to_string(),
        Err(blocked) => {
            let name = format!("{blocked:?}");
            name.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
        }
    }
}

#[test]
fn an_entry_with_a_port_makes_a_local_receiver_reachable_by_its_address_over_plain_http() {
    let rules = allowing(&["127.0.0.1:8080", "[::1]:8080", "10.0.0.0/8"]);
    for (raw, expected) in [
        ("http://127.0.0.1:8080/hook", "http://127.0.0.1:8080/hook"),
        ("https://127.0.0.1:8080/hook", "https://127.0.0.1:8080/hook"),
        ("http://[::ffff:127.0.0.1]:8080/", "http://[::ffff:7f00:1]:8080/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://127.0.0.1:8081/", "Address"),
        ("http://127.0.0.1/", "Address"),
        ("http://127.0.0.2:8080/", "Address"),
        // An entry without a port opens neither a port nor plain http.
        ("https://10.1.2.3/", "https://10.1.2.3/"),
        ("http://10.1.2.3/", "Port"),
        ("http://10.1.2.3:443/", "PlainHttp"),
        // Names get no plain http from an entry, and the never public ones nothing at all.
        ("https://hooks.example.com:8080/", "https://hooks.example.com:8080/"),
        ("http://hooks.example.com:8080/", "PlainHttp"),
        ("http://localhost:8080/", "Name"),
    ] {
        assert_eq!(kind(Target::parse(raw, &rules)), expected, "{raw}");
    }
}

#[test]
fn ports_and_plain_http_are_closed_until_they_are_opened() {
    let with_port = GuardRules { extra_ports: vec![8443], ..strict() };
    let with_http = GuardRules { allow_http: true, ..strict() };
    for (rules, raw, expected) in [
        (strict(), "https://hooks.example.com/", "https://hooks.example.com/"),
        (strict(), "HTTPS://hooks.EXAMPLE.com:443", "https://hooks.example.com/"),
        (strict(), "https://hooks.example.com:8443/", "Port"),
        (strict(), "https://93.184.216.34:22/", "Port"),
        (strict(), "http://hooks.example.com/", "Port"),
        (strict(), "http://hooks.example.com:443/", "PlainHttp"),
        (with_port.clone(), "https://hooks.example.com:8443/", "https://hooks.example.com:8443/"),
        (with_port.clone(), "https://hooks.example.com:8444/", "Port"),
        (with_port, "http://hooks.example.com:8443/", "PlainHttp"),
        (with_http.clone(), "http://hooks.example.com/", "http://hooks.example.com/"),
        (with_http.clone(), "http://hooks.example.com:8080/", "Port"),
        (with_http, "http://127.0.0.1/", "Address"),
        (trying_out(), "http://localhost:7071/hook", "http://localhost:7071/hook"),
        (trying_out(), "http://receiver:1/", "http://receiver:1/"),
        (trying_out(), "http://0x7f.1:65535/", "http://127.0.0.1:65535/"),
    ] {
        assert_eq!(kind(Target::parse(raw, &rules)), expected, "{raw}");
    }
}

#[test]
fn a_malformed_url_is_refused_whatever_the_rules() {
    let long = format!("https://hooks.example.com/{}", "a".repeat(2048));
    let grows = format!("https://hooks.example.com/{}", "é".repeat(900));
    let long_label = format!("https://{}.example.com/", "a".repeat(64));
    let long_name = format!("https://{}example.com/", "a.".repeat(130));
    let open = GuardRules { allow: allowing(&["0.0.0.0/0", "::/0"]).allow, ..trying_out() };
    for (raw, expected) in [
        ("", "NotAbsolute"),
        ("example.com", "NotAbsolute"),
        ("//example.com/", "NotAbsolute"),
        ("https:example.com", "NotAbsolute"),
        ("https:/example.com", "NotAbsolute"),
        ("https:///example.com", "NotAbsolute"),
        ("https://", "NotAbsolute"),
        ("https://?a", "NotAbsolute"),
        ("javascript:alert(1)", "NotAbsolute"),
        ("/x?u=https://example.com", "NotAbsolute"),
        ("ftp://example.com/", "Scheme"),
        ("file:///etc/passwd", "Scheme"),
        ("gopher://127.0.0.1:70/", "Scheme"),
        ("view-source+https://example.com/", "Scheme"),
        ("http://example.com\\@evil.com/", "Character"),
        ("https:\\\\example.com/", "Character"),
        ("https://example.com/a\\b", "Character"),
        ("https://exa\tmple.com/", "Character"),
        ("https://example.com/\r\nX-Injected: 1", "Character"),
        ("https://example.com/\u{0}", "Character"),
        ("https://example.com/\u{7f}", "Character"),
        ("https://example.com/\u{85}", "Character"),
        (" https://example.com/", "Character"),
        ("https://example.com/a b", "Character"),
        ("https://example.com/\u{3000}", "Character"),
        ("http://example.com:pass@169.254.169.254/", "UserInfo"),
        ("http://a@b@127.0.0.1/", "UserInfo"),
        ("https://user@example.com/", "UserInfo"),
        ("https://@example.com/", "UserInfo"),
        ("https://:@example.com/", "UserInfo"),
        ("https://example.com/#", "Fragment"),
        ("https://example.com/?a#b", "Fragment"),
        ("https://example.com:0/", "Port"),
        ("https://127.0.0.1:0/", "Port"),
        ("https://example.com:65536/", "Malformed"),
        ("https://example.com:abc/", "Malformed"),
        ("https://[fe80::1%25eth0]/", "Malformed"),
        ("https://[::1/", "Malformed"),
        ("https://1.2.3.4.5/", "Malformed"),
        ("https://256.0.0.1/", "Malformed"),
        ("https://xn--a.localhost/", "Malformed"),
        ("https://exa%00mple.com/", "Malformed"),
        ("https://example.com%2f@evil.com/", "UserInfo"),
        ("https://./", "Malformed"),
        ("https://localhost../", "Name"),
        ("https://a..example.com/", "Name"),
        ("https://.example.com/", "Name"),
        ("https://*.example.com/", "Name"),
        ("https://a,b.example.com/", "Name"),
        (&long, "TooLong"),
        (&grows, "TooLong"),
        (&long_label, "Name"),
        (&long_name, "Name"),
    ] {
        for rules in [strict(), open.clone()] {
            let found = kind(Target::parse(raw, &rules));
            assert_eq!(found, expected, "{raw:?} (allow_private: {})", rules.allow_private);
        }
    }
}

#[test]
fn an_at_sign_behind_the_host_is_no_userinfo() {
    let raw = "https://hooks.example.com/@me?to=a@b";
    assert_eq!(kind(Target::parse(raw, &strict())), raw);
}

#[test]
fn every_way_to_write_a_special_address_is_refused() {
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "0",
        "0.0.0.0",
        "１２７.０.０.１",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "198.18.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:a9fe:a9fe]",
        "[::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fec0::1]",
    ] {
        for scheme in ["http", "https"] {
            let raw = format!("{scheme}://{host}/latest/meta-data");
            let rules = GuardRules { allow_http: true, ..strict() };
            assert_eq!(kind(Target::parse(&raw, &rules)), "Address", "{raw}");
        }
    }
}

#[test]
fn names_that_never_are_public_are_refused_with_and_without_a_trailing_dot() {
    for name in [
        "localhost",
        "LOCALHOST",
        "loc%61lhost",
        "local\u{ad}host",
        "ｌｏｃａｌｈｏｓｔ",
        "a.localhost",
        "printer.local",
        "svc.internal",
        "metadata.google.internal",
        "nas.home.arpa",
        "x.onion",
        "x.i2p",
        "x.test",
        "x.invalid",
        "x.example",
        "api.default.svc.cluster.local",
        "api.default.svc",
        "db.service.consul",
        "router.lan",
        "receiver",
        "internal",
    ] {
        for dot in ["", "."] {
            let raw = format!("https://{name}{dot}/");
            assert_eq!(kind(Target::parse(&raw, &strict())), "Name", "{raw}");
            assert!(Target::parse(&raw, &trying_out()).is_ok(), "{raw}");
        }
    }
    for name in ["notlocalhost.com", "internal.example.com", "local.example.org", "a_b.example.com"] {
        assert!(Target::parse(&format!("https://{name}/"), &strict()).is_ok(), "{name}");
    }
}

#[test]
fn the_host_is_read_once_and_shown_in_its_ascii_form() {
    for (raw, url, host) in [
        ("https://faß.de/", "https://xn--fa-hia.de/", "xn--fa-hia.de"),
        ("https://аpple.com/", "https://xn--pple-43d.com/", "xn--pple-43d.com"),
        ("https://EXAMPLE。com/ä?q=é", "https://example.com/%C3%A4?q=%C3%A9", "example.com"),
        ("https://exam\u{200b}ple.com/", "https://example.com/", "example.com"),
        ("https://example.com./a/../b", "https://example.com/b", "example.com"),
        ("https://example.com", "https://example.com/", "example.com"),
    ] {
        let target = Target::parse(raw, &strict()).unwrap_or_else(|blocked| panic!("{raw}: {blocked}"));
        assert_eq!((target.url().as_str(), target.host()), (url, Host::Domain(host)), "{raw}");
    }
    // A joiner is either no part of the name or seen as `xn--`, never hidden in it.
    if let Ok(target) = Target::parse("https://exa\u{200d}mple.com/", &strict()) {
        assert!(target.host().to_string().starts_with("xn--"), "{target:?}");
    }
}

#[test]
fn what_is_shown_of_a_target_is_its_origin() {
    let rules = GuardRules { extra_ports: vec![8443], ..strict() };
    for (raw, origin, port) in [
        ("https://example.com:8443/token/s3cret?key=s3cret", "https://example.com:8443", 8443),
        ("https://example.com:443/s3cret", "https://example.com", 443),
        ("https://[2606:4700::1111]/s3cret", "https://[2606:4700::1111]", 443),
    ] {
        let target = Target::parse(raw, &rules).unwrap_or_else(|blocked| panic!("{raw}: {blocked}"));
        assert_eq!((target.origin().as_str(), target.port(), target.is_https()), (origin, port, true));
        assert_eq!(format!("{target:?}"), format!("Target({origin:?})"));
    }
}

#[test]
fn a_refusal_never_repeats_userinfo_path_or_query() {
    for raw in [
        "https://s3cret:s3cret@example.com/",
        "https://127.0.0.1/s3cret?s3cret",
        "http://hooks.example.com:443/s3cret",
        "ftp://example.com/s3cret",
        "https://localhost/s3cret#s3cret",
        "https://example.com/s3cret#s3cret",
        "https://example.com/s3cret s3cret",
        "https://example.com:8080/s3cret",
        "s3cret://",
        "s3cret:s3cret@example.com://x",
        "https://[s3cret/",
    ] {
        if let Err(blocked) = Target::parse(raw, &strict()) {
            // A scheme is repeated; it is not where secrets are.
            let shown = format!("{blocked} {blocked:?}").replace("scheme `s3cret`", "");
            assert!(!shown.replace("scheme: \"s3cret\"", "").contains("s3cret"), "{raw}: {blocked}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_a_checked_target_or_a_refusal(
        raw in "(https?://)?(\\PC{0,30}|[0-9a-fx.:\\[\\]@%/]{0,30}|[a-z.]{1,20}(:[0-9]{0,6})?)(/\\PC{0,20})?",
        private in any::<bool>(),
    ) {
        let rules = GuardRules { allow_private: private, ..strict() };
        let Ok(target) = Target::parse(&raw, &rules) else { return Ok(()) };
        let again = Target::parse(target.url().as_str(), &rules).expect("the re-serialised form passes too");
        prop_assert_eq!(again.url(), target.url());
        prop_assert!(target.port() > 0);
        prop_assert!(target.url().username().is_empty() && target.url().password().is_none());
        if !private {
            prop_assert!(target.is_https());
            prop_assert_eq!(target.port(), 443);
            if let Host::Ipv4(ip) = target.host() {
                prop_assert!(!ip.is_loopback() && !ip.is_private() && !ip.is_link_local());
            }
        }
    }
}
