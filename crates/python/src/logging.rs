//! Messages of the library on their way to Python's `logging`: kept here until a front takes them, since the threads that write them do
//! not hold the GIL.

use std::collections::VecDeque;
use std::sync::Mutex;

use corvid::json::shown::Shown;
use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;

/// Messages that are kept; of more the oldest are dropped.
const KEPT_MAX: usize = 1000;

static MESSAGES: Mutex<VecDeque<(u8, String, String)>> = Mutex::new(VecDeque::new());

struct Queue;

impl Log for Queue {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("corvid")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        // Python's numbers.
        let level = match record.level() {
            Level::Error => 40,
            Level::Warn => 30,
            Level::Info => 20,
            Level::Debug | Level::Trace => 10,
        };
        let name = record.target().replace("::", ".");
        let mut messages = lock();
        if messages.len() == KEPT_MAX {
            messages.pop_front();
        }
        // Handlers of `logging` print what they get.
        messages.push_back((level, name, Shown(record.args()).to_string()));
    }

    fn flush(&self) {}
}

fn lock() -> std::sync::MutexGuard<'static, VecDeque<(u8, String, String)>> {
    MESSAGES
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Another logger of this process is left in place.
pub(crate) fn install() {
    if log::set_logger(&Queue).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

/// Lets messages at level DEBUG pass, from now on.
pub(crate) fn show_debug() {
    if log::max_level() < LevelFilter::Debug {
        log::set_max_level(LevelFilter::Debug);
    }
}

/// Takes the messages since the last call: level, name of the logger, text.
#[pyfunction]
pub(crate) fn take_log_messages() -> Vec<(u8, String, String)> {
    std::mem::take(&mut *lock()).into()
}
