//! Why the database of a member has no contents, for clients that ask for it.

use super::Member;

/// The reason. A member that has contents may fail too; then its clients read what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The server has not completed joining its cluster.
    Joining,
    /// Its file is damaged, and its leader has not replaced it yet.
    Damaged,
    /// It takes no part in its cluster any more.
    Failed,
}

impl Member {
    /// The reason; `None`: the member has contents, or is about to have them.
    pub(super) fn absence(&self) -> Option<Absence> {
        if self.failure.is_some() {
            Some(Absence::Failed)
        } else if self.joining.is_some() {
            Some(Absence::Joining)
        } else if self.repairing.is_some() {
            Some(Absence::Damaged)
        } else {
            None
        }
    }
}
