//! Iterating over the records of a member's file.

use corvid_data::WireError;
use corvid_json::{Kind as JsonKind, Reader};

use super::{Header, Record};
use crate::reader::BodyError;
use crate::{Magic, ReadError, RecordReader, Source};

/// Reads the header, then record after record. Holds in memory what [`RecordReader`] holds, and one
/// decoded record.
#[derive(Debug)]
pub struct ClusterReader<S> {
    records: RecordReader<S>,
}

impl<S: Source> ClusterReader<S> {
    /// Reads from the start of a file.
    #[must_use]
    pub fn new(source: S) -> ClusterReader<S> {
        ClusterReader {
            records: RecordReader::new(source, Magic::Clustered),
        }
    }

    /// Reads the next record as the header; must be called first. `None` for an empty file.
    ///
    /// # Errors
    /// Outer: the first damage; every later call returns it again. Inner: an undamaged record that
    /// is not a header.
    pub fn header(&mut self) -> Result<Option<Result<Header, WireError>>, ReadError> {
        self.decoded(Header::decode)
    }

    /// The next record; `None` at the end of the file.
    ///
    /// # Errors
    /// Outer: the first damage; every later call returns it again. Inner: an undamaged record of an
    /// unknown kind; the next call reads the record after it.
    #[allow(clippy::should_implement_trait)] // the first error is final, unlike `Iterator`
    pub fn next(&mut self) -> Result<Option<Result<Record, WireError>>, ReadError> {
        self.decoded(Record::decode)
    }

    /// The number of the last record read; the header is record 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.records.records().saturating_sub(1)
    }

    /// Byte offset just past the last record read.
    #[must_use]
    pub fn good_end(&self) -> u64 {
        self.records.good_end()
    }

    fn decoded<T>(
        &mut self,
        decode: impl FnOnce(&[u8]) -> Result<T, WireError>,
    ) -> Result<Option<Result<T, WireError>>, ReadError> {
        let Some(raw) = self.records.next()? else {
            return Ok(None);
        };
        match check_object(raw.body) {
            Ok(()) => Ok(Some(decode(raw.body))),
            Err(reason) => Err(self.records.refuse(reason)),
        }
    }
}

/// Checks that a body is an object, without building a tree.
pub(super) fn check_object(body: &[u8]) -> Result<(), BodyError> {
    let mut reader = Reader::new(body);
    reader.outermost().map_err(BodyError::Json)?;
    let is_object = reader.peek().map_err(BodyError::Json)? == JsonKind::Object;
    reader.skip().map_err(BodyError::Json)?;
    reader.end().map_err(BodyError::Json)?;
    if is_object {
        Ok(())
    } else {
        Err(BodyError::NotObject)
    }
}
