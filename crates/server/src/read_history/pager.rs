//! The pages of one reading. Its thread stands still between them, in the middle of its work.
//!
//! A page leaves when it is full, or when it has taken long: the reading looks at the clock at each
//! line, at each commit and at each read of a file.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use corvid_service::read_history::{IDLE_MS, PAGE_MS, Page, ReadingId};
use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::HistoryReaders;
use crate::jobs::RunningJob;

/// Nobody waits for the reading any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unwanted;

/// The pages of one reading.
pub(super) struct Pager {
    readers: Arc<HistoryReaders>,
    id: ReadingId,
    asked: Receiver<()>,
    is_wanted: Arc<AtomicBool>,
    page: RefCell<Page>,
    /// When the page was asked for.
    since: Cell<Instant>,
    /// The only answer comes at the end.
    is_whole: Cell<bool>,
    /// Lists the reading in the status.
    job: RunningJob,
}

impl Pager {
    pub(super) fn new(
        readers: Arc<HistoryReaders>,
        id: ReadingId,
        asked: Receiver<()>,
        is_wanted: Arc<AtomicBool>,
        job: RunningJob,
    ) -> Pager {
        Pager {
            readers,
            id,
            asked,
            is_wanted,
            page: RefCell::default(),
            since: Cell::new(Instant::now()),
            is_whole: Cell::new(false),
            job,
        }
    }

    /// The only answer comes at the end: there are no pages.
    pub(super) fn answer_at_end(&self) {
        self.is_whole.set(true);
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Nobody waits for it.
    pub(super) fn line(&self, line: &[u8]) -> Result<(), Unwanted> {
        let is_full = self.page.borrow().is_full_for(line.len());
        if is_full {
            self.turn()?;
        }
        self.page.borrow_mut().push(line);
        self.pause()
    }

    /// Adds a warning for people.
    pub(super) fn warn(&self, text: String) {
        self.page.borrow_mut().warn(text);
    }

    /// The reading has come so far.
    pub(super) fn reached(&self, done: f64, at_ms: Option<i64>) {
        self.page.borrow_mut().done = done;
        self.reached_date(at_ms);
    }

    /// The reading has read so many bytes of so many.
    pub(super) fn reached_byte(&self, done: u64, total: u64, at_ms: Option<i64>) {
        self.job.reached(done, total);
        self.reached(done as f64 / total.max(1) as f64, at_ms);
    }

    /// The reading has come to this date, if it is known.
    pub(super) fn reached_date(&self, at_ms: Option<i64>) {
        let mut page = self.page.borrow_mut();
        page.at_ms = at_ms.or(page.at_ms);
    }

    /// Delivers the page if it has taken long, and waits for the request for the next one.
    ///
    /// # Errors
    /// Nobody waits for the reading.
    pub(super) fn pause(&self) -> Result<(), Unwanted> {
        if !self.is_wanted.load(Ordering::Relaxed) {
            return Err(Unwanted);
        }
        let is_late = self.since.get().elapsed() >= Duration::from_millis(PAGE_MS);
        if is_late && !self.is_whole.get() {
            self.turn()?;
        }
        Ok(())
    }

    /// Delivers the page, and waits for the request for the next one.
    fn turn(&self) -> Result<(), Unwanted> {
        let page = self.page.borrow_mut().take(Some(self.id));
        if !self.readers.page(self.id, page) {
            return Err(Unwanted);
        }
        loop {
            match self.asked.recv_timeout(Duration::from_millis(IDLE_MS)) {
                Ok(()) => break,
                Err(RecvTimeoutError::Disconnected) => return Err(Unwanted),
                Err(RecvTimeoutError::Timeout) if self.readers.expire(self.id) => {
                    return Err(Unwanted);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        self.since.set(Instant::now());
        Ok(())
    }

    /// The last page.
    pub(super) fn last(&self) -> Vec<u8> {
        self.page.borrow_mut().take(None)
    }
}
