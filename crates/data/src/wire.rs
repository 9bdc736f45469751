//! The JSON notation of atoms and data (docs/spec/protocol.md 2.1, 2.4, 2.6): parsed in one pass,
//! guided by the type, without a tree.
//!
//! The input is the text of a request, a schema or a log record, known to be valid JSON. Which of
//! several errors is reported follows docs/spec/protocol.md 2.4: container shape, element count,
//! elements in order, duplicates. So elements are counted to the end even after a bad one.

mod atom;
mod compact;
mod read;
mod string_cache;
mod write;

pub use read::{read_atom, read_datum, read_datum_unconstrained, read_diff};
pub use string_cache::StringCache;
pub use write::{write_atom, write_datum};

use crate::{Str, Uuid, WireError};

/// The role of a string that is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An element of a set, or a scalar.
    Element,
    /// A value of a map.
    Value,
}

/// State that the reads of one transaction or file share: the names of `["named-uuid", NAME]`, and
/// equal strings.
pub trait Symbols {
    /// The UUID of `name`. Its first mention binds it to a fresh one.
    fn resolve(&mut self, name: &str) -> Uuid;

    /// Whether names are allowed at all.
    fn admits_names(&self) -> bool {
        true
    }

    /// The string atom of a text. It may share its memory with an equal one.
    ///
    /// # Errors
    /// Those of [`Str::from_utf8`].
    fn string(&mut self, text: &[u8]) -> Result<Str, WireError> {
        Str::from_utf8(text)
    }

    /// The string atom of an element of a set or a value of a map, which are repeated less often
    /// than keys.
    ///
    /// # Errors
    /// Those of [`Str::from_utf8`].
    fn content(&mut self, text: &[u8], _role: Content) -> Result<Str, WireError> {
        self.string(text)
    }
}
