//! Errors of a member's file that do not come from the operating system.

use corvid_consensus::member::{Absence, Connected};
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

/// Why a member in this state rejects the snapshot that its database has made.
#[must_use]
pub(crate) fn reason(connected: &Connected) -> &'static str {
    match connected {
        Connected::Joining => "cannot store a snapshot while joining cluster",
        Connected::Repairing(_) => "cannot store a snapshot into a damaged file",
        Connected::Leaving => "cannot store a snapshot while leaving cluster",
        Connected::Left => "cannot store a snapshot after leaving cluster",
        Connected::Failed(_) => "cannot store a snapshot following failure",
        Connected::Disconnected | Connected::Member => "not storing a duplicate snapshot",
    }
}

/// Why a member without contents stores no snapshot, in the same words.
#[must_use]
pub fn refusal_without(absence: Absence) -> &'static str {
    match absence {
        Absence::Joining => reason(&Connected::Joining),
        Absence::Damaged => reason(&Connected::Repairing(None)),
        Absence::Failed => reason(&Connected::Failed(String::new())),
    }
}

/// An error with these details.
pub(super) fn error_of(details: &str) -> StoreError {
    StoreError {
        details: details.to_owned(),
        io_error: String::new(),
    }
}
