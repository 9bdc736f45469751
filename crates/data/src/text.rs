//! The textual notation of tools and messages (docs/spec/protocol.md 2.7): `br-int`, `"a b"`,
//! `[1, 2]`, `{k=v}`.
//!
//! Tools print cells and parse arguments with it, and constraint messages quote values in it. It
//! depends on types, but on no schema.

mod read;
mod token;
mod write;

pub use read::{AtomOrRange, read_atom, read_atom_or_range, read_datum};
pub use token::read_word;
pub use write::{write_atom, write_atom_bare, write_datum, write_datum_bare};
