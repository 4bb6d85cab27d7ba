//! What only a file can do: be damaged, be shared by two processes, be no file at all.

use crate::draft::{Draft, NOW, act, ended, job, jobs, take, terms};
use crate::event_draft::{Becomes, EventDraft, Notes, declared, event, events, with_types};
use crate::fixture::{Place, empty_sqlite, sqlite};
use std::sync::Arc;
use tidings::core::outcome::Outcome;
use tidings::core::route::Subscription;
use tidings::core::time::{Millis, Time};
use tidings::core::unique::UniqueStates;
use tidings::store::outbox::{Batch, EventFilter, IncidentSource, KeptKind};
use tidings::store::{Inserted, JobFilter, OpenOptions, Prune, Store, StoreError};

#[tokio::test]
async fn there_is_no_channel_to_other_processes_and_that_is_no_error() {
    let store = sqlite().await;
    assert!(store.listen().is_none());
    assert_eq!(store.pool_size(), None);
    assert_eq!(store.backend(), "sqlite");
    store.announce(&[tidings::store::Wake::Queue("default".into())]).await.unwrap();
}

/// Each connection would see a database of its own, and all of them would vanish.
#[tokio::test]
async fn a_database_that_is_no_file_is_refused_and_the_refusal_says_what_to_write() {
    for address in ["sqlite:", "sqlite::memory:", "sqlite:file:x?mode=memory"] {
        let Err(problem) = tidings::store::open(address, &OpenOptions::default()).await else {
            panic!("{address} was opened")
        };
        assert!(matches!(problem, StoreError::BadAddress(_)), "{problem}");
        assert!(problem.to_string().contains("sqlite:PATH"), "{problem}");
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let Place::Sqlite(directory) = empty_sqlite().await else { unreachable!() };
    let path = directory.path().join("not/there.db");
    let address = format!("sqlite:{}", path.display());
    let Err(problem) = tidings::store::open(&address, &OpenOptions::default()).await else {
        panic!("it was opened")
    };
    assert!(problem.to_string().contains("not/there.db"), "{problem}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let place = empty_sqlite().await;
    let path = place.address().strip_prefix("sqlite:").unwrap().to_owned();
    let text = "this is somebody's letter, not a database. ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let Err(problem) = place.open(&OpenOptions::default()).await else { panic!("it was opened") };
    assert!(matches!(problem, StoreError::DatabaseDamaged(_)), "{problem}");
    assert!(problem.to_string().contains(&path), "{problem}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

/// Somebody who holds the write lock makes writers wait, and readers not.
#[tokio::test(flavor = "multi_thread")]
async fn another_process_that_writes_is_waited_for_and_reading_goes_on() {
    let store = sqlite().await;
    let id = store.put(jobs(1)).await[0];
    let other = store.place().sqlite_connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writing = {
        let store = store.handle();
        tokio::spawn(async move { store.insert(jobs(1)).await })
    };
    for _ in 0..50 {
        assert!(store.stored(id).await.is_some());
    }
    assert!(!writing.is_finished());
    other.execute_batch("COMMIT").unwrap();
    writing.await.unwrap().unwrap();
}

/// A caller's own transaction, with everything else that is in it.
#[tokio::test]
async fn a_job_enqueued_in_the_callers_transaction_shares_its_fate() {
    let store = sqlite().await;
    store.sql("CREATE TABLE thing (id INTEGER)").await.unwrap();
    let mut connection = store.place().sqlite_connection();
    for commits in [false, true] {
        let tx = connection.transaction().unwrap();
        tx.execute("INSERT INTO thing VALUES (1)", []).unwrap();
        let given = job().unique("key", UniqueStates::UNFINISHED).once("key", "call");
        let inserted = tidings::store::sqlite::insert_in(&tx, vec![given]).unwrap();
        assert!(matches!(inserted[..], [Inserted::New(_)]), "{inserted:?}");
        if commits {
            tx.commit().unwrap();
        } else {
            tx.rollback().unwrap();
        }
        let expected = i64::from(commits);
        assert_eq!(store.number("SELECT count(*) FROM thing").await, expected);
        assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, expected);
        assert_eq!(store.number("SELECT count(*) FROM tidings.job_key").await, 2 * expected);
    }
}

/// UP2, below what the other store can hold: columns of another size or type.
#[tokio::test]
async fn a_row_whose_columns_are_of_the_wrong_shape_is_left_alone_too() {
    let store = sqlite().await;
    let keyed = |n: usize| job().unique(&n.to_string(), UniqueStates::KEPT);
    let ids = store.put((0..5).map(keyed).collect()).await;
    for (id, set) in ids.iter().zip([
        "unique_states = 4000000000",
        "tenant = CAST(x'ff' AS TEXT)",
        "unique_key_hash = x'00'",
        "id = x'0102'",
    ]) {
        let id = store.place().literal(*id);
        store.sql(&format!("UPDATE tidings.job SET {set} WHERE id = {id}")).await.unwrap();
    }
    assert_eq!(store.take_ids(1).await, ids[4..]);
    assert!(store.take_ids(10).await.is_empty());
    let listed = store.list(&JobFilter { limit: 10, ..JobFilter::default() }).await.unwrap();
    assert_eq!(listed.len(), 1);
    let problem = store.load(&ids[..1]).await.unwrap_err();
    assert!(!problem.is_transient(), "{problem}");
}

const PAGE_BYTES: usize = 4096;

/// Every verb once; the problems.
async fn every_verb(store: &Arc<dyn Store>, ids: &[tidings::JobId]) -> Vec<StoreError> {
    let mut problems = vec![];
    problems.extend(store.load(ids).await.err());
    problems.extend(store.history(ids).await.err());
    problems.extend(store.list(&JobFilter { limit: 1_000, ..JobFilter::default() }).await.err());
    problems.extend(store.paused().await.err());
    problems.extend(store.api_keys().await.err());
    problems.extend(store.insert(jobs(50)).await.err());
    problems.extend(store.insert(vec![job().unique("key", UniqueStates::KEPT)]).await.err());
    problems.extend(store.keep_policy("test", 1, "{}").await.err());
    let late = NOW + Millis::from_days(1);
    problems.extend(store.sweep(late, &["default".into()], 1_000, &terms(&["demo"])).await.err());
    match store.take_due(&tidings::store::Take { now: late, ..take(1_000) }).await {
        Ok(taken) => {
            let ends = taken.started.iter().take(20).filter_map(|stored| {
                let report = crate::draft::report(stored.job.counters.claims, Outcome::Accepted);
                tidings::store::Change::decide(&stored.job, report, late).ok()
            });
            problems.extend(store.save(ends.collect()).await.err());
        }
        Err(problem) => problems.push(problem),
    }
    let all = Prune::Finished(tidings::core::job::StateName::Completed, late + Millis(1));
    problems.extend(store.prune(all, 1_000).await.err());
    problems.extend(store.prune(Prune::Facts(late + Millis(1)), 1_000).await.err());
    problems.extend(every_verb_of_events(store, late).await);
    problems
}

async fn every_verb_of_events(store: &Arc<dyn Store>, late: Time) -> Vec<StoreError> {
    let mut problems = vec![];
    problems.extend(store.event_types().await.err());
    problems.extend(store.declare_event_types(&[declared("note.changed")], NOW).await.err());
    problems.extend(store.subscriptions().await.err());
    problems.extend(store.keep_subscriptions(&[subscription()]).await.err());
    problems.extend(store.kept_kinds().await.err());
    problems.extend(store.keep_kinds(&[kind()]).await.err());
    problems.extend(store.backlog(1_000).await.err());
    problems.extend(store.incidents(true, 1_000).await.err());
    problems
        .extend(store.open_incident(uuid::Uuid::max(), IncidentSource::Backlog, "b", "r", NOW).await.err());
    problems.extend(store.close_incident(IncidentSource::Backlog, "relay", NOW).await.err());
    problems.extend(store.record(events(50), NOW).await.err());
    problems.extend(store.list_events(&EventFilter { limit: 1_000, ..EventFilter::default() }).await.err());
    problems.extend(store.fan_out(Batch::Due(1_000), late, Arc::new(Becomes(1))).await.err());
    problems.extend(store.prune(Prune::Events(late + Millis(1)), 1_000).await.err());
    problems
}

fn subscription() -> Subscription {
    Subscription::to_job("index", "note.*", "demo").unwrap()
}

fn kind() -> KeptKind {
    let unique_states = UniqueStates::UNFINISHED;
    KeptKind { name: "demo".into(), queue: "default".into(), priority: 2, unique_states }
}

/// DB7: whichever page is overwritten, it is said, and nothing panics.
#[tokio::test]
async fn a_damaged_file_is_reported_whichever_page_it_is() {
    let store = sqlite().await;
    let ids = store.put((0..150).map(|n| job().once(&n.to_string(), "call")).collect()).await;
    let running = store.take(100).await;
    store.save_all(running[..50].iter().map(|job| ended(job, Outcome::Accepted)).collect()).await;
    store.pause("mail", NOW, &act()).await.unwrap();
    let store = with_types(store).await;
    store.keep_subscriptions(&[subscription()]).await.unwrap();
    store.keep_kinds(&[kind()]).await.unwrap();
    store.note((0..150).map(|n| event().data(&format!("\"{}\"", "x".repeat(n)))).collect()).await;
    store.relay(50).await;
    let incident = tidings::random::job_id(NOW).0;
    store.open_incident(incident, IncidentSource::Backlog, "relay", "many wait", NOW).await.unwrap();
    store.sql("PRAGMA wal_checkpoint(TRUNCATE)").await.unwrap();
    let path = store.place().address().strip_prefix("sqlite:").unwrap().to_owned();
    let whole = std::fs::read(path).unwrap();

    let mut damaged = 0;
    for page in 0..whole.len() / PAGE_BYTES {
        let mut bytes = whole.clone();
        bytes[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].fill(0xa5);
        let place = empty_sqlite().await;
        std::fs::write(place.address().strip_prefix("sqlite:").unwrap(), bytes).unwrap();
        let problems = match place.open(&OpenOptions::default()).await {
            Ok(store) => every_verb(&store, &ids).await,
            Err(problem) => vec![problem],
        };
        for problem in &problems {
            assert!(!problem.to_string().contains("stopped"), "page {page}: a panic: {problem}");
            assert!(!problem.is_transient(), "page {page}: no later try will succeed: {problem}");
        }
        damaged += usize::from(problems.iter().any(|p| matches!(p, StoreError::DatabaseDamaged(_))));
    }
    // The others hold nothing that a verb has to read: the roots of empty indexes, spare pages.
    let pages = whole.len() / PAGE_BYTES;
    assert!(damaged * 4 >= pages * 3, "of {pages} damaged pages {damaged} were noticed");
}
