//! Replaying a standalone file: the schema of record 0, then one transaction per record. The policy
//! for unusable records is here and nowhere else.
//!
//! Policy (docs/spec/storage.md 5): the log ends before the first unusable record, whether its
//! framing is damaged, its content does not match the schema, or it does not commit. Later records
//! are not applied, [`Load::good_end`] stays before the record, and the [`Damage`] names record and
//! offset. The reference is more lenient: it skips such records and then cuts the file in the wrong
//! place. The policy holds both for a server, which continues with the records before, and for a
//! tool, which gives up. The caller decides whether bytes after the damage are worth keeping.

use corvid_data::{Arc, Recorded, Schema, Tag, WireError};

use crate::decode::{DecodeError, FieldOrderCache, decode};
use crate::split::Raw;
use crate::{Feed, Magic, ReadError, RecordReader, Source};

/// Why and where a log ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of the record, counting from 0.
    pub record: u64,
    /// Byte offset of its header: everything before it is good.
    pub offset: u64,
    /// The error.
    pub cause: Cause,
}

/// The kinds of error in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The bytes are damaged.
    Read(ReadError),
    /// The content is not a schema, or not a transaction that fits the schema and the present rows.
    Content(WireError),
    /// The transaction does not commit.
    Commit(WireError),
}

/// How far a log is good: the records that have been read and applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    records: u64,
    good_end: u64,
    base: u64,
}

impl Extent {
    /// Adds one more good record, which ends at byte offset `end`.
    pub fn accept(&mut self, end: u64) {
        self.records += 1;
        self.good_end = end;
        if self.records == 2 {
            self.base = end;
        }
    }

    /// Number of good records so far, record 0 included.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Byte offset just past the good records. The next record goes here, after the file has been
    /// cut here.
    #[must_use]
    pub fn good_end(&self) -> u64 {
        self.good_end
    }

    /// Byte offset after the second record, presumed to be a snapshot; 0 without a second record.
    /// Growth is measured against it (docs/spec/storage.md 9.3).
    #[must_use]
    pub fn base_bytes(&self) -> u64 {
        self.base
    }

    /// Damage in the record that follows the good ones.
    #[must_use]
    pub fn damage(&self, cause: Cause) -> Damage {
        Damage {
            record: self.records,
            offset: self.good_end,
            cause,
        }
    }
}

/// Reads a standalone log in order, one transaction at a time. Use a [`Feed`] to read with several
/// threads.
#[derive(Debug)]
pub struct Load<S> {
    records: RecordReader<S>,
    schema: Arc<Schema>,
    extent: Extent,
    /// The extent before the last transaction returned, until [`Load::reject`] uses it.
    before: Option<Extent>,
    damage: Option<Damage>,
    order: FieldOrderCache,
}

impl<S: Source> Load<S> {
    /// Reads record 0.
    ///
    /// # Errors
    /// Record 0 is absent, damaged or not a schema.
    pub fn open(source: S) -> Result<Load<S>, Damage> {
        let mut extent = Extent::default();
        let mut records = RecordReader::new(source, Magic::Standalone);
        let schema = read_schema(&mut records).map_err(|cause| extent.damage(cause))?;
        extent.accept(records.good_end());
        Ok(Load {
            records,
            schema: Arc::new(schema),
            extent,
            before: None,
            damage: None,
            order: FieldOrderCache::default(),
        })
    }

    /// The schema of record 0.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The next transaction, which must be applied before the next call; `None` at the end of the
    /// log.
    ///
    /// # Errors
    /// The first damage; every later call returns it again.
    pub fn next_transaction(&mut self) -> Result<Option<Recorded>, Damage> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        self.before = None;
        let read = match self.records.next() {
            Ok(None) => return Ok(None),
            Ok(Some(raw)) => read_transaction(&raw, &self.schema, &mut self.order),
            Err(error) => Err(Cause::Read(error)),
        };
        match read {
            Ok(recorded) => {
                self.before = Some(self.extent);
                self.extent.accept(self.records.good_end());
                Ok(Some(recorded))
            }
            Err(cause) => Err(self.damaged(cause)),
        }
    }

    /// Declares that the last transaction returned cannot be applied: the log ends before it.
    pub fn reject(&mut self, error: WireError) -> Damage {
        let before = self.before.take();
        assert!(
            before.is_some(),
            "only the transaction handed out last can be rejected, once"
        );
        self.extent = before.unwrap_or(self.extent);
        self.damaged(Cause::rejected(error))
    }

    /// Number of good records so far, record 0 included.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.extent.records
    }

    /// Byte offset just past the good records. The next record goes here, after the file has been
    /// cut here.
    #[must_use]
    pub fn good_end(&self) -> u64 {
        self.extent.good_end
    }

    /// As [`Extent::base_bytes`].
    #[must_use]
    pub fn base_bytes(&self) -> u64 {
        self.extent.base
    }

    /// Estimate of the bytes left to read, if the source can tell.
    #[must_use]
    pub fn bytes_left(&self) -> Option<u64> {
        self.records.bytes_left()
    }

    /// The source, read to its end or to the damage.
    #[must_use]
    pub fn into_source(self) -> S {
        self.records.into_source()
    }

    /// The rest of the log as work for several threads, and the extent read so far.
    #[must_use]
    pub fn into_feed(self) -> (Feed<S>, Extent) {
        let (splitter, rest) = self.records.into_rest();
        (Feed::new(splitter, self.schema, rest), self.extent)
    }

    fn damaged(&mut self, cause: Cause) -> Damage {
        self.damage.insert(self.extent.damage(cause)).clone()
    }
}

impl Cause {
    /// The cause for a transaction that fits the schema but cannot be applied.
    #[must_use]
    pub fn rejected(error: WireError) -> Cause {
        match error.tag {
            Tag::ConstraintViolation | Tag::ReferentialIntegrityViolation => Cause::Commit(error),
            // A difference that does not fit the row, or the deletion of an absent row.
            _ => Cause::Content(error),
        }
    }
}

impl Damage {
    /// Renders the error in the reference's words about `file`.
    #[must_use]
    pub fn to_wire(&self, file: &str) -> WireError {
        match &self.cause {
            Cause::Read(error) => error.to_wire(file),
            Cause::Content(error) | Cause::Commit(error) => error.clone(),
        }
    }

    /// One line for the log: the error, plus the record's position if the error text lacks it.
    #[must_use]
    pub fn report(&self, file: &str) -> String {
        let error = self.to_wire(file);
        match &self.cause {
            Cause::Read(_) => error.to_string(),
            Cause::Content(_) | Cause::Commit(_) => format!(
                "{file}: record {} at offset {} cannot be used: {error}",
                self.record, self.offset
            ),
        }
    }
}

fn read_schema<S: Source>(records: &mut RecordReader<S>) -> Result<Schema, Cause> {
    let Some(json) = records.next_object().map_err(Cause::Read)? else {
        let details = "unexpected end of file reading schema";
        return Err(Cause::Content(WireError::new(Tag::OvsdbError, details)));
    };
    Schema::from_json(&json).map_err(Cause::Content)
}

/// Decodes one transaction record.
pub(crate) fn read_transaction(
    raw: &Raw<'_>,
    schema: &Schema,
    order: &mut FieldOrderCache,
) -> Result<Recorded, Cause> {
    decode(raw.body, schema, order).map_err(|error| match error {
        DecodeError::Body(reason) => Cause::Read(reason.of_body(raw.body.len() as u64, raw.offset)),
        DecodeError::Content(error) => Cause::Content(error),
    })
}

#[cfg(test)]
mod tests;
