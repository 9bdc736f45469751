//! The file of one database, and the threads that write it. The file's owner (the holder of the
//! database, or the thread of a cluster member) appends ordinary records, all records of a batch in
//! one write. The disk thread writes records that must be synced, everything that arrives while it
//! works, and all records while the disk is slow. A `rewrite` thread writes a new file. [`Routing`]
//! decides which thread writes; results return to the owner as messages.
//!
//! Invariant: the owner, which may be a shard, never syncs, truncates or closes a file. It locks
//! the file only for a write during which, as [`Routing`] guarantees, no other thread holds the
//! lock.

use corvid_log::storage::{
    Committer, DiskTask, FileContent, FileStatus, RewriteNumber, RewriteStage, Rewriter, Route,
    Routing, StorageReply, StorageRequest, StoreError,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use corvid_disk::log_file::{Handle, Location, LogFile};
use corvid_log::Disk;
use corvid_log::writer::Replaced;
use corvid_net::coverage::Counter;
use corvid_net::logging::{self, Level, Module};
use corvid_reactor::mailbox::{MailSender, Mailbox};
use corvid_reactor::priority;
use corvid_service::message::ToDatabase;
use crossbeam_channel::{Receiver, Sender};

use crate::coverage;
use crate::database::history::{Histories, KeptReporter, OpenHistory};
use crate::jobs::{JobKind, Jobs, RunningJob};
use crate::member::handle::{MemberHandle, ToMember};
use crate::metrics::database::DatabaseFigures;

/// Handles of replaced files. Their receiver closes them.
type ReplacedFiles = Vec<Replaced<Handle>>;

/// A message to the disk thread.
enum ToDisk {
    Order(DiskTask<Location>),
    /// Receives the handles that the next swap replaces. Closing them may block if the thread that
    /// closes large files is overloaded.
    Closer(Sender<ReplacedFiles>),
}

/// A message to a rewrite thread.
enum ToRewriter {
    Extend(Vec<Vec<u8>>),
    Swap,
    Abandon,
}

/// An open database file.
pub(crate) struct Storage {
    /// Locked by the disk thread while it works, by a rewrite thread when it begins, and by the
    /// owner for inline writes.
    file: Arc<Mutex<Committer<Location>>>,
    published: Arc<FileStatus>,
    routing: Routing,
    disk: MailSender<ToDisk>,
    disk_thread: JoinHandle<()>,
    rewrite: Option<RewriteThread>,
    replies: FileOwner,
    figures: Option<Arc<DatabaseFigures>>,
    history: OpenHistory,
    jobs: Jobs,
}

/// The thread that writes a new file, and the channel to it.
struct RewriteThread {
    number: RewriteNumber,
    orders: Sender<ToRewriter>,
    is_wanted: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Storage {
    /// Starts the disk thread of `file`, which holds the database `name`. Its results are sent to
    /// `replies`; `figures` counts durations; new files are listed in `jobs`.
    ///
    /// # Errors
    /// The disk thread cannot be created.
    pub(crate) fn new(
        file: LogFile,
        name: &str,
        replies: FileOwner,
        figures: Option<Arc<DatabaseFigures>>,
        histories: &Arc<Histories>,
        jobs: Jobs,
    ) -> std::io::Result<Storage> {
        if let Some(figures) = &figures {
            file.disk().time_syncs(figures.sync.clone());
            file.disk().time_writes(figures.write.clone());
        }
        let orders = Mailbox::new();
        let disk = orders.sender();
        let file = Committer::new(file);
        let published = file.status().clone();
        let history = histories.open(name, file.disk(), &published);
        let file = Arc::new(Mutex::new(file));
        let worker = DiskThread {
            orders,
            file: file.clone(),
            replies: replies.clone(),
            figures: figures.clone(),
            closer: None,
        };
        // The queue is new and its receiver alive, so sending cannot fail.
        let _ = disk.send(ToDisk::Order(DiskTask::SyncExisting));
        let disk_thread = std::thread::Builder::new()
            .name("disk".to_owned())
            .spawn(move || worker.run())?;
        Ok(Storage {
            file,
            routing: Routing::new(published.clone()),
            published,
            disk,
            disk_thread,
            rewrite: None,
            replies,
            figures,
            history,
            jobs,
        })
    }

    /// Carries out requests, or sends them to their threads. Returns the replies of the requests
    /// that are complete.
    pub(crate) fn store(&mut self, stores: Vec<StorageRequest>) -> Vec<StorageReply> {
        let mut answers = Vec::new();
        for route in self.routing.route(stores) {
            match route {
                Route::Inline(records) => match lock(&self.file).append(records) {
                    Ok(reply) => answers.extend(reply),
                    Err(order) => {
                        // The write failed. The disk thread undoes it and replies; until then
                        // `Routing` sends all later records to the disk thread, after this order.
                        self.routing.observe_deferral(&order);
                        self.to_disk(ToDisk::Order(*order));
                    }
                },
                Route::DiskThread(store) => self.to_disk(ToDisk::Order(DiskTask::Request(store))),
                Route::RewriteThread(store) => answers.extend(self.rewrite(store)),
            }
        }
        answers
    }

    /// The length of the disk thread's queue.
    #[must_use]
    pub(crate) fn orders(&self) -> usize {
        self.disk.queued()
    }

    /// Observes a reply that the owner is about to handle.
    pub(crate) fn observe_reply(&mut self, answer: &StorageReply) {
        self.routing.observe_reply(answer);
    }

    fn to_disk(&self, message: ToDisk) {
        // Sending cannot fail: the disk thread lives as long as this sender.
        let _ = self.disk.send(message);
    }

    fn rewrite(&mut self, store: StorageRequest) -> Option<StorageReply> {
        let order = match store {
            StorageRequest::Rewrite(number, content) => {
                let failure = self.begin_rewrite(number, content).err()?;
                return Some(StorageReply::Rewrite(number, Err(failure)));
            }
            StorageRequest::Extend(_, records) => ToRewriter::Extend(records),
            StorageRequest::Swap(_) => ToRewriter::Swap,
            StorageRequest::Abandon(number) => {
                // A member's request to abandon may have waited for a swap while the next rewrite
                // began. That next rewrite must continue.
                let rewrite = self.rewrite.as_ref()?;
                if rewrite.number != number {
                    return None;
                }
                rewrite.is_wanted.store(false, Ordering::Relaxed);
                ToRewriter::Abandon
            }
            StorageRequest::Recover | StorageRequest::Append { .. } => {
                unreachable!("records go to the present file")
            }
        };
        if let Some(rewrite) = &self.rewrite {
            // A thread that has failed has already reported it.
            let _ = rewrite.orders.send(order);
        }
        None
    }

    fn begin_rewrite(
        &mut self,
        number: RewriteNumber,
        content: Box<dyn FileContent>,
    ) -> Result<(), StoreError> {
        assert!(
            (self.rewrite.as_ref()).is_none_or(|rewrite| rewrite.number != number),
            "each new file has a number of its own"
        );
        // The previous thread may still be closing the replaced file, or removing an abandoned one.
        let predecessor = self.rewrite.take().map(|rewrite| rewrite.thread);
        // A rewrite begins when nothing is pending, so the content ends at the end of the file.
        let end = self.published.end();
        let database = content.database().to_owned();
        let is_compaction = content.with_tail();
        // A member's new file has no tail, because the member supplies later entries itself.
        let kind = match (&self.replies, is_compaction) {
            (FileOwner::Database(_), false) => JobKind::Conversion,
            _ => JobKind::Compaction,
        };
        let progress = content.progress();
        let job = progress.map(|rows| self.jobs.begin_rows(&database, kind, &rows));
        let (orders, receiver) = crossbeam_channel::unbounded();
        let is_wanted = Arc::new(AtomicBool::new(true));
        let work = RewriteWork {
            orders: receiver,
            is_wanted: is_wanted.clone(),
            published: self.published.clone(),
            disk: self.disk.clone(),
            replies: self.replies.clone(),
            label: is_compaction.then(|| database.clone()),
            figures: self.figures.clone().filter(|_| is_compaction),
            history: self.history.reporter(),
            _job: job,
        };
        let file = self.file.clone();
        let thread = std::thread::Builder::new()
            .name("rewrite".to_owned())
            .spawn(move || {
                // Other threads wait for this lock, so the thread releases it before it lowers its
                // priority.
                let rewriter = lock(&file).rewrite(number, content, end);
                drop(file);
                priority::yield_to_others();
                if let Some(predecessor) = predecessor {
                    // A panic was reported when it happened.
                    let _ = predecessor.join();
                }
                match rewriter {
                    Ok(rewriter) => work.run(rewriter),
                    Err(error) => work.failed(number, error),
                }
            })
            .map_err(|error| StoreError {
                details: format!("{database}: cannot start a thread"),
                io_error: corvid_net::errno::text(&error),
            })?;
        self.rewrite = Some(RewriteThread {
            number,
            orders,
            is_wanted,
            thread,
        });
        Ok(())
    }

    /// Whether nothing can be appended until a new file is in place.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.published.is_poisoned()
    }

    /// Completes all pending writes, abandons an incomplete new file, and closes the file.
    pub(crate) fn close(self) {
        if let Some(rewrite) = self.rewrite {
            rewrite.is_wanted.store(false, Ordering::Relaxed);
            drop(rewrite.orders);
            // A panic was reported when it happened; the same holds below.
            let _ = rewrite.thread.join();
        }
        // Without a sender, the disk thread drains its queue and ends.
        drop(self.disk);
        let _ = self.disk_thread.join();
        // Last: until then files may be kept.
        drop(self.history);
    }
}

fn lock(file: &Mutex<Committer<Location>>) -> MutexGuard<'_, Committer<Location>> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends replies of a database's threads to it. Holds a weak reference, because the database's
/// thread ends when the last sender is dropped.
#[derive(Clone, Debug)]
pub(crate) struct ReplySender(pub(crate) std::sync::Weak<MailSender<ToDatabase>>);

impl ReplySender {
    /// Sends a reply, unless the database's thread has ended.
    pub(crate) fn send(&self, message: ToDatabase) {
        if let Some(sender) = self.0.upgrade() {
            let _ = sender.send(message);
        }
    }
}

/// The owner of a file, which gets the replies of the file's threads.
#[derive(Clone, Debug)]
pub(crate) enum FileOwner {
    /// A database that stores its commits itself.
    Database(ReplySender),
    /// The member of a clustered database.
    Member(MemberHandle),
}

impl FileOwner {
    fn send(&self, reply: StorageReply) {
        match self {
            FileOwner::Database(database) => database.send(ToDatabase::Storage(reply)),
            FileOwner::Member(member) => member.post([ToMember::Storage(reply)]),
        }
    }
}

struct DiskThread {
    orders: Mailbox<ToDisk>,
    file: Arc<Mutex<Committer<Location>>>,
    replies: FileOwner,
    figures: Option<Arc<DatabaseFigures>>,
    closer: Option<Sender<ReplacedFiles>>,
}

impl DiskThread {
    fn run(mut self) {
        let mut arrived = Vec::new();
        while self.orders.receive(&mut arrived, None) {
            let mut orders = Vec::with_capacity(arrived.len());
            for message in arrived.drain(..) {
                match message {
                    ToDisk::Order(order) => orders.push(order),
                    ToDisk::Closer(sender) => self.closer = Some(sender),
                }
            }
            let has_swap = orders
                .iter()
                .any(|order| matches!(order, DiskTask::Swap(_)));
            let mut file = lock(&self.file);
            let answers = file.carry_out(orders);
            let replaced = file.take_replaced();
            let unsynced = file.unsynced_name();
            self.publish_poison(&file);
            drop(file);
            // Replies are sent after the lock is released, so that the owner can append inline at
            // once.
            for answer in answers {
                self.replies.send(answer);
            }
            // The directory is synced without the lock, so that records can be appended inline in
            // the meantime. Until the sync is done, a crash may bring back the replaced file.
            if let Some(disk) = unsynced {
                let outcome = disk.sync_directory();
                let mut file = lock(&self.file);
                let answer = file.name_synced(outcome);
                self.publish_poison(&file);
                drop(file);
                if let Some(answer) = answer {
                    self.replies.send(answer);
                }
            }
            // After a failed swap the list is empty. The rewrite thread waits for it in either
            // case.
            if let Some(closer) = self.closer.take_if(|_| has_swap) {
                let _ = closer.send(replaced);
            }
        }
    }
}

impl DiskThread {
    fn publish_poison(&self, file: &Committer<Location>) {
        if let Some(figures) = &self.figures {
            figures.set_poisoned(file.is_poisoned());
        }
    }
}

/// The state of a rewrite thread.
struct RewriteWork {
    orders: Receiver<ToRewriter>,
    is_wanted: Arc<AtomicBool>,
    published: Arc<FileStatus>,
    disk: MailSender<ToDisk>,
    replies: FileOwner,
    /// The database's name, for the log; `None`: the rewrite is not a compaction.
    label: Option<String>,
    /// The figures, if this is a compaction.
    figures: Option<Arc<DatabaseFigures>>,
    history: KeptReporter,
    /// Lists the new file until it is in place or given up.
    _job: Option<RunningJob>,
}

/// Compactions that take longer are logged at level INFO, ms.
const LONG_MS: u128 = 1000;

impl RewriteWork {
    fn run(self, mut rewriter: Rewriter<Location>) {
        let started = Instant::now();
        let number = rewriter.number();
        let written = self.write(&mut rewriter);
        // A second name for the present file, before the swap takes its own. On this thread: it
        // syncs the folder.
        let is_kept = self.history.is_on() && self.history.has_contents();
        if written.is_ok() && is_kept {
            rewriter.keep(self.history.last());
        }
        let written_ms = started.elapsed().as_millis();
        let mut outcome = written;
        loop {
            if let Err(error) = outcome {
                // The temporary file is removed before the failure is reported.
                drop(rewriter);
                self.failed(number, error);
                return;
            }
            self.answer(number, Ok(RewriteStage::Written));
            match self.orders.recv() {
                Ok(ToRewriter::Extend(records)) => outcome = rewriter.extend(&records),
                Ok(ToRewriter::Swap) => break,
                Ok(ToRewriter::Abandon) | Err(_) => return,
            }
        }
        // Sent before the swap: the disk thread hands the replaced file's handles to this thread,
        // which closes them at low priority.
        let (closer, replaced) = crossbeam_channel::bounded(1);
        let _ = self.disk.send(ToDisk::Closer(closer));
        let _ = self.disk.send(ToDisk::Order(DiskTask::Swap(rewriter)));
        let files: Option<ReplacedFiles> = replaced.recv().ok();
        let total_ms = started.elapsed().as_millis();
        // After a failed swap there is no replaced file.
        let is_swapped = files.as_ref().is_some_and(|files| !files.is_empty());
        self.count_compaction(match is_swapped {
            true => &coverage::LOG_COMPACT,
            false => &coverage::LOG_COMPACT_ERROR,
        });
        if let Some(figures) = &self.figures {
            if is_swapped {
                let total_ns = started.elapsed().as_nanos();
                figures
                    .compaction
                    .add(u64::try_from(total_ns).unwrap_or(u64::MAX));
            } else {
                figures.compactions_failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        // The directory has been synced by now, or the file is poisoned and its history waits.
        for replaced in files.iter().flatten() {
            match replaced.kept() {
                Some(kept) => self.history.kept(kept),
                None if is_kept => self.history.not_kept(),
                // Nothing is missing.
                None => {}
            }
        }
        drop(files);
        if let Some(name) = self.label {
            let swap_ms = total_ms - written_ms;
            let level = if total_ms > LONG_MS {
                Level::Info
            } else {
                Level::Debug
            };
            logging::log(
                Module::Ovsdb,
                level,
                format_args!(
                    "{name}: Database compaction took {total_ms}ms (init: 0ms, write: {swap_ms}ms, thread: {written_ms}ms)"
                ),
            );
        }
    }

    fn failed(&self, number: RewriteNumber, error: StoreError) {
        self.count_compaction(&coverage::LOG_COMPACT_ERROR);
        if let Some(figures) = &self.figures {
            figures.compactions_failed.fetch_add(1, Ordering::Relaxed);
        }
        self.answer(number, Err(error));
    }

    /// Counts the end of a compaction. A rewrite for a conversion is not counted.
    fn count_compaction(&self, counter: &'static Counter) {
        if self.label.is_some() {
            counter.bump();
        }
    }

    fn answer(&self, number: RewriteNumber, stage: Result<RewriteStage, StoreError>) {
        if self.is_wanted.load(Ordering::Relaxed) {
            self.replies.send(StorageReply::Rewrite(number, stage));
        }
    }

    fn write(&self, rewriter: &mut Rewriter<Location>) -> Result<(), StoreError> {
        rewriter.run(
            || self.published.end(),
            || self.is_wanted.load(Ordering::Relaxed),
        )
    }
}
