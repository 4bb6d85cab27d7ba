//! The throw-away PostgreSQL keeps its own promises.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use testkit::postgres::{Cluster, Database, Durability, database};
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn text(client: &Client, query: &str) -> String {
    client.query_one(query, &[]).await.unwrap().get(0)
}

async fn exists(at: &Database, name: &str) -> bool {
    let client = connect(at.url()).await;
    client.query_opt("select 1 from pg_database where datname = $1", &[&name]).await.unwrap().is_some()
}

#[tokio::test]
async fn every_database_is_fresh_and_gone_after_its_test() {
    let (first, second) = (database().await, database().await);
    assert_ne!(first.url(), second.url());
    let client = connect(first.url()).await;
    client.batch_execute("create table only_here (id int)").await.unwrap();
    assert_eq!(text(&client, "show server_encoding").await, "UTF8");
    assert_eq!(
        text(&connect(second.url()).await, "select count(*)::text from pg_class where relname = 'only_here'")
            .await,
        "0"
    );

    let name = first.name().to_owned();
    drop(first);
    assert!(!exists(&second, &name).await, "{name} was dropped although a client was connected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_ones_own_can_be_stopped_crashed_and_changed() {
    let cluster = Cluster::start(Durability::Durable);
    let url = cluster.url("postgres");
    assert_eq!(text(&connect(&url).await, "show fsync").await, "on");

    cluster.set("default_transaction_read_only", "on").await;
    let refused = connect(&url).await.batch_execute("create table t (id int)").await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "25006");
    cluster.reset("default_transaction_read_only").await;
    connect(&url).await.batch_execute("create table t (id int)").await.unwrap();

    cluster.stop_immediate();
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    cluster.start_again();
    connect(&url).await.batch_execute("insert into t values (1)").await.unwrap();

    cluster.stop_fast();
    cluster.start_again();
    cluster.restart();
    assert_eq!(text(&connect(&url).await, "select count(*)::text from t").await, "1");

    drop(cluster);
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
}
