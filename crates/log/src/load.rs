//! Replaying a standalone file: the schema of record 0, then one transaction per record, and the one place that says what
//! happens when a record makes no sense.
//!
//! Policy (storage.md section 5, stricter than the reference, which skips such records and then cuts the file in the wrong
//! place): the log ends before the first record that cannot be used, whether its framing is damaged, its content does not
//! fit the schema or it does not commit. Nothing after it is applied, [`Load::good_end`] stays before it, and the
//! [`Damage`] tells record and offset. The same holds for a server, which goes on with what was read, and for a tool, which
//! gives up. Whether bytes behind the damage are worth keeping is for the caller to decide.

use corvid_data::{Arc, Recorded, Schema, Tag, WireError};

use crate::decode::{DecodeError, decode};
use crate::reader::parse_object;
use crate::{Magic, ReadError, RecordReader, Source};

/// Why and where a log ends before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The record, counting from 0.
    pub record: u64,
    /// Byte offset of its header: what stands before is good.
    pub offset: u64,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What can be wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its bytes.
    Read(ReadError),
    /// Its content: no schema, or not a transaction under the schema and on the rows that are there.
    Content(WireError),
    /// It is a transaction that does not commit.
    Commit(WireError),
}

/// Reads a standalone log from its beginning.
#[derive(Debug)]
pub struct Load<S> {
    records: RecordReader<S>,
    schema: Arc<Schema>,
    base: u64,
    damage: Option<Damage>,
}

impl<S: Source> Load<S> {
    /// Reads record 0.
    ///
    /// # Errors
    /// It is absent, damaged or no schema.
    pub fn open(source: S) -> Result<Load<S>, Damage> {
        let mut records = RecordReader::new(source, Magic::Standalone);
        let schema = read_schema(&mut records).map_err(|cause| Damage {
            record: 0,
            offset: 0,
            cause,
        })?;
        Ok(Load {
            records,
            schema: Arc::new(schema),
            base: 0,
            damage: None,
        })
    }

    /// The schema of record 0.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The next transaction, to be applied before the next call; `None` at the end of the log.
    ///
    /// # Errors
    /// The first damage, again at every later call.
    pub fn next_transaction(&mut self) -> Result<Option<Recorded>, Damage> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        let decoded = match self.records.next() {
            Ok(None) => return Ok(None),
            Ok(Some(raw)) => decode(raw.body, &self.schema),
            Err(error) => return Err(self.damaged(Cause::Read(error))),
        };
        match decoded {
            Ok(recorded) => {
                if self.records.records() == 2 {
                    self.base = self.records.good_end();
                }
                Ok(Some(recorded))
            }
            Err(DecodeError::Body(reason)) => {
                let error = self.records.refuse(reason);
                Err(self.damaged(Cause::Read(error)))
            }
            Err(DecodeError::Content(error)) => {
                self.records.take_back_last();
                Err(self.damaged(Cause::Content(error)))
            }
        }
    }

    /// Tells that the transaction handed out last cannot be applied: the log ends before it.
    pub fn reject(&mut self, error: WireError) -> Damage {
        self.records.take_back_last();
        self.damaged(match error.tag {
            Tag::ConstraintViolation | Tag::ReferentialIntegrityViolation => Cause::Commit(error),
            // A difference that does not fit the row, or a deleted row that is not there.
            _ => Cause::Content(error),
        })
    }

    /// Records that are good so far, record 0 included.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records.records()
    }

    /// Byte offset just past them: where the next record must be written, after the file is cut there.
    #[must_use]
    pub fn good_end(&self) -> u64 {
        self.records.good_end()
    }

    /// Byte offset after the second record, presumed a snapshot, or 0 when there was none: what growth is measured
    /// against (storage.md 9.3).
    #[must_use]
    pub fn base_bytes(&self) -> u64 {
        self.base
    }

    /// The source, read to its end or to the damage.
    #[must_use]
    pub fn into_source(self) -> S {
        self.records.into_source()
    }

    fn damaged(&mut self, cause: Cause) -> Damage {
        let damage = Damage {
            record: self.records.records(),
            offset: self.records.good_end(),
            cause,
        };
        self.damage = Some(damage.clone());
        damage
    }
}

impl Damage {
    /// The error in the reference's words about `file`.
    #[must_use]
    pub fn to_wire(&self, file: &str) -> WireError {
        match &self.cause {
            Cause::Read(error) => error.to_wire(file),
            Cause::Content(error) | Cause::Commit(error) => error.clone(),
        }
    }

    /// One line for a log: the error and, as its text does not say, where the record is.
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
    let body = match records.next() {
        Ok(Some(raw)) => parse_object(raw.body),
        Ok(None) => {
            let details = "unexpected end of file reading schema";
            return Err(Cause::Content(WireError::new(Tag::OvsdbError, details)));
        }
        Err(error) => return Err(Cause::Read(error)),
    };
    let parsed = match body {
        Ok(json) => Schema::from_json(&json),
        Err(reason) => return Err(Cause::Read(records.refuse(reason))),
    };
    parsed.map_err(|error| {
        records.take_back_last();
        Cause::Content(error)
    })
}

#[cfg(test)]
mod tests;
