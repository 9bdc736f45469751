//! Iterating the records of a member's file.

use corvid_data::WireError;
use corvid_json::{Kind as JsonKind, Reader};

use super::{Header, Record};
use crate::reader::BodyError;
use crate::{Magic, ReadError, RecordReader, Source};

/// Reads the header, then record after record. Memory: as [`RecordReader`], and one record decoded.
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

    /// The next record as the header; must be read first. `None` in an empty file.
    ///
    /// # Errors
    /// Outer: the first damage, again at every later call. Inner: an undamaged record that is no header.
    pub fn header(&mut self) -> Result<Option<Result<Header, WireError>>, ReadError> {
        self.decoded(Header::decode)
    }

    /// The next record; `None` at the end of the file.
    ///
    /// # Errors
    /// Outer: the first damage, again at every later call. Inner: an undamaged record of an unknown kind; the next call reads the record
    /// behind it.
    #[allow(clippy::should_implement_trait)] // ends by its first error for good, which `Iterator` need not
    pub fn next(&mut self) -> Result<Option<Result<Record, WireError>>, ReadError> {
        self.decoded(Record::decode)
    }

    /// The number of the record read last, the header's being 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.records.records().saturating_sub(1)
    }

    /// Byte offset just past it.
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

/// A body must be an object. Walks it without making a tree.
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
