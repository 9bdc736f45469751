//! Handling damage in a standalone database file (docs/spec/storage.md 5).
//!
//! [`corvid_log::ending`] classifies the damage. A torn end, which a crash leaves, is logged, and
//! the first write replaces it. A rotten file is not opened: the error says what to do. If the
//! first write would cut off anything else, the file is copied before the database is served;
//! without a copy the file is not opened. A file with a read error is not opened either, because
//! intact records may follow the error.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use corvid_data::{Tag, WireError};
use corvid_disk::log_file::{Handle, LogFile};
use corvid_log::load::Cause;
use corvid_log::salvage::Bytes;
use corvid_log::{Damage, DiskFile, Ending, ReadError, Rot, ending};
use corvid_net::errno;
use corvid_shell::vlog::{self, Module};

use super::{Progress, salvage_copy};

/// A file that is read at offsets; each read counts as progress.
pub(super) struct Offsets<'f>(pub(super) &'f Handle, pub(super) &'f Progress);

impl Bytes for Offsets<'_> {
    fn read_at(&mut self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        self.1.advance().map_err(|error| errno::text(&error))?;
        self.0.read_at(room, offset).map_err(|fault| fault.text)
    }
}

/// Decides how a server treats the damage of a file.
///
/// # Errors
/// The file must not be opened: it is rotten, or cannot be read.
pub(super) fn judge(
    damage: &Damage,
    name: &str,
    file: &Handle,
    progress: &Progress,
) -> Result<Ending, WireError> {
    if let Cause::Read(error @ ReadError::Source { .. }) = &damage.cause {
        return Err(error.to_wire(name));
    }
    let Damage { record, offset, .. } = damage;
    let ending = ending::judge(Offsets(file, progress), damage).map_err(|reason| {
        let details = format!(
            "{name}: what follows damaged record {record} at offset {offset} cannot be read"
        );
        io_error(details, &reason)
    })?;
    match ending {
        Ending::Rotten(rot) => Err(refusal(damage, name, rot)),
        ending => Ok(ending),
    }
}

/// Logs the damage, and copies the file if the first write would cut off more than a torn write.
/// Returns the name of the copy.
///
/// # Errors
/// The file must not be written to, so it is not opened.
pub(super) fn handle(
    damage: &Damage,
    name: &str,
    file: &mut LogFile,
    progress: &Progress,
) -> Result<Option<PathBuf>, WireError> {
    let ending = judge(damage, name, file.file(), progress)?;
    vlog::err(Module::OvsdbServer, format_args!("{}", damage.report(name)));
    let Ending::Doubtful(behind) = ending else {
        return Ok(None);
    };
    let damage_at = place(damage, name, behind);
    // The copy is made before anything is served: the first commit would cut the file.
    match salvage_copy::copy(file.disk().path(), now_ms(), progress) {
        Ok(copy) => {
            vlog::err(
                Module::OvsdbServer,
                format_args!(
                    "{damage_at}. The database is served as it was before that record, and the first write \
                     will cut off everything from there. The whole file was saved as {}: recover what you \
                     need from it (\"ovsdb-tool salvage\").",
                    copy.display()
                ),
            );
            Ok(Some(copy))
        }
        Err(error) => {
            let details = format!(
                "{damage_at}, and the file cannot be copied; it is not opened, because the first write would \
                 cut off everything from there"
            );
            Err(io_error(details, &errno::text(&error)))
        }
    }
}

/// Says where the damage is, and what follows it.
fn place(damage: &Damage, name: &str, behind: u64) -> String {
    let Damage { record, offset, .. } = damage;
    match behind {
        0 => format!("{name}: the file ends in damaged record {record} at offset {offset}"),
        1 => format!("{name}: 1 intact record follows damaged record {record} at offset {offset}"),
        _ => format!(
            "{name}: {behind} intact records follow damaged record {record} at offset {offset}"
        ),
    }
}

/// Says why a rotten file is not opened, and what to do.
fn refusal(damage: &Damage, name: &str, rot: Rot) -> WireError {
    let Damage { record, offset, .. } = damage;
    let why = match rot {
        Rot::Contents => format!(
            "record {record} at offset {offset} holds the contents of the database and was complete when the file was made, so \
             this is not an interrupted write"
        ),
        Rot::Middle(1) => format!(
            "1 intact record follows damaged record {record} at offset {offset}, so this is not an interrupted write"
        ),
        Rot::Middle(behind) => format!(
            "{behind} intact records follow damaged record {record} at offset {offset}, so this is not an interrupted write"
        ),
    };
    let details = format!(
        "{}; {why}, and the file is not opened, because the database would lose everything from there: \
         restore a backup, or recover the readable rows into a new file with \"ovsdb-tool salvage {name} NEW\"",
        damage.report(name)
    );
    WireError::new(Tag::OvsdbError, details)
}

fn io_error(details: String, reason: &str) -> WireError {
    let mut error = WireError::new(Tag::IoError, details);
    error.io_error = Some(reason.into());
    error
}

/// Wall time, ms since the Unix epoch.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}
