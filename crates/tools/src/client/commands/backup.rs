//! `backup`: writes a database as a standalone file to standard output (docs/spec/storage.md 14).

use std::io::{IsTerminal, Write};

use corvid_shell::output::Output;
use corvid_shell::progress::Progress;

use super::Invocation;
use crate::backup::Backup;
use crate::failure::Failure;
use crate::session::Session;

pub(crate) fn backup(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() {
        return Err(Failure::new(
            "not writing backup to a terminal; please redirect stdout to a file",
        ));
    }
    let at = invocation.settings.history.at.as_deref();
    let backup = Backup::read(session, &invocation.database, at)?;
    let at = at.map(|at| format!(" --at={at}")).unwrap_or_default();
    // Each row is visited twice: to measure its record, and to write it.
    let progress = Progress::new("Writing rows", 2 * backup.row_count() as u64);
    let mut out = Output;
    backup.write(
        &format!("ovsdb-client backup{at}"),
        &|| progress.advance(1),
        &mut |piece| out.write_all(piece),
    )?;
    Ok(Output.flush()?)
}
