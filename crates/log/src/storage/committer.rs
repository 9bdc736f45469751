//! Performs tasks on the present file, in order, and replies with their outcome.

use std::sync::Arc;

use super::pace::Pace;
use super::{
    FileContent, FileSize, FileStatus, LogPosition, RecordText, RewriteNumber, RewriteStage,
    Rewriter, StorageReply, StorageRequest, StoreError,
};
use crate::disk::{Disk, DiskError, Fault};
use crate::writer::{LogWriter, Replaced};

/// A task for the disk thread.
#[derive(Debug)]
pub enum DiskTask<D: Disk> {
    /// The first task: force the existing records to disk. Answered as [`LogPosition::OPENING`].
    SyncExisting,
    /// [`StorageRequest::Recover`] or [`StorageRequest::Append`].
    Request(StorageRequest),
    /// Writing the records through this position at once has failed: cut off their remains, then reply with the error.
    Truncate(LogPosition, StoreError),
    /// Put this new file in place.
    Swap(Rewriter<D>),
}

/// The file of one database, behind a lock. The holder of the database appends to it while the disk thread is idle and the disk is quick.
/// [`Committer::append`] only writes; [`Committer::carry_out`] does everything that may take long.
#[derive(Debug)]
pub struct Committer<D: Disk> {
    writer: LogWriter<D>,
    pace: Pace,
    status: Arc<FileStatus>,
    /// The last record that was to be appended.
    last: LogPosition,
    /// Why the last append failed. Appends are refused until the database sends [`StorageRequest::Recover`].
    failure: Option<StoreError>,
    /// A file that was renamed into place and whose directory is not synced yet.
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
    /// Appends to an open file, whose end has been found.
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

    /// Counts the disk as quick from the start, for tests that are about something else.
    pub fn presume_quick(&mut self) {
        self.pace = Pace::presumed_quick();
    }

    /// The state that other threads may read without the lock.
    #[must_use]
    pub fn status(&self) -> &Arc<FileStatus> {
        &self.status
    }

    /// Whether nothing can be appended before a new file is in place.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.writer.poison().is_some()
    }

    /// The directory entry of the file.
    #[must_use]
    pub fn disk(&self) -> &Arc<D> {
        self.writer.disk()
    }

    /// Appends the records of ordinary commits with one write. `None` when there were none.
    ///
    /// # Errors
    /// A task for the disk thread, which handles the failure and replies to the database. The remains of the failed write stay until then.
    pub fn append(
        &mut self,
        requests: Vec<StorageRequest>,
    ) -> Result<Option<StorageReply>, Box<DiskTask<D>>> {
        // The disk is not quick again before appends have succeeded.
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
        let outcome = self.write_batch(&batch);
        self.publish();
        match outcome {
            Ok(()) => Ok(Some(StorageReply::Appended(last, Ok(())))),
            Err(error) => Err(Box::new(DiskTask::Truncate(last, error.into()))),
        }
    }

    /// Performs tasks; consecutive records are written, and synced if one is durable, together. Afterwards the caller must check
    /// [`Committer::unsynced_name`] and [`Committer::take_replaced`].
    pub fn carry_out(&mut self, tasks: Vec<DiskTask<D>>) -> Vec<StorageReply> {
        let mut replies = Vec::new();
        let mut batch = Batch::default();
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
                    replies.extend(self.write(&std::mem::take(&mut batch)));
                    self.failure = None;
                }
                DiskTask::Request(
                    StorageRequest::Rewrite(..)
                    | StorageRequest::Extend(..)
                    | StorageRequest::Swap(_)
                    | StorageRequest::Abandon(_),
                ) => {}
                DiskTask::Truncate(position, error) => {
                    replies.extend(self.write(&std::mem::take(&mut batch)));
                    // If this fails, the next append begins with it, or is refused.
                    let _ = self.writer.clean();
                    self.failure = Some(error.clone());
                    replies.push(StorageReply::Appended(position, Err(error)));
                }
                DiskTask::SyncExisting => {
                    let result = self.writer.sync_existing().map_err(StoreError::from);
                    replies.push(StorageReply::Appended(LogPosition::OPENING, result));
                }
                DiskTask::Swap(rewriter) => {
                    replies.extend(self.write(&std::mem::take(&mut batch)));
                    replies.push(self.swap(rewriter));
                }
            }
        }
        replies.extend(self.write(&batch));
        replies.extend(self.name_reply());
        self.publish();
        replies
    }

    /// A record is to be appended.
    fn advance(&mut self, position: LogPosition) {
        // The reply to a batch names its last position, and stands for all before it.
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
        if result.is_err() {
            self.pace.record_failure();
        }
        self.failure = result.clone().err();
        Some(StorageReply::Appended(position, result))
    }

    fn try_write(&mut self, batch: &Batch) -> Result<(), DiskError> {
        self.writer.clean()?;
        let before = self.writer.end();
        self.write_batch(batch).inspect_err(|_| {
            // If this fails too, the next batch begins with it, or is refused.
            let _ = self.writer.clean();
        })?;
        if batch.is_durable {
            self.writer.sync(before)?;
        }
        Ok(())
    }

    /// Writes records and does nothing else that may take long.
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

    /// Publishes the state when no published record can be cut off any more.
    fn publish(&self) {
        let is_quick = self.pace.is_quick() && self.writer.is_clean();
        self.status.set(self.writer.end(), is_quick);
        self.status.set_poisoned(self.is_poisoned());
    }

    fn swap(&mut self, rewriter: Rewriter<D>) -> StorageReply {
        let (number, base) = (rewriter.number(), rewriter.base());
        let stage = match self.writer.swap(rewriter.into_rewrite()) {
            Ok(replaced) => {
                assert!(
                    self.in_place.is_none(),
                    "a new file lasts before the next one is put in place"
                );
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

    /// The disk whose directory must be synced soon, while nobody waits for the lock; pass the outcome to [`Committer::name_synced`].
    #[must_use]
    pub fn unsynced_name(&self) -> Option<Arc<D>> {
        self.in_place.is_some().then(|| self.writer.disk().clone())
    }

    /// Records the outcome of syncing the directory.
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

    /// The sync of a durable record may have synced the directory too.
    fn name_reply(&mut self) -> Option<StorageReply> {
        if self.writer.is_name_unsynced() {
            return None;
        }
        let number = self.in_place.take()?;
        Some(StorageReply::Rewrite(number, Ok(RewriteStage::Lasting)))
    }

    /// Open handles on replaced files, to be closed on a thread that nobody waits for.
    pub fn take_replaced(&mut self) -> Vec<Replaced<D::Handle>> {
        std::mem::take(&mut self.replaced)
    }

    /// Begins a new file. `end` is the [published end](super::FileStatus::end) at the moment of the content's snapshot, when every append
    /// was answered.
    ///
    /// # Errors
    /// Descriptors are exhausted.
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
