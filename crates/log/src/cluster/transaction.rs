//! The transaction half of an entry's data: written from a commit, and read into its changes.
//!
//! Invariant: what is written here is read here, by any member that has the same rows. Called by the database of a member.

use corvid_data::{Delta, Recorded, Schema, WireError};

use crate::Stamp;
use crate::decode::{DecodeError, FieldOrderCache, decode};
use crate::encode::write_body;

/// Appends `[null,T]` for a commit.
pub fn write_data(out: &mut Vec<u8>, schema: &Schema, delta: &Delta, date_ms: i64, is_diff: bool) {
    out.extend_from_slice(b"[null,");
    let stamp = Stamp {
        date_ms,
        comment: &delta.comment,
        is_diff,
        with_defaults: false,
    };
    // A transaction without rows is an entry too: its id is a transaction id.
    write_body(out, schema, delta, &stamp);
    out.push(b']');
}

/// Reads the transactions of entries, one after the other.
#[derive(Debug, Default)]
pub struct TransactionReader {
    order: FieldOrderCache,
}

impl TransactionReader {
    /// Reads the text of a transaction.
    ///
    /// # Errors
    /// It is no object, or does not fit the schema.
    pub fn read(&mut self, text: &[u8], schema: &Schema) -> Result<Recorded, WireError> {
        decode(text, schema, &mut self.order).map_err(|error| match error {
            DecodeError::Body(_) => WireError::syntax(text, "not a transaction"),
            DecodeError::Content(error) => error,
        })
    }
}
