//! A row that does not read as an event (a newer program's, or a hand's) stops nobody else.

use crate::draft::NOW;
use crate::event_draft::{Becomes, Notes, done, events, with_types};
use crate::fixture::Fresh;
use std::sync::Arc;
use tidings::core::event::EventId;
use tidings::core::id::JobId;
use tidings::core::relay::RelayState;
use tidings::random;
use tidings::store::StoreError;
use tidings::store::outbox::{Batch, EventFilter, Passed};

/// Makes rows unreadable in a way that no constraint sees.
async fn damage(store: &Fresh, ids: &[EventId]) {
    for id in ids {
        let id = store.place().literal(JobId(id.0));
        store.sql(&format!("UPDATE tidings.event SET failures = -1 WHERE id = {id}")).await.unwrap();
    }
}

/// UP2.
#[tokio::test]
async fn rows_that_cannot_be_read_are_told_apart_set_aside_and_put_back_when_they_are_mended() {
    let store = with_types(super::open().await).await;
    let ids = store.note(events(12)).await;
    damage(&store, &ids[..7]).await;
    let passed = store.fan_out(Batch::Due(10), NOW, Arc::new(Becomes(1))).await.unwrap();
    let Passed::Unreadable(rows) = passed else { panic!("{passed:?}") };
    let told: Vec<EventId> = rows.iter().map(|(id, _)| *id).collect();
    assert_eq!(told, ids[..7]);
    assert!(rows[0].1.contains("failures out of range"), "{}", rows[0].1);
    for (id, reason) in &rows {
        let incident = random::job_id(NOW).0;
        assert!(store.set_aside_unreadable(*id, reason, incident, NOW).await.unwrap());
        assert!(!store.set_aside_unreadable(*id, reason, incident, NOW).await.unwrap(), "once");
    }
    assert_eq!(store.incidents(false, 100).await.unwrap().len(), 7);
    assert_eq!(store.relay(10).await, ids[7..], "and nobody else is stopped");

    let read = store.noted(ids[0]).await;
    assert!(matches!(&read.state, RelayState::Poisoned { reason, .. } if reason == &rows[0].1));
    let again = read.state.requeued(NOW).unwrap();
    assert!(store.save_event(&read, &again, random::job_id(NOW).0, NOW).await.unwrap());
    assert_eq!(done(store.fan_out(Batch::Due(10), NOW, Arc::new(Becomes(1))).await.unwrap()), ids[..1]);
}

#[tokio::test]
async fn a_list_of_events_leaves_it_out_and_whoever_asks_for_it_is_told_what_is_wrong() {
    let store = with_types(super::open().await).await;
    let ids = store.note(events(6)).await;
    damage(&store, &ids[2..5]).await;
    let listed = store.list_events(&EventFilter { limit: 2, ..EventFilter::default() }).await.unwrap();
    assert_eq!(listed.iter().map(|stored| stored.event.id).collect::<Vec<_>>(), [ids[5], ids[1]]);
    let problem = store.events(&ids[2..3]).await.unwrap_err();
    assert!(matches!(problem, StoreError::CorruptRow { .. }), "{problem}");
    assert!(problem.to_string().contains(&ids[2].to_string()), "{problem}");
}
