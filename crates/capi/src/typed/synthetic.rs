//! Columns that the database does not have: code of the program computes them from the other
//! members of a row (docs/spec/idl.md 7.1).
//!
//! The library calls that code. Invariant: it does so without the lock of the replica, after the
//! call of the program that changed the row, so the code may read the replica. Each row is computed
//! once for all changes of one call.

use super::class::{Computed, corvid_idl_row};
use super::record::Record;

/// Code that is due when the lock is free.
pub(crate) enum Due {
    /// Computes the columns of a row anew.
    Parse {
        row: *mut corvid_idl_row,
        code: Computed,
        /// They were computed before.
        is_parsed: bool,
    },
    /// Frees a struct whose columns were computed.
    Free { record: Box<Record>, code: Computed },
}

// SAFETY: a row is named by its address, and one thread at a time uses a replica.
unsafe impl Send for Due {}

impl Due {
    pub(crate) fn run(self) {
        match self {
            Due::Parse {
                row,
                code,
                is_parsed,
            } => {
                if is_parsed {
                    code.unparse(row);
                }
                code.parse(row);
            }
            Due::Free { record, code } => code.unparse(record.row()),
        }
    }
}
