//! Why the database of a member has no contents, for clients that ask for it.

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
