//! What a figure was measured on.

/// Processors, memory, and the build.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let build = if cfg!(debug_assertions) { "a debug build: figures mean nothing" } else { "release build" };
    format!("{cores} cores, {}, {build}", std::env::consts::OS)
}

/// The version of the database behind `address`.
pub(crate) async fn database_version(address: &str) -> String {
    if address.starts_with("sqlite:") {
        return tidings::store::sqlite::library_version().to_owned();
    }
    let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.query_one("SHOW server_version", &[]).await.unwrap().get(0)
}
