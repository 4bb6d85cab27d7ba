//! A database that goes away and comes back.

mod postgres {
    use crate::fixture::{PATIENCE, Place, get};
    use testkit::postgres::{Cluster, Durability};
    use testkit::receiver::{Receiver, Step};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn while_the_database_is_away_callers_are_told_and_afterwards_work_goes_on_without_a_restart() {
        let cluster = tokio::task::spawn_blocking(|| Cluster::start(Durability::Fast)).await.unwrap();
        let place = Place::at(cluster.url("postgres"));
        let server = place.serve(&["--allow-private"]).await;
        let receiver = Receiver::start([Step::status(200)]).await;
        let body = format!(r#"{{"kind":"http.call","args":{{"url":"{}"}}}}"#, receiver.url("/"));
        let before = server.enqueue(&body).await;
        assert_eq!(server.settled(&before).await["state"], "completed");

        let cluster = tokio::task::spawn_blocking(move || {
            cluster.stop_fast();
            cluster
        })
        .await
        .unwrap();
        let refused = server.post("/v1/jobs", &body).await;
        refused.problem(503, "database-unavailable");
        assert_eq!(refused.header("retry-after"), "2");
        assert_eq!(get(server.address(), "/readyz").await.status, 503);
        assert_eq!(get(server.address(), "/healthz").await.status, 200, "the process lives");
        assert_eq!(place.tidings(&["jobs", "list"]).await.code, 5);

        let _cluster = tokio::task::spawn_blocking(move || {
            cluster.start_again();
            cluster
        })
        .await
        .unwrap();
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while get(server.address(), "/readyz").await.status != 200 {
            assert!(tokio::time::Instant::now() < deadline, "it is ready again");
        }
        let after = server.enqueue(&body).await;
        assert_eq!(server.settled(&after).await["state"], "completed");
        assert_eq!(receiver.requests().len(), 2);
    }
}
