//! The figures of one database: durations that are counted where they pass, and the report that it gives when it is called.
//!
//! Written by whoever holds the database's mailbox, by its disk thread and by the thread that writes a new file; read by the pages.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use corvid_net::clock;
use corvid_reactor::mailbox::MailSender;
use corvid_service::message::{Report, ToDatabase};
use corvid_shell::durations::Durations;

use super::call::Call;

/// The figures.
#[derive(Debug)]
pub(crate) struct DatabaseFigures {
    /// Executing one transaction, from its raw text to its record.
    pub(crate) execute: Durations,
    /// One transaction, from the arrival of its text to the moment at which its answer is handed to its shard.
    pub(crate) transaction: Durations,
    /// Writing the records of one batch.
    pub(crate) write: Arc<Durations>,
    /// Forcing the file to disk, once.
    pub(crate) sync: Arc<Durations>,
    /// From a commit to the moment at which all updates that tell of it are handed to shards.
    pub(crate) tell: Durations,
    /// Writing a new file and putting it in place.
    pub(crate) compaction: Durations,
    /// Compactions that failed or were given up.
    pub(crate) compactions_failed: AtomicU64,
    /// About how much waits to be freed, bytes.
    pub(crate) freeing: Arc<AtomicUsize>,
    is_poisoned: AtomicBool,
    orders: AtomicU64,
    call: Call,
    latest: Mutex<Arc<Report>>,
    inbox: Weak<MailSender<ToDatabase>>,
}

impl DatabaseFigures {
    /// Of the database behind this inbox.
    #[must_use]
    pub(crate) fn new(inbox: Weak<MailSender<ToDatabase>>) -> DatabaseFigures {
        DatabaseFigures {
            execute: Durations::default(),
            transaction: Durations::default(),
            write: Arc::default(),
            sync: Arc::default(),
            tell: Durations::default(),
            compaction: Durations::default(),
            compactions_failed: AtomicU64::new(0),
            freeing: Arc::default(),
            is_poisoned: AtomicBool::new(false),
            orders: AtomicU64::new(0),
            call: Call::default(),
            latest: Mutex::default(),
            inbox,
        }
    }

    /// Calls the database's thread, whatever it does.
    pub(crate) fn make_call(&self) {
        if let Some(inbox) = self.inbox.upgrade() {
            self.call.make(clock::mono_ms());
            inbox.call();
        }
    }

    /// How its call stands.
    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// Leaves a report, if it is called for. `orders` wait for the disk thread.
    pub(crate) fn look(&self, report: impl FnOnce() -> Report, orders: impl FnOnce() -> usize) {
        if self.call.is_made() {
            let report = Arc::new(report());
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = report;
            self.orders.store(orders() as u64, Ordering::Relaxed);
            self.call.answer(clock::mono_ms());
        }
    }

    /// What it last reported.
    #[must_use]
    pub(crate) fn latest(&self) -> Arc<Report> {
        let latest = self.latest.lock();
        latest.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Orders that waited for the disk thread then.
    #[must_use]
    pub(crate) fn orders(&self) -> u64 {
        self.orders.load(Ordering::Relaxed)
    }

    /// Inputs that nobody has taken from its mailbox yet.
    #[must_use]
    pub(crate) fn queued(&self) -> usize {
        self.inbox.upgrade().map_or(0, |inbox| inbox.queued())
    }

    /// Takes note of whether anything can be appended to the file before a new one is in place.
    pub(crate) fn set_poisoned(&self, is_poisoned: bool) {
        self.is_poisoned.store(is_poisoned, Ordering::Relaxed);
    }

    /// Whether nothing can, because a sync has failed.
    #[must_use]
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Relaxed)
    }
}
