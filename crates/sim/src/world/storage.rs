//! The file of one database under the server's threads, as queues that the scheduler serves: the
//! disk thread and the rewrite threads. Each step, its order and its locks are as in the `server`
//! crate's storage. Which thread acts next is random.

use corvid_log::storage::LogPosition;
use corvid_log::storage::{
    Committer, DiskTask, FileContent, RewriteNumber, RewriteStage, Rewriter, Route, Routing,
    StorageReply, StorageRequest, StoreError,
};
use std::collections::VecDeque;
use std::sync::Arc;

use corvid_log::history::{KeptFile, highest, recover, skip};
use corvid_log::writer::Replaced;
use corvid_log::{Disk as _, LogWriter};
use corvid_service::job::{JobDone, JobNumber, JobResult};
use corvid_service::read_history::PastOrder;
use corvid_service::storage::Keeper;

use super::disk::{Caller, SimDisk};
use crate::world::dice::Dice;

/// Storage that is driven step by step.
#[derive(Debug)]
pub(crate) struct Storage {
    disk: Arc<SimDisk>,
    file: Committer<SimDisk>,
    routing: Routing,
    /// The disk thread's queue.
    orders: VecDeque<ToDisk>,
    /// Set if the disk thread is about to sync the directory.
    unsynced_name: Option<Arc<SimDisk>>,
    /// The first thread works; the others wait until it ends.
    threads: VecDeque<RewriteThread>,
    /// The history thread.
    keeper: Keeper<SimDisk>,
    /// Replaced files that the rewrite thread has not reported to the history thread yet; `None`:
    /// one that was not kept.
    replaced: Vec<Option<KeptFile>>,
    /// The number that was used or skipped last; 0: none.
    last_kept: u64,
    /// Records without a reply, or stored without a sync so far.
    unpromised: VecDeque<Unpromised>,
}

/// A record that may be promised.
#[derive(Debug)]
struct Unpromised {
    position: LogPosition,
    record: Vec<u8>,
    is_durable: bool,
    /// How often history had been removed when the record was requested. The removal of a kept file
    /// takes records with it whose reply is still on its way.
    gaps: u64,
}

#[derive(Debug)]
enum ToDisk {
    Order(DiskTask<SimDisk>),
    /// A rewrite thread will close the replaced files.
    SendReplaced,
}

/// A thread that writes one new file.
#[derive(Debug)]
struct RewriteThread {
    number: RewriteNumber,
    work: Work,
    orders: VecDeque<ToRewriter>,
    is_wanted: bool,
    /// Whether the present file has been given its second name, or that has failed.
    is_kept: bool,
}

/// The next step of a rewrite thread.
#[derive(Debug)]
enum Work {
    /// Not started: the content, and the end of the file at the time of the content's snapshot.
    Begin(RewriteNumber, Box<dyn FileContent>, u64),
    /// Writing; the scheduler holds the value.
    Writing,
    /// Waiting for a request.
    Wait(Rewriter<SimDisk>),
    /// Waiting for the replaced files, to close them, while the disk thread executes the swap.
    Close,
}

#[derive(Debug)]
enum ToRewriter {
    Extend(Vec<Vec<u8>>),
    Swap,
    GiveUp,
}

impl Storage {
    /// The storage of a file that was just opened. `is_quick`: the disk counts as quick from the
    /// start, so that more is written inline.
    pub(crate) fn new(writer: LogWriter<SimDisk>, is_quick: bool) -> Storage {
        let disk = writer.disk().clone();
        disk.check_history();
        let uncompressed = recover(&*disk).unwrap_or_default();
        let last_kept = highest(&*disk).unwrap_or_default();
        let keeper = Keeper::new(disk.clone(), disk.policy(), uncompressed);
        let mut file = Committer::new(writer);
        if is_quick {
            file.presume_quick();
            disk.presume_quick();
        }
        Storage {
            routing: Routing::new(file.status().clone()),
            disk,
            file,
            orders: VecDeque::from([ToDisk::Order(DiskTask::SyncExisting)]),
            unsynced_name: None,
            threads: VecDeque::new(),
            keeper,
            replaced: Vec::new(),
            last_kept,
            unpromised: VecDeque::new(),
        }
    }

    /// Executes requests, or queues them. Returns the replies that are available at once.
    pub(crate) fn store(&mut self, stores: Vec<StorageRequest>) -> Vec<StorageReply> {
        let mut answers = Vec::new();
        for request in &stores {
            if let StorageRequest::Append {
                position,
                record,
                durable,
            } = request
                && !self.disk.policy().is_off()
            {
                let record = record.to_slice().into_owned();
                self.unpromised.push_back(Unpromised {
                    position: *position,
                    record,
                    is_durable: *durable,
                    gaps: self.disk.gaps(),
                });
            }
        }
        for route in self.routing.route(stores) {
            match route {
                Route::Inline(records) => {
                    self.disk.is_called_by(Caller::Holder);
                    let outcome = self.file.append(records);
                    self.disk.is_called_by(Caller::Anyone);
                    match outcome {
                        Ok(answer) => answers.extend(answer),
                        Err(order) => {
                            self.routing.observe_deferral(&order);
                            self.orders.push_back(ToDisk::Order(*order));
                        }
                    }
                }
                Route::DiskThread(store) => self
                    .orders
                    .push_back(ToDisk::Order(DiskTask::Request(store))),
                Route::RewriteThread(store) => self.rewrite(store),
            }
        }
        self.promise(&answers);
        answers
    }

    /// Remembers the records that these replies promise. A sync covers all records before it.
    fn promise(&mut self, answers: &[StorageReply]) {
        for answer in answers {
            let (position, outcome) = match answer {
                StorageReply::Appended(position, outcome) => (position, outcome),
                StorageReply::Rewrite(_, Ok(RewriteStage::InPlace(_))) => {
                    // A later sync is one of the new file. Records that the old one has not
                    // synced by now may be missing in the history after a loss of power, but
                    // not in the contents.
                    self.unpromised.retain(|it| it.is_durable);
                    continue;
                }
                StorageReply::Rewrite(..) => continue,
            };
            let of_reply = self.unpromised.iter();
            let count = of_reply.take_while(|it| it.position <= *position).count();
            match outcome {
                Ok(()) => {
                    let durable = self.unpromised.iter().take(count);
                    let mut durable = durable.enumerate().filter(|(_, it)| it.is_durable);
                    let count = durable.next_back().map_or(0, |(last, _)| last + 1);
                    let gaps = self.disk.gaps();
                    let records = self.unpromised.drain(..count);
                    let records = records.filter(|it| it.gaps == gaps);
                    self.disk.promise(records.map(|it| it.record));
                }
                // Records that were stored before stay in the file, and are synced with later ones.
                // Which of these they are is not known here, so none of them is checked.
                Err(_) => drop(self.unpromised.drain(..count)),
            }
        }
    }

    fn rewrite(&mut self, store: StorageRequest) {
        let order = match store {
            StorageRequest::Rewrite(number, content) => {
                let end = self.file.status().end();
                self.threads.push_back(RewriteThread {
                    number,
                    work: Work::Begin(number, content, end),
                    orders: VecDeque::new(),
                    is_wanted: true,
                    is_kept: false,
                });
                return;
            }
            StorageRequest::Extend(_, records) => ToRewriter::Extend(records),
            StorageRequest::Swap(_) => ToRewriter::Swap,
            StorageRequest::Abandon(number) => {
                if self.threads.back().is_none_or(|last| last.number != number) {
                    return;
                }
                ToRewriter::GiveUp
            }
            StorageRequest::Recover | StorageRequest::Append { .. } => return,
        };
        if let Some(thread) = self.threads.back_mut() {
            thread.is_wanted &= !matches!(order, ToRewriter::GiveUp);
            thread.orders.push_back(order);
        }
    }

    /// Records a reply that is about to be delivered to the database.
    pub(crate) fn answered(&mut self, answer: &StorageReply) {
        self.routing.observe_reply(answer);
    }

    /// Whether a failed sync blocks every append until a new file is in place.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.file.is_poisoned()
    }

    /// Searches the files for what a client has missed that was away.
    pub(crate) fn read_past(&self, number: JobNumber, order: &PastOrder) -> JobDone {
        let opened = self
            .file
            .status()
            .open_with_end(|| self.disk.timeline())
            .ok();
        let read = opened
            .flatten()
            .and_then(|(files, end)| order.read(files, end).ok());
        JobDone(number, JobResult::PastRead(read.map(Box::new)))
    }

    /// Where the present file ends.
    pub(crate) fn end(&self) -> u64 {
        self.file.status().end()
    }

    pub(crate) fn disk_has_work(&self) -> bool {
        self.unsynced_name.is_some() || !self.orders.is_empty()
    }

    /// The disk thread takes a step: it executes all queued tasks, or as many as were queued when
    /// it looked.
    pub(crate) fn work_on_disk(&mut self, dice: &mut Dice) -> Vec<StorageReply> {
        if let Some(disk) = self.unsynced_name.take() {
            let outcome = disk.sync_directory();
            return self.file.name_synced(outcome).into_iter().collect();
        }
        let mut taken = 1 + dice.below(self.orders.len().max(1));
        if dice.chance(50) {
            taken = self.orders.len();
        }
        let mut wants_replaced = false;
        let mut orders = Vec::new();
        for message in self.orders.drain(..taken.min(self.orders.len())) {
            match message {
                ToDisk::Order(order) => orders.push(order),
                ToDisk::SendReplaced => wants_replaced = true,
            }
        }
        self.disk.is_called_by(Caller::DiskThread);
        let answers = self.file.carry_out(orders);
        self.disk.is_called_by(Caller::Anyone);
        self.unsynced_name = self.file.unsynced_name();
        let replaced = self.file.take_replaced();
        self.replaced.extend(replaced.iter().map(Replaced::kept));
        self.promise(&answers);
        drop(replaced);
        if wants_replaced && let Some(thread) = self.threads.front_mut() {
            assert!(
                matches!(thread.work, Work::Close),
                "only a swap is waited for"
            );
        }
        answers
    }

    /// Whether every rewrite thread has ended.
    pub(crate) fn has_no_rewrite(&self) -> bool {
        self.threads.is_empty()
    }

    /// Whether the first rewrite thread or the history thread can continue.
    pub(crate) fn rewrite_has_work(&self) -> bool {
        self.rewrite_can_continue() || self.history_can_continue()
    }

    /// Whether the history thread has something to do.
    fn history_can_continue(&self) -> bool {
        self.keeper.has_work() && !self.disk.policy().is_off()
    }

    fn rewrite_can_continue(&self) -> bool {
        self.threads
            .front()
            .is_some_and(|thread| match thread.work {
                Work::Begin(..) => true,
                Work::Writing => false,
                Work::Wait(_) => !thread.orders.is_empty(),
                // The replaced files come with the swap, so the disk thread's queue must be empty.
                Work::Close => self.orders.is_empty(),
            })
    }

    /// The rewrite thread takes a step. A returned value must be [run](Rewriter::run) and then
    /// passed to [`Storage::written`].
    pub(crate) fn work_on_rewrite(&mut self) -> (Option<Rewriter<SimDisk>>, Option<StorageReply>) {
        // Either of the two threads; both get their turns.
        let is_odd = self.disk.operations() % 2 == 1;
        if self.history_can_continue() && (is_odd || !self.rewrite_can_continue()) {
            self.work_on_history();
            return (None, None);
        }
        let Some(thread) = self.threads.front_mut() else {
            return (None, None);
        };
        match std::mem::replace(&mut thread.work, Work::Writing) {
            Work::Begin(number, content, end) => match self.file.rewrite(number, content, end) {
                Ok(rewriter) => return (Some(rewriter), None),
                Err(error) => {
                    let is_wanted = thread.is_wanted;
                    self.threads.pop_front();
                    let answer = is_wanted.then_some(StorageReply::Rewrite(number, Err(error)));
                    return (None, answer);
                }
            },
            Work::Writing | Work::Close => {
                for replaced in self.replaced.drain(..) {
                    match replaced {
                        Some(kept) => {
                            self.last_kept = kept.number;
                            self.keeper.kept(kept);
                        }
                        None => self.last_kept = skip(&*self.disk, self.last_kept),
                    }
                }
                self.threads.pop_front();
            }
            Work::Wait(mut rewriter) => match thread.orders.pop_front() {
                Some(ToRewriter::Extend(records)) => {
                    let outcome = rewriter.extend(&records);
                    return (None, self.written(rewriter, outcome));
                }
                Some(ToRewriter::Swap) => {
                    thread.work = Work::Close;
                    self.orders.push_back(ToDisk::SendReplaced);
                    self.orders
                        .push_back(ToDisk::Order(DiskTask::Swap(rewriter)));
                }
                Some(ToRewriter::GiveUp) | None => drop(self.threads.pop_front()),
            },
        }
        (None, None)
    }

    /// The history thread compresses a file or prunes.
    fn work_on_history(&mut self) {
        let disk = self.disk.clone();
        let now_ms = disk.now_ns() / 1_000_000;
        self.keeper.step(now_ms, &|| !disk.is_down());
    }

    /// Whether the file that is being written is still wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.threads.front().is_some_and(|thread| thread.is_wanted)
    }

    /// The first rewrite thread has finished writing.
    pub(crate) fn written(
        &mut self,
        mut rewriter: Rewriter<SimDisk>,
        outcome: Result<(), StoreError>,
    ) -> Option<StorageReply> {
        let thread = self.threads.front_mut()?;
        if outcome.is_ok() && !thread.is_kept && !self.disk.policy().is_off() {
            thread.is_kept = true;
            if !rewriter.keep(self.last_kept) {
                // The old file will be gone, with what only it has.
                self.disk.history_has_gap();
                self.unpromised.retain(|it| it.is_durable);
                // The new file has these, whatever becomes of the history.
                let gaps = self.disk.gaps();
                self.unpromised.iter_mut().for_each(|it| it.gaps = gaps);
            }
        }
        let number = rewriter.number();
        let is_wanted = thread.is_wanted;
        let stage = outcome.map(|()| RewriteStage::Written);
        if stage.is_ok() {
            thread.work = Work::Wait(rewriter);
        } else {
            self.threads.pop_front();
        }
        is_wanted.then_some(StorageReply::Rewrite(number, stage))
    }
}
