//! The storage of one database: which records are written inline, which are left to a disk thread,
//! and how a new file is written next to the present one. The decisions are made here, over a
//! [`Disk`](crate::Disk); threads and files belong to the server.
//!
//! ```text
//! StorageRequest --> Routing --+-- ordinary records,  ---> Committer::append    inline, by the
//!                              |   disk idle and quick                           database's holder
//!                              +-- everything else ------> Committer::carry_out disk thread
//!                              +-- Rewrite, Extend, -----> Rewriter             rewrite thread
//!                                  Swap, Abandon
//! ```
//!
//! Invariant: replies leave in the order of the requests. Replies about a new file are ordered
//! among themselves only.
//!
//! This module knows no rows: the content of a new file writes itself through [`FileContent`].

mod committer;
mod pace;
mod record_text;
mod request;
mod rewriter;
mod routing;
mod status;

pub use committer::{Committer, DiskTask};
pub use pace::QUICK_WRITES_MIN;
pub use record_text::{RecordText, SHARED_BYTES_MIN};
pub use request::{
    FileSize, LogPosition, RewriteNumber, RewriteStage, StorageReply, StorageRequest, StoreError,
};
pub use rewriter::{FileContent, Rewriter, RowProgress};
pub use routing::{Route, Routing};
pub use status::FileStatus;
