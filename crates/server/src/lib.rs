//! The `ovsdb-server` program: drives the state machines of `corvid-service` with threads, sockets, files and clocks.

pub mod check_config;
pub mod main_loop;
pub mod manual;
pub mod options;

mod allocator;
mod audit;
mod config;
mod control;
mod coverage;
mod database;
mod http;
mod limits;
mod liveness;
mod main_handle;
mod metrics;
mod process_figures;
mod remotes;
mod server;
mod shard;
mod tls_settings;
mod watchdog;

pub use database::recorder::replay_all;
