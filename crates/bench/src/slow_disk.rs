//! A disk whose sync takes a given time, for any server: a preloaded library that waits in
//! `fdatasync` and `fsync`. It is compiled when it is needed, from the source that the tests use,
//! too.

use std::fs;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::error::Error;
use crate::target::Program;

const SOURCE: &str = include_str!("../../../tests/src/troubled_disk.c");
const LIBRARY: &str = "troubled_disk.so";

/// A slow disk. A server that uses it must end before the value is dropped.
#[derive(Debug)]
pub(crate) struct SlowDisk {
    directory: TempDir,
    sync: Duration,
}

impl SlowDisk {
    /// A disk whose sync takes longer by `sync` than that of the real disk.
    pub(crate) fn with_sync(sync: Duration) -> Result<SlowDisk, Error> {
        let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
        let source = directory.path().join("troubled_disk.c");
        fs::write(&source, SOURCE)?;
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(directory.path().join(LIBRARY))
            .arg(&source)
            .output()
            .map_err(|error| Error::Compiler(error.to_string()))?;
        if !made.status.success() {
            let words = String::from_utf8_lossy(&made.stderr).into_owned();
            return Err(Error::Compiler(words));
        }
        Ok(SlowDisk { directory, sync })
    }

    /// Returns a program that runs on this disk.
    pub(crate) fn under(&self, program: &Program) -> Program {
        let mut program = program.clone();
        program.preload.push(self.directory.path().join(LIBRARY));
        let sync_us = self.sync.as_micros().to_string();
        program.variables.push(("CORVID_DISK_SYNC_US", sync_us));
        program
    }
}
