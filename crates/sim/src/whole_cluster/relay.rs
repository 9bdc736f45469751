//! A relay in a run: a server without a file, whose source is a member of the cluster or another
//! relay.
//!
//! | File | Owns |
//! |---|---|
//! | `host.rs` | a relay's host: its clock, pauses and remotes, and its process, if it runs |
//! | `process.rs` | one life of the process: machine, relay's thread, the main thread's part |
//! | `transport.rs` | the connection of that thread, over wires |

mod host;
mod process;
mod transport;

pub(super) use host::RelayHost;
pub(super) use process::RelayStep;
