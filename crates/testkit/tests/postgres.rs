//! The throw-away PostgreSQL keeps its own promises.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use testkit::forwarder::Forwarder;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_follows_takes_no_writes_and_takes_over() {
    let primary = Cluster::start(Durability::Fast);
    connect(&primary.url("postgres")).await.batch_execute("create table t (id int)").await.unwrap();
    let standby = primary.standby().await;
    let forwarder = Forwarder::to(primary.address()).await;
    let url = format!("postgres://postgres@{}/postgres", forwarder.address());
    connect(&url).await.batch_execute("insert into t values (1)").await.unwrap();
    let refused =
        connect(&standby.url("postgres")).await.batch_execute("insert into t values (2)").await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "25006");

    primary.stop_immediate();
    standby.promote().await;
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err(), "it still points at the old one");
    forwarder.point_at(standby.address());
    connect(&url).await.batch_execute("insert into t values (3)").await.unwrap();
    assert_eq!(
        text(&connect(&url).await, "select string_agg(id::text, ',' order by id) from t").await,
        "1,3"
    );
}

#[tokio::test]
async fn a_forwarder_loses_the_answer_that_it_was_told_to_and_no_other() {
    let database = database().await;
    let (_, server) = database.url().split_once('@').unwrap();
    let forwarder = Forwarder::to(server.split('/').next().unwrap().parse().unwrap()).await;
    let url = format!("postgres://postgres@{}/{}", forwarder.address(), database.name());
    let client = connect(&url).await;
    client.batch_execute("create table t (id int)").await.unwrap();
    forwarder.lose_the_answer_to(b"values (1)");
    assert_eq!(text(&client, "select count(*)::text from t").await, "0");
    assert!(client.batch_execute("insert into t values (1)").await.unwrap_err().code().is_none());
    assert_eq!(forwarder.lost(), 1);
    let client = connect(&url).await;
    assert_eq!(text(&client, "select count(*)::text from t").await, "1", "it was done");
    forwarder.cut();
    assert!(client.batch_execute("insert into t values (2)").await.is_err());
}
