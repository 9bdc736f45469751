//! A server under test: started in a directory of its own, with a file database and a Unix socket, ended with the value.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::database_file;
use crate::error::Error;
use crate::usage::{self, Memory};

/// How long a server may take to listen.
const START: Duration = Duration::from_secs(20);
/// How often it is tried.
const TRY_EVERY: Duration = Duration::from_millis(10);

/// A running server.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    /// Removed after the process, which `drop` ends first.
    directory: TempDir,
}

impl ServerProcess {
    /// Starts `program` with an empty database and waits until it listens.
    pub(crate) fn start(program: &Path) -> Result<ServerProcess, Error> {
        let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
        let at = |name: &str| directory.path().join(name);
        database_file::create(&at("bench.db"))?;
        let child = Command::new(program)
            .arg(format!("--remote=punix:{}", at("socket").display()))
            .arg(format!("--unixctl={}", at("control").display()))
            .arg("-vconsole:warn")
            .arg(at("bench.db"))
            .env("OVS_RUNDIR", directory.path())
            .env("OVS_LOGDIR", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(at("log"))?)
            .spawn()
            .map_err(|source| Error::Start {
                program: program.to_owned(),
                source,
            })?;
        let mut server = ServerProcess { child, directory };
        let deadline = Instant::now() + START;
        while UnixStream::connect(server.socket()).is_err() {
            if server.child.try_wait()?.is_some() || Instant::now() > deadline {
                let log =
                    fs::read_to_string(server.directory.path().join("log")).unwrap_or_default();
                return Err(Error::Deaf {
                    program: program.to_owned(),
                    log,
                });
            }
            std::thread::sleep(TRY_EVERY);
        }
        Ok(server)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// CPU time so far, microseconds.
    pub(crate) fn cpu_us(&self) -> Result<u64, Error> {
        Ok(usage::cpu_us(self.child.id())?)
    }

    pub(crate) fn memory(&self) -> Result<Memory, Error> {
        Ok(usage::memory(self.child.id())?)
    }

    /// Bytes of the database file.
    pub(crate) fn file_bytes(&self) -> Result<u64, Error> {
        Ok(fs::metadata(self.directory.path().join("bench.db"))?.len())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The process is ours alone and its files go with it; failing to end it leaves nothing to be done.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
