//! Messages of the library on their way to Python's `logging`: kept until a front takes them, since
//! the threads that write them do not hold the GIL.

use corvid::LogQueue;
use log::{Level, LevelFilter};
use pyo3::prelude::*;

static QUEUE: LogQueue = LogQueue::new();

/// Another logger of this process is left in place.
pub(crate) fn install() {
    QUEUE.install();
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
    let messages = std::mem::take(&mut *QUEUE.messages()).into_iter();
    messages
        .map(|message| {
            // Python's numbers.
            let level = match message.level {
                Level::Error => 40,
                Level::Warn => 30,
                Level::Info => 20,
                Level::Debug | Level::Trace => 10,
            };
            (level, message.target.replace("::", "."), message.text)
        })
        .collect()
}
