//! Carries out orders on the present file, in order, and says what became of them.

use std::sync::Arc;

use super::pace::Pace;
use super::{
    FileContent, FileSize, LogPosition, Published, RewriteNumber, RewriteStage, Rewriter,
    StorageReply, StorageRequest, StoreError,
};
use crate::disk::{Disk, DiskError, Fault};
use crate::writer::{LogWriter, Replaced};

/// An order for the disk thread.
#[derive(Debug)]
pub enum DiskTask<D: Disk> {
    /// The first one: make sure that what was found in the file is there to stay. Answered as position 0.
    SyncExisting,
    /// [`StorageRequest::Recover`] or [`StorageRequest::Append`].
    Request(StorageRequest),
    /// Records through this position could not be written at once: cut off what is left of them, then tell the database.
    Truncate(LogPosition, StoreError),
    /// Put this new file in place.
    Swap(Rewriter<D>),
}

/// The file of one database, behind a lock: whoever holds the database appends to it while the disk thread has nothing to do and the
/// disk is quick. [`Committer::append`] only writes; what may take long is left to [`Committer::carry_out`].
#[derive(Debug)]
pub struct Committer<D: Disk> {
    writer: LogWriter<D>,
    pace: Pace,
    published: Arc<Published>,
    /// Why the last append failed, until the database has taken note: what it sent meanwhile is refused.
    failure: Option<StoreError>,
    /// A file that was put in place and whose name has yet to be forced to disk.
    in_place: Option<RewriteNumber>,
    /// What is left of files that were replaced; closing them takes long.
    replaced: Vec<Replaced<D::Handle>>,
}

/// Records that wait to be written together.
#[derive(Default)]
struct Run {
    records: Vec<Vec<u8>>,
    last: Option<LogPosition>,
    is_durable: bool,
}

impl<D: Disk> Committer<D> {
    /// Keeps an open file, whose end has been found.
    pub fn new(writer: LogWriter<D>) -> Committer<D> {
        let published = Arc::new(Published::default());
        published.set(writer.end(), false);
        Committer {
            writer,
            pace: Pace::default(),
            published,
            failure: None,
            in_place: None,
            replaced: Vec::new(),
        }
    }

    /// Takes the disk for quick before it has shown it, for tests that are about something else.
    pub fn presume_quick(&mut self) {
        self.pace = Pace::presumed_quick();
    }

    /// What may be known without the lock.
    #[must_use]
    pub fn published(&self) -> &Arc<Published> {
        &self.published
    }

    /// Whether nothing can be appended before a new file is in place.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.writer.poison().is_some()
    }

    /// Where the file lies.
    #[must_use]
    pub fn disk(&self) -> &Arc<D> {
        self.writer.disk()
    }

    /// Appends the records of ordinary commits with one write. `None` when there were none.
    ///
    /// # Errors
    /// What the disk thread has to do about the failure, and then tells the database. The file is as it was left until then.
    pub fn append(
        &mut self,
        stores: Vec<StorageRequest>,
    ) -> Result<Option<StorageReply>, Box<DiskTask<D>>> {
        let mut run = Run {
            records: Vec::with_capacity(stores.len()),
            ..Run::default()
        };
        for store in stores {
            if let StorageRequest::Append {
                position, record, ..
            } = store
            {
                run.last = Some(position);
                run.records.push(record);
            }
        }
        let Some(last) = run.last else {
            return Ok(None);
        };
        let outcome = self.write_run(&run);
        self.publish();
        match outcome {
            Ok(()) => Ok(Some(StorageReply::Stored(last, Ok(())))),
            Err(error) => Err(Box::new(DiskTask::Truncate(last, error.into()))),
        }
    }

    /// Carries out orders; consecutive records are written, and if need be synced, together. Afterwards the driver must ask
    /// [`Committer::unsynced_name`] and [`Committer::take_replaced`].
    pub fn carry_out(&mut self, orders: Vec<DiskTask<D>>) -> Vec<StorageReply> {
        let mut answers = Vec::new();
        let mut run = Run::default();
        for order in orders {
            match order {
                DiskTask::Request(StorageRequest::Append {
                    position,
                    record,
                    durable,
                }) => {
                    run.last = Some(position);
                    run.records.push(record);
                    run.is_durable |= durable;
                }
                DiskTask::Request(StorageRequest::Recover) => {
                    answers.extend(self.write(&std::mem::take(&mut run)));
                    self.failure = None;
                }
                DiskTask::Request(
                    StorageRequest::Rewrite(..)
                    | StorageRequest::Extend(..)
                    | StorageRequest::Swap(_)
                    | StorageRequest::Abandon(_),
                ) => {}
                DiskTask::Truncate(position, error) => {
                    answers.extend(self.write(&std::mem::take(&mut run)));
                    // Should it fail, the next append begins with it, or is refused.
                    let _ = self.writer.clean();
                    self.failure = Some(error.clone());
                    answers.push(StorageReply::Stored(position, Err(error)));
                }
                DiskTask::SyncExisting => {
                    let result = self.writer.settle().map_err(StoreError::from);
                    answers.push(StorageReply::Stored(LogPosition::OPENING, result));
                }
                DiskTask::Swap(rewriter) => {
                    answers.extend(self.write(&std::mem::take(&mut run)));
                    answers.push(self.swap(rewriter));
                }
            }
        }
        answers.extend(self.write(&run));
        answers.extend(self.name_answer());
        self.publish();
        answers
    }

    fn write(&mut self, run: &Run) -> Option<StorageReply> {
        let position = run.last?;
        let result = match &self.failure {
            Some(failure) => Err(failure.clone()),
            None => self.try_write(run).map_err(StoreError::from),
        };
        if result.is_err() {
            self.pace.failed();
        }
        self.failure = result.clone().err();
        Some(StorageReply::Stored(position, result))
    }

    fn try_write(&mut self, run: &Run) -> Result<(), DiskError> {
        self.writer.clean()?;
        let before = self.writer.end();
        self.write_run(run).inspect_err(|_| {
            // Should this fail too, the next run begins with it, or is refused.
            let _ = self.writer.clean();
        })?;
        if run.is_durable {
            self.writer.sync(before)?;
        }
        Ok(())
    }

    /// Writes, and does nothing else that may take long.
    fn write_run(&mut self, run: &Run) -> Result<(), DiskError> {
        let slices: Vec<&[u8]> = run.records.iter().map(Vec::as_slice).collect();
        let disk = self.writer.disk().clone();
        let (began_ns, before) = (disk.now_ns(), self.writer.end());
        let outcome = self.writer.write(&slices);
        let took_ns = disk.now_ns().saturating_sub(began_ns);
        disk.appended(took_ns);
        match &outcome {
            Ok(()) => {
                let bytes = self.writer.end() - before;
                self.pace
                    .wrote(took_ns, usize::try_from(bytes).unwrap_or(usize::MAX));
            }
            Err(_) => self.pace.failed(),
        }
        outcome
    }

    /// What others may know, once nothing of it is taken back any more.
    fn publish(&self) {
        let is_quick = self.pace.is_quick() && self.writer.is_clean();
        self.published.set(self.writer.end(), is_quick);
    }

    fn swap(&mut self, rewriter: Rewriter<D>) -> StorageReply {
        let (number, base) = (rewriter.number(), rewriter.base());
        let stage = match self.writer.swap(rewriter.into_rewrite()) {
            Ok(replaced) => {
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

    /// The disk whose directory must be synced soon, with nobody waiting for the lock meanwhile; [`Committer::name_synced`] then takes
    /// the outcome.
    #[must_use]
    pub fn unsynced_name(&self) -> Option<Arc<D>> {
        self.in_place.is_some().then(|| self.writer.disk().clone())
    }

    /// The directory was synced, or could not be.
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

    /// A durable record may have had the name synced on its way.
    fn name_answer(&mut self) -> Option<StorageReply> {
        if self.writer.is_name_unsynced() {
            return None;
        }
        let number = self.in_place.take()?;
        Some(StorageReply::Rewrite(number, Ok(RewriteStage::Lasting)))
    }

    /// Open handles on replaced files, to be closed where nobody waits.
    pub fn take_replaced(&mut self) -> Vec<Replaced<D::Handle>> {
        std::mem::take(&mut self.replaced)
    }

    /// Begins a new file. `end` was [published](Published::end) at the settled moment of the content.
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
