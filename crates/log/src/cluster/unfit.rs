//! Notes in a member's file that forbid it to take part in its cluster, and why.
//!
//! A member writes such a note when it detects the problem. A restart changes nothing: only a new
//! file ends the state. Other programs ignore notes that they do not know.

/// Why a member must not take part in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The file lacks entries that the member had stored: it was lost, or replaced by an older
    /// copy.
    Lost,
    /// The file has committed entries that differ from the cluster's.
    Diverged,
}

impl Unfit {
    /// The text of the note. The record's comment gives the details.
    #[must_use]
    pub fn note(self) -> &'static str {
        match self {
            Unfit::Lost => "log lost",
            Unfit::Diverged => "log diverged",
        }
    }

    /// The meaning of a note; `None` for other notes.
    #[must_use]
    pub fn of_note(note: &str) -> Option<Unfit> {
        [Unfit::Lost, Unfit::Diverged]
            .into_iter()
            .find(|unfit| unfit.note() == note)
    }
}
