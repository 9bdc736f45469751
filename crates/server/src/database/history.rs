//! The history of the server's databases on disk: the policy, which all of them share, and a thread
//! for each database that has something to compress or to remove. [`Keeper`] decides what the
//! thread does.
//!
//! The thread starts with the first file of the history, or with the policy. It runs at low
//! priority, and no client waits for it. It ends when the database's file is closed, at the latest
//! after one piece of work; what it leaves is done at the next start.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use corvid_disk::log_file::Location;
use corvid_history::Policy;
use corvid_json::{Object, Value};
use corvid_log::history::{HistoryForm, highest, recover, skip};
use corvid_log::storage::FileStatus;
use corvid_log::{Disk as _, HistoryFolder as _, KeptFile};
use corvid_net::{clock, os_name};
use corvid_reactor::priority;
use corvid_service::storage::{Keeper, ListedFile};
use corvid_shell::date;
use crossbeam_channel::{Receiver, Sender};

use crate::read_history::HistorySource;
use crate::relay::sources::RelaySources;

/// The policy of the server, and the histories of its databases.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    policy: Mutex<Policy>,
    /// By database name.
    databases: Mutex<BTreeMap<String, Arc<History>>>,
    /// Those of other databases are read by other servers.
    relays: RelaySources,
}

/// The history of one database.
#[derive(Debug)]
pub(crate) struct History {
    disk: Arc<Location>,
    status: Arc<FileStatus>,
    /// The files that a crash or an exit has left to compress. Taken by the thread.
    uncompressed: Mutex<Vec<u64>>,
    thread: Mutex<Option<Thread>>,
    is_ending: AtomicBool,
    /// All files, as of the thread's last step.
    files: Mutex<Vec<ListedFile>>,
    /// The number that was used or skipped last; 0: none.
    last: AtomicU64,
    warnings: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Thread {
    orders: Sender<ToHistory>,
    handle: JoinHandle<()>,
}

#[derive(Debug)]
enum ToHistory {
    Kept(KeptFile),
    SetPolicy(Policy),
}

/// The history of a database whose file is open. Dropping it ends its thread.
#[derive(Debug)]
pub(crate) struct OpenHistory {
    name: String,
    histories: Arc<Histories>,
    history: Arc<History>,
}

/// The figures of one history, for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HistoryFigures {
    /// Number of segments, and of files that are not compressed yet.
    pub(crate) files: u64,
    /// Bytes of all of them.
    pub(crate) bytes: u64,
    /// When the oldest record was written, ms since the Unix epoch.
    pub(crate) first_ms: Option<i64>,
    /// Failures to keep, compress or remove, and removals because of a full disk.
    pub(crate) warnings: u64,
}

impl Histories {
    /// The policy.
    pub(crate) fn policy(&self) -> Policy {
        *locked(&self.policy)
    }

    /// Changes the policy. Histories are pruned at once, in the background.
    pub(crate) fn set_policy(&self, policy: Policy) {
        *locked(&self.policy) = policy;
        for history in locked(&self.databases).values() {
            // Without a policy there is nothing to prune, so no thread is started for it.
            history.post(ToHistory::SetPolicy(policy), policy);
        }
    }

    /// Puts the history of a database in order, and begins to compress what is left. Called before
    /// the first rewrite of the file.
    pub(crate) fn open(
        self: &Arc<Histories>,
        name: &str,
        disk: &Arc<Location>,
        status: &Arc<FileStatus>,
    ) -> OpenHistory {
        let folder = disk.history();
        let uncompressed = recover(folder).unwrap_or_else(|fault| {
            folder.warn(&format!("the folder cannot be read ({fault})"));
            Vec::new()
        });
        let history = Arc::new(History {
            disk: disk.clone(),
            status: status.clone(),
            uncompressed: Mutex::new(uncompressed),
            thread: Mutex::new(None),
            is_ending: AtomicBool::new(false),
            files: Mutex::default(),
            last: AtomicU64::new(highest(folder).unwrap_or_default()),
            warnings: folder.warnings().clone(),
        });
        locked(&self.databases).insert(name.to_owned(), history.clone());
        let policy = self.policy();
        let is_empty = folder.list().is_ok_and(|names| names.is_empty());
        if !is_empty {
            history.start(policy);
        }
        OpenHistory {
            name: name.to_owned(),
            histories: self.clone(),
            history,
        }
    }

    /// The figures of every database that may have a history.
    pub(crate) fn figures(&self) -> Vec<(String, HistoryFigures)> {
        let databases = locked(&self.databases);
        let is_off = self.policy().is_off();
        let shown = databases.iter().filter_map(|(name, history)| {
            let figures = history.figures();
            let is_shown = !is_off || figures.files > 0 || figures.warnings > 0;
            is_shown.then(|| (name.clone(), figures))
        });
        shown.collect()
    }

    /// The history of a database; `None`: there is no such database, or it has no file.
    fn of(&self, name: &str) -> Option<Arc<History>> {
        locked(&self.databases).get(name).cloned()
    }

    /// The sources of the relays, which read the histories of their databases.
    pub(crate) fn relays(&self) -> &RelaySources {
        &self.relays
    }

    /// Where the files of a database are; `None`: it has no file.
    pub(crate) fn source(&self, name: &str) -> Option<HistorySource> {
        let history = self.of(name)?;
        Some(HistorySource {
            path: history.disk.path().to_owned(),
            status: history.status.clone(),
        })
    }

    /// Lists the history of a database as text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let history = self.of(name)?;
        let mut out = format!("policy: {}\n", self.policy());
        let _ = writeln!(out, "folder: {}", history.shown_folder());
        for file in history.files().iter() {
            let _ = write!(out, "{}: {} bytes", file.name, file.bytes);
            let _ = match (&file.summary, &file.damage) {
                (Some(summary), _) => write!(
                    out,
                    ", {} transactions, {} to {}",
                    summary.transactions,
                    date::utc_text(summary.first_ms),
                    date::utc_text(summary.last_ms)
                ),
                (None, Some(damage)) => write!(out, ", damaged: {damage}"),
                (None, None) if file.name.form == HistoryForm::Plain => {
                    write!(out, ", not compressed yet")
                }
                (None, None) => write!(out, ", being written"),
            };
            out.push('\n');
        }
        Some(out)
    }

    /// Lists the history of a database as JSON.
    pub(crate) fn json(&self, name: &str) -> Option<Value> {
        let history = self.of(name)?;
        let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let file = |file: &ListedFile| {
            let mut members = vec![
                ("name", Value::string(file.name.to_string())),
                ("bytes", number(file.bytes)),
            ];
            if let Some(summary) = &file.summary {
                members.extend([
                    ("transactions", number(summary.transactions)),
                    ("first_ms", Value::Integer(summary.first_ms)),
                    ("last_ms", Value::Integer(summary.last_ms)),
                ]);
            }
            if let Some(damage) = &file.damage {
                members.push(("damage", Value::string(damage)));
            }
            object(members)
        };
        let files = history.files().iter().map(file).collect();
        Some(object(vec![
            ("policy", Value::string(self.policy().to_string())),
            ("folder", Value::string(history.shown_folder())),
            ("files", Value::Array(files)),
        ]))
    }
}

fn object(members: Vec<(&'static str, Value)>) -> Value {
    let members = members.into_iter();
    let members: Object = members.map(|(name, value)| (name.into(), value)).collect();
    Value::Object(members)
}

impl OpenHistory {
    /// A handle for a rewrite thread, which reports what it has kept.
    pub(crate) fn reporter(&self) -> KeptReporter {
        KeptReporter {
            histories: self.histories.clone(),
            history: self.history.clone(),
        }
    }
}

impl Drop for OpenHistory {
    /// Ends the thread. The threads that keep files must have ended.
    fn drop(&mut self) {
        {
            let mut databases = locked(&self.histories.databases);
            // The same database may have been opened again.
            if databases
                .get(&self.name)
                .is_some_and(|history| Arc::ptr_eq(history, &self.history))
            {
                databases.remove(&self.name);
            }
        }
        self.history.is_ending.store(true, Ordering::Relaxed);
        let thread = locked(&self.history.thread).take();
        if let Some(Thread { orders, handle }) = thread {
            drop(orders);
            // A panic was reported when it happened.
            let _ = handle.join();
        }
    }
}

/// Reports to the history's thread what a rewrite has kept.
#[derive(Debug)]
pub(crate) struct KeptReporter {
    histories: Arc<Histories>,
    history: Arc<History>,
}

impl KeptReporter {
    /// Whether replaced files are to be kept.
    pub(crate) fn is_on(&self) -> bool {
        !self.histories.policy().is_off()
    }

    /// Whether the present file has contents. That of a server that is joining its cluster has none
    /// until its first snapshot replaces it.
    pub(crate) fn has_contents(&self) -> bool {
        let path = self.history.disk.path();
        let is_short = std::fs::metadata(path)
            .is_ok_and(|metadata| metadata.len() <= corvid_history::UNJOINED_BYTES_MAX);
        // A file that cannot be read is kept, because that loses nothing.
        let text = is_short.then(|| std::fs::read(path).unwrap_or_default());
        !text.is_some_and(|text| corvid_history::has_not_joined(&text))
    }

    /// The number that was used or skipped last; 0: none.
    pub(crate) fn last(&self) -> u64 {
        self.history.last.load(Ordering::Relaxed)
    }

    /// A rewrite has replaced a file that was not kept.
    pub(crate) fn not_kept(&self) {
        let last = skip(self.history.disk.history(), self.last());
        self.history.last.store(last, Ordering::Relaxed);
    }

    /// A rewrite has replaced this file. The next rewrite begins after this one's thread has ended.
    pub(crate) fn kept(&self, file: KeptFile) {
        self.history.last.store(file.number, Ordering::Relaxed);
        let policy = self.histories.policy();
        self.history.start(policy);
        self.history.post(ToHistory::Kept(file), policy);
    }
}

impl History {
    /// Starts the thread unless it is running.
    fn start(self: &Arc<History>, policy: Policy) {
        let mut thread = locked(&self.thread);
        if thread.is_some() || self.is_ending.load(Ordering::Relaxed) {
            return;
        }
        let (orders, receiver) = crossbeam_channel::unbounded();
        let history = self.clone();
        let started = std::thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || history.run(&receiver, policy));
        match started {
            Ok(handle) => *thread = Some(Thread { orders, handle }),
            // The kept files are compressed at the next start.
            Err(error) => self.disk.history().warn(&format!(
                "the thread that compresses it cannot be started ({})",
                corvid_net::errno::text(&error)
            )),
        }
    }

    /// Sends to the thread, which is started if the policy keeps something.
    fn post(self: &Arc<History>, order: ToHistory, policy: Policy) {
        if !policy.is_off() {
            self.start(policy);
        }
        if let Some(thread) = &*locked(&self.thread) {
            // The thread ends only once this sender is dropped.
            let _ = thread.orders.send(order);
        }
    }

    fn run(&self, orders: &Receiver<ToHistory>, policy: Policy) {
        priority::yield_to_others();
        let uncompressed = std::mem::take(&mut *locked(&self.uncompressed));
        let mut keeper = Keeper::new(self.disk.clone(), policy, uncompressed);
        let is_wanted = || !self.is_ending.load(Ordering::Relaxed);
        while is_wanted() {
            let order = match keeper.has_work() {
                true => orders.try_recv().ok(),
                false => match orders.recv() {
                    Ok(order) => Some(order),
                    Err(_) => return,
                },
            };
            match order {
                Some(ToHistory::Kept(file)) => keeper.kept(file),
                Some(ToHistory::SetPolicy(policy)) => keeper.set_policy(policy),
                None => {
                    let now_ms = u64::try_from(clock::wall_ms()).unwrap_or(0);
                    keeper.step(now_ms, &is_wanted);
                    *locked(&self.files) = keeper.files().cloned().collect();
                }
            }
        }
    }

    fn files(&self) -> MutexGuard<'_, Vec<ListedFile>> {
        locked(&self.files)
    }

    fn shown_folder(&self) -> String {
        let folder: PathBuf = self.disk.history().path();
        os_name::text(folder.as_os_str())
    }

    fn figures(&self) -> HistoryFigures {
        let files = self.files();
        let counted = files
            .iter()
            .filter(|file| file.name.form != HistoryForm::Partial);
        let summaries = files.iter().filter_map(|file| file.summary);
        HistoryFigures {
            files: counted.clone().count() as u64,
            bytes: counted.map(|file| file.bytes).sum(),
            // 0: the file has no date.
            first_ms: summaries
                .map(|summary| summary.first_ms)
                .filter(|first_ms| *first_ms > 0)
                .min(),
            warnings: self.warnings.load(Ordering::Relaxed),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
