//! A segment: the text of one database file in zstd frames, with an index at its end.
//!
//! ```text
//! [frame][frame] ... [frame]    zstd, each with its content size and checksum; 1 MiB of text each
//! [skippable frame: ids]        ignored by zstd, so "zstd -d" yields the database file
//! [skippable frame: index]      likewise
//! ```
//!
//! docs/reference/files.md has the index byte by byte. A frame ends where a record ends, unless a
//! record is longer than a frame. So a reader that knows the index starts in the middle of the text
//! at a record, and reads no more than it needs.
//!
//! [`SegmentWriter`] makes a segment of a text, [`read_index`] reads the index with two reads, and
//! [`Segment`] reads the text at any offset. Invariant: everything in a segment is checked before
//! it is believed, and no more memory is used than [`FRAME_TEXT_MAX`] and the index take.

mod frames;
mod ids;
mod index;
mod text;
mod writer;

pub use frames::Frame;
pub use ids::IdTable;
pub use index::{Identity, Index, Kind, read_index};
pub use text::{FrameMemory, Segment};
pub use writer::SegmentWriter;

/// Text in a frame, bytes.
pub const FRAME_TEXT_BYTES: usize = 1 << 20;

/// The longest text of a frame that a reader accepts, bytes.
pub const FRAME_TEXT_MAX: usize = 8 << 20;

/// The facts about a segment that are known without its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Its number, which the name has.
    pub number: u64,
    /// Bytes of the segment.
    pub bytes: u64,
    /// Transactions in it.
    pub transactions: u64,
    /// When its first record was written, ms since the Unix epoch; 0 if none says so.
    pub first_ms: i64,
    /// When its last record was written, ms since the Unix epoch; 0 if none says so.
    pub last_ms: i64,
}

/// Why a segment cannot be written or read. Displays without the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// The operating system failed.
    #[error("read failed ({0})")]
    Read(String),
    /// The text does not begin with a record of a database file.
    #[error("not the text of a database file")]
    NotDatabase,
    /// There is no index at the end.
    #[error("not a segment of a database's history, or its end is missing")]
    NotSegment,
    /// The index has another version.
    #[error("written by a later release (index version {0})")]
    Version(u32),
    /// The index does not match its checksum, or contradicts itself.
    #[error("the index is damaged ({0})")]
    Index(&'static str),
    /// A frame cannot be decompressed.
    #[error("frame {frame}, at offset {offset}, is damaged ({reason})")]
    Frame {
        /// Its number, counting from 0.
        frame: usize,
        /// Its offset in the segment.
        offset: u64,
        /// The error text of zstd.
        reason: String,
    },
    /// The frames are intact, but they are not the text that the index describes.
    #[error("the text is not the one that the index describes")]
    Text,
    /// zstd failed to compress.
    #[error("cannot compress ({0})")]
    Compress(String),
}

#[cfg(test)]
mod tests;
