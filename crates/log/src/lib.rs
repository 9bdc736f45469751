//! Database files: the codec of their records, the rules for damaged files, and the storage of a
//! running database (docs/spec/storage.md 1 to 5).
//!
//! A file is a sequence of records:
//!
//! ```text
//! OVSDB JSON 90 70a5f88d...\n        header.rs     one line, at most 127 bytes
//! {"_date":...,"t":{...}}\n          decode.rs, encode.rs, snapshot.rs
//! ```
//!
//! The modules of this crate, in the order in which data flows:
//!
//! ```text
//! reading    source --> split (buffer) --> reader              raw records, for tools
//!                                      --> load   --> decode   one transaction at a time
//!                                      --> feed   --> rows, decode   jobs for several threads
//!            salvage, interruption --> ending                  what damage means for a file
//! writing    encode, snapshot --> record, header               Delta or snapshot to a record
//!            storage: routing --> committer (pace, status)     which thread writes, and when
//!                             --> rewriter                     a new file next to the present one
//!            writer, rewrite --> disk                          appending, syncing, replacing
//!            rewrite --> history                               keeping the replaced files
//!            commit_client                                     who made a commit, in its comment
//!            commit_ids                                        which id a commit has
//! clusters   cluster                                           records of cluster members
//! ```
//!
//! Invariant: pure. Bytes arrive through [`Source`] and leave through a `Vec`, a sink closure or
//! the [`Disk`] that the server or the simulator provides. This crate knows neither tables nor
//! transactions in progress: a [`Delta`](corvid_data::Delta) goes in, a
//! [`Recorded`](corvid_data::Recorded) comes out.

mod buffer;
pub mod cluster;
pub mod commit_client;
pub mod commit_ids;
pub mod decode;
pub mod disk;
pub mod encode;
pub mod ending;
pub mod error;
pub mod feed;
#[cfg(test)]
mod fixture;
pub mod header;
pub mod history;
mod interruption;
pub mod load;
pub mod reader;
pub mod record;
pub mod rewrite;
pub mod rows;
pub mod salvage;
pub mod snapshot;
pub mod source;
pub mod split;
pub mod storage;
pub mod writer;

pub use commit_client::CommitClient;
pub use commit_ids::CommitIds;
pub use disk::{Disk, DiskError, DiskFile, Fault};
pub use encode::{Stamp, is_recorded, write_long_transaction, write_schema, write_transaction};
pub use ending::{Ending, Rot};
pub use error::{FormatError, ReadError};
pub use feed::{Feed, Job};
pub use header::Magic;
pub use history::{HistoryFolder, HistoryForm, HistoryName, KeptFile};
pub use load::{Cause, Damage, Extent, Load};
pub use reader::RecordReader;
pub use record::Record;
pub use rewrite::Rewrite;
pub use snapshot::write_snapshot;
pub use source::Source;
pub use split::Raw;
pub use writer::LogWriter;
