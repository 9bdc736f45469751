//! Records of commits, before they go to the file.
//!
//! Composing the record of a long commit takes as long as composing its updates. So the record is composed only when the requests to the
//! file are taken, and jobs for the updates are ordered before: the driver can have another thread compose them meanwhile.
//!
//! Invariant: a record that is taken is complete, and records are taken in the order of their positions. A precomputed update is not
//! delivered before its record is stored.

use bytes::Bytes;
use corvid_consensus::database::Proposal;
use corvid_data::{Arc, Datum, Delta, RowChange, Schema, Uuid};
use corvid_log::cluster::{Eid, write_data};
use corvid_log::storage::{LogPosition, StorageRequest};
use corvid_log::{is_recorded, write_long_transaction, write_transaction};

use super::model::StoredBy;
use super::pending::{Commit, Origin};
use super::{DatabaseService, Now};
use crate::job::Job;
use crate::recording::Setting;

/// A commit of more atoms is long: composing its record takes some 400 us.
const LONG_ATOMS: u64 = 8192;

/// Memory reserved for the record of a small transaction, bytes: it need not grow, and is freed when the record is written.
const SHORT_BYTES: usize = 1024;

/// Memory reserved for one record, at most, bytes.
const RESERVED_BYTES_MAX: usize = 64 << 20;

/// The records of one database.
#[derive(Debug)]
pub(super) struct Records {
    /// Records of long commits, whose requests are in the outputs and still empty.
    uncomposed: Vec<Uncomposed>,
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
            long_atoms: LONG_ATOMS,
        }
    }
}

impl Records {
    /// Drops records that are still in the outputs, because their commits are undone.
    pub(super) fn drop_uncomposed(&mut self) {
        self.uncomposed.clear();
    }
}

impl DatabaseService {
    /// Sets from how many atoms on a commit is long.
    pub fn set_long_atoms(&mut self, atoms: u64) {
        self.tape.setting(Setting::LongAtoms, atoms);
        self.records.long_atoms = atoms;
    }

    /// Requests the record of a commit to be stored. Returns its position, with its length unless it is long; `None`: there is nothing to
    /// record. `txn` is its id; `result` is for the other members of a cluster.
    pub(super) fn record(
        &mut self,
        now: Now,
        delta: &Arc<Delta>,
        durable: bool,
        txn: Uuid,
        result: Option<Bytes>,
    ) -> Option<(LogPosition, usize)> {
        match self.model.stored_by(self.growth.is_some()) {
            StoredBy::Execution => return None,
            StoredBy::Cluster => return Some(self.propose(now, delta, txn, result)),
            StoredBy::Log => {}
        }
        let is_diff = self.column_diff;
        let mut record = Vec::new();
        let is_long = is_long(delta, self.records.long_atoms);
        if is_long {
            if !is_recorded(self.database.schema(), delta) {
                return None;
            }
            let updates = self.monitors.precompute_updates(delta);
            self.outputs
                .jobs
                .extend(updates.into_iter().map(Job::PrecomputedUpdate));
        } else {
            let schema = self.database.schema();
            record.reserve(SHORT_BYTES);
            write_transaction(&mut record, schema, delta, now.wall_ms, is_diff)?;
        }
        let position = self.next_log_position();
        if is_long {
            self.records.uncomposed.push(Uncomposed {
                position,
                schema: self.database.schema().clone(),
                delta: delta.clone(),
                date_ms: now.wall_ms,
                is_diff,
            });
        }
        let bytes = record.len();
        self.count_record(bytes);
        self.outputs.stores.push(StorageRequest::Append {
            position,
            record,
            durable,
        });
        Some((position, bytes))
    }

    /// Proposes a commit as an entry of the cluster's log.
    fn propose(
        &mut self,
        now: Now,
        delta: &Arc<Delta>,
        txn: Uuid,
        result: Option<Bytes>,
    ) -> (LogPosition, usize) {
        let mut data = Vec::with_capacity(SHORT_BYTES);
        let schema = self.database.schema();
        write_data(&mut data, schema, delta, now.wall_ms, self.column_diff);
        let bytes = data.len();
        self.count_record(bytes);
        let position = self.next_log_position();
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.propose(Proposal {
                eid: Eid(txn),
                data: Bytes::from(data),
                result,
            });
        }
        (position, bytes)
    }

    /// Takes the requests to the file. Call it after the jobs have been taken: composing long records may take long.
    pub fn take_stores(&mut self) -> Vec<StorageRequest> {
        // The next batch is likely to be as large.
        let room = self.outputs.stores.len();
        let mut stores = std::mem::replace(&mut self.outputs.stores, Vec::with_capacity(room));
        for long in std::mem::take(&mut self.records.uncomposed) {
            let composed = stores.iter_mut().find_map(|store| match store {
                StorageRequest::Append {
                    position, record, ..
                } if *position == long.position => Some(record),
                _ => None,
            });
            let Some(record) = composed else { continue };
            let entry = self.pending.find_mut(long.position);
            let request_len = entry
                .as_ref()
                .map_or(0, |entry| request_bytes(&entry.origin));
            let (schema, delta) = (&long.schema, &long.delta);
            // A large change mostly has a long request.
            let expected = request_len.min(RESERVED_BYTES_MAX);
            write_long_transaction(record, schema, delta, long.date_ms, long.is_diff, expected);
            let bytes = record.len();
            if let Some(Commit { record_bytes, .. }) = entry.and_then(|entry| entry.commit.as_mut())
            {
                *record_bytes = bytes;
            }
            self.count_record(bytes);
        }
        stores
    }

    /// Whether there are requests to the file.
    #[must_use]
    pub fn has_stores(&self) -> bool {
        !self.outputs.stores.is_empty()
    }

    fn count_record(&mut self, bytes: usize) {
        // An empty record is counted when it is composed.
        if bytes == 0 {
            return;
        }
        if let Some(growth) = &mut self.growth {
            growth.appended(bytes);
        }
        self.counts.recorded(bytes);
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
