//! Log messages on their way to the program: kept until it takes them, so that the library calls nothing of the program.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use corvid::json::shown::Shown;
use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::error::{Failure, corvid_error, guard};
use crate::pointer::{Out, copy_text};

/// Messages that are kept; of more the oldest are dropped.
const KEPT_MAX: usize = 1000;

/// Levels of log messages.
#[repr(C)]
pub enum corvid_level {
    /// Something failed that needs attention.
    CORVID_LEVEL_ERROR = 1,
    /// Something is odd, misuse of the library among it.
    CORVID_LEVEL_WARN = 2,
    /// Connections, and other changes of state.
    CORVID_LEVEL_INFO = 3,
    /// Details.
    CORVID_LEVEL_DEBUG = 4,
}

static MESSAGES: Mutex<VecDeque<(c_int, String)>> = Mutex::new(VecDeque::new());
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

struct Queue;

impl Log for Queue {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("corvid")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            Level::Error => 1,
            Level::Warn => 2,
            Level::Info => 3,
            Level::Debug | Level::Trace => 4,
        };
        let mut messages = lock();
        if messages.len() == KEPT_MAX {
            messages.pop_front();
        }
        // Programs print what they take.
        messages.push_back((level, Shown(record.args()).to_string()));
    }

    fn flush(&self) {}
}

fn lock() -> MutexGuard<'static, VecDeque<(c_int, String)>> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the queue once. Another logger of this process is left in place.
pub(crate) fn install() {
    if !IS_INSTALLED.swap(true, Ordering::Relaxed) && log::set_logger(&Queue).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

/// Chooses the least important level that is kept; corvid_level has the values, 0 keeps nothing. The default is CORVID_LEVEL_INFO.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_log_set_level(level: c_int) -> corvid_error {
    guard("corvid_log_set_level", || {
        install();
        log::set_max_level(match level {
            0 => LevelFilter::Off,
            1 => LevelFilter::Error,
            2 => LevelFilter::Warn,
            3 => LevelFilter::Info,
            4 => LevelFilter::Debug,
            _ => return Err(Failure::argument(format!("{level} is no level"))),
        });
        Ok(())
    })
}

/// Takes the oldest log message of the library into `buffer`, cut to `size` bytes with its NUL: one line, with control characters as escapes of JSON. `*level` is a corvid_level; it may be null. The library keeps the last
/// 1000 messages of all clients. CORVID_ERR_NONE: there is none; corvid_error_text stays as it is.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_log_next(
    level: *mut c_int,
    buffer: *mut c_char,
    size: usize,
) -> corvid_error {
    let mut is_none = false;
    let error = guard("corvid_log_next", || {
        let level = (!level.is_null()).then(|| Out::new(level, "level"));
        let level = level.transpose()?;
        if buffer.is_null() {
            return Err(Failure::null("buffer"));
        }
        let message = lock().pop_front();
        let Some((severity, text)) = message else {
            // Programs ask after every run, so this is no failure that would replace the last one.
            is_none = true;
            return Ok(());
        };
        copy_text(&text, buffer, size)?;
        if let Some(level) = level {
            level.set(severity);
        }
        Ok(())
    });
    if is_none {
        corvid_error::CORVID_ERR_NONE
    } else {
        error
    }
}
