//! The world that all four simulations share: everything around a server that is not of the server.
//!
//! ```text
//! dice          every choice, from one seed
//! clock         time of one host, at a rate of its own
//! disk, inode   files that tear, fail, fill up and forget
//! storage       the threads of a server that write a file, as queues
//! member_file   the same of a cluster member's file, with its snapshots
//! network       messages, connections and wires between hosts, as late and as lost as they may be
//! host_faults   which faults the hosts of a cluster have, and when
//! trace         the events of a run, hashed or printed
//! seeds         many runs on all cores, for tests and for the program `simulate`
//! ```
//!
//! Invariant: it knows no server, no client and no check. A simulation drives it and judges what follows.

pub(crate) mod clock;
pub mod dice;
pub mod disk;
pub(crate) mod host_faults;
mod inode;
pub(crate) mod member_file;
pub(crate) mod network;
pub mod seeds;
pub(crate) mod storage;
pub mod trace;
