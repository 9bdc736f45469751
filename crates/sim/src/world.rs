//! The world that all four simulations share: everything around a server.
//!
//! ```text
//! dice          every choice, from one seed
//! clock         time of one host, at its own rate disk, inode   files that tear, fail, fill up and
//! forget storage       the threads of a server that write a file, as queues member_file   the same
//! for a cluster member's file, with its snapshots network       messages, connections and wires
//! between hosts, delayed and lost as badly as possible host_faults   which faults the hosts of a
//! cluster have, and when trace         the events of a run, hashed or printed seeds         many
//! runs on all cores, for tests and for the program `simulate`
//! ```
//!
//! Invariant: the world knows no server, client or check. A simulation drives it and judges the
//! results.

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
