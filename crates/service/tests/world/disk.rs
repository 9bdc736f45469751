//! A database's file in memory, under the real storage. The server's code decides which requests
//! are executed at once, and which are left to a disk thread or a rewrite thread. The threads are
//! queues, which the world serves at any time.

use corvid_data::HashSeed;
use corvid_log::storage::{
    Committer, DiskTask, FileSize, RewriteStage, Rewriter, Route, Routing, StorageReply,
    StorageRequest,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_data::uuid::UuidSource;
use corvid_engine::Database;
use corvid_log::history::NoHistory;
use corvid_log::{Disk as _, DiskFile, Fault, Load, LogWriter, write_schema};
use corvid_service::storage::FileState;

/// Replies to requests.
pub(crate) type Answers = Vec<StorageReply>;

/// The stage of the last new file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// There is no new file: none was started, or it was abandoned or failed.
    #[default]
    None,
    /// A thread is writing the file.
    Writing,
    /// The file holds everything it was given; the database knows or will know.
    Written,
    /// The database has requested the swap.
    Swapping,
    /// The new file has the file's name, but the name is not durable yet.
    InPlace,
    /// No crash can remove the file; the database knows or will know.
    Lasting,
}

#[derive(Debug)]
pub(crate) struct Disk {
    /// How many of the next writes fail.
    pub(crate) failures: u32,
    /// Requests are not executed until this is cleared.
    pub(crate) is_held: bool,
    /// Ordinary records are not written at once.
    pub(crate) is_slow: bool,
    /// The next new file cannot be put in place.
    pub(crate) fails_to_swap: bool,
    pub(crate) stage: Stage,
    platter: Platter,
    committer: Committer<Platter>,
    routing: Routing,
    orders: VecDeque<DiskTask<Platter>>,
    rewriter: Option<Rewriter<Platter>>,
    rewrites: VecDeque<StorageRequest>,
    turn: u64,
}

impl Disk {
    pub(crate) fn new(schema: &corvid_data::Schema) -> Disk {
        let platter = Platter::default();
        let mut head = Vec::new();
        write_schema(&mut head, schema);
        let end = head.len() as u64;
        lock(&platter.0).name = Content::of(head);
        let handle = platter.open();
        let mut writer = LogWriter::new(platter.clone(), handle);
        writer.set_end(end);
        let mut committer = Committer::new(writer);
        committer.presume_quick();
        let routing = Routing::new(committer.status().clone());
        Disk {
            failures: 0,
            is_held: false,
            is_slow: false,
            fails_to_swap: false,
            stage: Stage::None,
            platter,
            committer,
            routing,
            orders: VecDeque::from([DiskTask::SyncExisting]),
            rewriter: None,
            rewrites: VecDeque::new(),
            turn: 0,
        }
    }

    /// The state of the file when it is opened.
    pub(crate) fn state(&self) -> FileState {
        let end = self.committer.status().end();
        FileState {
            records: 1,
            size: FileSize { base: 0, end },
        }
    }

    /// Accepts requests; returns the replies to those executed at once.
    pub(crate) fn store(&mut self, mut stores: Vec<StorageRequest>) -> Answers {
        let mut answers = Vec::new();
        if self.is_slow || self.is_held {
            for store in &mut stores {
                if let StorageRequest::Append { durable, .. } = store {
                    *durable = true;
                }
            }
        }
        for route in self.routing.route(stores) {
            match route {
                Route::Inline(records) => {
                    self.arm();
                    match self.committer.append(records) {
                        Ok(reply) => answers.extend(reply),
                        Err(order) => {
                            self.routing.observe_deferral(&order);
                            self.orders.push_back(*order);
                        }
                    }
                    self.disarm();
                }
                Route::DiskThread(store) => self.orders.push_back(DiskTask::Request(store)),
                Route::RewriteThread(StorageRequest::Rewrite(number, content)) => {
                    let end = self.committer.status().end();
                    match self.committer.rewrite(number, content, end) {
                        Ok(rewriter) => {
                            self.rewriter = Some(rewriter);
                            self.stage = Stage::Writing;
                            self.rewrites
                                .push_back(StorageRequest::Extend(number, Vec::new()));
                        }
                        Err(error) => answers.push(StorageReply::Rewrite(number, Err(error))),
                    }
                }
                Route::RewriteThread(StorageRequest::Abandon(_)) => {
                    self.rewriter = None;
                    self.rewrites.clear();
                    self.stage = Stage::None;
                }
                Route::RewriteThread(store) => {
                    self.stage = match store {
                        StorageRequest::Swap(_) => Stage::Swapping,
                        _ => Stage::Writing,
                    };
                    self.rewrites.push_back(store);
                }
            }
        }
        answers
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.is_held && !self.is_idle()
    }

    /// Whether no request is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.orders.is_empty()
            && self.rewrites.is_empty()
            && self.committer.unsynced_name().is_none()
    }

    /// Whether a new file is being written, or was left behind.
    pub(crate) fn has_new_file(&self) -> bool {
        self.rewriter.is_some() || lock(&self.platter.0).temporary.is_some()
    }

    /// One of the two threads executes its next request.
    pub(crate) fn work(&mut self) -> Answers {
        self.turn += 1;
        self.arm();
        let answers = if let Some(disk) = self.committer.unsynced_name() {
            let outcome = disk.sync_directory();
            self.stage = Stage::Lasting;
            self.committer.name_synced(outcome).into_iter().collect()
        } else if self.orders.is_empty() || self.turn.is_multiple_of(3) {
            self.work_on_rewrite()
        } else {
            self.work_on_file()
        };
        self.disarm();
        answers
    }

    fn work_on_file(&mut self) -> Answers {
        let Some(order) = self.orders.pop_front() else {
            return Vec::new();
        };
        let is_swap = matches!(order, DiskTask::Swap(_));
        lock(&self.platter.0).fails_to_swap = is_swap && std::mem::take(&mut self.fails_to_swap);
        let answers = self.committer.carry_out(vec![order]);
        if is_swap {
            let has_failed =
                |answer: &StorageReply| matches!(answer, StorageReply::Rewrite(_, Err(_)));
            self.stage = match answers.iter().any(has_failed) {
                true => Stage::None,
                false => Stage::InPlace,
            };
        }
        drop(self.committer.take_replaced());
        answers
    }

    fn work_on_rewrite(&mut self) -> Answers {
        let Some(store) = self.rewrites.pop_front() else {
            return Vec::new();
        };
        let Some(mut rewriter) = self.rewriter.take() else {
            return Vec::new();
        };
        let number = rewriter.number();
        let outcome = match store {
            StorageRequest::Extend(_, records) => {
                let end = self.committer.status().end();
                rewriter
                    .run(|| end, || true)
                    .and_then(|()| rewriter.extend(&records))
            }
            _ => {
                self.orders.push_back(DiskTask::Swap(rewriter));
                return Vec::new();
            }
        };
        self.stage = Stage::None;
        if outcome.is_ok() {
            self.stage = Stage::Written;
            self.rewriter = Some(rewriter);
        }
        let stage = outcome.map(|()| RewriteStage::Written);
        vec![StorageReply::Rewrite(number, stage)]
    }

    /// The database is about to get a reply.
    pub(crate) fn answered(&mut self, answer: &StorageReply) {
        self.routing.observe_reply(answer);
    }

    fn arm(&self) {
        lock(&self.platter.0).failures = self.failures;
    }

    fn disarm(&mut self) {
        self.failures = lock(&self.platter.0).failures;
    }

    /// The comments of the records in the file, `-` for one without.
    pub(crate) fn comments(&self) -> Vec<String> {
        let file = lock(&self.platter.0).name.bytes();
        let mut load = Load::open(&file[..]).expect("the file begins with a schema");
        let mut comments = Vec::new();
        while let Some(recorded) = load.next_transaction().expect("the file is whole") {
            comments.push(recorded.comment.unwrap_or_else(|| "-".to_owned()));
        }
        comments
    }

    /// The database in the file.
    pub(crate) fn load(&self, uuids: &mut dyn UuidSource) -> Database {
        let file = lock(&self.platter.0).name.bytes();
        let mut load = Load::open(&file[..]).expect("the file begins with a schema");
        let mut database = Database::new(corvid_data::Arc::clone(load.schema()), HashSeed::FIXED);
        while let Some(recorded) = load.next_transaction().expect("the file is whole") {
            database
                .apply_recorded(recorded, uuids)
                .expect("records apply");
        }
        database
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes of a file that may have lost its name.
#[derive(Clone, Debug, Default)]
struct Content(Arc<Mutex<Vec<u8>>>);

impl Content {
    fn of(bytes: Vec<u8>) -> Content {
        Content(Arc::new(Mutex::new(bytes)))
    }

    fn bytes(&self) -> Vec<u8> {
        lock(&self.0).clone()
    }
}

#[derive(Debug, Default)]
struct Names {
    name: Content,
    temporary: Option<Content>,
    failures: u32,
    fails_to_swap: bool,
}

/// The directory of one database's files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Platter(Arc<Mutex<Names>>, NoHistory<Handle>);

impl Platter {
    /// A handle to the file that is in place.
    pub(crate) fn open(&self) -> Handle {
        Handle {
            platter: self.clone(),
            content: lock(&self.0).name.clone(),
        }
    }

    /// A handle to a file without a name, with these bytes.
    pub(crate) fn handle(&self, bytes: &[u8]) -> Handle {
        Handle {
            platter: self.clone(),
            content: Content::of(bytes.to_vec()),
        }
    }
}

impl corvid_log::Disk for Platter {
    type Handle = Handle;
    type History = NoHistory<Handle>;

    fn history(&self) -> &NoHistory<Handle> {
        &self.1
    }

    fn shown_name(&self) -> &'static str {
        "x.db"
    }

    fn create_temporary(&self) -> Result<Handle, Fault> {
        let content = Content::default();
        lock(&self.0).temporary = Some(content.clone());
        Ok(Handle {
            platter: self.clone(),
            content,
        })
    }

    fn remove_temporary(&self) {
        lock(&self.0).temporary = None;
    }

    fn put_in_place(&self) -> Result<(), Fault> {
        let mut names = lock(&self.0);
        if names.fails_to_swap {
            return Err(Fault {
                code: 5,
                text: "Input/output error".to_owned(),
            });
        }
        names.name = names.temporary.take().expect("a temporary file");
        Ok(())
    }

    fn create_received(&self) -> Result<Handle, Fault> {
        Ok(self.handle(&[]))
    }

    fn remove_received(&self) {}

    fn sync_directory(&self) -> Result<(), Fault> {
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Handle {
    platter: Platter,
    content: Content,
}

impl DiskFile for Handle {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, Fault> {
        let bytes = lock(&self.content.0);
        let from = usize::try_from(offset).expect("small").min(bytes.len());
        let got = room.len().min(bytes.len() - from);
        room[..got].copy_from_slice(&bytes[from..from + got]);
        Ok(got)
    }

    fn write_at(&mut self, slices: &[&[u8]], offset: u64) -> Result<(), Fault> {
        let mut names = lock(&self.platter.0);
        let mut bytes = lock(&self.content.0);
        assert_eq!(bytes.len() as u64, offset, "records follow each other");
        if names.failures > 0 {
            names.failures -= 1;
            return Err(Fault {
                code: 28,
                text: "No space left on device".to_owned(),
            });
        }
        for slice in slices {
            bytes.extend_from_slice(slice);
        }
        Ok(())
    }

    fn length(&self) -> Result<u64, Fault> {
        Ok(lock(&self.content.0).len() as u64)
    }

    fn cut(&mut self, length: u64) -> Result<(), Fault> {
        lock(&self.content.0).truncate(usize::try_from(length).expect("small"));
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn share(&self) -> Result<Handle, Fault> {
        Ok(Handle {
            platter: self.platter.clone(),
            content: self.content.clone(),
        })
    }
}
