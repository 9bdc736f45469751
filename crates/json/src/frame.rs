//! Framing: where one JSON text of a stream ends and the next begins (protocol.md has no delimiters).

use crate::Error;

/// Finds the end of each JSON text in a byte stream; state is kept across calls, so no byte is scanned twice.
#[derive(Debug, Default)]
pub struct Framer {}

/// What [`Framer::advance`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed {
    /// A whole text: the frame is `input[start..end]` of the bytes given to this call; when the text began in an earlier
    /// call `start` is 0 and the caller prepends what it kept.
    Complete {
        /// First byte of the text within this input.
        start: usize,
        /// One past the closing bracket.
        end: usize,
    },
    /// All input consumed; the text that is open (if any) began at `start`, or the input was white space (`start == len`).
    Partial {
        /// First byte that belongs to the open text.
        start: usize,
    },
}

impl Framer {
    /// Scans `input` (bytes that follow those of earlier calls). Call again with the rest after `Complete`.
    ///
    /// # Errors
    /// The outermost value is neither object nor array, or nests deeper than [`crate::DEPTH_MAX`].
    pub fn advance(&mut self, input: &[u8]) -> Result<Framed, Error> {
        let _ = input;
        todo!()
    }

    /// Whether a text has begun and not ended.
    #[must_use]
    pub fn is_mid_text(&self) -> bool {
        todo!()
    }
}
