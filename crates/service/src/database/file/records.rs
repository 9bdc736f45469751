//! Records of commits, before they go to the file.
//!
//! Composing the record of a long commit takes as long as composing its updates. So the record is
//! composed only when the requests to the file are taken, and jobs for the updates are ordered
//! before: the driver can have another thread compose them meanwhile.
//!
//! Invariant: a record that is taken is complete, and records are taken in the order of their
//! positions. A precomputed update is not delivered before its record is stored.

use corvid_data::{Arc, Datum, Delta, RowChange, Schema};
use corvid_log::storage::{LogPosition, StorageRequest, StoreError};
use corvid_log::{is_recorded, write_long_transaction, write_transaction};

use super::super::Now;
use super::DatabaseFile;
use crate::counters::Counters;
use crate::replies::{Commit, Origin, PendingQueue};

/// A commit of more atoms is long: composing its record takes some 400 us.
const LONG_ATOMS: u64 = 8192;

/// Memory reserved for the record of a small transaction, bytes: it need not grow, and is freed
/// when the record is written.
const SHORT_BYTES: usize = 1024;

/// Memory reserved for one record, at most, bytes.
const RESERVED_BYTES_MAX: usize = 64 << 20;

/// The records of one database.
#[derive(Debug)]
pub(super) struct Records {
    /// Records of long commits, whose requests to the storage are made and still empty.
    uncomposed: Vec<Uncomposed>,
    /// The position of the last record that has left.
    taken: LogPosition,
    /// See [`LONG_ATOMS`].
    long_atoms: u64,
}

#[derive(Debug)]
struct Uncomposed {
    position: LogPosition,
    schema: Arc<Schema>,
    delta: Arc<Delta>,
    date_ms: i64,
    is_diff: bool,
}

impl Default for Records {
    fn default() -> Records {
        Records {
            uncomposed: Vec::new(),
            taken: LogPosition(0),
            long_atoms: LONG_ATOMS,
        }
    }
}

impl Records {
    /// Checks that the requests are in order and lack the records that are composed later.
    pub(super) fn check(&self, requests: &[StorageRequest]) {
        let mut last = self.taken;
        let mut empty = Vec::new();
        for request in requests {
            if let StorageRequest::Append {
                position, record, ..
            } = request
            {
                assert!(last < *position, "records are requested in order");
                last = *position;
                empty.extend(record.is_empty().then_some(*position));
            }
        }
        let uncomposed = self.uncomposed.iter().map(|long| long.position);
        assert!(
            uncomposed.eq(empty),
            "the requests that are empty are those of long commits"
        );
    }
}

/// A commit whose record is to be stored.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Recorded {
    pub(in super::super) position: LogPosition,
    /// The length of its record; 0 if it is long, because it is not composed yet.
    pub(in super::super) bytes: usize,
    /// Its record is composed later, and so should its updates be, by other threads.
    pub(in super::super) is_long: bool,
}

impl DatabaseFile {
    /// Sets from how many atoms on a commit is long.
    pub(in super::super) fn set_long_atoms(&mut self, atoms: u64) {
        self.records.long_atoms = atoms;
    }

    /// Requests the record of a commit to be stored. `None`: there is nothing to record.
    pub(in super::super) fn record(
        &mut self,
        now: Now,
        schema: &Arc<Schema>,
        delta: &Arc<Delta>,
        durable: bool,
        counts: &mut Counters,
    ) -> Option<Recorded> {
        let is_diff = self.is_diff;
        let mut record = Vec::new();
        let is_long = is_long(delta, self.records.long_atoms);
        if is_long {
            if !is_recorded(schema, delta) {
                return None;
            }
        } else {
            record = Vec::with_capacity(SHORT_BYTES);
            write_transaction(&mut record, schema, delta, now.wall_ms, is_diff)?;
        }
        // Only a commit that is recorded has a position: replies must not wait for one that is
        // never stored.
        let position = self.take_position();
        if is_long {
            self.records.uncomposed.push(Uncomposed {
                position,
                schema: schema.clone(),
                delta: delta.clone(),
                date_ms: now.wall_ms,
                is_diff,
            });
        }
        let bytes = record.len();
        self.count(bytes, counts);
        self.requests.push(StorageRequest::Append {
            position,
            record: record.into(),
            durable,
        });
        Some(Recorded {
            position,
            bytes,
            is_long,
        })
    }

    /// Takes the requests to the storage. Long records are composed here, which may take long;
    /// `pending` learns their lengths.
    pub(in super::super) fn take_requests(
        &mut self,
        pending: &mut PendingQueue,
        counts: &mut Counters,
    ) -> Vec<StorageRequest> {
        // The next batch is likely to be as large.
        let room = self.requests.len();
        let mut requests = std::mem::replace(&mut self.requests, Vec::with_capacity(room));
        for long in std::mem::take(&mut self.records.uncomposed) {
            let composed = requests.iter_mut().find_map(|request| match request {
                StorageRequest::Append {
                    position, record, ..
                } if *position == long.position => Some(record),
                _ => None,
            });
            assert!(
                composed.is_some(),
                "a long commit has a request to the storage"
            );
            let Some(record) = composed else { continue };
            assert!(record.is_empty(), "a record is composed once");
            let entry = pending.find_mut(long.position);
            assert!(
                entry.is_some(),
                "a commit is pending until its record is stored"
            );
            let request_len = entry
                .as_ref()
                .map_or(0, |entry| request_bytes(&entry.origin));
            let (schema, delta) = (&long.schema, &long.delta);
            // A large change mostly has a long request.
            let expected = request_len.min(RESERVED_BYTES_MAX);
            let mut text = Vec::new();
            write_long_transaction(
                &mut text,
                schema,
                delta,
                long.date_ms,
                long.is_diff,
                expected,
            );
            let bytes = text.len();
            *record = text.into();
            if let Some(Commit { record_bytes, .. }) = entry.and_then(|entry| entry.commit.as_mut())
            {
                *record_bytes = bytes;
            }
            self.count(bytes, counts);
        }
        for request in &requests {
            if let StorageRequest::Append {
                position, record, ..
            } = request
            {
                // The storage reports the last of several records, which stands for all before it.
                assert!(
                    self.records.taken < *position,
                    "records leave in the order of their positions"
                );
                assert!(!record.is_empty(), "a record that leaves is complete");
                self.records.taken = *position;
            }
        }
        requests
    }

    /// Commits are undone because the storage could not store one of them. `undone` are the lengths
    /// of their records.
    pub(in super::super) fn undo(
        &mut self,
        undone: impl Iterator<Item = usize>,
        error: &StoreError,
    ) {
        // Their records were counted when they were handed over, and none of them stays in the
        // file.
        if let Some(growth) = &mut self.growth {
            undone
                .filter(|bytes| *bytes > 0)
                .for_each(|bytes| growth.undone(bytes));
        }
        self.error = Some(error.clone());
        // Records that have not left are of undone commits. The storage
        // refuses all appends until `Recover`.
        self.requests
            .retain(|request| !matches!(request, StorageRequest::Append { .. }));
        self.records.uncomposed.clear();
        self.requests.push(StorageRequest::Recover);
    }

    fn count(&mut self, bytes: usize, counts: &mut Counters) {
        // An empty record is counted when it is composed.
        if bytes == 0 {
            return;
        }
        if let Some(growth) = &mut self.growth {
            growth.appended(bytes);
        }
        counts.recorded(bytes);
    }
}

/// The length of the request of a commit.
fn request_bytes(origin: &Origin) -> usize {
    match origin {
        Origin::Client(request) => request.frame.len(),
        Origin::Server(params) => params.len(),
        Origin::Source
        | Origin::Member(_)
        | Origin::Forwarded(_)
        | Origin::Cancel(..)
        | Origin::Control(_) => 0,
    }
}

/// Whether a commit holds at least this many atoms.
fn is_long(delta: &Delta, atoms_min: u64) -> bool {
    let mut atoms = 0;
    delta.changes.iter().any(|change| {
        atoms += atoms_of(change);
        atoms >= atoms_min
    })
}

/// The atoms in a change's part of the record.
fn atoms_of(change: &RowChange) -> u64 {
    match (&change.old, &change.new) {
        (None, Some(row)) => row.columns.iter().map(Datum::atom_count).sum(),
        (Some(_), Some(_)) => change.diffs.iter().map(|diff| diff.diff.atom_count()).sum(),
        _ => 1,
    }
}
