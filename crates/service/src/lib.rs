//! The server as state machines: sessions on shards ([`frontend`]), databases ([`database`]) each behind its [`pump`], the lock table
//! and the list of databases between them. Time, bytes and identities come in; bytes, log writes and events go out.
//!
//! This crate names no socket, file, clock, thread or random source: the `server` binary (or a simulator) drives it.

pub mod audit;
pub mod counters;
pub mod database;
pub mod frontend;
pub mod job;
pub mod locks;
pub mod message;
pub mod pump;
pub mod recording;
pub mod remote_rows;
pub mod remote_status;
pub mod replication;
pub mod reply_memory;
pub mod schema_epoch;
pub mod served_databases;
pub mod server_db;
pub mod session_limits;
pub mod storage;

pub use database::{DatabaseService, Model, Now, Options};
pub use frontend::Frontend;
pub use pump::Pump;
pub use served_databases::ServedDatabases;
