//! Reading a log with several threads: the sequential part runs here, the rest comes out as jobs.
//!
//! Invariant: jobs may be executed in any order. Applied in the order in which they were returned,
//! they have the effect of [`crate::Load`], which reads one transaction at a time, and report the
//! same damage in the same words. This module knows no threads: the server distributes the jobs.
//!
//! A long record right after the schema (in a compacted file) is returned in pieces before its hash
//! is known:
//!
//! ```text
//! Fill, Rows, Rows, ..., Rows, Filled, Records, ...
//! ```
//!
//! The rows of a cluster member's snapshot arrive the same way, and the entries after it as records
//! ([`Feed::of_member`]).
//!
//! The caller may insert the rows of a long record into a database that is not in use yet. They are
//! valid once `Filled` confirms hash and form. Any irregularity (repeated members, a deletion,
//! damage of any kind) yields `Irregular`. The reader then starts again with
//! [`Feed::whole_records`], which treats such a record as one ordinary transaction and reports the
//! error.

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_data::{Arc, Recorded, RecordedRow, Schema};

use crate::cluster::SnapshotBody;
use crate::decode::FieldOrderCache;
use crate::load::{Cause, read_transaction};
use crate::rows::{RUN_BYTES, RowSplitter, RowText};
use crate::split::{BATCH_BYTES, Batch, Cut, Long, Splitter};
use crate::{ReadError, Source};

/// A body of at least this many bytes is long: distributing its rows over threads pays off, and it
/// is too large for a batch.
pub const LONG_BYTES: u64 = 4 * 1024 * 1024;

/// The next piece of work. Jobs come in the order of the log.
#[derive(Debug)]
pub enum Job {
    /// Decode records.
    Records(Records),
    /// A long record begins, which inserts rows into an empty database.
    Fill,
    /// Decode rows of the long record.
    Rows(RowText),
    /// The long record is complete and its hash is right.
    Filled {
        /// The byte offset of its end.
        end: u64,
        /// Its `_comment`.
        comment: Option<String>,
    },
    /// The long record cannot be read in pieces.
    Irregular,
    /// The log ends here, because of the error if there is one.
    End(Option<ReadError>),
}

/// Records to be checked and decoded.
#[derive(Debug)]
pub struct Records {
    batch: Batch,
    from: usize,
}

/// Records that were checked and decoded.
#[derive(Debug)]
pub struct Decoded<T> {
    /// The values that `make` returned, each with the byte offset just past its record.
    pub transactions: Vec<(T, u64)>,
    /// Why no more records could be read.
    pub damage: Option<Cause>,
}

impl Records {
    /// Checks and decodes up to the first damage; `make` turns each transaction into a value.
    #[must_use]
    pub fn decode<T>(&self, schema: &Schema, mut make: impl FnMut(Recorded) -> T) -> Decoded<T> {
        let mut transactions = Vec::with_capacity(self.batch.len() - self.from);
        // Strings are cached per batch: threads that share a string contend for its reference
        // count.
        let mut order = FieldOrderCache::default();
        for index in self.from..self.batch.len() {
            let raw = self.batch.raw(index).map_err(Cause::Read);
            match raw.and_then(|raw| read_transaction(&raw, schema, &mut order)) {
                Ok(recorded) => transactions.push((make(recorded), self.batch.end(index))),
                Err(cause) => {
                    return Decoded {
                        transactions,
                        damage: Some(cause),
                    };
                }
            }
        }
        Decoded {
            transactions,
            damage: None,
        }
    }
}

impl RowText {
    /// Decodes the rows, all of them new; `None` on any irregularity.
    #[must_use]
    pub fn decode(&self, schema: &Schema) -> Option<Vec<RecordedRow>> {
        crate::decode::decode_new_rows(&self.text, self.table, schema)
    }
}

/// Returns jobs. Holds in memory one batch and the buffered part of a long record.
#[derive(Debug)]
pub struct Feed<S> {
    input: Input<S>,
    schema: Arc<Schema>,
    /// Records already read after the schema, and the index of the first of them that is still to
    /// be returned.
    rest: Option<(Batch, usize)>,
    /// Body length from which the next record is long, bytes.
    long_bytes: u64,
    /// Approximate size of a job of rows, bytes.
    run_bytes: usize,
    long: Option<(Long, RowSplitter)>,
    rows: VecDeque<RowText>,
    has_ended: bool,
}

/// Where the bytes come from.
#[derive(Debug)]
enum Input<S> {
    /// The records of a standalone file.
    Records(Splitter<S>),
    /// The rows of a snapshot until they are read, then transactions.
    Member {
        body: Option<SnapshotBody<S>>,
        /// Cuts the rows while they are read; `None` before the first.
        cut: Option<RowSplitter>,
        transactions: VecDeque<Bytes>,
    },
}

impl<S: Source> Feed<S> {
    pub(crate) fn new(
        splitter: Splitter<S>,
        schema: Arc<Schema>,
        rest: Option<(Batch, usize)>,
    ) -> Feed<S> {
        Feed {
            rest,
            ..Feed::of(Input::Records(splitter), schema)
        }
    }

    /// Feeds the rows of a snapshot, if any, and then transactions, which must be valid JSON. If no
    /// rows come first, records count from 0. The offsets of transactions mean nothing.
    #[must_use]
    pub fn of_member(
        schema: Arc<Schema>,
        body: Option<SnapshotBody<S>>,
        transactions: VecDeque<Bytes>,
    ) -> Feed<S> {
        let input = Input::Member {
            body,
            cut: None,
            transactions,
        };
        Feed::of(input, schema)
    }

    fn of(input: Input<S>, schema: Arc<Schema>) -> Feed<S> {
        Feed {
            long_bytes: LONG_BYTES,
            run_bytes: RUN_BYTES,
            input,
            schema,
            rest: None,
            long: None,
            rows: VecDeque::new(),
            has_ended: false,
        }
    }

    /// Turns off cutting: every record is returned in one piece, however long.
    #[must_use]
    pub fn whole_records(self) -> Feed<S> {
        let run_bytes = self.run_bytes;
        self.with_limits(u64::MAX, run_bytes)
    }

    /// Overrides the limits: records of at least `long_bytes` count as long, and a job has about
    /// `run_bytes` of rows.
    #[must_use]
    pub fn with_limits(mut self, long_bytes: u64, run_bytes: usize) -> Feed<S> {
        self.long_bytes = long_bytes;
        self.run_bytes = run_bytes;
        self
    }

    /// The next job; `None` after [`Job::End`] and [`Job::Irregular`].
    pub fn job(&mut self) -> Option<Job> {
        if self.has_ended {
            return None;
        }
        let job = self.next();
        self.has_ended = matches!(job, Job::End(_) | Job::Irregular);
        Some(job)
    }

    /// Returns the memory of decoded records for reuse.
    pub fn reuse(&mut self, records: Records) {
        if let Input::Records(splitter) = &mut self.input {
            splitter.reuse(records.batch);
        }
    }

    fn next(&mut self) -> Job {
        if let Some((batch, from)) = self.rest.take() {
            // Only the first record after the schema can be a snapshot, so later records never
            // count as long.
            self.long_bytes = u64::MAX;
            return Job::Records(Records { batch, from });
        }
        if let Some(rows) = self.rows.pop_front() {
            return Job::Rows(rows);
        }
        match &mut self.input {
            Input::Member { .. } => self.member_job(),
            Input::Records(_) if self.long.is_some() => self.long_job(),
            Input::Records(splitter) => match splitter.cut(self.long_bytes) {
                Ok(Some(Cut::Batch(batch))) => {
                    self.long_bytes = u64::MAX;
                    Job::Records(Records { batch, from: 0 })
                }
                Ok(Some(Cut::Long(long))) => {
                    self.long_bytes = u64::MAX;
                    self.long = Some((long, RowSplitter::new(self.schema.clone(), self.run_bytes)));
                    Job::Fill
                }
                Ok(None) => Job::End(None),
                Err(error) => Job::End(Some(error)),
            },
        }
    }

    fn long_job(&mut self) -> Job {
        loop {
            if let Some(rows) = self.rows.pop_front() {
                return Job::Rows(rows);
            }
            let (Some((long, cut)), Input::Records(splitter)) = (&mut self.long, &mut self.input)
            else {
                return Job::Irregular;
            };
            match splitter.piece(long) {
                Ok(Some(piece)) => {
                    if cut.feed(&piece, &mut self.rows).is_err() {
                        return Job::Irregular;
                    }
                    splitter.reuse_piece(piece);
                }
                Ok(None) if cut.is_complete() => {
                    let (end, comment) = (long.end, cut.take_comment());
                    self.long = None;
                    return Job::Filled { end, comment };
                }
                Ok(None) | Err(_) => return Job::Irregular,
            }
        }
    }

    fn member_job(&mut self) -> Job {
        let Input::Member {
            body,
            cut,
            transactions,
        } = &mut self.input
        else {
            return Job::Irregular;
        };
        if let Some(rows) = body {
            if self.long_bytes == u64::MAX {
                let text = rows.all();
                *body = None;
                return match text {
                    Ok(text) => records(std::iter::once(&text[..])),
                    Err(error) => Job::End(Some(error)),
                };
            }
            let Some(cut) = cut else {
                *cut = Some(RowSplitter::new(self.schema.clone(), self.run_bytes));
                return Job::Fill;
            };
            loop {
                if let Some(rows) = self.rows.pop_front() {
                    return Job::Rows(rows);
                }
                match rows.piece() {
                    Ok(Some(piece)) => {
                        if cut.feed(piece, &mut self.rows).is_err() {
                            return Job::Irregular;
                        }
                    }
                    Ok(None) if cut.is_complete() => {
                        let (end, comment) = (rows.end(), cut.take_comment());
                        *body = None;
                        return Job::Filled { end, comment };
                    }
                    Ok(None) | Err(_) => return Job::Irregular,
                }
            }
        }
        let mut bytes = 0;
        let count = transactions
            .iter()
            .take_while(|text| {
                let is_room = bytes < BATCH_BYTES;
                bytes += text.len();
                is_room
            })
            .count();
        let batch: Vec<Bytes> = transactions.drain(..count).collect();
        records(batch.iter().map(|text| &text[..]))
    }
}

/// The job that decodes these bodies, or the end if there are none.
fn records<'b>(bodies: impl Iterator<Item = &'b [u8]>) -> Job {
    match Batch::of_bodies(bodies) {
        Some(batch) => Job::Records(Records { batch, from: 0 }),
        None => Job::End(None),
    }
}

#[cfg(test)]
mod tests;
