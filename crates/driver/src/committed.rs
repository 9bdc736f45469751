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
    /// retry does not fix.
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

    /// The id, on the server, of the row that the transaction inserted as `row`; `None` if it
    /// inserted no such row.
    #[must_use]
    pub fn inserted(&self, row: RowId) -> Option<RowId> {
        self.finished.inserted(row)
    }

    /// The row as it is known after the commit: with the server's UUID if the transaction inserted
    /// it, else unchanged.
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
