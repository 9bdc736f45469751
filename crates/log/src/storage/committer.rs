//! Executes tasks on the present file, in order, and replies with their outcome.

use std::sync::Arc;

use super::pace::Pace;
use super::{
    FileContent, FileSize, FileStatus, LogPosition, RecordText, RewriteNumber, RewriteStage,
    Rewriter, StorageReply, StorageRequest, StoreError,
};
use crate::disk::{Disk, DiskError, Fault};
use crate::history;
use crate::writer::{LogWriter, Replaced};

/// A task for the disk thread.
#[derive(Debug)]
pub enum DiskTask<D: Disk> {
    /// The first task: force the existing records to disk. Answered at [`LogPosition::OPENING`].
    SyncExisting,
    /// [`StorageRequest::Recover`] or [`StorageRequest::Append`].
    Request(StorageRequest),
    /// The inline write of the records up to this position has failed: cut off their remains, then
    /// reply with the error. If the disk was full, the records are here, and are written again once
    /// the history has made room.
    Truncate(LogPosition, StoreError, Vec<RecordText>),
    /// Rename this new file into place.
    Swap(Rewriter<D>),
}

/// The file of one database. It sits under a lock: the holder of the database appends to it while
/// the disk thread is idle and the disk is quick. [`Committer::append`] only writes;
/// [`Committer::carry_out`] does everything that may take long.
#[derive(Debug)]
pub struct Committer<D: Disk> {
    writer: LogWriter<D>,
    pace: Pace,
    status: Arc<FileStatus>,
    /// The position of the last record submitted for appending.
    last: LogPosition,
    /// Why the last append failed. Appends are refused until the database sends
    /// [`StorageRequest::Recover`].
    failure: Option<StoreError>,
    /// A rewrite whose file was renamed into place, until the directory is synced.
    in_place: Option<RewriteNumber>,
    /// Handles on replaced files; closing them may take long.
    replaced: Vec<Replaced<D::Handle>>,
}

/// Records to be written together.
#[derive(Default)]
struct Batch {
    records: Vec<RecordText>,
    last: Option<LogPosition>,
    is_durable: bool,
}

impl<D: Disk> Committer<D> {
    /// Takes over an open file whose end has been found.
    pub fn new(writer: LogWriter<D>) -> Committer<D> {
        let status = Arc::new(FileStatus::default());
        status.set(writer.end(), false);
        Committer {
            writer,
            pace: Pace::default(),
            status,
            last: LogPosition::OPENING,
            failure: None,
            in_place: None,
            replaced: Vec::new(),
        }
    }

    /// Counts the disk as quick from the start, for tests of other matters.
    pub fn presume_quick(&mut self) {
        self.pace = Pace::presumed_quick();
    }

    /// The state that other threads may read without the lock.
    #[must_use]
    pub fn status(&self) -> &Arc<FileStatus> {
        &self.status
    }

    /// Whether a failed sync blocks every append until a new file is in place.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.writer.poison().is_some()
    }

    /// The directory entry and clock of the file.
    #[must_use]
    pub fn disk(&self) -> &Arc<D> {
        self.writer.disk()
    }

    /// Appends the records of ordinary commits with one write. `None` if there are none.
    ///
    /// # Errors
    /// The write failed. The value is a task for the disk thread, which cuts off the remains of the
    /// write and replies to the database.
    pub fn append(
        &mut self,
        requests: Vec<StorageRequest>,
    ) -> Result<Option<StorageReply>, Box<DiskTask<D>>> {
        // Guaranteed by the pace: after a failure the disk is not quick until appends have
        // succeeded.
        assert!(
            self.failure.is_none(),
            "appends are refused until the failed one is undone"
        );
        let mut batch = Batch {
            records: Vec::with_capacity(requests.len()),
            ..Batch::default()
        };
        for request in requests {
            if let StorageRequest::Append {
                position, record, ..
            } = request
            {
                self.advance(position);
                batch.last = Some(position);
                batch.records.push(record);
            }
        }
        let Some(last) = batch.last else {
            return Ok(None);
        };
        // Only the write happens here. A failed write needs a cut and a sync, which may take long,
        // so the disk thread gets both and also sends the reply: no record of this batch is
        // answered before its remains are gone.
        let outcome = self.write_batch(&batch);
        // Publish before the reply leaves: a snapshot taken after the reply uses the published end,
        // which must cover every answered record.
        self.publish();
        match outcome {
            Ok(()) => Ok(Some(StorageReply::Appended(last, Ok(())))),
            Err(error) => {
                let is_full = error.fault.is_full();
                let records = if is_full { batch.records } else { Vec::new() };
                Err(Box::new(DiskTask::Truncate(last, error.into(), records)))
            }
        }
    }

    /// Executes tasks. Consecutive records are written together, and synced together if one of them
    /// is durable. Afterwards the caller must check [`Committer::unsynced_name`] and
    /// [`Committer::take_replaced`].
    pub fn carry_out(&mut self, tasks: Vec<DiskTask<D>>) -> Vec<StorageReply> {
        let mut replies = Vec::new();
        let mut batch = Batch::default();
        // Records collect in `batch` until a task that must not overtake them. Example: Append 5,
        // Append 6 (durable), Swap, Append 7. One write and one sync store 5 and 6 in the old file,
        // the swap copies both, and 7 goes to the new file. The replies are 6 (which also answers
        // 5), in place, 7.
        for task in tasks {
            match task {
                DiskTask::Request(StorageRequest::Append {
                    position,
                    record,
                    durable,
                }) => {
                    self.advance(position);
                    batch.last = Some(position);
                    batch.records.push(record);
                    batch.is_durable |= durable;
                }
                DiskTask::Request(StorageRequest::Recover) => {
                    // Appends before the `Recover` belong to commits that the database has undone:
                    // they still meet the failure. Appends after it are new commits and must not.
                    replies.extend(self.write(&std::mem::take(&mut batch)));
                    self.failure = None;
                }
                DiskTask::Request(
                    StorageRequest::Rewrite(..)
                    | StorageRequest::Extend(..)
                    | StorageRequest::Swap(_)
                    | StorageRequest::Abandon(_),
                ) => {}
                DiskTask::Truncate(position, error, records) => {
                    // Tasks keep their order: records queued earlier are written first.
                    replies.extend(self.write(&std::mem::take(&mut batch)));
                    // If this fails too, the next append starts with the cut, or is refused.
                    let _ = self.writer.clean();
                    if !records.is_empty() && self.give_way() {
                        // `write` frees more if that is not enough.
                        batch.last = Some(position);
                        batch.records = records;
                        replies.extend(self.write(&std::mem::take(&mut batch)));
                        continue;
                    }
                    // Cut before replying, if the disk allows it: a client that sees the error must
                    // not find the commit again after a restart. The failure then refuses appends
                    // that were queued before the database learned of it.
                    self.failure = Some(error.clone());
                    replies.push(StorageReply::Appended(position, Err(error)));
                }
                DiskTask::SyncExisting => {
                    let result = self.writer.sync_existing().map_err(StoreError::from);
                    replies.push(StorageReply::Appended(LogPosition::OPENING, result));
                }
                DiskTask::Swap(rewriter) => {
                    // The swap copies the old file up to its end, so earlier records must be in it,
                    // and be answered, first.
                    replies.extend(self.write(&std::mem::take(&mut batch)));
                    replies.push(self.swap(rewriter));
                }
            }
        }
        replies.extend(self.write(&batch));
        // A durable batch has synced the directory too. Then a file that was renamed into place is
        // lasting, and the caller need not sync the directory again.
        replies.extend(self.name_reply());
        self.publish();
        replies
    }

    /// Checks and records the position of the next record.
    fn advance(&mut self, position: LogPosition) {
        // The reply to a batch names its last position and stands for all before it.
        assert!(
            self.last < position,
            "records are appended in the order of their positions"
        );
        self.last = position;
    }

    fn write(&mut self, batch: &Batch) -> Option<StorageReply> {
        let position = batch.last?;
        let result = match &self.failure {
            Some(failure) => Err(failure.clone()),
            None => self.try_write(batch).map_err(StoreError::from),
        };
        // A failed clean or sync makes the disk slow too, so later records queue for the disk
        // thread until writes succeed again.
        if result.is_err() {
            self.pace.record_failure();
        }
        self.failure = result.clone().err();
        Some(StorageReply::Appended(position, result))
    }

    fn try_write(&mut self, batch: &Batch) -> Result<(), DiskError> {
        // Clean first: a record must never follow the remains of a failed one.
        self.writer.clean()?;
        let before = self.writer.end();
        while let Err(error) = self.write_batch(batch) {
            // If this fails too, the next batch starts with the cut, or is refused.
            let is_clean = self.writer.clean().is_ok();
            // History gives way before a write is refused. Its files are removed one at a time,
            // because one may be enough.
            if !(is_clean && error.fault.is_full() && self.give_way()) {
                return Err(error);
            }
        }
        // If the sync fails, everything from `before` on is cut off, ordinary records of the batch
        // included: they share one reply, which is the error.
        if batch.is_durable {
            self.writer.sync(before)?;
        }
        Ok(())
    }

    /// Removes one file of the history, if there is any, because the disk is full.
    fn give_way(&self) -> bool {
        history::give_way(self.writer.disk().history()).is_some()
    }

    /// Writes records and measures the time. Does nothing else that may take long.
    fn write_batch(&mut self, batch: &Batch) -> Result<(), DiskError> {
        let slices: Vec<&[u8]> = batch.records.iter().flat_map(RecordText::slices).collect();
        let disk = self.writer.disk().clone();
        let (began_ns, before) = (disk.now_ns(), self.writer.end());
        let outcome = self.writer.write(&slices);
        let took_ns = disk.now_ns().saturating_sub(began_ns);
        disk.record_append_time(took_ns);
        match &outcome {
            Ok(()) => {
                let bytes = self.writer.end() - before;
                self.pace
                    .record_write(took_ns, usize::try_from(bytes).unwrap_or(usize::MAX));
            }
            Err(_) => self.pace.record_failure(),
        }
        outcome
    }

    /// Publishes the state. Call it only once no record before the end can be cut off.
    fn publish(&self) {
        let is_quick = self.pace.is_quick() && self.writer.is_clean();
        self.status.set(self.writer.end(), is_quick);
        self.status.set_poisoned(self.is_poisoned());
    }

    fn swap(&mut self, rewriter: Rewriter<D>) -> StorageReply {
        let (number, base) = (rewriter.number(), rewriter.base());
        // Before the rename: from then on the published end is not that of the file under the name.
        self.status.begin_swap();
        let stage = match self.writer.swap(rewriter.into_rewrite()) {
            Ok(replaced) => {
                assert!(
                    self.in_place.is_none(),
                    "a new file lasts before the next one is put in place"
                );
                // Closing the old file frees its blocks, which may take long. The lock is held
                // here, so the handles are kept for a thread without it.
                self.replaced.push(replaced);
                self.in_place = Some(number);
                Ok(RewriteStage::InPlace(FileSize {
                    base,
                    end: self.writer.end(),
                }))
            }
            Err(error) => Err(error.into()),
        };
        StorageReply::Rewrite(number, stage)
    }

    /// The disk whose directory must be synced soon, without holding the lock; pass the outcome to
    /// [`Committer::name_synced`].
    #[must_use]
    pub fn unsynced_name(&self) -> Option<Arc<D>> {
        self.in_place.is_some().then(|| self.writer.disk().clone())
    }

    /// Records the outcome of syncing the directory. Returns the reply that a rewrite is lasting,
    /// or failed.
    pub fn name_synced(&mut self, outcome: Result<(), Fault>) -> Option<StorageReply> {
        let number = self.in_place.take()?;
        let result = self.writer.name_synced(outcome);
        self.publish();
        Some(StorageReply::Rewrite(
            number,
            result
                .map(|()| RewriteStage::Lasting)
                .map_err(StoreError::from),
        ))
    }

    /// The reply that a rewrite is lasting, if the sync of a durable record has synced the
    /// directory too.
    fn name_reply(&mut self) -> Option<StorageReply> {
        if self.writer.is_name_unsynced() {
            return None;
        }
        let number = self.in_place.take()?;
        Some(StorageReply::Rewrite(number, Ok(RewriteStage::Lasting)))
    }

    /// Returns open handles on replaced files, to be closed on a thread on which nothing waits.
    pub fn take_replaced(&mut self) -> Vec<Replaced<D::Handle>> {
        std::mem::take(&mut self.replaced)
    }

    /// Begins a new file. `end` is the [published end](super::FileStatus::end) at the moment of the
    /// content's snapshot, when every append was answered.
    ///
    /// # Errors
    /// The process has run out of file descriptors.
    pub fn rewrite(
        &self,
        number: RewriteNumber,
        content: Box<dyn FileContent>,
        end: u64,
    ) -> Result<Rewriter<D>, StoreError> {
        let rewrite = if content.with_tail() {
            self.writer.rewrite_from(end)?
        } else {
            self.writer.replace()
        };
        Ok(Rewriter::new(number, content, rewrite))
    }
}
