//! Errors of a member's file that do not come from the operating system.

use corvid_consensus::member::Absence;
use corvid_log::storage::StoreError;

/// The `io_error` of such an error: the command that asked for a snapshot then shows only the
/// details.
pub const REFUSED: &str = "refused";

/// The error that refuses a snapshot for this reason.
#[must_use]
pub fn refusal(details: &str) -> StoreError {
    StoreError {
        details: details.to_owned(),
        io_error: REFUSED.to_owned(),
    }
}

/// Why a member without contents stores no snapshot.
#[must_use]
pub fn refusal_without(absence: Absence) -> &'static str {
    match absence {
        Absence::Joining => "cannot store a snapshot while joining cluster",
        Absence::Damaged => "cannot store a snapshot into a damaged file",
        Absence::Failed => "cannot store a snapshot following failure",
    }
}

/// An error with these details.
pub(super) fn error_of(details: &str) -> StoreError {
    StoreError {
        details: details.to_owned(),
        io_error: String::new(),
    }
}
