//! What a client reports goes to the log of the program, by the `log` facade. The target is [`TARGET`].

use corvid_idl::Idl;
use corvid_session::Level;

/// The target of every record, for filters: `corvid::client`.
pub const TARGET: &str = "corvid::client";

/// Takes notes from a client to the program's log.
#[derive(Debug, Default)]
pub(crate) struct NoteLog {
    /// The dropped notes that were told of.
    dropped: u64,
}

impl NoteLog {
    /// Logs all notes that wait.
    pub(crate) fn drain(&mut self, idl: &mut Idl) {
        let dropped = idl.notes_dropped();
        if dropped > self.dropped {
            let count = dropped - self.dropped;
            log::warn!(target: TARGET, "{count} messages were dropped before they could be logged");
            self.dropped = dropped;
        }
        while let Some(note) = idl.poll_note() {
            log::log!(target: TARGET, level(note.level()), "{note}");
        }
    }
}

fn level(level: Level) -> log::Level {
    match level {
        Level::Debug => log::Level::Debug,
        Level::Info => log::Level::Info,
        Level::Warn => log::Level::Warn,
        Level::Error => log::Level::Error,
    }
}
