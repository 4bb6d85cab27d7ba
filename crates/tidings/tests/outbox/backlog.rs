//! The backlog's alert, and how long events are kept.

use super::open;
use crate::fixture::{Index, Place, Seen, declare, index_of_notes, keep, note, record, relay};
use tidings::core::relay::RelayState;
use tidings::store::outbox::EventFilter;
use tidings::{Millis, Retention, Settings, Tidings, testing};

async fn started(place: &Place, settings: Settings) -> Tidings {
    let tidings = place.tidings(Tidings::builder().kind(Seen::<Index>::default(), keep).settings(settings));
    declare(&tidings, &[index_of_notes()]).await;
    tidings
}

/// The reason of the open alert, after somebody looked.
async fn alert(tidings: &Tidings) -> Option<String> {
    testing::watch_backlog(tidings).await.unwrap();
    let open = tidings.incidents(false, 10).await.unwrap();
    assert!(open.len() <= 1, "one alert, however often it is seen: {open:?}");
    open.first().map(|incident| incident.reason.clone())
}

/// B6.
#[tokio::test]
async fn the_backlog_raises_one_alert_by_number_or_age_and_clears_it_by_itself() {
    let place = open().await;
    let tidings = started(&place, Settings::default()).await;
    assert_eq!(alert(&tidings).await, None);
    tidings.record_all((0..1_000).map(note).collect()).await.unwrap();
    assert_eq!(alert(&tidings).await, None, "a thousand may wait");
    record(&tidings, note(1)).await;
    for _ in 0..3 {
        assert_eq!(alert(&tidings).await.unwrap(), "more than 1000 events wait for their fan-out");
    }
    relay(&tidings).await;
    assert_eq!(alert(&tidings).await, None, "down by itself");

    record(&tidings, note(1)).await;
    place.clock.advance(Millis::from_minutes(5));
    assert_eq!(alert(&tidings).await, None);
    place.clock.advance(Millis(1_000));
    assert_eq!(alert(&tidings).await.unwrap(), "an event has waited for its fan-out for 301 s");
    relay(&tidings).await;
    assert_eq!(alert(&tidings).await, None);
    let all = tidings.incidents(true, 10).await.unwrap();
    assert_eq!(all.len(), 2, "both are remembered");
    assert!(all.iter().all(|incident| incident.closed_at.is_some() && incident.source == "backlog"));
}

/// B6.
#[tokio::test]
async fn events_go_seven_days_after_their_fan_out_and_what_is_not_fanned_out_stays() {
    let place = open().await;
    let tidings = started(&place, Settings::default()).await;
    let first = record(&tidings, note(1)).await;
    place.clock.advance(Millis::from_days(3));
    relay(&tidings).await;
    let second = record(&tidings, note(2)).await;
    place.clock.advance(Millis::from_days(7));
    testing::keep_house(&tidings).await.unwrap();
    assert!(tidings.event(first).await.unwrap().is_some(), "seven days from its fan-out");
    place.clock.advance(Millis(1));
    testing::keep_house(&tidings).await.unwrap();
    assert!(tidings.event(first).await.unwrap().is_none());
    place.clock.advance(Millis::from_days(400));
    testing::keep_house(&tidings).await.unwrap();
    let second = tidings.event(second).await.unwrap().unwrap();
    assert!(matches!(second.state, RelayState::Waiting { .. }));
}

#[tokio::test]
async fn the_settings_say_how_long_events_stay_and_thousands_go_in_one_housekeeping() {
    let place = open().await;
    let retention = Retention { events: Millis::from_hours(1), ..Retention::default() };
    let tidings = started(&place, Settings { retention, ..Settings::default() }).await;
    for _ in 0..3 {
        tidings.record_all((0..700).map(note).collect()).await.unwrap();
    }
    relay(&tidings).await;
    place.clock.advance(Millis(3_600_001));
    testing::keep_house(&tidings).await.unwrap();
    let left = tidings.events(&EventFilter { limit: 10, ..EventFilter::default() }).await.unwrap();
    assert!(left.is_empty());
}
