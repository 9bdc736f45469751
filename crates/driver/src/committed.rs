//! The outcome of a successful transaction.

use corvid_idl::typed::Row;
use corvid_idl::{Finished, Refused, RowId, Status};

use crate::error::Error;

/// A transaction that succeeded, or that had nothing to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed<T> {
    /// The return value of the function that built the transaction.
    pub value: T,
    finished: Finished,
}

impl<T> Committed<T> {
    /// Turns a finished transaction into its outcome, or into an error if it failed in a way that a
    /// retry cannot mend.
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

    /// The handle, on the server's side, of the row that the transaction inserted under the handle
    /// `row`. `None` if it inserted none.
    #[must_use]
    pub fn inserted(&self, row: RowId) -> Option<RowId> {
        self.finished.inserted(row)
    }

    /// A typed row under the handle that it has after the commit: a new one if the transaction
    /// inserted the row, else the same.
    #[must_use]
    pub fn row<R: Row>(&self, row: R) -> R {
        self.inserted(row.id()).map_or(row, R::of)
    }

    /// The new value of the counter that the transaction incremented; `None` if it incremented
    /// none.
    #[must_use]
    pub fn incremented_to(&self) -> Option<i64> {
        self.finished.counter
    }

    /// Whether the transaction changed anything.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.finished.status == Status::Success
    }
}
