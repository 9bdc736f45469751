//! The record codec of database files: framing with SHA-1, transactions and schemas as record bodies, and the rules for
//! reading a file that may be damaged (docs/spec/storage.md 1 to 5).
//!
//! Pure: bytes in, bytes out. Bytes arrive through [`Source`] and leave through a `Vec` or a sink closure; appending, syncing and
//! replacing are decided here, over the [`Disk`] that the shell or the simulator provides. This crate knows no tables and no transactions in progress: a
//! [`Delta`](corvid_data::Delta) goes in, a [`Recorded`](corvid_data::Recorded) comes out.
//!
//! ```text
//! OVSDB JSON 90 70a5f88d...\n        header.rs     one line, at most 127 bytes
//! {"_date":...,"t":{...}}\n          decode.rs, encode.rs, snapshot.rs
//! ```

mod buffer;
pub mod cluster;
pub mod decode;
pub mod disk;
pub mod encode;
pub mod error;
pub mod feed;
#[cfg(test)]
mod fixture;
pub mod header;
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

pub use disk::{Disk, DiskError, DiskFile, Fault};
pub use encode::{Stamp, is_recorded, write_long_transaction, write_schema, write_transaction};
pub use error::{FormatError, ReadError};
pub use feed::{Feed, Job};
pub use header::Magic;
pub use load::{Cause, Damage, Extent, Load};
pub use reader::RecordReader;
pub use record::Record;
pub use rewrite::Rewrite;
pub use snapshot::write_snapshot;
pub use source::Source;
pub use split::Raw;
pub use writer::LogWriter;
