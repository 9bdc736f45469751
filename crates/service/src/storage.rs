//! How a database's orders to its file are carried out: what may be written at once, what is left to a disk thread, how new files are
//! written beside the present one. Decided here over a [`Disk`](corvid_log::Disk); threads and files belong to the driver.
//!
//! ```text
//! database --Store--> Routing --+-- ordinary records, disk idle and quick --> Committer::append      (who holds the database)
//!                               +-- everything else ------------------------> Committer::carry_out   (disk thread)
//!                               +-- Rewrite, Extend ------------------------> Rewriter               (a thread of its own)
//! ```
//!
//! Whatever is answered is answered in the order in which it was asked, but for rewrites, which have answers of their own.

mod committer;
pub mod growth;
mod pace;
mod published;
mod rewriter;
mod routing;

pub use committer::{Committer, Order};
pub use growth::{FileState, Growth};
pub use pace::QUICK_WRITES_MIN;
pub use published::Published;
pub use rewriter::Rewriter;
pub use routing::{Route, Routing};

use corvid_log::DiskError;

use crate::message::StoreError;

impl From<DiskError> for StoreError {
    fn from(error: DiskError) -> StoreError {
        StoreError {
            details: error.to_string(),
            io_error: error.fault.text,
        }
    }
}
