//! The `ovsdb-server` program: drives the state machines of `corvid-service` with threads, sockets, files and clocks.

pub mod admin;
pub mod backup;
pub mod config_file;
pub mod configured;
pub mod database_thread;
pub mod demo;
pub mod driver;
pub mod heartbeat;
pub mod inbox;
pub mod main_thread;
pub mod manual;
pub mod open;
pub mod options;
pub mod outbox;
pub mod outgoing;
pub mod remote_options;
pub mod remotes;
pub mod reports;
pub mod run;
pub mod saved;
pub mod server;
pub mod shard;
pub mod storage;
pub mod tls;
pub mod watchdog;
pub mod worker;
