//! The shell: everything that touches sockets, files, clocks, signals and processes.
//!
//! The pure crates take bytes, time and randomness as inputs; this crate supplies them. It carries bytes and framed JSON
//! texts but knows nothing of OVSDB: no database, schema, monitor or transaction is named here. The binaries put the two
//! together.
//!
//! Every effect has one home: [`shard`] for connections, [`log_file`] for files, [`vlog`] for logging,
//! [`daemon`] and [`signals`] for the process, [`unixctl`] for the control socket, [`clock`] and [`random`] for time and
//! chance.
//!
//! Connections, time, chance and logging are always there: they are all that a client library needs. The rest is for programs (feature
//! `program`, on by default), and TLS and tokio have features of their own.

// Without programs, parts of what is shared with them have no caller.
#![cfg_attr(not(feature = "program"), allow(dead_code, unused_imports))]

#[cfg(feature = "program")]
pub mod anonymous;
#[cfg(feature = "program")]
pub mod args;
#[cfg(feature = "program")]
pub mod blocking;
pub mod cleanup;
pub mod clock;
pub mod coverage;
mod crash;
#[cfg(feature = "program")]
pub mod daemon;
#[cfg(feature = "program")]
pub mod date;
#[cfg(feature = "program")]
pub mod descriptors;
pub mod dirs;
#[cfg(feature = "program")]
pub mod durations;
pub mod errno;
pub mod hangup;
#[cfg(feature = "program")]
pub mod http;
#[cfg(feature = "program")]
pub mod json_file;
pub mod listener;
#[cfg(feature = "program")]
pub mod lockfile;
#[cfg(feature = "program")]
pub mod log_file;
#[cfg(feature = "program")]
pub mod mailbox;
#[cfg(feature = "program")]
pub mod manual;
#[cfg(feature = "program")]
pub mod memory;
#[cfg(feature = "program")]
pub mod pidfile;
#[cfg(feature = "program")]
pub mod poll_interval;
#[cfg(feature = "program")]
pub mod priority;
#[cfg(feature = "program")]
pub mod process_figures;
pub mod program;
#[cfg(feature = "progress")]
pub mod progress;
pub mod random;
pub mod readiness;
#[cfg(feature = "program")]
pub mod replacement;
pub mod resolve;
#[cfg(feature = "program")]
pub mod segment;
#[cfg(feature = "program")]
pub mod service_manager;
#[cfg(feature = "program")]
pub mod shard;
pub mod signals;
#[cfg(feature = "program")]
pub mod size;
pub mod socket;
pub mod stream;
pub mod target;
#[cfg(feature = "program")]
pub mod timeout;
pub mod tls;
pub mod unix_path;
#[cfg(feature = "program")]
pub mod unixctl;
pub mod vlog;
pub mod waker;

#[cfg(test)]
mod test_dir;
