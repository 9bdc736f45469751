//! The offline tool: compacting a file, time and memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Figure;
use super::aim::Aim;
use crate::error::Error;
use crate::usage;

/// How often the memory of the tool is read.
const WATCH_EVERY: Duration = Duration::from_millis(5);

/// The `ovsdb-tool` that was installed with a server: beside it, or where packages put it.
pub(super) fn of_server(server: &Path) -> Result<PathBuf, Error> {
    let beside = server.with_file_name("ovsdb-tool");
    let packaged = server
        .parent()
        .map(|folder| folder.join("../bin/ovsdb-tool"));
    [Some(beside.clone()), packaged]
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
        .ok_or_else(|| Error::Start {
            program: beside,
            source: std::io::Error::from(std::io::ErrorKind::NotFound),
        })
}

/// Compacts `file` into another.
pub(super) fn measure(tool: &Path, file: &Path) -> Result<Vec<Figure>, Error> {
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let began = Instant::now();
    let mut child = Command::new(tool)
        .arg("compact")
        .arg(file)
        .arg(directory.path().join("compacted.db"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|source| Error::Start {
            program: tool.to_owned(),
            source,
        })?;
    let mut peak = 0;
    let status = loop {
        // One that has just ended has no memory to be read.
        peak = usage::memory(child.id()).map_or(peak, |memory| memory.peak.max(peak));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(WATCH_EVERY);
    };
    let took = began.elapsed();
    if !status.success() {
        return Err(Error::Refused(format!(
            "{} compact: {status}",
            tool.display()
        )));
    }
    Ok(vec![
        Figure::new("compaction, s", took.as_secs_f64(), 2).aiming(Aim::RatioAtMost(0.25)),
        Figure::new("peak memory, MiB", peak as f64 / 1024.0, 0),
    ])
}
