//! Errors of a member's file that are no errors of the system.

use corvid_consensus::member::{Absence, Connected};
use corvid_log::storage::StoreError;

/// The words of an error of the storage that is no error of the system: the command that asked for a snapshot shows the details alone.
pub const REFUSED: &str = "refused";

/// A snapshot is refused for this reason.
#[must_use]
pub fn refusal(details: &str) -> StoreError {
    StoreError {
        details: details.to_owned(),
        io_error: REFUSED.to_owned(),
    }
}

/// Why a member in this state does not want the snapshot that its database has made.
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

/// An error in these words.
pub(super) fn error_of(details: &str) -> StoreError {
    StoreError {
        details: details.to_owned(),
        io_error: String::new(),
    }
}
