//! Cutting a log into batches of whole records without parsing bodies: the cheap, sequential part
//! of reading.
//!
//! Invariant: batches follow one another without a gap, and each begins at a record. The splitter
//! trusts the length in a header. The hash of each record is checked later ([`Batch::raw`]), on
//! another thread if the caller likes. So the first damage in record order is the log's damage,
//! even if the splitter found later damage earlier. [`crate::RecordReader`], [`crate::Load`] and
//! [`crate::Feed`] call this module; it does not interpret bodies.

use sha1::{Digest, Sha1};

use crate::buffer::Buffer;
use crate::header::{Header, LINE_BYTES_MAX, Magic, first_line, shown_bytes};
use crate::{ReadError, Source};

/// Approximate size of a batch, bytes: about a thousand small records. Also the size of a read.
pub const BATCH_BYTES: usize = 128 * 1024;

/// Minimum room for one read, bytes: a source may have more than it reports.
const ROOM_BYTES_MIN: usize = 4096;

/// Maximum number of batches whose memory is kept for reuse.
const SPARE_MAX: usize = 8;

/// A record whose framing and hash are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    /// Its number in the log, counting from 0.
    pub number: u64,
    /// Byte offset of its header.
    pub header_offset: u64,
    /// Byte offset of its body.
    pub offset: u64,
    /// The body as stored, usually one line with its LF. Not yet checked to be JSON.
    pub body: &'a [u8],
}

/// Consecutive whole records. Never empty.
#[derive(Debug)]
pub struct Batch {
    bytes: Buffer,
    /// File offset of the first byte.
    offset: u64,
    /// Number of the first record.
    first: u64,
    records: Vec<Frame>,
}

/// Location of a record in a batch: offsets from the start of the batch.
#[derive(Clone, Copy, Debug)]
struct Frame {
    start: usize,
    body: usize,
    end: usize,
    /// `None` for a body that was checked before.
    sha1: Option<[u8; 20]>,
}

/// A record too long for a batch: its body comes in pieces ([`Splitter::piece`]).
#[derive(Clone, Debug)]
pub struct Long {
    /// Its number in the log, counting from 0.
    pub number: u64,
    /// Byte offset just past it.
    pub end: u64,
    header: Header,
    left: u64,
    hash: Sha1,
}

impl Long {
    /// Byte offset of the record's body.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.end.saturating_sub(self.header.length)
    }
}

/// The next part of a log.
#[derive(Debug)]
pub enum Cut {
    /// A batch of records.
    Batch(Batch),
    /// One long record, whose body must be read before the next call.
    Long(Long),
}

/// Cuts a log into batches. Holds one batch in memory, or one longer record.
#[derive(Debug)]
pub struct Splitter<S> {
    source: S,
    magic: Magic,
    /// Bytes read but not yet returned; begins at a record.
    held: Buffer,
    /// Memory of earlier batches, for reuse.
    spare: Vec<(Buffer, Vec<Frame>)>,
    /// File offset of the first byte of `held`.
    held_offset: u64,
    /// Records returned so far.
    records: u64,
    source_ended: bool,
    /// Reported once the records before it have been returned, and again by every later call.
    failed: Option<ReadError>,
}

impl<S: Source> Splitter<S> {
    /// Cuts from the start of a log, all of whose records must have `magic`.
    #[must_use]
    pub fn new(source: S, magic: Magic) -> Splitter<S> {
        Splitter {
            source,
            magic,
            held: Buffer::default(),
            spare: Vec::new(),
            held_offset: 0,
            records: 0,
            source_ended: false,
            failed: None,
        }
    }

    /// The next records, all of them in memory; `None` at the end of the log.
    ///
    /// # Errors
    /// The next record cannot be framed. Every later call returns the error again.
    pub fn batch(&mut self) -> Result<Option<Batch>, ReadError> {
        match self.cut(u64::MAX)? {
            Some(Cut::Batch(batch)) => Ok(Some(batch)),
            Some(Cut::Long(_)) => unreachable!("no body is longer than that"),
            None => Ok(None),
        }
    }

    /// The next records. A record whose body has at least `long_bytes` bytes is returned alone, in
    /// pieces. `None` at the end of the log.
    ///
    /// # Errors
    /// As [`Splitter::batch`].
    pub fn cut(&mut self, long_bytes: u64) -> Result<Option<Cut>, ReadError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let first = match self.frame(long_bytes) {
            Ok(Framed::Whole(frame)) => frame,
            Ok(Framed::Long(header, body)) => {
                return Ok(Some(Cut::Long(self.begin_long(header, body))));
            }
            Ok(Framed::End) => return Ok(None),
            Err(error) => return Err(self.fail(error)),
        };
        let (next, mut records) = self.spare.pop().unwrap_or_default();
        records.push(first);
        let mut end = first.end;
        while let Some(frame) = self.held_frame(end, long_bytes) {
            end = frame.end;
            records.push(frame);
        }
        Ok(Some(Cut::Batch(self.hand_out(records, end, next))))
    }

    /// The next piece of a long record's body; `None` at its end, if its hash is right.
    ///
    /// # Errors
    /// The source fails or ends within the body, or the hash is wrong.
    pub fn piece(&mut self, long: &mut Long) -> Result<Option<Buffer>, ReadError> {
        let (length, end) = (long.header.length, long.end);
        let offset = end - length;
        if long.left == 0 {
            let actual: [u8; 20] = std::mem::take(&mut long.hash).finalize().into();
            let expected = long.header.sha1;
            if actual == expected {
                return Ok(None);
            }
            return Err(self.fail(ReadError::Hash {
                length,
                offset,
                actual,
                expected,
            }));
        }
        if self.held.is_empty() {
            match self.fill(BATCH_BYTES) {
                Ok(true) => {}
                Ok(false) => return Err(self.fail(ReadError::Short { length, offset })),
                Err(reason) => return Err(self.fail(source_error(length, offset, reason))),
            }
        }
        let taken =
            usize::try_from(long.left).map_or(self.held.len(), |left| left.min(self.held.len()));
        let (mut next, _) = self.spare.pop().unwrap_or_default();
        next.push(&self.held[taken..]);
        let mut piece = std::mem::replace(&mut self.held, next);
        piece.truncate(taken);
        self.held_offset += taken as u64;
        long.left -= taken as u64;
        long.hash.update(&*piece);
        Ok(Some(piece))
    }

    /// Returns a batch's memory for reuse.
    pub fn reuse(&mut self, batch: Batch) {
        self.keep(batch.bytes, batch.records);
    }

    /// Returns a piece's memory for reuse.
    pub fn reuse_piece(&mut self, piece: Buffer) {
        self.keep(piece, Vec::new());
    }

    fn keep(&mut self, mut bytes: Buffer, mut records: Vec<Frame>) {
        // The memory of a long record is freed.
        if self.spare.len() < SPARE_MAX && bytes.len() <= 2 * BATCH_BYTES {
            bytes.truncate(0);
            records.clear();
            self.spare.push((bytes, records));
        }
    }

    /// Number of records returned so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Estimate of the bytes left to read, if the source can tell.
    #[must_use]
    pub fn bytes_left(&self) -> Option<u64> {
        self.source.bytes_left()
    }

    /// Returns the source. It may have been read past the last record, by at most one read.
    #[must_use]
    pub fn into_source(self) -> S {
        self.source
    }

    fn fail(&mut self, error: ReadError) -> ReadError {
        self.failed = Some(error.clone());
        error
    }

    /// The record at `at`, if it is whole in memory and not long. Its error, if any, is reported
    /// once it is the next record.
    fn held_frame(&self, at: usize, long_bytes: u64) -> Option<Frame> {
        let held = &self.held[at..];
        let line = first_line(held)?;
        let header = Header::parse(line, self.magic).ok()?;
        let body = line.len() + 1;
        let is_whole = header.length <= (held.len() - body) as u64;
        if !is_whole || header.length >= long_bytes {
            return None;
        }
        let length = usize::try_from(header.length).ok()?;
        Some(Frame {
            start: at,
            body: at + body,
            end: at + body + length,
            sha1: Some(header.sha1),
        })
    }

    /// Finds the next record, reading as far as necessary.
    fn frame(&mut self, long_bytes: u64) -> Result<Framed, ReadError> {
        let Some((header, body)) = self.header()? else {
            return Ok(Framed::End);
        };
        if header.length >= long_bytes {
            return Ok(Framed::Long(header, body));
        }
        let offset = self.held_offset + body as u64;
        let short = ReadError::Short {
            length: header.length,
            offset,
        };
        let length = usize::try_from(header.length).ok();
        let Some(end) = length.and_then(|length| body.checked_add(length)) else {
            return Err(short);
        };
        while self.held.len() < end {
            match self.fill(end - self.held.len()) {
                Ok(true) => {}
                Ok(false) => return Err(short),
                Err(reason) => return Err(source_error(header.length, offset, reason)),
            }
        }
        Ok(Framed::Whole(Frame {
            start: 0,
            body,
            end,
            sha1: Some(header.sha1),
        }))
    }

    /// Reads the next header line. Returns the header and the line's length, LF included; `None` at
    /// the end of the log.
    fn header(&mut self) -> Result<Option<(Header, usize)>, ReadError> {
        let offset = self.held_offset;
        while self.held.len() < LINE_BYTES_MAX && first_line(&self.held).is_none() {
            match self.fill(LINE_BYTES_MAX) {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => return Err(source_error(LINE_BYTES_MAX as u64, offset, reason)),
            }
        }
        if self.held.is_empty() {
            return Ok(None);
        }
        let shown = match first_line(&self.held) {
            Some(line) => match Header::parse(line, self.magic) {
                Ok(header) => return Ok(Some((header, line.len() + 1))),
                Err(shown) => &line[..shown],
            },
            None => {
                let window = &self.held[..self.held.len().min(LINE_BYTES_MAX)];
                &window[..shown_bytes(window)]
            }
        };
        Err(ReadError::Header {
            offset,
            shown: shown.to_vec(),
        })
    }

    fn begin_long(&mut self, header: Header, body: usize) -> Long {
        self.held.remove(body);
        self.held_offset += body as u64;
        let number = self.records;
        self.records += 1;
        Long {
            number,
            end: self.held_offset.saturating_add(header.length),
            left: header.length,
            header,
            hash: Sha1::new(),
        }
    }

    fn hand_out(&mut self, records: Vec<Frame>, end: usize, mut next: Buffer) -> Batch {
        next.push(&self.held[end..]);
        let mut bytes = std::mem::replace(&mut self.held, next);
        bytes.truncate(end);
        let batch = Batch {
            bytes,
            offset: self.held_offset,
            first: self.records,
            records,
        };
        self.held_offset += end as u64;
        self.records += batch.records.len() as u64;
        batch
    }

    /// Reads once; `false` at the end of the source. Requests [`BATCH_BYTES`], or the missing bytes
    /// if they are more and the source has them, or less if the source has less left. If the source
    /// cannot tell, requests at most as much as is already buffered: the length in a header alone
    /// does not justify an allocation.
    fn fill(&mut self, missing: usize) -> Result<bool, String> {
        if self.source_ended {
            return Ok(false);
        }
        let held = self.held.len();
        let left = self.source.bytes_left();
        let left = left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
        let promised = left.unwrap_or(held);
        let batch = left.map_or(BATCH_BYTES, |left| left.clamp(ROOM_BYTES_MIN, BATCH_BYTES));
        let wanted = missing.min(promised).max(batch);
        let got = self.held.fill(wanted, |room| self.source.read(room))?;
        self.source_ended = got == 0;
        Ok(got > 0)
    }
}

/// Result of [`Splitter::frame`].
enum Framed {
    Whole(Frame),
    /// A long record, and the offset of its body in `held`.
    Long(Header, usize),
    End,
}

impl Batch {
    /// Builds a batch from bodies that were checked before, without headers. `None` if there are
    /// none.
    pub(crate) fn of_bodies<'b>(bodies: impl IntoIterator<Item = &'b [u8]>) -> Option<Batch> {
        let mut bytes = Buffer::default();
        let mut records = Vec::new();
        for body in bodies {
            let start = bytes.len();
            bytes.push(body);
            records.push(Frame {
                start,
                body: start,
                end: bytes.len(),
                sha1: None,
            });
        }
        (!records.is_empty()).then_some(Batch {
            bytes,
            offset: 0,
            first: 0,
            records,
        })
    }

    /// Number of records in the batch.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The record at `index`, after checking its hash.
    ///
    /// # Errors
    /// The body does not match the hash.
    pub fn raw(&self, index: usize) -> Result<Raw<'_>, ReadError> {
        let frame = self.records[index];
        let body = &self.bytes[frame.body..frame.end];
        let offset = self.offset + frame.body as u64;
        if let Some(expected) = frame.sha1 {
            let actual: [u8; 20] = Sha1::digest(body).into();
            if actual != expected {
                return Err(ReadError::Hash {
                    length: body.len() as u64,
                    offset,
                    actual,
                    expected,
                });
            }
        }
        Ok(Raw {
            number: self.first + index as u64,
            header_offset: self.offset + frame.start as u64,
            offset,
            body,
        })
    }

    /// Number and header offset of the record at `index`.
    #[must_use]
    pub fn location(&self, index: usize) -> (u64, u64) {
        let frame = self.records[index];
        (self.first + index as u64, self.offset + frame.start as u64)
    }

    /// Byte offset just past the record at `index`.
    #[must_use]
    pub fn end(&self, index: usize) -> u64 {
        self.offset + self.records[index].end as u64
    }
}

fn source_error(length: u64, offset: u64, reason: String) -> ReadError {
    ReadError::Source {
        length,
        offset,
        reason,
    }
}
