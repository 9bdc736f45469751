//! The transaction half of an entry's data: written from a commit, and read into its changes.
//!
//! Invariant: any member with the same rows can read what this module writes. A member's database
//! calls it.

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
    // A commit without rows makes an entry too: the entry's id is the transaction id.
    write_body(out, schema, delta, &stamp);
    out.push(b']');
}

/// Reads the transactions of consecutive entries; the cache pays off because they resemble each
/// other.
#[derive(Debug, Default)]
pub struct TransactionReader {
    order: FieldOrderCache,
}

impl TransactionReader {
    /// Reads the text of a transaction.
    ///
    /// # Errors
    /// The text is not an object, or does not match the schema.
    pub fn read(&mut self, text: &[u8], schema: &Schema) -> Result<Recorded, WireError> {
        decode(text, schema, &mut self.order).map_err(|error| match error {
            DecodeError::Body(_) => WireError::syntax(text, "not a transaction"),
            DecodeError::Content(error) => error,
        })
    }
}
