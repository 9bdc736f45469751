//! Why a member must not take part in its cluster any more, as a note in its file says.
//!
//! A member writes the note when it finds out, so a restart changes nothing: only a new file does.
//! Other programs pass over notes that they do not know.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The file lacks entries that the member had stored: it was lost, or replaced by an older one.
    Lost,
    /// The file has committed entries that are not those of the cluster.
    Diverged,
}

impl Unfit {
    /// The text of the note. The reason is its comment.
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
