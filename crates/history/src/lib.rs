//! The history of a database: the files that compactions replaced, compressed, and how they are
//! read (docs/reference/files.md, docs/operate/history.md).
//!
//! ```text
//! keeping    policy                          how much is kept: age, bytes, transactions
//!            scan --> segment                text to zstd frames and an index
//! reading    segment --> part --> records    a segment or a plain file, and its records
//!            records --> commits             its commits, without superseded entries
//!            commits --> timeline            all files of one database, oldest first
//!            moment --> locate --> state     the database at a moment
//!                              --> walk      the changes between two moments (filter, change)
//!            past --> commits                the rows changed since a transaction, as they were
//!            diff, json                      two states compared; changes for programs
//! ```
//!
//! Invariant: pure. Bytes arrive through [`ReadAt`] and leave through a `Vec`; the time is an
//! argument. This crate knows no folder, thread or clock. Every length that a file claims is
//! checked before memory is allocated for it.

pub mod change;
mod commit;
mod commits;
pub mod diff;
mod error;
pub mod filter;
pub mod json;
mod locate;
pub mod moment;
mod part;
mod past;
pub mod policy;
pub mod read_at;
mod records;
mod scan;
pub mod segment;
mod state;
pub mod timeline;
pub mod walk;

pub use change::{ColumnChange, RowChange};
pub use commit::CommitId;
pub use diff::diff;
pub use error::HistoryError;
pub use filter::{Filter, RowPrefix};
pub use locate::StateAt;
pub use moment::{Civil, Moment};
pub use part::{Part, UNJOINED_BYTES_MAX, has_not_joined};
pub use past::{NoPast, Past, PastLimits, PastRow};
pub use policy::{Policy, PolicyError};
pub use read_at::ReadAt;
pub use segment::{Index, SegmentError, SegmentWriter, Summary, read_index};
pub use timeline::{Bound, Files, Opened, Position, Timeline};
pub use walk::{Event, Range, Step};
