//! The logger that implements the `log` facade. It passes the messages of all crates to the
//! destinations of this program.
//!
//! A record whose target is `corvid::MODULE` is a message of that module; records of all other
//! targets are dropped.

use log::{LevelFilter, Log, Metadata, Record};

use super::{Level, Module, is_enabled};

struct Facade;

impl Log for Facade {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        Module::of_target(metadata.target())
            .is_some_and(|module| is_enabled(module, level_of(metadata.level())))
    }

    fn log(&self, record: &Record<'_>) {
        if let Some(module) = Module::of_target(record.target()) {
            super::log(module, level_of(record.level()), *record.args());
        }
    }

    fn flush(&self) {}
}

/// Makes this program's destinations the logger of the process.
pub(super) fn install() {
    // JSON lines need the exact text; the patterns of text lines do the escaping.
    corvid_net::logging::leave_exact();
    // A second call has no effect.
    let _ = log::set_logger(&Facade);
}

/// Sets the facade's level to the most verbose level that any module shows.
pub(super) fn set_max_level(most: Level) {
    log::set_max_level(match most {
        Level::Off | Level::Emer => LevelFilter::Off,
        Level::Err => LevelFilter::Error,
        Level::Warn => LevelFilter::Warn,
        Level::Info => LevelFilter::Info,
        Level::Dbg => LevelFilter::Debug,
    });
}

fn level_of(level: log::Level) -> Level {
    match level {
        log::Level::Error => Level::Err,
        log::Level::Warn => Level::Warn,
        log::Level::Info => Level::Info,
        log::Level::Debug | log::Level::Trace => Level::Dbg,
    }
}
