//! One HTTP/1.1 exchange over one guarded connection, and what is known of it.
//!
//! One call of [`HttpSink::send`] puts at most one request on the wire: a fresh
//! connection each time, no redirect followed, no proxy (whatever the
//! environment says), no second try. The guard is asked about the URL and then
//! about every address of its name; only a checked address is connected to.
//! Every phase has its limit and one total limit stands over all of them.
//!
//! How far it got matters as much as how it ended: whether a byte of the request
//! was handed to a socket decides between "not sent" and "unknown". It is noted
//! in a [`Trail`] while it happens, so that it is known even when the future of
//! `send` was dropped, which closes the connection.
//!
//! Absent on purpose: connection reuse (one request per connection until it can
//! be had without a hidden second send), HTTP/2, decompression, cookies.

mod answer;
mod connect;
mod counted;
mod excerpt;
mod exchange;
mod limits;
mod resolve;
mod tls;
mod trail;

pub use limits::HttpLimits;
pub use resolve::{Resolve, SystemResolver};
pub use trail::Trail;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use http_body_util::Full;
use limits::Clock;
use rustls::pki_types::CertificateDer;
use std::sync::Arc;
use tidings_core::classify::Ending;
use tidings_core::evidence::{HttpEvidence, Phase};
use tidings_core::guard::{GuardRules, Target};
use tidings_core::headers::belongs_to_connection;
use tidings_core::text;
use tidings_core::time::Time;
use url::Position;

/// What a request says of its sender unless the caller says otherwise.
const USER_AGENT: &str = concat!("tidings/", env!("CARGO_PKG_VERSION"));

/// How a sink is set up.
#[derive(Clone)]
pub struct HttpSinkConfig {
    /// Where it may connect to.
    pub guard: GuardRules,
    /// Limits of each phase and of the whole.
    pub limits: HttpLimits,
    /// What turns a name into addresses; IP literals never get there.
    pub resolver: Arc<dyn Resolve>,
    /// Certificate authorities trusted besides the public ones, in DER.
    pub extra_roots: Vec<CertificateDer<'static>>,
}

impl Default for HttpSinkConfig {
    /// The public Internet over https, with the system's resolver.
    fn default() -> HttpSinkConfig {
        HttpSinkConfig {
            guard: GuardRules::default(),
            limits: HttpLimits::default(),
            resolver: Arc::new(SystemResolver),
            extra_roots: Vec::new(),
        }
    }
}

/// Why a sink could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum HttpSinkError {
    /// One of the extra certificate authorities cannot be used.
    #[error(
        "extra certificate authority {number} cannot be used ({problem}); \
         give the authority's certificate as DER"
    )]
    BadRoot {
        /// 1 for the first one given.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// One request. The caller has checked its headers with
/// [`check_request_headers`](tidings_core::headers::check_request_headers);
/// headers that belong to the connection (Host, Content-Length, Connection,
/// Accept-Encoding and the like) are the sink's own, and given ones are not sent.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// Any method but CONNECT.
    pub method: Method,
    /// Absolute URL.
    pub url: String,
    /// Sent in this order.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Sent as it is, with its length in bytes.
    pub body: Bytes,
}

/// How an exchange ended, and its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// How it ended.
    pub ending: Ending,
    /// Every byte of the request was handed to the socket.
    pub request_complete: bool,
    /// What is kept of it.
    pub evidence: HttpEvidence,
}

/// Sends requests; cheap to clone.
#[derive(Clone)]
pub struct HttpSink {
    inner: Arc<Inner>,
}

struct Inner {
    guard: GuardRules,
    limits: HttpLimits,
    resolver: Arc<dyn Resolve>,
    tls: Arc<rustls::ClientConfig>,
}

impl HttpSink {
    /// Sets up TLS with the public authorities and the extra ones.
    ///
    /// # Errors
    /// If an extra authority is not a usable certificate.
    pub fn new(config: HttpSinkConfig) -> Result<HttpSink, HttpSinkError> {
        let HttpSinkConfig { guard, limits, resolver, extra_roots } = config;
        let tls = tls::client_config(extra_roots)?;
        Ok(HttpSink { inner: Arc::new(Inner { guard, limits, resolver, tls }) })
    }

    /// Sends the request once and reads the answer, within the limits. `now` is
    /// the time at the attempt's start, by which a Retry-After date is read.
    ///
    /// Dropping the future closes the connection; the trail keeps what was
    /// learnt until then.
    pub async fn send(&self, request: HttpRequest, now: Time, trail: &Trail) -> Sent {
        let clock = Clock::start(self.inner.limits, now);
        trail.begin(&request, &clock);
        let ending = match self.inner.attempt(request, &clock, trail).await {
            Ok(ending) | Err(ending) => ending,
        };
        trail.sent(ending)
    }
}

impl Inner {
    async fn attempt(&self, request: HttpRequest, clock: &Clock, trail: &Trail) -> Result<Ending, Ending> {
        let target = self.check(&request)?;
        trail.aim_at(&target);
        let stream = connect::open(self, &target, clock, trail).await?;
        trail.enter(Phase::Write);
        let request = on_the_wire(&target, request)?;
        Ok(exchange::run(stream, request, &target, clock, trail).await)
    }

    /// Everything that can be refused without a look-up.
    fn check(&self, request: &HttpRequest) -> Result<Target, Ending> {
        if request.method == Method::CONNECT {
            let reason = "CONNECT asks for a tunnel, which is not a delivery; use another method";
            return Err(Ending::Blocked(reason.to_owned()));
        }
        Target::parse(&request.url, &self.guard)
            .map_err(|blocked| Ending::Blocked(text::reason(&blocked.to_string())))
    }
}

/// The request as HTTP/1.1 sends it: origin form, and the sink's own headers.
fn on_the_wire(target: &Target, request: HttpRequest) -> Result<http::Request<Full<Bytes>>, Ending> {
    let path_and_query = &target.url()[Position::BeforePath..Position::AfterQuery];
    let host = match target.url().port() {
        Some(port) => format!("{}:{port}", target.host()),
        None => target.host().to_string(),
    };
    let mut builder =
        http::Request::builder().method(request.method.clone()).uri(path_and_query).header("host", host);
    let names_itself = request.headers.iter().any(|(name, _)| name == http::header::USER_AGENT);
    if !names_itself {
        builder = builder.header("user-agent", USER_AGENT);
    }
    for (name, value) in request.headers {
        if !belongs_to_connection(name.as_str()) {
            builder = builder.header(name, value);
        }
    }
    let sends_body =
        matches!(request.method, Method::POST | Method::PUT | Method::PATCH) || !request.body.is_empty();
    if sends_body {
        builder = builder.header("content-length", request.body.len());
    }
    let built = builder
        .header("accept-encoding", "identity")
        .header("connection", "close")
        .body(Full::new(request.body));
    built.map_err(|error| {
        Ending::Blocked(text::reason(&format!("the request cannot be written as HTTP/1.1: {error}")))
    })
}
