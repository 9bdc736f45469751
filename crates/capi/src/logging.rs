//! Log messages on their way to the program.
//!
//! A message is written under the lock of a client, where the program must not be called. So it is
//! queued, and leaves the queue when the call ends that led to it, or while that call blocks: to
//! the handler of the program, or to standard error until the program says that it wants messages.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int};
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use corvid::{LogQueue, QueuedMessage};
use log::{Level, LevelFilter};

use crate::error::{self, Failure, corvid_error, guard, guard_find};
use crate::pointer::{Out, copy_text};

/// Levels of log messages.
#[repr(C)]
pub enum corvid_level {
    /// Something failed that needs attention.
    CORVID_LEVEL_ERROR = 1,
    /// Something is odd, such as misuse of the library.
    CORVID_LEVEL_WARN = 2,
    /// Connections, and other changes of state.
    CORVID_LEVEL_INFO = 3,
    /// Details.
    CORVID_LEVEL_DEBUG = 4,
}

/// A handler of the program for log messages: a corvid_level and one line of text. Null: none.
pub type corvid_log_handler = Option<extern "C" fn(level: c_int, text: *const c_char)>;

/// Where messages go.
#[derive(Clone, Copy)]
enum Sink {
    /// Warnings and errors to standard error; the rest waits for [`corvid_log_next`].
    StandardError,
    /// Nowhere: the program takes them with [`corvid_log_next`].
    Taken,
    /// The program's.
    Handler(extern "C" fn(level: c_int, text: *const c_char)),
}

static QUEUE: LogQueue = LogQueue::new();
static SINK: Mutex<Sink> = Mutex::new(Sink::StandardError);

fn sink() -> MutexGuard<'static, Sink> {
    SINK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the queue once. Another logger of this process is left in place.
pub(crate) fn install() {
    QUEUE.install();
}

/// The [`corvid_level`] of a message.
fn number_of(message: &QueuedMessage) -> c_int {
    // For a program with a log it is one more message about the connection, and daemons of Open
    // vSwitch have no warning there.
    if message.target == corvid::OUTAGE_TARGET {
        return corvid_level::CORVID_LEVEL_INFO as c_int;
    }
    match message.level {
        Level::Error => 1,
        Level::Warn => 2,
        Level::Info => 3,
        Level::Debug | Level::Trace => 4,
    }
}

thread_local! {
    /// Whether this thread delivers messages: a handler may call the library.
    static IS_DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// Passes the messages on that are queued. The caller holds no lock.
pub(crate) fn deliver() {
    // Nearly every call ends here, with one load.
    if QUEUE.is_notified() {
        deliver_messages();
    }
}

#[cold]
fn deliver_messages() {
    if IS_DELIVERING.get() || !QUEUE.take_notification() {
        return;
    }
    IS_DELIVERING.set(true);
    // The failure of the call that ends here stays the last one, whatever a handler calls.
    let text = error::take_text();
    // One at a time: a handler may choose another one, and may end the program.
    while let Some((handler, message)) = next_for_handler() {
        let text = CString::new(message.text.replace('\0', " ")).unwrap_or_default();
        handler(number_of(&message), text.as_ptr());
    }
    error::put_text(text);
    if matches!(*sink(), Sink::StandardError) {
        write_to_standard_error();
    }
    IS_DELIVERING.set(false);
}

/// The next message for the program's handler, with that handler.
fn next_for_handler() -> Option<(extern "C" fn(c_int, *const c_char), QueuedMessage)> {
    match *sink() {
        Sink::Handler(handler) => Some((handler, QUEUE.messages().pop_front()?)),
        Sink::StandardError | Sink::Taken => None,
    }
}

/// Writes what needs attention, and keeps the rest for a program that asks later.
fn write_to_standard_error() {
    let mut urgent = Vec::new();
    QUEUE.messages().retain(|message| {
        let is_urgent = message.level <= Level::Warn;
        if is_urgent {
            urgent.push(message.text.clone());
        }
        !is_urgent
    });
    for text in urgent {
        // There is no way to report that standard error is closed.
        let _ = writeln!(std::io::stderr(), "corvid: {text}");
    }
}

/// Has a function of the program called for each log message, on a thread that calls the library,
/// at the end of a call or while it blocks. The handler may call the library, and must return.
/// Several threads may call it at once, and it may still run in another thread when it has been
/// replaced. Null: messages of CORVID_LEVEL_WARN and above go to standard error, as they do at the
/// start. That no server can be reached is a CORVID_LEVEL_INFO for a handler; without a handler it
/// goes to standard error.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_log_set_handler(handler: corvid_log_handler) -> corvid_error {
    guard("corvid_log_set_handler", || {
        install();
        *sink() = handler.map_or(Sink::StandardError, Sink::Handler);
        QUEUE.notify();
        Ok(())
    })
}

/// Chooses the least important level that is kept; corvid_level has the values, 0 keeps nothing.
/// The default is CORVID_LEVEL_INFO.
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
            _ => return Err(Failure::argument(format!("unknown log level {level}"))),
        });
        Ok(())
    })
}

/// Takes the oldest log message of the library into `buffer`, cut to `size` bytes with its NUL: one
/// line, with control characters as escapes of JSON. `*level` is a corvid_level; it may be null.
/// The library keeps the last 1000 messages of all clients. The first call also ends the writing of
/// warnings to standard error, so make it at the start. CORVID_ERR_NONE: there is none;
/// corvid_error_text stays as it is.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_log_next(
    level: *mut c_int,
    buffer: *mut c_char,
    size: usize,
) -> corvid_error {
    guard_find("corvid_log_next", || {
        let out = (!level.is_null()).then(|| Out::new(level, "level"));
        let out = out.transpose()?;
        if buffer.is_null() {
            return Err(Failure::null("buffer"));
        }
        let mut sink = sink();
        if matches!(*sink, Sink::StandardError) {
            *sink = Sink::Taken;
        }
        drop(sink);
        let Some(message) = QUEUE.messages().pop_front() else {
            return Ok(None);
        };
        copy_text(&message.text, buffer, size)?;
        if let Some(out) = out {
            out.set(number_of(&message));
        }
        Ok(Some(()))
    })
}
