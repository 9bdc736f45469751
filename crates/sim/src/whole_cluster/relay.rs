//! A relay in a run: a server without a file, whose source is a member of the cluster or another relay.
//!
//! | File | Owns |
//! |---|---|
//! | `host.rs` | a relay's host: its clock, its pauses, its remotes, and the process that runs there or is to start |
//! | `process.rs` | one life of it: the machine, the thread of the relay, the main thread as far as a relay concerns it |
//! | `transport.rs` | the connection of that thread, over wires |

mod host;
mod process;
mod transport;

pub(super) use host::RelayHost;
pub(super) use process::RelayStep;
