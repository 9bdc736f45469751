//! Errors that only `ovsdb-tool` has: files that cannot be read or written.

use std::io;

use corvid_data::{Tag, WireError};
use corvid_log::{Damage, FormatError, ReadError};
use corvid_net::errno;

use crate::failure::Failure;

impl Failure {
    /// A failed file operation: `I/O error: FILE: OPERATION failed (REASON)`. `what` is
    /// `OPERATION failed`.
    pub(crate) fn io(file: &str, what: &str, error: &io::Error) -> Failure {
        let mut wire = WireError::new(Tag::IoError, format!("{file}: {what}"));
        wire.io_error = Some(errno::text(error).into());
        wire.into()
    }

    /// A record whose bytes are damaged.
    pub(crate) fn read(file: &str, error: &ReadError) -> Failure {
        error.to_wire(file).into()
    }

    /// A first line that does not begin a database file.
    pub(crate) fn format(file: &str, error: FormatError) -> Failure {
        error.to_wire(file).into()
    }

    /// Standard output cannot be written.
    #[allow(clippy::needless_pass_by_value)] // the shape that `map_err` needs
    pub(crate) fn output(error: io::Error) -> Failure {
        Failure::new(format!("cannot write output ({})", errno::text(&error)))
    }

    /// A record that ends the replay.
    pub(crate) fn damage(file: &str, damage: &Damage) -> Failure {
        match damage.cause {
            corvid_log::load::Cause::Commit(_) => Failure::new(damage.report(file)),
            _ => damage.to_wire(file).into(),
        }
    }
}
