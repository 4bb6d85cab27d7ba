//! What a test cluster is told in its `postgresql.conf`.

use super::Durability;

/// The lines that are appended to the generated configuration.
pub(super) fn lines(port: u16, durability: Durability) -> String {
    let on_disk = match durability {
        Durability::Fast => "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n",
        Durability::Durable => "fsync = on\nsynchronous_commit = on\nfull_page_writes = on\n",
    };
    format!(
        "\n# Settings of a test cluster.\n\
         listen_addresses = '127.0.0.1'\n\
         port = {port}\n\
         unix_socket_directories = ''\n\
         max_connections = 200\n\
         shared_buffers = '128MB'\n\
         max_wal_size = '2GB'\n\
         log_min_messages = warning\n\
         {on_disk}"
    )
}
