//! JSON as OVSDB uses it: resumable framing of a stream without delimiters, a pull reader, a
//! writer, the number rule, and a small tree for schemas and tools.
//!
//! Everything here is a pure function of bytes. This crate knows nothing of JSON-RPC, OVSDB or
//! sockets. Its files, in the order in which bytes flow through them:
//!
//! ```text
//! in     unfinished  which connection gives way if texts that have begun are too long
//!        scan       brackets, quotes and special bytes, many at a time
//!        frame      where each text of a stream ends; `pieces` gathers a long one
//!        assembler  whole texts from the reads of one stream, within limits
//!        reader     typed values of one text, without a tree
//!        validator  the reader's fast path over values that are skipped;
//!                   `lex` makes the errors of the slow path
//!        escape, number, hex   the contents of strings, numbers and digits
//!        tree, value   the small tree
//! out    write      scalars and trees
//!        writer     arrays and objects of typed values
//!        shown      text for a person: no control character reaches a terminal or a log
//! ```
//!
//! `error` has the error type that all of them share: a position and a message. `splitmix` makes
//! reproducible numbers, for the crates above.

mod assembler;
mod canonical;
pub mod error;
pub mod escape;
pub mod frame;
pub mod hex;
mod lex;
pub mod number;
pub mod pieces;
pub mod reader;
mod scan;
pub mod shown;
pub mod splitmix;
mod tree;
pub mod unfinished;
mod validator;
pub mod value;
pub mod write;
pub mod writer;

pub use assembler::{Assembler, Part, StreamError, Texts};
pub use canonical::write_canonical;
pub use error::Error;
pub use frame::Framer;
pub use number::Number;
pub use pieces::Pieces;
pub use reader::{Kind, Reader};
pub use value::{Object, Value};
pub use writer::{ArrayWriter, ObjectWriter};

/// Limit on nesting, counting the outermost bracket as 1 (observed: 1000 passes, 1001 does not).
pub const DEPTH_MAX: usize = 1000;

/// Limit on the levels that our servers add around a client's text when they pass it on: 4 between
/// members of a cluster, 1 from a relay to its source. So wrapping never makes a legal text
/// illegal.
pub const WRAPPING_LEVELS: usize = 8;

/// Limit on the bytes that a relay adds around a client's text when it passes it on: ids, and the
/// names and roles of the client.
pub const WRAPPING_BYTES: usize = 512 * 1024;

/// Limit on the nesting of a text that one server sends to another.
pub const PEER_DEPTH_MAX: usize = DEPTH_MAX + WRAPPING_LEVELS;
