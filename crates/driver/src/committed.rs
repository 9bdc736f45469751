//! A transaction that succeeded.

use corvid_idl::typed::Row;
use corvid_idl::{Finished, Refused, RowId, Status};

use crate::error::Error;

/// The outcome of a transaction that succeeded, or that had nothing to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed<T> {
    /// The return value of the function that made the transaction.
    pub value: T,
    finished: Finished,
}

impl<T> Committed<T> {
    /// An error for what did not succeed and cannot by being made again.
    pub(crate) fn of(value: T, finished: Finished) -> Result<Committed<T>, Error> {
        match finished.status {
            Status::Success | Status::Unchanged => Ok(Committed { value, finished }),
            Status::Error => Err(Error::Refused(finished.refused.unwrap_or_else(|| {
                let json = finished.error.unwrap_or_default();
                Refused::Other { json }
            }))),
            status => Err(Error::Ended(status)),
        }
    }

    /// The row as the server knows it that was inserted under this handle.
    #[must_use]
    pub fn inserted(&self, row: RowId) -> Option<RowId> {
        self.finished.inserted(row)
    }

    /// A typed row under the handle that it has on the server: of one that the transaction inserted its new handle, of any other the same.
    #[must_use]
    pub fn row<R: Row>(&self, row: R) -> R {
        self.inserted(row.id()).map_or(row, R::of)
    }

    /// The new value of the incremented counter.
    #[must_use]
    pub fn incremented_to(&self) -> Option<i64> {
        self.finished.counter
    }

    /// Whether there was anything to change.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.finished.status == Status::Success
    }
}
