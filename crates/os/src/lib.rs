//! The shell: everything that touches sockets, files, clocks, signals and processes.
//!
//! The pure crates take bytes, time and randomness as inputs; this crate supplies them. It carries bytes and framed JSON
//! texts but knows nothing of OVSDB: no database, schema, monitor or transaction is named here. The binaries put the two
//! together.
//!
//! Every effect has one home: [`shard`] for connections, [`log_file`] for files, [`vlog`] for logging,
//! [`daemon`] and [`signals`] for the process, [`unixctl`] for the control socket, [`clock`] and [`random`] for time and
//! chance.

pub mod anonymous;
pub mod args;
pub mod blocking;
pub mod cleanup;
pub mod clock;
pub mod coverage;
mod crash;
pub mod daemon;
pub mod date;
pub mod descriptors;
pub mod dirs;
pub mod durations;
pub mod errno;
pub mod hangup;
pub mod http;
pub mod json_file;
pub mod listener;
pub mod lockfile;
pub mod log_file;
pub mod mailbox;
pub mod manual;
pub mod memory;
pub mod pidfile;
pub mod poll_interval;
pub mod priority;
pub mod process_figures;
pub mod program;
#[cfg(feature = "progress")]
pub mod progress;
pub mod random;
pub mod readiness;
pub mod replacement;
pub mod resolve;
pub mod segment;
pub mod service_manager;
pub mod shard;
pub mod signals;
pub mod size;
pub mod socket;
pub mod stream;
pub mod target;
pub mod timeout;
pub mod tls;
pub mod unix_path;
pub mod unixctl;
pub mod vlog;

#[cfg(test)]
mod test_dir;
