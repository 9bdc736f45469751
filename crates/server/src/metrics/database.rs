//! The figures of one database: durations, and the report that the holder publishes when a
//! [`StatusRequest`] asks for it.
//!
//! Written by the holder of the database's mailbox, by its disk thread and by the thread that
//! writes a new file; read by the pages.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use corvid_net::clock;
use corvid_reactor::mailbox::MailSender;
use corvid_service::message::{Report, ToDatabase};
use corvid_shell::durations::Durations;

use super::status_request::StatusRequest;

/// The figures of one database.
#[derive(Debug)]
pub(crate) struct DatabaseFigures {
    /// Execution of one transaction, from its raw text to its record.
    pub(crate) execute: Durations,
    /// One transaction, from the arrival of its message until its reply is posted to its shard.
    pub(crate) transaction: Durations,
    /// Writing the records of one batch.
    pub(crate) write: Arc<Durations>,
    /// One sync of the file.
    pub(crate) sync: Arc<Durations>,
    /// From a commit until all its updates are posted to shards.
    pub(crate) delivery: Durations,
    /// Writing a new file and putting it in place.
    pub(crate) compaction: Durations,
    /// Compactions that failed or were abandoned.
    pub(crate) compactions_failed: AtomicU64,
    /// The estimated size of the reaper's queue, bytes.
    pub(crate) freeing: Arc<AtomicUsize>,
    /// The copy made at the last opening, because the file ended in damage.
    salvage_copy: OnceLock<PathBuf>,
    is_poisoned: AtomicBool,
    orders: AtomicU64,
    request: StatusRequest,
    latest: Mutex<Arc<Report>>,
    mailbox: Weak<MailSender<ToDatabase>>,
}

impl DatabaseFigures {
    /// The figures of the database with this mailbox.
    #[must_use]
    pub(crate) fn new(mailbox: Weak<MailSender<ToDatabase>>) -> DatabaseFigures {
        DatabaseFigures {
            execute: Durations::default(),
            transaction: Durations::default(),
            write: Arc::default(),
            sync: Arc::default(),
            delivery: Durations::default(),
            compaction: Durations::default(),
            compactions_failed: AtomicU64::new(0),
            freeing: Arc::default(),
            salvage_copy: OnceLock::new(),
            is_poisoned: AtomicBool::new(false),
            orders: AtomicU64::new(0),
            request: StatusRequest::default(),
            latest: Mutex::default(),
            mailbox,
        }
    }

    /// Requests a report, and wakes the database's thread.
    pub(crate) fn request_status(&self) {
        if let Some(mailbox) = self.mailbox.upgrade() {
            self.request.send(clock::mono_ms());
            mailbox.wake_receiver();
        }
    }

    /// The request for the report.
    pub(super) fn request(&self) -> &StatusRequest {
        &self.request
    }

    /// Publishes a report if one is requested. `orders`: the length of the disk thread's queue.
    pub(crate) fn report_if_requested(
        &self,
        report: impl FnOnce() -> Report,
        orders: impl FnOnce() -> usize,
    ) {
        if self.request.is_pending() {
            let report = Arc::new(report());
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = report;
            self.orders.store(orders() as u64, Ordering::Relaxed);
            self.request.answer(clock::mono_ms());
        }
    }

    /// The last report.
    #[must_use]
    pub(crate) fn latest(&self) -> Arc<Report> {
        let latest = self.latest.lock();
        latest.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The length of the disk thread's queue at the last report.
    #[must_use]
    pub(crate) fn orders(&self) -> u64 {
        self.orders.load(Ordering::Relaxed)
    }

    /// The number of inputs in the mailbox.
    #[must_use]
    pub(crate) fn queued(&self) -> usize {
        self.mailbox.upgrade().map_or(0, |mailbox| mailbox.queued())
    }

    /// Records whether a sync has failed, after which nothing can be appended until a new file is
    /// in place.
    pub(crate) fn set_poisoned(&self, is_poisoned: bool) {
        self.is_poisoned.store(is_poisoned, Ordering::Relaxed);
    }

    /// Records that the file ended in damage when it was opened, and was copied.
    pub(crate) fn set_salvage_copy(&self, copy: PathBuf) {
        // A file is opened only once for these figures.
        let _ = self.salvage_copy.set(copy);
    }

    /// The copy, if the file ended in damage.
    #[must_use]
    pub(crate) fn salvage_copy(&self) -> Option<&Path> {
        self.salvage_copy.get().map(PathBuf::as_path)
    }

    /// Whether a sync has failed and no new file is in place yet.
    #[must_use]
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Relaxed)
    }
}
