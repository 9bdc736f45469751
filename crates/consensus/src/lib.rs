//! One member of a clustered database: consensus on the order of its commits
//! (docs/spec/distribution.md 1).
//!
//! ```text
//! database (service)                  member                               other members
//!    | MemberRequest::Propose  ------>  |  log entry, Store (sync) + Send  ---->  |
//!    | MemberEvent::Committed  <------  |  a quorum has synced it         <----   |
//! ```
//!
//! The modules of this crate:
//!
//! | File | Owns |
//! |---|---|
//! | `entry.rs` | the text of a log entry, spliced unchanged into the file and onto the wire |
//! | `message.rs` | the messages between members |
//! | `database.rs` | the messages between a member and its database |
//! | `member.rs` | the member: its inputs, outputs and state |
//! | `guard.rs` | the checks of peers' messages before they reach the consensus library |
//! | `limits.rs` | the limits on messages between members, which senders check before they queue |
//! | `wire.rs` | the text of the messages between members |
//! | `peers.rs` | the connections between members: dialling, identities, probes, limits |
//!
//! Invariant: pure. Time, replies of the storage and messages of peers are inputs; records,
//! messages and events are outputs. This crate names no socket, file, clock or thread.

pub mod database;
pub mod entry;
pub mod guard;
pub mod limits;
pub mod member;
pub mod message;
pub mod peers;
mod raft_node;
pub mod wire;

pub use database::{
    ClientIdentity, Committed, Finding, Forward, ForwardMethod, ForwardOnce, ForwardOrigin,
    ForwardOutcome, MemberEvent, MemberRequest, Proposal,
};
pub use entry::EntryBody;
pub use guard::GuardView;
pub use member::{Input, KeptEntries, Member, Output, Recovered, Settings, Status};
pub use message::PeerMessage;
pub use peers::{BacklogLimits, ConnectionNumber, DialTarget, Peers, PeersOutput, PeersSettings};
