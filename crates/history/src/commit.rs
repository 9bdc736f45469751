//! One commit as a file has it: its id, and the text of its transaction.

use std::fmt;

use corvid_data::Uuid;
use corvid_json::hex;
use sha1::{Digest, Sha1};

use crate::error::HistoryError;

/// Digits of a record's hash that name a commit of a standalone database.
const SHORT_DIGITS: usize = 12;

/// Fewest digits that name a commit.
pub(crate) const ID_DIGITS_MIN: usize = 8;

/// The id of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitId {
    /// The SHA-1 of its record, in a standalone database.
    Hash([u8; 20]),
    /// The id of its entry, in a cluster: the transaction id that clients see.
    Entry(Uuid),
}

impl CommitId {
    /// All digits.
    fn text(&self) -> String {
        match self {
            CommitId::Hash(sha1) => sha1.iter().map(|byte| format!("{byte:02x}")).collect(),
            CommitId::Entry(uuid) => uuid.to_text().map(char::from).iter().collect(),
        }
    }

    /// Whether the id begins like this. `prefix` is in lower case.
    #[must_use]
    pub fn begins_with(&self, prefix: &str) -> bool {
        match (self, prefix.as_bytes().first_chunk::<8>()) {
            // Most ids differ in the first digits.
            (CommitId::Hash(sha1), Some(digits)) => {
                let first = hex::bytes::<1>(&[*digits]).and_then(|bytes| bytes.first().copied());
                first.is_none_or(|first| sha1.starts_with(&first))
                    && self.text().starts_with(prefix)
            }
            _ => self.text().starts_with(prefix),
        }
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        match self {
            CommitId::Hash(_) => f.write_str(&text[..SHORT_DIGITS]),
            CommitId::Entry(_) => f.write_str(&text),
        }
    }
}

/// A commit, with texts that are not parsed yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit<'b> {
    pub(crate) id: CommitId,
    /// The number of its record, or the index of its entry.
    pub(crate) place: u64,
    /// Offset of its record in the text.
    pub(crate) start: u64,
    /// Offset just past its record.
    pub(crate) end: u64,
    /// JSON text of a schema that replaces the present one.
    pub(crate) schema: Option<&'b [u8]>,
    /// JSON text of the transaction.
    pub(crate) transaction: Option<&'b [u8]>,
    /// Whether a majority is known to have it. A standalone database has only such commits.
    pub(crate) is_confirmed: bool,
    /// The hash that the transaction must have, if nothing has checked it.
    pub(crate) sha1: Option<[u8; 20]>,
}

impl Commit<'_> {
    /// Checks the hash, if nothing else has.
    ///
    /// # Errors
    /// The record is damaged.
    pub(crate) fn check(&self, file: &str) -> Result<(), HistoryError> {
        let (Some(sha1), Some(body)) = (self.sha1, self.transaction) else {
            return Ok(());
        };
        if <[u8; 20]>::from(Sha1::digest(body)) == sha1 {
            return Ok(());
        }
        let offset = self.start;
        Err(HistoryError::file(
            file,
            format_args!("the record at offset {offset} is damaged (its SHA-1 is wrong)"),
        ))
    }
}
