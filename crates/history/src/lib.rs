//! The history of a database: the files that compactions replaced, compressed, and how they are
//! read (docs/reference/files.md, docs/operate/history.md).
//!
//! ```text
//! keeping    policy                          how much is kept: age, bytes, transactions
//!            scan --> segment                the text of a database file to zstd frames and an index
//! reading    files --> segment, raw --> text the text of a segment or of a plain file, at any offset
//!            text --> timeline               all files of one database, oldest first
//!            timeline, moment --> state      the database at a moment
//!                             --> walk       the changes between two moments
//! ```
//!
//! Invariant: pure. Bytes arrive through [`ReadAt`] and leave through a `Vec`; the time is an
//! argument. This crate knows no folder, thread or clock. Every length that a file claims is
//! checked before memory is allocated for it.

pub mod policy;
pub mod read_at;
mod scan;
pub mod segment;

pub use policy::{Policy, PolicyError};
pub use read_at::ReadAt;
pub use segment::{Index, SegmentError, SegmentWriter, Summary, read_index};
