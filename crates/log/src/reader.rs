//! Iterating the records of a log.
//!
//! Invariant: [`RecordReader::good_end`] is the offset just past the last record that was handed out and not taken back,
//! the place where the next write must go. An error is sticky: every later call repeats it. Called by [`crate::Load`] and
//! by tools that look at raw records; knows nothing of what bodies mean.

use corvid_json::{Kind, Reader, Value};
use sha1::{Digest, Sha1};

use crate::header::{Header, LINE_BYTES_MAX, Magic, first_line, shown_bytes};
use crate::{ReadError, Source};

/// Bytes asked of the source at once.
const READ_BYTES: usize = 256 * 1024;

/// A record whose framing and hash are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    /// Its place in the log, counting from 0.
    pub number: u64,
    /// Byte offset of its header.
    pub header_offset: u64,
    /// Byte offset of its body.
    pub offset: u64,
    /// The body as stored, usually one line with its LF. Not checked to be JSON.
    pub body: &'a [u8],
}

/// Why a body is no JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// It is not one JSON text.
    Json(corvid_json::Error),
    /// It is an array.
    NotObject,
}

/// Reads records one after the other. Memory: the largest record plus one read.
#[derive(Debug)]
pub struct RecordReader<S> {
    source: S,
    magic: Magic,
    /// Bytes read and not yet left behind; those from `used` on are still to be handed out.
    buffer: Vec<u8>,
    used: usize,
    /// File offset of `buffer[0]`.
    buffer_offset: u64,
    source_ended: bool,
    records: u64,
    good_end: u64,
    /// The record handed out last, until it is taken back.
    last: Option<Place>,
    failed: Option<ReadError>,
}

/// Where a record lies in the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    header_offset: u64,
    offset: u64,
}

impl<S: Source> RecordReader<S> {
    /// Reads from the start of a log, all of whose records must have `magic`.
    #[must_use]
    pub fn new(source: S, magic: Magic) -> RecordReader<S> {
        RecordReader {
            source,
            magic,
            buffer: Vec::new(),
            used: 0,
            buffer_offset: 0,
            source_ended: false,
            records: 0,
            good_end: 0,
            last: None,
            failed: None,
        }
    }

    /// The next record; `None` at the end of the log.
    ///
    /// # Errors
    /// The first damage met, again at every later call.
    #[allow(clippy::should_implement_trait)] // lends its buffer, which `Iterator` cannot
    pub fn next(&mut self) -> Result<Option<Raw<'_>>, ReadError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.advance() {
            Ok(None) => Ok(None),
            Ok(Some(length)) => Ok(Some(self.hand_out(length))),
            Err(error) => {
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// The next record as a tree, which is an object. For tools that look at records rather than replay them.
    ///
    /// # Errors
    /// As [`RecordReader::next`], and a body that is no JSON object.
    pub fn next_object(&mut self) -> Result<Option<Value>, ReadError> {
        let Some(raw) = self.next()? else {
            return Ok(None);
        };
        match parse_object(raw.body) {
            Ok(value) => Ok(Some(value)),
            Err(reason) => Err(self.refuse(reason)),
        }
    }

    /// Records handed out and not taken back.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Byte offset just past the last of them.
    #[must_use]
    pub fn good_end(&self) -> u64 {
        self.good_end
    }

    /// The source, read as far as records were asked for and up to one read further.
    #[must_use]
    pub fn into_source(self) -> S {
        self.source
    }

    /// Declares the log damaged at the record handed out last: its body is no object.
    pub(crate) fn refuse(&mut self, reason: BodyError) -> ReadError {
        let end = self.good_end;
        let place = self.take_back();
        let length = end - place.offset;
        let offset = place.offset;
        let error = match reason {
            BodyError::Json(error) => ReadError::NotJson {
                length,
                offset,
                error,
            },
            BodyError::NotObject => ReadError::NotObject { length, offset },
        };
        self.failed = Some(error.clone());
        error
    }

    /// Uncounts the record handed out last, for a reason that the caller keeps. Returns the offset of its header.
    pub(crate) fn take_back_last(&mut self) -> u64 {
        self.take_back().header_offset
    }

    fn take_back(&mut self) -> Place {
        let place = self.last.take();
        assert!(
            place.is_some(),
            "only the record handed out last can be taken back, once"
        );
        let place = place.unwrap_or(Place {
            header_offset: 0,
            offset: 0,
        });
        self.records -= 1;
        self.good_end = place.header_offset;
        place
    }

    /// Reads the next header and, behind it, a whole body with the right hash; returns the body's length. `used` then
    /// stands before the body. `None` at the end of the log.
    fn advance(&mut self) -> Result<Option<usize>, ReadError> {
        let header_offset = self.good_end;
        while self.unused().len() < LINE_BYTES_MAX && first_line(self.unused()).is_none() {
            let wanted = LINE_BYTES_MAX as u64;
            if !self
                .fill(LINE_BYTES_MAX)
                .map_err(|reason| source_error(wanted, header_offset, reason))?
            {
                break;
            }
        }
        if self.unused().is_empty() {
            return Ok(None);
        }
        let header = self.header(header_offset)?;
        let offset = self.buffer_offset + self.used as u64;
        let short = ReadError::Short {
            length: header.length,
            offset,
        };
        let Ok(length) = usize::try_from(header.length) else {
            return Err(short);
        };
        while self.unused().len() < length {
            let missing = length - self.unused().len();
            if !self
                .fill(missing)
                .map_err(|reason| source_error(header.length, offset, reason))?
            {
                return Err(short);
            }
        }
        let actual: [u8; 20] = Sha1::digest(&self.unused()[..length]).into();
        if actual != header.sha1 {
            let expected = header.sha1;
            return Err(ReadError::Hash {
                length: header.length,
                offset,
                actual,
                expected,
            });
        }
        Ok(Some(length))
    }

    /// Takes a header line.
    fn header(&mut self, header_offset: u64) -> Result<Header, ReadError> {
        let unused = self.unused();
        let line = first_line(unused);
        let parsed = match line {
            Some(line) => Header::parse(line, self.magic).map_err(|shown| line[..shown].to_vec()),
            None => {
                let window = &unused[..unused.len().min(LINE_BYTES_MAX)];
                Err(window[..shown_bytes(window)].to_vec())
            }
        };
        let line_bytes = line.map_or(0, |line| line.len() + 1);
        match parsed {
            Ok(header) => {
                self.used += line_bytes;
                Ok(header)
            }
            Err(shown) => Err(ReadError::Header {
                offset: header_offset,
                shown,
            }),
        }
    }

    fn hand_out(&mut self, length: usize) -> Raw<'_> {
        let place = Place {
            header_offset: self.good_end,
            offset: self.buffer_offset + self.used as u64,
        };
        let number = self.records;
        let start = self.used;
        self.used += length;
        self.records += 1;
        self.good_end = place.offset + length as u64;
        self.last = Some(place);
        Raw {
            number,
            header_offset: place.header_offset,
            offset: place.offset,
            body: &self.buffer[start..start + length],
        }
    }

    fn unused(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    /// Reads once; `false` when the source has ended. Asks for [`READ_BYTES`], or for up to as much again as the buffer holds
    /// when more is missing: a header may promise far more than the file has, so its word is not enough to allocate.
    fn fill(&mut self, missing: usize) -> Result<bool, String> {
        if self.source_ended {
            return Ok(false);
        }
        if self.used > 0 {
            self.buffer_offset += self.used as u64;
            self.buffer.drain(..self.used);
            self.used = 0;
        }
        let held = self.buffer.len();
        let wanted = missing.min(held).max(READ_BYTES);
        self.buffer.resize(held + wanted, 0);
        let outcome = self.source.read(&mut self.buffer[held..]);
        let got = outcome.as_ref().copied().unwrap_or(0);
        self.buffer.truncate(held + got);
        outcome?;
        self.source_ended = got == 0;
        Ok(got > 0)
    }
}

/// Parses a body that must be an object.
pub(crate) fn parse_object(body: &[u8]) -> Result<Value, BodyError> {
    let mut reader = Reader::new(body);
    reader.outermost().map_err(BodyError::Json)?;
    let is_object = reader.peek().map_err(BodyError::Json)? == Kind::Object;
    let value = Value::parse(body).map_err(BodyError::Json)?;
    if is_object {
        Ok(value)
    } else {
        Err(BodyError::NotObject)
    }
}

fn source_error(length: u64, offset: u64, reason: String) -> ReadError {
    ReadError::Source {
        length,
        offset,
        reason,
    }
}

#[cfg(test)]
mod tests;
