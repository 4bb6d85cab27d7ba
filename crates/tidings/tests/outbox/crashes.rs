//! Relays that are killed at any moment: between claim and commit, between commit and
//! the wake-ups. A process of its own each time, so that the kill is a real one.

use super::open;
use crate::fixture::{
    Deliver, Index, Place, Seen, all_jobs, declare, jobs, keep, note, relay, soon, to_each,
};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tidings::core::route::Subscription;
use tidings::store::outbox::{EventFilter, StoredEvent};
use tidings::{Builder, JobId, Tidings};

/// Names the database to the process that is to be killed.
const ADDRESS: &str = "TIDINGS_TEST_RELAY_ADDRESS";
const KILLS: usize = 100;
/// Recorded before each kill: more than one process gets through in its time.
const EVENTS_A_ROUND: usize = 150;
const RECEIVERS: [&str; 2] = ["a", "b"];

fn builder() -> Builder {
    Tidings::builder().expand("webhooks", to_each(&RECEIVERS))
}

/// Not a test: what is killed. It has no kinds, and so no workers; its relay runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process that another test kills"]
async fn a_process_that_relays_until_it_is_killed() {
    #[expect(clippy::disallowed_methods, reason = "told by the test that started this process")]
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let tidings = builder().open(&address).await.unwrap();
    let _workers = tidings.work().await.unwrap();
    println!("{READY}");
    std::future::pending::<()>().await;
}

const READY: &str = "it relays";

/// A process that has begun to relay.
fn start(place: &Place) -> Child {
    let name =
        format!("{}::a_process_that_relays_until_it_is_killed", module_path!().split_once("::").unwrap().1);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", &name, "--nocapture", "--test-threads=1"])
        .env(ADDRESS, &place.address)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = said.map_while(Result::ok).any(|line| line.contains(READY));
    assert!(ready, "it ended before it was killed");
    child
}

/// LO1, B3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_killed_a_hundred_times_fans_each_event_out_once() {
    let place = open().await;
    let kinds =
        Tidings::builder().kind(Seen::<Index>::default(), keep).kind(Seen::<Deliver>::default(), keep);
    let tidings = place.process(kinds.expand("webhooks", to_each(&RECEIVERS))).await;
    let index = Subscription::to_job("index", "note.*", "search.index").unwrap();
    declare(&tidings, &[index, Subscription::to_expander("hooks", "*", "webhooks").unwrap()]).await;
    let (mut all, mut cut_short) = (BTreeSet::new(), 0);
    for _ in 0..KILLS {
        let records = (0..EVENTS_A_ROUND).map(note).collect();
        all.extend(tidings.record_all(records).await.unwrap().into_iter().map(|receipt| receipt.id));
        let mut child = start(&place);
        let delay_ms = tidings::random::draw().0 % 60;
        tokio::time::sleep(Duration::from_millis(delay_ms.into())).await;
        child.kill().unwrap();
        child.wait().unwrap();
        cut_short += usize::from(tidings.backlog().await.unwrap().waiting > 0);
    }
    let done = fanned_out(&tidings).await.len();
    assert!(done > 0 && cut_short > 0, "they got on ({done}), and some were cut short ({cut_short})");
    soon("the database lets go of what the last one held, and all is fanned out", async {
        while tidings.backlog().await.unwrap().waiting > 0 {
            relay(&tidings).await;
        }
    })
    .await;
    assert_each_once(&tidings, all.into_iter().map(|id| id.to_string()).collect()).await;
}

async fn fanned_out(tidings: &Tidings) -> Vec<StoredEvent> {
    let filter = EventFilter { state: "fanned_out".into(), limit: 100_000, ..EventFilter::default() };
    tidings.events(&filter).await.unwrap()
}

async fn assert_each_once(tidings: &Tidings, all: BTreeSet<String>) {
    let indexed: Vec<String> =
        all_jobs::<Index>(tidings, "search.index").await.into_iter().map(|index| index.id).collect();
    assert_eq!(indexed.len(), all.len());
    assert!(indexed.into_iter().collect::<BTreeSet<_>>() == all);
    let delivered = all_jobs::<Deliver>(tidings, "deliver").await;
    assert_eq!(delivered.len(), all.len() * RECEIVERS.len());
    let delivered: BTreeSet<Deliver> = delivered.into_iter().collect();
    assert_eq!(delivered.len(), all.len() * RECEIVERS.len());
    // What an event says it became is there.
    let events = fanned_out(tidings).await;
    assert_eq!(events.len(), all.len());
    let said: Vec<JobId> = events.iter().flat_map(tidings::events::jobs_of).collect();
    assert_eq!(said.len(), all.len() * (1 + RECEIVERS.len()));
    assert!(tidings.store().load(&said).await.unwrap().iter().all(Option::is_some));
    assert_eq!(jobs(tidings, events[0].event.id).await.len(), 1 + RECEIVERS.len());
}
