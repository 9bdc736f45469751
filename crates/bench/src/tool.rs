//! The time and memory that a command of `ovsdb-tool` needs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::usage;

/// The interval at which the memory of the tool is read.
const WATCH_EVERY: Duration = Duration::from_millis(5);

/// The cost of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offline {
    pub(crate) took: Duration,
    pub(crate) peak_mib: f64,
}

/// Returns the path of program `name` that belongs to a server. It is in the server's folder or, as
/// in packages, in the folder `bin`.
pub(crate) fn beside(server: &Path, name: &str) -> Result<PathBuf, Error> {
    let beside = server.with_file_name(name);
    let packaged = server
        .parent()
        .map(|folder| folder.join("../bin").join(name));
    [Some(beside.clone()), packaged]
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
        .ok_or_else(|| Error::Start {
            program: beside,
            source: std::io::Error::from(std::io::ErrorKind::NotFound),
        })
}

/// Compacts `file` into another file.
pub(crate) fn compact(tool: &Path, file: &Path) -> Result<Offline, Error> {
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let compacted = directory.path().join("compacted.db");
    run(
        tool,
        ["compact".as_ref(), file.as_os_str(), compacted.as_os_str()],
    )
}

/// Runs a command to its end. Its output is not read.
pub(crate) fn run<'a>(
    tool: &Path,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> Result<Offline, Error> {
    let mut command = Command::new(tool);
    command.args(arguments);
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|source| Error::Start {
            program: tool.to_owned(),
            source,
        })?;
    let mut peak = 0.0_f64;
    let status = loop {
        // A process that has just ended has no memory figures.
        peak = usage::memory(child.id()).map_or(peak, |memory| memory.peak_mib.max(peak));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(WATCH_EVERY);
    };
    let took = began.elapsed();
    if !status.success() {
        return Err(Error::Refused(format!("{}: {status}", tool.display())));
    }
    Ok(Offline {
        took,
        peak_mib: peak,
    })
}
