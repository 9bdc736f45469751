//! Around the member of a clustered database (`corvid_consensus::Member`): what lies between the member, its database and its file.
//!
//! | File | Owns |
//! |---|---|
//! | [`contents`] | the contents of the database that an opened file yields |
//! | [`database_queue`] | events on their way to the database, and the snapshots between them |
//! | [`file`] | the order of requests to the file, new files, snapshots of peers |
//!
//! Invariant: pure, as the whole crate, so the simulator of whole clusters runs it as the server does.

pub mod contents;
pub mod database_queue;
pub mod file;

pub use contents::Contents;
pub use database_queue::DatabaseQueue;
pub use file::{FileEffects, MemberFile};
