//! Iterating over the records of a log.
//!
//! Invariant: [`RecordReader::good_end`] is the offset just past the last record returned. An error
//! is sticky: every later call repeats it. Tools that show raw records call this module, and so
//! does [`crate::Load`]; it does not interpret bodies.

use corvid_json::{Kind, Reader, Value};

use crate::header::Magic;
use crate::split::{Batch, Raw, Splitter};
use crate::{ReadError, Source};

/// Why a body is not a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// Not valid JSON.
    Json(corvid_json::Error),
    /// JSON, but not an object.
    NotObject,
}

/// Reads records in order. Holds one batch in memory, or the largest record.
#[derive(Debug)]
pub struct RecordReader<S> {
    splitter: Splitter<S>,
    batch: Option<Batch>,
    /// Index of the next record in the batch.
    next: usize,
    records: u64,
    good_end: u64,
    /// Offsets of the header and body of the last record returned.
    last: (u64, u64),
    failed: Option<ReadError>,
}

impl<S: Source> RecordReader<S> {
    /// Reads from the start of a log, all of whose records must have `magic`.
    #[must_use]
    pub fn new(source: S, magic: Magic) -> RecordReader<S> {
        RecordReader {
            splitter: Splitter::new(source, magic),
            batch: None,
            next: 0,
            records: 0,
            good_end: 0,
            last: (0, 0),
            failed: None,
        }
    }

    /// The next record; `None` at the end of the log.
    ///
    /// # Errors
    /// The first damage found; every later call returns it again.
    #[allow(clippy::should_implement_trait)] // lends its buffer, which `Iterator` cannot
    pub fn next(&mut self) -> Result<Option<Raw<'_>>, ReadError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self
            .batch
            .as_ref()
            .is_none_or(|batch| self.next == batch.len())
        {
            self.next = 0;
            self.batch = match self.splitter.batch() {
                Ok(batch) => batch,
                Err(error) => return Err(self.failed.insert(error).clone()),
            };
        }
        let Some(batch) = &self.batch else {
            return Ok(None);
        };
        match batch.raw(self.next) {
            Ok(raw) => {
                self.good_end = batch.end(self.next);
                self.next += 1;
                self.records += 1;
                self.last = (raw.header_offset, raw.offset);
                Ok(Some(raw))
            }
            Err(error) => Err(self.failed.insert(error).clone()),
        }
    }

    /// The next record as a JSON tree, always an object. For tools that show records instead of
    /// replaying them.
    ///
    /// # Errors
    /// As [`RecordReader::next`]; also a body that is not a JSON object.
    pub fn next_object(&mut self) -> Result<Option<Value>, ReadError> {
        let Some(raw) = self.next()? else {
            return Ok(None);
        };
        match parse_object(raw.body) {
            Ok(value) => Ok(Some(value)),
            Err(reason) => Err(self.refuse(reason)),
        }
    }

    /// Declares the log damaged at the last record returned: its body is not an object.
    pub(crate) fn refuse(&mut self, reason: BodyError) -> ReadError {
        let (start, offset) = self.last;
        let error = reason.of_body(self.good_end - offset, offset);
        self.records -= 1;
        self.good_end = start;
        self.failed.insert(error).clone()
    }

    /// Number of records returned so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Byte offset just past the last record returned.
    #[must_use]
    pub fn good_end(&self) -> u64 {
        self.good_end
    }

    /// Estimate of the bytes left to read, if the source can tell.
    pub(crate) fn bytes_left(&self) -> Option<u64> {
        self.splitter.bytes_left()
    }

    /// The records not returned yet: the splitter with the bytes it has not split, and the
    /// current batch with the index of its first unread record.
    pub(crate) fn into_rest(self) -> (Splitter<S>, Option<(Batch, usize)>) {
        let batch = self.batch.filter(|batch| self.next < batch.len());
        (self.splitter, batch.map(|batch| (batch, self.next)))
    }

    /// Returns the source. It may have been read past the last record, by at most one read.
    #[must_use]
    pub fn into_source(self) -> S {
        self.splitter.into_source()
    }
}

/// Parses a body that must be a JSON object.
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

impl BodyError {
    /// The error for a record whose body has this length and offset.
    pub(crate) fn of_body(self, length: u64, offset: u64) -> ReadError {
        match self {
            BodyError::Json(error) => ReadError::NotJson {
                length,
                offset,
                error,
            },
            BodyError::NotObject => ReadError::NotObject { length, offset },
        }
    }
}

#[cfg(test)]
mod tests;
