//! The guard at work: what is not allowed is never connected to, whatever the
//! name server, the URL's spelling or the environment say.

use crate::fixture::{ScriptedResolver, post, send, sink_with, word};
use http::Method;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use testkit::receiver::{Receiver, Step};
use tidings::sink::http::Resolve;
use tidings_core::classify::Ending;
use tidings_core::evidence::Phase;
use tidings_core::guard::GuardRules;
use tidings_core::outcome::{Effect, FailureKind};

/// Notes that it was asked, and never answers.
#[derive(Default)]
pub(crate) struct NeverResolves {
    pub(crate) asked: tokio::sync::Notify,
}

#[async_trait::async_trait]
impl Resolve for NeverResolves {
    async fn resolve(&self, _host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        self.asked.notify_one();
        std::future::pending().await
    }
}

/// Only that receiver is allowed, by address and port.
fn only(receiver: &Receiver) -> GuardRules {
    let entry = receiver.addr().to_string().parse().unwrap();
    let port = receiver.addr().port();
    GuardRules { allow: vec![entry], allow_http: true, extra_ports: vec![port], ..GuardRules::default() }
}

fn strict() -> GuardRules {
    GuardRules { allow_http: true, ..GuardRules::default() }
}

#[tokio::test]
async fn what_the_guard_refuses_is_discarded_without_a_look_up_or_a_connection() {
    let receiver = Receiver::start([Step::status(200)]).await;
    let port = receiver.addr().port();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "%31%32%37.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[fd00:ec2::254]",
        "[fe80::1%25eth0]",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.0.1",
        "240.0.0.1",
        "svc.internal.",
        "a@127.0.0.1",
        "a@b@127.0.0.1",
        "example.com:pass@169.254.169.254",
        "example.com\\@127.0.0.1",
        "printer",
    ];
    for host in hosts {
        let resolver = ScriptedResolver::new([Ok(vec![receiver.addr()])]);
        let sink = sink_with(|config| {
            config.guard = GuardRules { extra_ports: vec![port], ..strict() };
            config.resolver = resolver.clone();
        });
        let seen = send(&sink, post(format!("http://{host}:{port}/"))).await;
        assert!(matches!(seen.sent.ending, Ending::Blocked(_)), "{host}: {:?}", seen.sent);
        assert!(seen.sent.evidence.phase <= Phase::Guard, "{host}: {:?}", seen.sent.evidence.phase);
        assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("discard", Effect::None), "{host}");
        assert_eq!(seen.verdict.failure_kind, Some(FailureKind::DestinationBlocked), "{host}");
        assert_eq!((resolver.times_asked(), seen.sent.evidence.bytes_written), (0, 0), "{host}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_literal_is_never_given_to_the_resolver() {
    let receiver = Receiver::start([Step::status(200)]).await;
    let resolver = ScriptedResolver::new([Err(io::Error::other("must not be asked"))]);
    for host in ["127.0.0.1", "2130706433", "127.1", "[::ffff:127.0.0.1]"] {
        let sink = sink_with(|config| config.resolver = resolver.clone());
        let seen = send(&sink, post(format!("http://{host}:{}/", receiver.addr().port()))).await;
        assert_eq!(seen.sent.ending, Ending::Answer { status: 200 }, "{host}");
    }
    assert_eq!(resolver.times_asked(), 0);
}

#[tokio::test]
async fn one_forbidden_address_among_a_names_addresses_refuses_them_all() {
    let allowed = Receiver::start([Step::status(200)]).await;
    let port = allowed.addr().port();
    let forbidden = ["10.0.0.5", "::1", "127.0.0.2", "169.254.169.254", "::ffff:127.0.0.2"];
    for ip in forbidden {
        let forbidden = SocketAddr::new(ip.parse().unwrap(), port);
        for answer in [vec![allowed.addr(), forbidden], vec![forbidden, allowed.addr()]] {
            let sink = sink_with(|config| {
                config.guard = only(&allowed);
                config.resolver = ScriptedResolver::new([Ok(answer)]);
            });
            let seen = send(&sink, post(format!("http://hooks.example.com:{port}/"))).await;
            assert!(matches!(seen.sent.ending, Ending::Blocked(_)), "{ip}: {:?}", seen.sent);
            assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("discard", Effect::None), "{ip}");
        }
    }
    assert_eq!(allowed.connections(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_checked_at_every_attempt() {
    let allowed = Receiver::start([Step::status(200)]).await;
    let port = allowed.addr().port();
    let inside = Receiver::start_on(&format!("127.0.0.2:{port}"), [Step::status(200)]).await;
    let resolver = ScriptedResolver::new([Ok(vec![allowed.addr()]), Ok(vec![inside.addr()])]);
    let sink = sink_with(|config| {
        config.guard = only(&allowed);
        config.resolver = resolver.clone();
    });
    let url = format!("http://hooks.example.com:{port}/");
    let first = send(&sink, post(&url)).await;
    assert_eq!(first.sent.ending, Ending::Answer { status: 200 });
    assert_eq!(first.sent.evidence.address, Some(allowed.addr().to_string()));
    assert_eq!(resolver.times_asked(), 1, "what was checked is what is connected to");

    let second = send(&sink, post(&url)).await;
    assert!(matches!(second.sent.ending, Ending::Blocked(_)), "{:?}", second.sent);
    assert_eq!((allowed.requests().len(), inside.connections()), (1, 0));
}

#[tokio::test]
async fn a_resolver_cannot_choose_the_port() {
    let allowed = Receiver::start([Step::status(200)]).await;
    let other = Receiver::start([Step::status(200)]).await;
    let sink = sink_with(|config| {
        config.guard = only(&allowed);
        config.resolver = ScriptedResolver::new([Ok(vec![other.addr()])]);
    });
    let seen = send(&sink, post(format!("http://hooks.example.com:{}/", allowed.addr().port()))).await;
    assert_eq!(seen.sent.ending, Ending::Answer { status: 200 });
    assert_eq!((allowed.requests().len(), other.connections()), (1, 0));
}

#[tokio::test]
async fn a_tunnel_is_not_a_delivery() {
    let receiver = Receiver::start([Step::status(200)]).await;
    let mut request = post(receiver.url("/"));
    request.method = Method::CONNECT;
    let seen = send(&crate::fixture::sink(), request).await;
    assert!(matches!(seen.sent.ending, Ending::Blocked(_)));
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn proxy_variables_of_the_environment_are_ignored() {
    let proxy = Receiver::start([Step::status(200)]).await;
    let target = Receiver::start([Step::status(200)]).await;
    // The environment of this process is shared by its tests, so another one sends.
    let mut child = Command::new(std::env::current_exe().unwrap());
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(name, proxy.url(""));
    }
    child.env_remove("REQUEST_METHOD").env_remove("NO_PROXY").env_remove("no_proxy");
    child.env("TIDINGS_TEST_TARGET", target.url("/")).args(["--exact", CHILD, "--ignored"]);
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((target.requests().len(), proxy.connections()), (1, 0));
}

const CHILD: &str = "guard::sends_to_the_target_that_its_environment_names";

#[tokio::test]
#[ignore = "run by proxy_variables_of_the_environment_are_ignored, with an environment of its own"]
async fn sends_to_the_target_that_its_environment_names() {
    let target = std::env::var("TIDINGS_TEST_TARGET").expect("set by the test that runs this one");
    let seen = send(&crate::fixture::sink(), post(target)).await;
    assert_eq!(seen.sent.ending, Ending::Answer { status: 200 });
}
