//! Framing: finds where one JSON text of a stream ends and the next begins; nothing separates them
//! (docs/spec/protocol.md 1.1).
//!
//! A text ends where its first bracket is closed. So framing counts brackets outside strings, 64
//! bytes at a time, and keeps its state between calls: a message of a hundred megabytes that
//! arrives in small reads is scanned once. Framing does not validate; the reader validates the
//! whole frame. [`crate::Assembler`] and the log reader call this file.

use crate::error::Fault;
use crate::scan::{self, BLOCK, Masks};
use crate::{DEPTH_MAX, Error, PEER_DEPTH_MAX, lex};

/// Finds the end of each JSON text in a byte stream. State is kept across calls, so no byte is
/// scanned twice.
///
/// ```
/// use corvid_json::frame::{Framed, Framer};
/// let mut framer = Framer::default();
/// assert_eq!(framer.advance(b" {\"a\":[").unwrap(), Framed::Partial { start: 1 });
/// assert_eq!(framer.advance(b"\"]\"]}[]").unwrap(), Framed::Complete { start: 0, end: 5 });
/// assert_eq!(framer.advance(b"[]").unwrap(), Framed::Complete { start: 0, end: 2 });
/// ```
#[derive(Debug, Default)]
pub struct Framer {
    brackets: Brackets,
    /// The current text, or the last one, nests deeper than [`DEPTH_MAX`].
    is_deep: bool,
    /// How far the input has advanced since the end of the last text; only for errors. Line breaks
    /// inside a text are not counted across calls.
    passed: Position,
}

#[derive(Debug, Default, Clone, Copy)]
struct Position {
    byte: usize,
    line: usize,
    column: usize,
}

/// The outcome of [`Framer::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed {
    /// A whole text. The frame is `input[start..end]` of the bytes given to this call. If the text
    /// began in an earlier call, `start` is 0 and the caller prepends the bytes that it kept.
    Complete {
        /// Offset of the text's first byte within this input.
        start: usize,
        /// Offset after the closing bracket.
        end: usize,
    },
    /// All input was consumed. The open text, if any, began at `start`; if the input was white
    /// space, `start` is its length.
    Partial {
        /// Offset of the first byte that belongs to the open text.
        start: usize,
    },
}

/// The error of an incomplete text that no continuation can make valid; `None` if the text may
/// still become valid. This reads the whole text, so call it rarely, for example whenever the text
/// has doubled.
///
/// ```
/// use corvid_json::frame::unfinishable;
/// use corvid_json::DEPTH_MAX;
/// assert!(unfinishable(br#"{"a":[tru"#, DEPTH_MAX).is_none());
/// assert!(unfinishable(br#"{"a":[}"#, DEPTH_MAX).is_some());
/// ```
#[must_use]
pub fn unfinishable(begun: &[u8], depth_max: usize) -> Option<Error> {
    // An error's position is the end of the offending token, so further bytes may still complete a
    // token at the very end.
    crate::Reader::new(begun)
        .with_depth_max(depth_max)
        .skip()
        .err()
        .filter(|error| error.byte < begun.len())
}

/// The protocol that a stream seems to speak instead of JSON, told by its first bytes: `"SSL"` or
/// `"OpenFlow"`. Clients that are configured wrongly send these.
#[must_use]
pub fn foreign_protocol(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        // A handshake of TLS.
        [0x16, 0x03, ..] => Some("SSL"),
        // A hello of OpenFlow 1.0.
        [0x01, 0x00, ..] => Some("OpenFlow"),
        _ => None,
    }
}

impl Framer {
    /// Starts between two texts.
    #[must_use]
    pub fn new() -> Self {
        Framer::default()
    }

    /// Starts between two texts that may nest up to `depth_max` levels.
    #[must_use]
    pub fn with_depth_max(depth_max: usize) -> Self {
        Framer {
            brackets: Brackets::new(depth_max),
            ..Framer::default()
        }
    }

    /// Scans `input`, the bytes that follow those of earlier calls. Call again with the rest after
    /// `Complete`.
    ///
    /// # Errors
    /// The outermost value is neither an object nor an array, or nests deeper than
    /// [`crate::DEPTH_MAX`] or the limit of [`Framer::with_depth_max`]. The framer is unusable
    /// afterwards, because it does not know where the next text begins.
    pub fn advance(&mut self, input: &[u8]) -> Result<Framed, Error> {
        let mut start = 0;
        if !self.is_mid_text() {
            self.is_deep = false;
            start = lex::skip_space(input, 0);
            match input.get(start) {
                None => {
                    self.pass(input);
                    return Ok(Framed::Partial { start });
                }
                Some(b'[' | b'{') => {}
                Some(_) => return Err(self.locate(&lex::unexpected(input, start, lex::BEGINNING))),
            }
        }
        let scan = self.brackets.close(&input[start..]);
        self.is_deep |= std::mem::take(&mut self.brackets.is_deep);
        match scan {
            Scan::Closed(length) => {
                self.passed = Position::default();
                Ok(Framed::Complete {
                    start,
                    end: start + length,
                })
            }
            Scan::Open => {
                self.pass(input);
                Ok(Framed::Partial { start })
            }
            Scan::TooDeep(at) => {
                let error = lex::too_deep(input, start + at, self.brackets.depth_max);
                Err(self.locate(&error))
            }
        }
    }

    /// Whether the text that has begun, or that has just ended, nests deeper than
    /// [`crate::DEPTH_MAX`].
    #[must_use]
    pub fn is_deep(&self) -> bool {
        self.is_deep
    }

    /// Whether a text has begun and not ended.
    #[must_use]
    pub fn is_mid_text(&self) -> bool {
        self.brackets.depth > 0
    }

    /// Counts a whole input as passed. Lines are counted only in white space between texts, which
    /// is short.
    fn pass(&mut self, input: &[u8]) {
        let lines = if self.is_mid_text() {
            None
        } else {
            memchr::memrchr(b'\n', input)
        };
        self.passed.byte += input.len();
        match lines {
            Some(last) => {
                self.passed.line += memchr::memchr_iter(b'\n', input).count();
                self.passed.column = input.len() - last - 1;
            }
            None => self.passed.column += input.len(),
        }
    }

    /// An error in the current input, with its position counted from the end of the last text.
    #[cold]
    fn locate(&self, error: &Error) -> Error {
        let column = if error.line == 0 {
            self.passed.column + error.column
        } else {
            error.column
        };
        let (line, byte) = (self.passed.line + error.line, self.passed.byte + error.byte);
        Error::from(Fault {
            line,
            column,
            byte,
            message: error.message.clone(),
        })
    }
}

/// The whole texts at the beginning of `stream`, up to the first fault or incomplete text.
///
/// ```
/// use corvid_json::frame::whole_texts;
/// assert_eq!(whole_texts(b" [1]{}[2").collect::<Vec<_>>(), [b"[1]".as_slice(), b"{}"]);
/// ```
pub fn whole_texts(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut framer, mut rest) = (Framer::new(), stream);
    std::iter::from_fn(move || match framer.advance(rest) {
        Ok(Framed::Complete { start, end }) => {
            let text = &rest[start..end];
            rest = &rest[end..];
            Some(text)
        }
        _ => None,
    })
}

/// Length of the array or object at the start of `text`, which was validated before; `None` if it
/// does not end.
pub(crate) fn container_length(text: &[u8]) -> Option<usize> {
    match Brackets::new(PEER_DEPTH_MAX).close(text) {
        Scan::Closed(length) => Some(length),
        Scan::Open | Scan::TooDeep(_) => None,
    }
}

/// The scanner's whole state between two blocks.
#[derive(Debug)]
struct Brackets {
    /// Number of open brackets.
    depth: usize,
    /// Limit on open brackets.
    depth_max: usize,
    /// The depth exceeded [`DEPTH_MAX`] since this flag was last read.
    is_deep: bool,
    /// All ones inside a string.
    in_string: u64,
    /// 1 if the next byte is escaped.
    escaped: u64,
}

/// Where a scan ended, counted from its start.
enum Scan {
    /// The outermost bracket closed; carries the offset after it.
    Closed(usize),
    Open,
    /// Carries the offset of the bracket that is one too many.
    TooDeep(usize),
}

/// A scan over the whole blocks of one input.
struct Blocks<'b> {
    brackets: &'b mut Brackets,
    /// Where in the last block the scan stopped, if it did.
    stop: Option<Stop>,
}

#[derive(Clone, Copy)]
enum Stop {
    Closed(usize),
    TooDeep(usize),
}

impl scan::Visitor for Blocks<'_> {
    #[inline(always)]
    fn block(&mut self, masks: Masks, prefix_xor: impl Fn(u64) -> u64) -> bool {
        self.stop = self.brackets.block(masks, BLOCK, prefix_xor);
        self.stop.is_none()
    }
}

impl Default for Brackets {
    fn default() -> Brackets {
        Brackets::new(DEPTH_MAX)
    }
}

impl Brackets {
    fn new(depth_max: usize) -> Brackets {
        Brackets {
            depth: 0,
            depth_max,
            is_deep: false,
            in_string: 0,
            escaped: 0,
        }
    }

    /// Continues the scan until the outermost bracket closes. After that the state is ready for the
    /// next text.
    fn close(&mut self, input: &[u8]) -> Scan {
        let mut blocks = Blocks {
            brackets: self,
            stop: None,
        };
        let taken = scan::blocks(input, &mut blocks);
        let mut stop = blocks.stop.map(|stop| (stop, (taken.max(1) - 1) * BLOCK));
        let tail = &input[taken * BLOCK..];
        if stop.is_none() && !tail.is_empty() {
            stop = self
                .tail(input, tail.len())
                .map(|stop| (stop, taken * BLOCK));
        }
        match stop {
            None => Scan::Open,
            Some((Stop::TooDeep(at), base)) => Scan::TooDeep(base + at),
            Some((Stop::Closed(at), base)) => {
                *self = Brackets {
                    is_deep: self.is_deep,
                    ..Brackets::new(self.depth_max)
                };
                Scan::Closed(base + at + 1)
            }
        }
    }

    /// Scans the last `length` bytes of an input, which are less than a block. They are the end of
    /// a block that began earlier. A short input is padded with blanks, which change nothing.
    fn tail(&mut self, input: &[u8], length: usize) -> Option<Stop> {
        struct Last<'b> {
            brackets: &'b mut Brackets,
            length: usize,
            /// Bytes of the block that were already scanned.
            passed: usize,
            stop: Option<Stop>,
        }
        impl scan::Visitor for Last<'_> {
            #[inline(always)]
            fn block(&mut self, masks: Masks, prefix_xor: impl Fn(u64) -> u64) -> bool {
                let masks = masks.after(self.passed);
                self.stop = self.brackets.block(masks, self.length, prefix_xor);
                false
            }
        }
        let mut last = Last {
            brackets: self,
            length,
            passed: 0,
            stop: None,
        };
        if let Some(block) = input.last_chunk::<BLOCK>() {
            last.passed = BLOCK - length;
            scan::blocks(block, &mut last);
        } else {
            let mut padded = [b' '; BLOCK];
            padded[..length].copy_from_slice(input);
            scan::blocks(&padded, &mut last);
        }
        last.stop
    }

    /// Scans one block, of which the first `length` bytes are input.
    #[inline(always)]
    fn block(
        &mut self,
        masks: Masks,
        length: usize,
        prefix_xor: impl Fn(u64) -> u64,
    ) -> Option<Stop> {
        let escaped = self.escapes(masks.backslash, length);
        let in_string = prefix_xor(masks.quote & !escaped) ^ self.in_string;
        // The last bit tells whether the next block begins inside a string. It is spread over all
        // bits.
        self.in_string = (in_string.cast_signed() >> 63).cast_unsigned();
        let open = masks.open & !in_string;
        let close = masks.close & !in_string;
        let (opens, closes) = (open.count_ones() as usize, close.count_ones() as usize);
        if self.depth > closes && self.depth + opens <= DEPTH_MAX {
            self.depth = self.depth + opens - closes;
            return None;
        }
        self.walk(open, close)
    }

    /// The bytes of the block that a backslash escapes, given the positions of backslashes.
    ///
    /// A run of backslashes escapes every second byte, starting with its second. Runs are
    /// distinguished by the parity of their first bit. Adding a run's start to the backslashes, for
    /// runs that start at odd bits, carries each of those runs out. That leaves a mark after the
    /// run if its length is odd. Example, bit 0 at the left: backslashes `0111` (odd start), and
    /// byte 4 is a quote. The run is 1,2,3, so 2 is escaped by 1, and 4 by 3.
    #[inline(always)]
    fn escapes(&mut self, backslash: u64, length: usize) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        if backslash == 0 {
            return std::mem::take(&mut self.escaped);
        }
        let backslash = backslash & !self.escaped;
        let follows = backslash << 1 | self.escaped;
        let odd_starts = backslash & !EVEN & !follows;
        let (even_sequences, carry) = odd_starts.overflowing_add(backslash);
        let escaped = (EVEN ^ (even_sequences << 1)) & follows;
        self.escaped = if length == BLOCK {
            u64::from(carry)
        } else {
            escaped >> length & 1
        };
        escaped
    }

    /// Scans a block bracket by bracket: the slow path, for blocks in which the outermost bracket
    /// may close or the depth may reach its limit.
    #[inline(never)]
    fn walk(&mut self, open: u64, close: u64) -> Option<Stop> {
        let mut brackets = open | close;
        while brackets != 0 {
            let at = brackets.trailing_zeros() as usize;
            if open >> at & 1 == 1 {
                if self.depth == self.depth_max {
                    return Some(Stop::TooDeep(at));
                }
                self.depth += 1;
                self.is_deep |= self.depth > DEPTH_MAX;
            } else {
                self.depth -= 1;
                if self.depth == 0 {
                    return Some(Stop::Closed(at));
                }
            }
            brackets &= brackets - 1;
        }
        None
    }
}
