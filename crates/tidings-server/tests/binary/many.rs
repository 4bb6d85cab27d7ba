//! Several servers on one PostgreSQL, as many machines would run them.

use crate::fixture::{PATIENCE, Place};
use std::collections::BTreeSet;
use std::time::Duration;
use testkit::receiver::{Receiver, Step};
use tidings::kind::http_call::HttpCall;
use tidings::sink::http::{HttpSink, HttpSinkConfig};
use tidings::store::JobFilter;
use tidings::{Enqueue, Tidings};

const JOBS: usize = 10_000;
const SERVERS: usize = 3;
/// Ten thousand requests of a debug build, on a machine that is busy with other tests.
const LONG: Duration = Duration::from_secs(180);

mod postgres {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn three_servers_carry_out_ten_thousand_jobs_each_accepted_exactly_once() {
        let place = Place::postgres().await;
        let receiver = Receiver::start([Step::status(200)]).await;
        let mut servers = Vec::new();
        while servers.len() < SERVERS {
            servers.push(place.serve(&["--allow-private", "--workers", "20"]).await);
        }
        let sink = HttpSink::new(HttpSinkConfig::default()).unwrap();
        let tidings = Tidings::builder().http_calls(sink).open(place.database()).await.unwrap();
        for first in (0..JOBS).step_by(1_000) {
            let calls = (first..first + 1_000).map(|number| call(&receiver.url("/"), number));
            tidings.enqueue_all::<HttpCall>(calls).await.unwrap();
        }

        let left = async {
            while unfinished(&tidings).await > 0 {
                tokio::time::sleep(PATIENCE / 100).await;
            }
        };
        tokio::time::timeout(LONG, left).await.expect("none is left");
        for server in servers {
            server.stop().await;
        }

        // The receiver counts: each once, and nothing else.
        let requests = receiver.requests();
        let bodies: BTreeSet<&[u8]> = requests.iter().map(|request| &request.body[..]).collect();
        assert_eq!((requests.len(), bodies.len()), (JOBS, JOBS));
        // The evidence says the same, and that all three took part.
        let jobs = tidings.jobs(&JobFilter { limit: JOBS * 2, ..JobFilter::default() }).await.unwrap();
        let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
        let histories = tidings.store().history(&ids).await.unwrap();
        let workers: BTreeSet<String> = histories
            .iter()
            .map(|history| match &history[..] {
                [tidings::store::Logged { fact: tidings::core::fact::Fact::AttemptEnded(end), .. }] => {
                    assert_eq!(end.outcome.as_str(), "accepted");
                    end.worker.to_string()
                }
                other => panic!("one attempt each: {other:?}"),
            })
            .collect();
        assert_eq!((histories.len(), workers.len()), (JOBS, SERVERS));
    }
}

fn call(url: &str, number: usize) -> Enqueue<HttpCall> {
    let args = format!(r#"{{"url": "{url}", "body": {number}, "idempotent": true}}"#);
    Enqueue::new(serde_json::from_str(&args).unwrap())
}

/// Jobs that are not completed; asked for page by page, so that the question stays small.
async fn unfinished(tidings: &Tidings) -> usize {
    let states = tidings::core::job::StateName::ALL.into_iter().filter(|state| state.as_str() != "completed");
    let mut found = 0;
    for state in states {
        let filter = JobFilter { state: Some(state), limit: 1, ..JobFilter::default() };
        found += tidings.jobs(&filter).await.unwrap().len();
    }
    found
}
