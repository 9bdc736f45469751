//! The thread of a cluster member (`corvid_consensus::Member`), as state machines: its turns carry
//! everything between the member, its connections, its database and its file.
//!
//! | File | Owns |
//! |---|---|
//! | [`contents`] | the contents of the database that an opened file yields |
//! | [`database_queue`] | events on their way to the database, and the snapshots between them |
//! | [`file`] | the order of requests to the file, new files, snapshots of peers |
//! | [`pump`] | the order of steps in a turn, and how outputs are carried out |
//! | [`effects`] | the connections, threads and observers of the thread |
//!
//! Invariant: pure, like the whole crate: the simulator of clusters runs the same code as the
//! server.

pub mod contents;
pub mod database_queue;
pub mod effects;
pub mod file;
pub mod pump;

pub use contents::Contents;
pub use database_queue::DatabaseQueue;
pub use effects::MemberEffects;
pub use file::{BodyPart, FileEffects, MemberFile, ReceptionNumber};
pub use pump::MemberPump;
