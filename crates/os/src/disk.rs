//! The disk thread of one database file: appends with tickets, one write and one sync for all that arrived meanwhile.
//!
//! The engine executes on speculative state and parks what depends on a record until its ticket completes. Under load the
//! thread batches by itself: what arrives during one sync is covered by the next. When it has nothing to do, a record may
//! be written by the caller, which saves the hand-over.
//!
//! Invariants:
//! - Records reach the file in the order of their tickets, and tickets complete in that order.
//! - After a failure every record fails until [`Disk::resume`]: the caller's later records were computed on a state that
//!   never became durable. It undoes them, then resumes.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::log_file::{DiskError, LogFile};

/// Bytes written before a batch is cut, so that a sync does not grow without limit while records wait behind it.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Names an append; later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// How an append ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Which one.
    pub ticket: Ticket,
    /// Whether its record is in the file (and on disk, if that was asked for).
    pub result: Result<(), DiskError>,
}

/// The writer of one file.
#[derive(Debug)]
pub struct Disk {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// Records arrived, the file came free, or the end has come.
    changed: Condvar,
    /// Locked by whoever has set `is_busy`.
    file: Mutex<LogFile>,
}

#[derive(Debug, Default)]
struct Queue {
    records: Vec<Record>,
    next_ticket: u64,
    /// Somebody uses the file.
    is_busy: bool,
    failure: Option<DiskError>,
    is_stopping: bool,
}

#[derive(Debug)]
struct Record {
    ticket: Ticket,
    bytes: Vec<u8>,
    sync: bool,
}

impl Disk {
    /// Takes a file over. `complete` is called on the disk thread with the completions of each batch; it should post them to
    /// the engine.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(
        file: LogFile,
        complete: impl FnMut(Vec<Completion>) + Send + 'static,
    ) -> io::Result<Disk> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            file: Mutex::new(file),
        });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("disk".into())
            .spawn(move || theirs.run(complete))?;
        Ok(Disk {
            shared,
            thread: Some(thread),
        })
    }

    /// Queues a record; with `sync` it completes only when it is forced to disk.
    pub fn append(&self, bytes: Vec<u8>, sync: bool) -> Ticket {
        let mut queue = self.shared.lock();
        let ticket = Ticket(queue.next_ticket);
        queue.next_ticket += 1;
        let must_wake = queue.records.is_empty();
        queue.records.push(Record {
            ticket,
            bytes,
            sync,
        });
        drop(queue);
        if must_wake {
            self.shared.changed.notify_all();
        }
        ticket
    }

    /// Writes a record on the calling thread, if nothing is queued or under way; `None`: use [`Disk::append`]. A failure
    /// here concerns this record alone, for nothing was computed on top of it yet.
    pub fn try_append_inline(&self, record: &[u8], sync: bool) -> Option<Result<(), DiskError>> {
        let mut queue = self.shared.lock();
        if queue.is_busy || !queue.records.is_empty() || queue.failure.is_some() {
            return None;
        }
        queue.is_busy = true;
        drop(queue);
        let result = write(&mut self.shared.file(), &[record], sync);
        self.shared.release();
        Some(result)
    }

    /// Accepts records again after a failure, once everything that depended on the failed ones is undone. Records queued
    /// before this call still fail if they have not yet.
    pub fn resume(&self) {
        let mut queue = self.shared.lock();
        while queue.failure.is_some() && (queue.is_busy || !queue.records.is_empty()) {
            queue = self
                .shared
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        queue.failure = None;
    }

    /// Waits until everything queued is written and gives the file to `act`: for replacing it, or reading its end.
    pub fn with_file<R>(&self, act: impl FnOnce(&mut LogFile) -> R) -> R {
        let mut queue = self.shared.lock();
        while queue.is_busy || !queue.records.is_empty() {
            queue = self
                .shared
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        queue.is_busy = true;
        drop(queue);
        let result = act(&mut self.shared.file());
        self.shared.release();
        result
    }
}

impl Drop for Disk {
    /// Everything queued is written before the thread ends.
    fn drop(&mut self) {
        self.shared.lock().is_stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panicked thread has already said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self) -> MutexGuard<'_, LogFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self) {
        self.lock().is_busy = false;
        self.changed.notify_all();
    }

    fn run(&self, mut complete: impl FnMut(Vec<Completion>)) {
        while let Some((batch, failure)) = self.next_batch() {
            let result = match failure {
                Some(failure) => Err(failure),
                None => {
                    let records: Vec<&[u8]> =
                        batch.iter().map(|record| record.bytes.as_slice()).collect();
                    let sync = batch.iter().any(|record| record.sync);
                    write(&mut self.file(), &records, sync)
                }
            };
            if let Err(error) = &result {
                self.lock().failure = Some(error.clone());
            }
            // Completed before the file comes free, so that no inline write can overtake.
            let completed = |record: Record| Completion {
                ticket: record.ticket,
                result: result.clone(),
            };
            complete(batch.into_iter().map(completed).collect());
            self.release();
        }
    }

    /// Waits for records and takes as many as one write should carry; `None` at the end.
    fn next_batch(&self) -> Option<(Vec<Record>, Option<DiskError>)> {
        let mut queue = self.lock();
        while queue.is_busy || queue.records.is_empty() {
            if queue.is_stopping && queue.records.is_empty() {
                return None;
            }
            queue = self
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let mut bytes = 0;
        let mut fits = |record: &Record| {
            let fits = bytes < BATCH_BYTES_MAX;
            bytes += record.bytes.len();
            fits
        };
        let count = queue
            .records
            .iter()
            .take_while(|record| fits(record))
            .count();
        let rest = queue.records.split_off(count);
        let batch = std::mem::replace(&mut queue.records, rest);
        queue.is_busy = true;
        Some((batch, queue.failure.clone()))
    }
}

/// Appends and, if asked, syncs. Records whose sync failed are cut off again, as far as the disk still obeys: they were
/// never acknowledged and must not be replayed.
fn write(file: &mut LogFile, records: &[&[u8]], sync: bool) -> Result<(), DiskError> {
    let before = file.end();
    file.append(records)?;
    if sync && let Err(error) = file.sync() {
        let _ = file.truncate_to(before);
        return Err(error);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_file::{OpenMode, Replacement};
    use crate::test_dir::TestDir;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    fn open(directory: &TestDir, mode: OpenMode) -> LogFile {
        LogFile::open(&directory.path().join("a.db").display().to_string(), mode).unwrap()
    }

    #[test]
    fn records_are_written_and_completed_in_order() {
        let directory = TestDir::new();
        let (sender, receiver) = channel();
        let complete = move |batch| sender.send(batch).unwrap();
        let disk = Disk::start(open(&directory, OpenMode::CreateExclusive), complete).unwrap();
        let mut expected = Vec::new();
        let mut queued = Vec::new();
        for i in 0..500u32 {
            let record = format!("{i};").into_bytes();
            expected.extend_from_slice(&record);
            if i % 5 == 0
                && let Some(result) = disk.try_append_inline(&record, false)
            {
                result.unwrap();
                continue;
            }
            queued.push(disk.append(record, i % 50 == 0));
        }
        let mut completed = Vec::new();
        while completed.len() < queued.len() {
            let batch: Vec<Completion> = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
            completed.extend(
                batch
                    .into_iter()
                    .map(|one| one.result.map(|()| one.ticket).unwrap()),
            );
        }
        assert_eq!(completed, queued);
        disk.with_file(|file| assert_eq!(file.end(), expected.len() as u64));
        assert_eq!(
            std::fs::read(directory.path().join("a.db")).unwrap(),
            expected
        );
    }

    #[test]
    fn after_a_failure_everything_fails_until_resumed() {
        let directory = TestDir::new();
        std::fs::write(directory.path().join("a.db"), "").unwrap();
        let (sender, receiver) = channel();
        // Opened for reading only, so that every write fails.
        let complete = move |batch: Vec<Completion>| {
            batch.into_iter().for_each(|one| sender.send(one).unwrap());
        };
        let disk = Disk::start(open(&directory, OpenMode::ReadOnly), complete).unwrap();
        let tickets = [
            disk.append(b"1".to_vec(), false),
            disk.append(b"2".to_vec(), true),
        ];
        for ticket in tickets {
            let completion = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
            assert_eq!(
                (completion.ticket, completion.result.is_err()),
                (ticket, true)
            );
        }
        assert!(disk.try_append_inline(b"3", false).is_none());
        disk.resume();
        assert!(disk.try_append_inline(b"3", false).unwrap().is_err());
    }

    #[test]
    fn the_file_is_replaced_between_batches() {
        let directory = TestDir::new();
        let disk = Disk::start(open(&directory, OpenMode::CreateExclusive), |_| {}).unwrap();
        disk.append(b"old".to_vec(), false);
        disk.with_file(|file| {
            let mut replacement = Replacement::create(file.path(), false).unwrap();
            replacement.write(b"new").unwrap();
            file.replace_with(replacement).unwrap();
        });
        disk.append(b"+".to_vec(), true);
        drop(disk);
        assert_eq!(
            std::fs::read(directory.path().join("a.db")).unwrap(),
            b"new+"
        );
    }
}
