//! Handling damage in a database file (docs/spec/storage.md 5).
//!
//! A damaged tail is left by a crash: it is logged, and the first write replaces it. Damage before whole records is different, because the
//! first write would destroy those records too. Then a salvage copy of the file is made first, and an error is logged; without a copy the
//! database is not opened. A file with a read error is not opened either, because records may follow the error.

use std::time::{SystemTime, UNIX_EPOCH};

use corvid_data::{Tag, WireError};
use corvid_log::load::Cause;
use corvid_log::salvage::{self, Bytes};
use corvid_log::{Damage, DiskFile, Magic, ReadError};
use corvid_net::errno;
use corvid_shell::log_file::{Handle, LogFile};
use corvid_shell::vlog::{self, Module};

use super::{Progress, salvage_copy};

/// A file that is read at offsets, with progress.
pub(super) struct Offsets<'f>(pub(super) &'f Handle, pub(super) &'f Progress);

impl Bytes for Offsets<'_> {
    fn read_at(&mut self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        self.1.advance().map_err(|error| error.to_string())?;
        self.0.read_at(room, offset).map_err(|fault| fault.text)
    }
}

/// Logs the damage, and makes a salvage copy if whole records follow it.
///
/// # Errors
/// The file must not be written to, so it is not opened.
pub(super) fn handle(
    damage: &Damage,
    name: &str,
    file: &mut LogFile,
    progress: &Progress,
) -> Result<(), WireError> {
    if let Cause::Read(error @ ReadError::Source { .. }) = &damage.cause {
        return Err(error.to_wire(name));
    }
    vlog::err(Module::OvsdbServer, format_args!("{}", damage.report(name)));
    let Damage { record, offset, .. } = damage;
    let behind =
        salvage::records_behind(Offsets(file.file(), progress), Magic::Standalone, *offset)
            .map_err(|reason| {
                let details = format!(
                    "{name}: what follows damaged record {record} at offset {offset} cannot be read"
                );
                io_error(details, &reason)
            })?;
    if behind == 0 {
        return Ok(());
    }
    let records = if behind == 1 {
        "1 intact record follows"
    } else {
        &format!("{behind} intact records follow")
    };
    let damage_at = format!("{name}: {records} damaged record {record} at offset {offset}");
    match salvage_copy::copy(file.disk().path(), now_ms(), progress) {
        Ok(copy) => {
            vlog::err(
                Module::OvsdbServer,
                format_args!(
                    "{damage_at}. The database is served as it was before that record, and the first write will cut off everything \
                     from there. The whole file was saved as {}: recover what you need from it.",
                    copy.display()
                ),
            );
            Ok(())
        }
        Err(error) => {
            let details = format!(
                "{damage_at}, and the file cannot be saved aside; it is not opened, since the first write would cut them off"
            );
            Err(io_error(details, &errno::text(&error)))
        }
    }
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
