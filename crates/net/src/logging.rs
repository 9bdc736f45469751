//! Log messages of connections and related parts, through the `log` facade.
//!
//! The target of a record is `corvid::` followed by the name of a [`Module`], for example
//! `corvid::stream_ssl`. A program that embeds the client library receives the records with its own
//! logger; programs of this repository install a logger that knows the modules (`vlog` in the crate
//! `shell`). A message of a level that nothing shows costs one atomic load and no formatting.
//!
//! A record is one line without control characters, because [`log`] escapes them: names, values and
//! texts of peers can neither forge a line nor control a terminal. A logger that escapes by itself
//! asks for unescaped texts ([`leave_exact`]).

mod module;
mod rate;

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

pub use corvid_json::shown::Shown;
pub use log::Level;
pub use module::Module;
pub use rate::{Dropped, RateLimit, Verdict};

use crate::clock;

/// Whether records are not escaped here, because the logger escapes them.
static IS_EXACT: AtomicBool = AtomicBool::new(false);

/// Whether rate limits apply, by module.
static LIMITED: [AtomicBool; Module::COUNT] = [const { AtomicBool::new(true) }; Module::COUNT];

thread_local! {
    static THREAD_LABEL: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Logs a message.
#[inline]
pub fn log(module: Module, level: Level, message: fmt::Arguments<'_>) {
    // Formatted and escaped only if the level is shown.
    log::log!(target: module.target(), level, "{}", RecordText(message));
}

/// Leaves control characters in the records of this process. A logger that does its own escaping
/// calls this.
pub fn leave_exact() {
    IS_EXACT.store(true, Ordering::Relaxed);
}

/// The text of a record.
struct RecordText<'a>(fmt::Arguments<'a>);

impl fmt::Display for RecordText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match IS_EXACT.load(Ordering::Relaxed) {
            true => f.write_fmt(self.0),
            false => Shown(self.0).fmt(f),
        }
    }
}

/// Logs a failure.
#[inline]
pub fn err(module: Module, message: fmt::Arguments<'_>) {
    log(module, Level::Error, message);
}

/// Logs an irregularity.
#[inline]
pub fn warn(module: Module, message: fmt::Arguments<'_>) {
    log(module, Level::Warn, message);
}

/// Logs a routine event.
#[inline]
pub fn info(module: Module, message: fmt::Arguments<'_>) {
    log(module, Level::Info, message);
}

/// Logs a trace for developers.
#[inline]
pub fn dbg(module: Module, message: fmt::Arguments<'_>) {
    log(module, Level::Debug, message);
}

/// Whether any logger shows messages of this module and level. Costs one atomic load if none does.
/// For messages that are expensive to build.
#[inline]
#[must_use]
pub fn is_shown(module: Module, level: Level) -> bool {
    log::log_enabled!(target: module.target(), level)
}

/// Logs a message, unless `limit` is exceeded. The next message that passes is preceded by the
/// number of dropped messages.
pub fn log_limited(limit: &RateLimit, module: Module, level: Level, message: fmt::Arguments<'_>) {
    if !log::log_enabled!(target: module.target(), level) {
        return;
    }
    match admit(limit, module) {
        Verdict::Drop => return,
        Verdict::Pass(None) => {}
        Verdict::Pass(Some(dropped)) => log(module, level, format_args!("{dropped}")),
    }
    log(module, level, message);
}

/// [`log_limited`] at level WARN.
pub fn warn_limited(limit: &RateLimit, module: Module, message: fmt::Arguments<'_>) {
    log_limited(limit, module, Level::Warn, message);
}

/// [`log_limited`] at level ERR.
pub fn err_limited(limit: &RateLimit, module: Module, message: fmt::Arguments<'_>) {
    log_limited(limit, module, Level::Error, message);
}

/// Whether a message of this module may pass now.
pub fn admit(limit: &RateLimit, module: Module) -> Verdict {
    match is_limited(module) {
        true => limit.admit(clock::mono_ms()),
        false => Verdict::Pass(None),
    }
}

/// Whether rate limits apply to a module.
#[must_use]
pub fn is_limited(module: Module) -> bool {
    LIMITED[module as usize].load(Ordering::Relaxed)
}

/// Switches rate limits on or off, for one module or for all.
pub fn set_rate_limiting(module: Option<Module>, limited: bool) {
    for &each in Module::ALL
        .iter()
        .filter(|&&each| module.is_none_or(|module| module == each))
    {
        LIMITED[each as usize].store(limited, Ordering::Relaxed);
    }
}

/// Runs `log` with this label for the calling thread, which a logger may show in each line. An
/// empty label changes nothing.
pub fn with_thread_label(label: &str, log: impl FnOnce()) {
    if label.is_empty() {
        return log();
    }
    let before = THREAD_LABEL.replace(Some(label.to_owned()));
    log();
    THREAD_LABEL.set(before);
}

/// Calls `read` with the label of the calling thread.
pub fn thread_label<T>(read: impl FnOnce(Option<&str>) -> T) -> T {
    THREAD_LABEL.with_borrow(|label| read(label.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_for_another_logger_is_one_line_without_control_characters() {
        let name = "a\n\u{1b}[2J\u{9b}m";
        let text = RecordText(format_args!("{name}: connected")).to_string();
        assert_eq!(text, "a\\n\\u001b[2J\\u009bm: connected");
    }
}
