//! The long jobs that the server's threads carry out now, for the status.
//!
//! A thread that begins one holds a [`RunningJob`] until it ends, and says from time to time how
//! far it is. Invariant: a job is listed exactly as long as its [`RunningJob`] lives, whichever way
//! the thread ends. The list is locked at the beginning and the end of a job only.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_json::Value;
use corvid_log::storage::RowProgress;
use corvid_net::clock;

use crate::status::{object, optional};

/// The unit of a job's progress.
const BYTES: &str = "bytes";
const ROWS: &str = "rows";

/// The kind of a job, as the status names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// A new file is written without the old records.
    Compaction,
    /// The rows are converted to another schema, or the file with the converted rows is written.
    Conversion,
    /// `ovsdb-server/backup`.
    Backup,
    /// A client reads the history.
    HistoryReading,
    /// A snapshot is sent to a member of the cluster, or received by one that has fallen behind.
    Snapshot,
    /// A member receives its first snapshot, or the one that replaces its damaged file.
    Joining,
}

impl JobKind {
    fn name(self) -> &'static str {
        match self {
            JobKind::Compaction => "compaction",
            JobKind::Conversion => "conversion",
            JobKind::Backup => "backup",
            JobKind::HistoryReading => "history_reading",
            JobKind::Snapshot => "snapshot",
            JobKind::Joining => "joining",
        }
    }
}

/// The jobs of one server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jobs(Arc<Mutex<JobList>>);

#[derive(Debug, Default)]
struct JobList {
    last: u64,
    /// By number, so in the order of their beginnings.
    running: BTreeMap<u64, Job>,
}

#[derive(Debug)]
struct Job {
    database: String,
    kind: JobKind,
    began_ms: u64,
    progress: Progress,
}

/// How far a job is.
#[derive(Clone, Debug)]
enum Progress {
    /// Rows that a thread counts as it writes them.
    Rows(Arc<RowProgress>),
    /// So many rows, of which it is not known how many are done.
    RowsAtOnce(u64),
    /// Bytes.
    Bytes(Arc<ByteProgress>),
}

/// Bytes that are done and all bytes; 0 of 0 until a thread knows.
#[derive(Debug, Default)]
struct ByteProgress {
    done: AtomicU64,
    total: AtomicU64,
}

/// A job as it is now.
#[derive(Clone, Debug)]
pub(crate) struct ListedJob {
    /// The name of the database.
    pub(crate) database: String,
    /// Its kind.
    pub(crate) kind: JobKind,
    /// Time since it began, ms, if known.
    pub(crate) age_ms: Option<u64>,
    /// How much is done, if known.
    pub(crate) done: Option<u64>,
    /// How much there is to do, if known.
    pub(crate) total: Option<u64>,
    /// The unit of both.
    pub(crate) unit: &'static str,
}

impl ListedJob {
    /// The transfer of a snapshot, of which so many bytes of so many are there.
    pub(crate) fn transfer(database: &str, kind: JobKind, (done, total): (u64, u64)) -> ListedJob {
        ListedJob {
            database: database.to_owned(),
            kind,
            age_ms: None,
            done: Some(done),
            total: Some(total),
            unit: BYTES,
        }
    }

    /// The element of the status.
    pub(crate) fn json(&self) -> Value {
        object([
            ("database", Value::string(&self.database)),
            ("kind", Value::string(self.kind.name())),
            ("age_ms", optional(self.age_ms)),
            ("done", optional(self.done)),
            ("total", optional(self.total)),
            ("unit", Value::string(self.unit)),
        ])
    }
}

/// A job that its thread carries out.
#[derive(Debug)]
pub(crate) struct RunningJob {
    jobs: Jobs,
    number: u64,
    bytes: Arc<ByteProgress>,
}

impl Jobs {
    /// Begins a job that counts the rows it writes.
    pub(crate) fn begin_rows(
        &self,
        database: &str,
        kind: JobKind,
        rows: &Arc<RowProgress>,
    ) -> RunningJob {
        self.begin(database, kind, Progress::Rows(rows.clone()))
    }

    /// Begins a job on so many rows that is done all at once.
    pub(crate) fn begin_at_once(&self, database: &str, kind: JobKind, rows: u64) -> RunningJob {
        self.begin(database, kind, Progress::RowsAtOnce(rows))
    }

    /// Begins a job of which [`RunningJob::reached`] will tell the bytes.
    pub(crate) fn begin_bytes(&self, database: &str, kind: JobKind) -> RunningJob {
        self.begin(database, kind, Progress::Bytes(Arc::default()))
    }

    fn begin(&self, database: &str, kind: JobKind, progress: Progress) -> RunningJob {
        let bytes = match &progress {
            Progress::Bytes(bytes) => bytes.clone(),
            Progress::Rows(_) | Progress::RowsAtOnce(_) => Arc::default(),
        };
        let mut list = self.lock();
        list.last += 1;
        let number = list.last;
        let job = Job {
            database: database.to_owned(),
            kind,
            began_ms: clock::mono_ms(),
            progress,
        };
        list.running.insert(number, job);
        drop(list);
        RunningJob {
            jobs: self.clone(),
            number,
            bytes,
        }
    }

    /// The jobs that run now, the oldest first.
    pub(crate) fn list(&self) -> Vec<ListedJob> {
        let now_ms = clock::mono_ms();
        let list = self.lock();
        let listed = list.running.values().map(|job| {
            let (done, total, unit) = job.progress.read();
            ListedJob {
                database: job.database.clone(),
                kind: job.kind,
                age_ms: Some(now_ms.saturating_sub(job.began_ms)),
                done,
                total,
                unit,
            }
        });
        listed.collect()
    }

    fn lock(&self) -> MutexGuard<'_, JobList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    fn read(&self) -> (Option<u64>, Option<u64>, &'static str) {
        match self {
            Progress::Rows(rows) => (Some(rows.done()), Some(rows.total()), ROWS),
            Progress::RowsAtOnce(rows) => (None, Some(*rows), ROWS),
            Progress::Bytes(bytes) => {
                let total = bytes.total.load(Ordering::Relaxed);
                let done = bytes.done.load(Ordering::Relaxed);
                let is_known = total > 0;
                let known = |number: u64| is_known.then_some(number);
                (known(done.min(total)), known(total), BYTES)
            }
        }
    }
}

impl RunningJob {
    /// So many bytes of so many are done.
    pub(crate) fn reached(&self, done: u64, total: u64) {
        self.bytes.done.store(done, Ordering::Relaxed);
        self.bytes.total.store(total, Ordering::Relaxed);
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        self.jobs.lock().running.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_listed_with_its_progress_until_it_ends() {
        let jobs = Jobs::default();
        let rows = Arc::new(RowProgress::new(10));
        let compaction = jobs.begin_rows("D", JobKind::Compaction, &rows);
        let reading = jobs.begin_bytes("E", JobKind::HistoryReading);
        let conversion = jobs.begin_at_once("F", JobKind::Conversion, 7);
        // Writing visits each row twice.
        (0..6).for_each(|_| rows.visit());
        let progress = || -> Vec<_> {
            let listed = jobs.list().into_iter();
            listed.map(|job| (job.done, job.total, job.unit)).collect()
        };
        assert_eq!(
            progress(),
            [
                (Some(3), Some(10), ROWS),
                (None, None, BYTES),
                (None, Some(7), ROWS)
            ]
        );
        drop(compaction);
        reading.reached(5, 20);
        drop(conversion);
        assert_eq!(progress(), [(Some(5), Some(20), BYTES)]);
        drop(reading);
        assert!(jobs.list().is_empty());
    }
}
