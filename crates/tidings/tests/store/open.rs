//! Opening a database: migrating it once, and refusing what this program cannot use.

use crate::draft::job;
use tidings::store::{self, OpenOptions, StoreError};

fn options(migrate: bool) -> OpenOptions {
    OpenOptions { migrate, ..OpenOptions::default() }
}

/// UP5.
#[tokio::test(flavor = "multi_thread")]
async fn ten_who_open_an_empty_database_at_once_all_get_it_migrated_once() {
    for _ in 0..5 {
        let place = super::open_empty().await;
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let address = place.address();
            opening.spawn(async move { store::open(&address, &options(true)).await });
        }
        for opened in opening.join_all().await {
            opened.unwrap().insert(vec![job()]).await.unwrap();
        }
        assert_eq!(place.number("SELECT count(*) FROM tidings.job").await, 10);
        let versions = "SELECT count(*) - max(version) FROM tidings.migration";
        assert_eq!(place.number(versions).await, 0);
    }
}

/// UP4.
#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_and_both_versions_are_named() {
    let store = super::open().await;
    let known = store.number("SELECT max(version) FROM tidings.migration").await;
    let column = if store.is_postgres() { "(version)" } else { "(version, applied_at_ms)" };
    let value = if store.is_postgres() { "(7777)" } else { "(7777, 0)" };
    store.sql(&format!("INSERT INTO tidings.migration {column} VALUES {value}")).await.unwrap();
    for migrate in [true, false] {
        let Err(refused) = store.place().open(&options(migrate)).await else { panic!("it was opened") };
        assert!(matches!(refused, StoreError::SchemaNewer { found: 7777, .. }), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("7777") && text.contains(&format!("up to {known}")), "{text}");
    }
}

#[tokio::test]
async fn an_empty_database_is_not_touched_unless_told_to_and_the_refusal_says_what_to_do() {
    let place = super::open_empty().await;
    let Err(refused) = place.open(&options(false)).await else { panic!("it was opened") };
    assert!(refused.to_string().contains("tidings migrate"), "{refused}");
    assert!(!refused.is_transient());
    place.open(&options(true)).await.unwrap();
    place.open(&options(false)).await.unwrap();
}

#[tokio::test]
async fn what_is_in_the_database_is_there_for_the_next_who_opens_it() {
    let store = super::open().await;
    let id = store.put(vec![job()]).await[0];
    let another = store.another().await;
    assert!(another.load(&[id]).await.unwrap()[0].is_some());
    assert_eq!(another.backend(), store.backend());
}
