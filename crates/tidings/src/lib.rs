//! A durable job layer and delivery library on SQLite and PostgreSQL.

pub mod store;
