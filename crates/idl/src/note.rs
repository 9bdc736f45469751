//! What a client reports for the program's log, kept until somebody takes it, within limits.
//!
//! Invariant: at most [`NOTES_MAX`] notes wait, the youngest; how many older ones were dropped is counted. Text that comes from a server
//! is cut at [`TEXT_BYTES_MAX`]. So notes that nobody takes cost no more than their limit, however long a client runs.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};

use corvid_session::{Level, Note};

use crate::mistake::Mistake;

/// Notes that wait at most.
pub const NOTES_MAX: usize = 256;

/// The longest text of a server's error in a note, in bytes.
pub const TEXT_BYTES_MAX: usize = 4096;

/// Something for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdlNote {
    /// Of the session.
    Session(Note),
    /// A column that the database has in another type, or does not have.
    Column(String),
    /// A transaction was refused, with the error as JSON.
    Refused(String),
    /// A mistake of the program.
    Mistake(Mistake),
}

impl IdlNote {
    /// How important it is.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            IdlNote::Session(note) => note.level(),
            IdlNote::Column(_) | IdlNote::Refused(_) | IdlNote::Mistake(_) => Level::Warn,
        }
    }
}

impl Display for IdlNote {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IdlNote::Session(note) => note.fmt(f),
            IdlNote::Column(text) => f.write_str(text),
            IdlNote::Refused(error) => write!(f, "transaction error: {error}"),
            IdlNote::Mistake(mistake) => mistake.fmt(f),
        }
    }
}

/// The notes that wait.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    queue: VecDeque<IdlNote>,
    dropped: u64,
}

impl Notes {
    pub(crate) fn push(&mut self, note: IdlNote) {
        if self.queue.len() == NOTES_MAX {
            self.queue.pop_front();
            self.dropped += 1;
        }
        self.queue.push_back(note);
    }

    /// A transaction was refused with this error.
    pub(crate) fn refused(&mut self, error: &str) {
        let mut text = error[..error.floor_char_boundary(TEXT_BYTES_MAX)].to_owned();
        if text.len() < error.len() {
            text.push_str("...");
        }
        self.push(IdlNote::Refused(text));
    }

    pub(crate) fn pop(&mut self) -> Option<IdlNote> {
        self.queue.pop_front()
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_stay_and_the_others_are_counted() {
        let mut notes = Notes::default();
        for number in 0..NOTES_MAX + 10 {
            notes.push(IdlNote::Column(number.to_string()));
        }
        assert_eq!(notes.dropped(), 10);
        assert_eq!(notes.pop(), Some(IdlNote::Column("10".to_owned())));
        assert_eq!(std::iter::from_fn(|| notes.pop()).count(), NOTES_MAX - 1);
        assert_eq!(notes.dropped(), 10);
    }

    #[test]
    fn long_errors_are_cut_between_characters() {
        let mut notes = Notes::default();
        notes.refused("short");
        notes.refused(&"ü".repeat(TEXT_BYTES_MAX));
        notes.refused(&format!("x{}", "ü".repeat(TEXT_BYTES_MAX)));
        let lengths: Vec<usize> = std::iter::from_fn(|| notes.pop())
            .map(|note| note.to_string().len() - "transaction error: ".len())
            .collect();
        assert_eq!(lengths, [5, TEXT_BYTES_MAX + 3, TEXT_BYTES_MAX - 1 + 3]);
    }
}
