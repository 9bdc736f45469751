//! Around the member of a clustered database (`corvid_consensus::Member`): the turns of its thread, between
//! the member, its connections, its database and its file.
//!
//! | File | Owns |
//! |---|---|
//! | [`contents`] | the contents of the database that an opened file yields |
//! | [`database_queue`] | events on their way to the database, and the snapshots between them |
//! | [`file`] | the order of requests to the file, new files, snapshots of peers |
//! | [`pump`] | the order of a turn of the member's thread, and how outputs are carried out |
//! | [`effects`] | the connections, threads and observers of that thread |
//!
//! Invariant: pure, as the whole crate, so the simulator of whole clusters runs it as the server does.

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
