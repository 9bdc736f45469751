//! The file of one database: carries out [`Store`] orders in ticket order and reports each.
//!
//! Ordinary records are appended by the database thread itself, all of a batch in one write. Records that must be synced, whole
//! rewrites, and everything that comes while those are under way go through the disk thread, so that the database thread never
//! waits for the disk; their results come back as [`ToDatabase::Stored`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use corvid_engine::Snapshot;
use corvid_log::Stamp;
use corvid_log::{write_schema, write_snapshot};
use corvid_os::errno;
use corvid_os::log_file::{DiskError, LogFile, Replacement};
use corvid_os::mailbox::MailSender;
use corvid_service::message::{Store, StoreError, Ticket, ToDatabase};
use crossbeam_channel::{Receiver, Sender};

/// Results of stores that were carried out at once.
type Results = Vec<(Ticket, Result<(), StoreError>)>;

/// An open database file.
pub struct Storage {
    /// Locked by the disk thread while it works; otherwise free.
    file: Arc<Mutex<LogFile>>,
    disk: Sender<Store>,
    /// The last order that the disk thread has been given and has not answered.
    awaited: Option<Ticket>,
    thread: JoinHandle<()>,
}

impl Storage {
    /// Keeps `file`; results of slow orders are sent to `inbox`.
    ///
    /// # Errors
    /// The disk thread cannot be made.
    pub fn new(file: LogFile, is_diff: bool, inbox: InboxHandle) -> std::io::Result<Storage> {
        let (disk, orders) = crossbeam_channel::unbounded();
        let file = Arc::new(Mutex::new(file));
        let worker = DiskThread {
            failure: None,
            orders,
            file: file.clone(),
            is_diff,
            inbox,
        };
        let thread = std::thread::Builder::new()
            .name("disk".to_owned())
            .spawn(move || worker.run())?;
        Ok(Storage {
            file,
            disk,
            awaited: None,
            thread,
        })
    }

    /// Carries out orders, or hands them to the disk thread. Returns what is done already.
    pub fn store(&mut self, mut stores: Vec<Store>) -> Results {
        // For the disk thread, whose failure it may have been. It comes first: the records
        // that a database hands over with it are of commits after it.
        for recover in stores.extract_if(.., |store| matches!(store, Store::Recover)) {
            let _ = self.disk.send(recover);
        }
        let is_quick = |store: &Store| matches!(store, Store::Append { durable: false, .. });
        if self.awaited.is_none() && stores.iter().all(is_quick) {
            return append_all(&mut lock(&self.file), stores);
        }
        for store in stores {
            self.awaited = ticket_of(&store).or(self.awaited);
            // The disk thread lives as long as its queue, which is ours.
            let _ = self.disk.send(store);
        }
        Vec::new()
    }

    /// Takes note of an answer of the disk thread.
    pub fn answered(&mut self, ticket: Ticket) {
        if self.awaited == Some(ticket) {
            self.awaited = None;
        }
    }

    /// Finishes what is under way and closes the file.
    pub fn close(self) {
        drop(self.disk);
        // A panicked disk thread has already said so.
        let _ = self.thread.join();
    }
}

fn lock(file: &Mutex<LogFile>) -> MutexGuard<'_, LogFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ticket_of(store: &Store) -> Option<Ticket> {
    match store {
        Store::Append { ticket, .. } | Store::Replace { ticket, .. } => Some(*ticket),
        Store::Recover => None,
    }
}

/// The inbox of a database thread. Weak: the thread must end when everybody else has let go of it.
#[derive(Clone, Debug)]
pub struct InboxHandle(pub std::sync::Weak<MailSender<ToDatabase>>);

impl InboxHandle {
    fn send(&self, message: ToDatabase) {
        if let Some(sender) = self.0.upgrade() {
            let _ = sender.send(message);
        }
    }
}

/// Appends the records of several orders with one write.
fn append_all(file: &mut LogFile, stores: Vec<Store>) -> Results {
    let mut tickets = Vec::with_capacity(stores.len());
    let mut records = Vec::with_capacity(stores.len());
    for store in stores {
        if let Store::Append { ticket, record, .. } = store {
            tickets.push(ticket);
            records.push(record);
        }
    }
    if records.is_empty() {
        return Vec::new();
    }
    let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let result = file.append(&slices).map_err(|error| failed(&error));
    results(&tickets, &result)
}

/// Success of the last order implies the others; a failure is reported for each, and the database executes the later ones
/// again.
fn results(tickets: &[Ticket], result: &Result<(), StoreError>) -> Results {
    match result {
        Ok(()) => tickets
            .last()
            .map(|last| vec![(*last, Ok(()))])
            .unwrap_or_default(),
        Err(error) => tickets
            .iter()
            .map(|ticket| (*ticket, Err(error.clone())))
            .collect(),
    }
}

fn failed(error: &DiskError) -> StoreError {
    StoreError {
        details: error.to_string(),
        io_error: error.io_error(),
    }
}

struct DiskThread {
    /// Why the last append failed, until the database has taken note: what it sent meanwhile is refused.
    failure: Option<StoreError>,
    orders: Receiver<Store>,
    file: Arc<Mutex<LogFile>>,
    is_diff: bool,
    inbox: InboxHandle,
}

impl DiskThread {
    fn run(mut self) {
        while let Ok(first) = self.orders.recv() {
            let mut stores = vec![first];
            stores.extend(self.orders.try_iter());
            let file = self.file.clone();
            let results = self.carry_out(&mut lock(&file), stores);
            for (ticket, result) in results {
                self.inbox.send(ToDatabase::Stored(ticket, result));
            }
        }
    }

    /// Runs of appends are written and synced together.
    fn carry_out(&mut self, file: &mut LogFile, stores: Vec<Store>) -> Results {
        let mut done = Vec::new();
        let mut run: Vec<Store> = Vec::new();
        for store in stores {
            match store {
                Store::Append { .. } => run.push(store),
                Store::Recover => {
                    done.extend(self.append_run(file, std::mem::take(&mut run)));
                    self.failure = None;
                }
                Store::Replace {
                    ticket,
                    snapshot,
                    comment,
                    date_ms,
                } => {
                    done.extend(self.append_run(file, std::mem::take(&mut run)));
                    let stamp = Stamp {
                        date_ms,
                        comment,
                        is_diff: self.is_diff,
                        with_defaults: false,
                    };
                    let result = rewrite(file, &snapshot, &stamp);
                    done.push((ticket, result));
                }
            }
        }
        done.extend(self.append_run(file, run));
        done
    }

    fn append_run(&mut self, file: &mut LogFile, run: Vec<Store>) -> Results {
        if let Some(failure) = &self.failure {
            let tickets: Vec<Ticket> = run.iter().filter_map(ticket_of).collect();
            return results(&tickets, &Err(failure.clone()));
        }
        let done = append_and_sync(file, run);
        self.failure = done.iter().find_map(|(_, result)| result.clone().err());
        done
    }
}

fn append_and_sync(file: &mut LogFile, run: Vec<Store>) -> Results {
    let durable = run
        .iter()
        .any(|store| matches!(store, Store::Append { durable: true, .. }));
    let tickets: Vec<Ticket> = run.iter().filter_map(ticket_of).collect();
    let written = append_all(file, run);
    if !durable || written.iter().any(|(_, result)| result.is_err()) {
        return written;
    }
    let synced = file.sync().map_err(|error| failed(&error));
    results(&tickets, &synced)
}

/// Puts a file with nothing but schema and content in the place of `file`.
fn rewrite(file: &mut LogFile, snapshot: &Snapshot, stamp: &Stamp<'_>) -> Result<(), StoreError> {
    let name = file.shown_name().to_owned();
    let failed_with = |error: std::io::Error| StoreError {
        details: format!("{name}: write failed"),
        io_error: errno::text(&error),
    };
    let replacement = write_replacement(file, snapshot, stamp).map_err(failed_with)?;
    file.replace_with(replacement)
        .map_err(|error| failed(&error))
}

fn write_replacement(
    file: &LogFile,
    snapshot: &Snapshot,
    stamp: &Stamp<'_>,
) -> std::io::Result<Replacement> {
    let mut replacement = Replacement::create(file.path(), false)?;
    let mut head = Vec::new();
    write_schema(&mut head, snapshot.schema());
    replacement.write(&head)?;
    let mut sink = |piece: &[u8]| replacement.write(piece);
    write_snapshot(
        snapshot.schema(),
        stamp,
        |table| snapshot.rows(table),
        &mut sink,
    )?;
    Ok(replacement)
}
