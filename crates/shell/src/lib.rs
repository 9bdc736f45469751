//! The effects of this repository's programs, other than connections and databases: options,
//! manuals, logs, daemons, signals, the control socket.
//!
//! Every effect has one home: [`vlog`] for logging, [`daemon`] and [`signals`] for the process,
//! [`unixctl`] for the control socket, [`args`] and [`manual`] for the command line. The crate
//! knows nothing of OVSDB: it names no database, schema, monitor or transaction. No library for
//! other programs depends on it.

pub mod anonymous;
pub mod args;
pub mod blocking;
mod crash;
pub mod daemon;
pub mod date;
pub mod descriptors;
pub mod durations;
pub mod events;
pub mod hangup;
pub mod json_file;
pub mod local_time;
pub mod manual;
pub mod memory;
pub mod output;
mod pager;
pub mod pidfile;
pub mod program;
#[cfg(feature = "progress")]
pub mod progress;
pub mod service_manager;
pub mod signals;
pub mod size;
pub mod terminal;
pub mod timeout;
pub mod tls_options;
pub mod unixctl;
pub mod vlog;
mod window;
