//! A server under test: started in a directory of its own, with a file database and a Unix socket, ended with the value.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corvid_json::Value;
use tempfile::TempDir;

use crate::database_file;
use crate::error::Error;
use crate::usage::{self, Memory};

/// How long a server may take to load its file and listen.
const START: Duration = Duration::from_secs(600);
/// How often it is tried.
const TRY_EVERY: Duration = Duration::from_millis(1);

/// A running server.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    program: PathBuf,
    child: Child,
    /// From its start to its first answer.
    opened_in: Duration,
    /// Removed after the process, which `drop` ends first.
    directory: TempDir,
}

impl ServerProcess {
    /// Starts `program` with an empty database and waits until it answers.
    pub(crate) fn start(program: &Path) -> Result<ServerProcess, Error> {
        let directory = directory()?;
        database_file::create(&file_in(&directory))?;
        ServerProcess::launch(program, directory)
    }

    /// Starts `program` with a copy of `file` and waits until it answers.
    pub(crate) fn open(program: &Path, file: &Path) -> Result<ServerProcess, Error> {
        let directory = directory()?;
        fs::copy(file, file_in(&directory))?;
        ServerProcess::launch(program, directory)
    }

    /// Ends the server and starts it again with the file that it leaves.
    pub(crate) fn reopen(mut self) -> Result<ServerProcess, Error> {
        self.end();
        let directory = directory()?;
        fs::rename(file_in(&self.directory), file_in(&directory))?;
        ServerProcess::launch(&self.program, directory)
    }

    fn launch(program: &Path, directory: TempDir) -> Result<ServerProcess, Error> {
        let at = |name: &str| directory.path().join(name);
        let started = Instant::now();
        let child = Command::new(program)
            .arg(format!("--remote=punix:{}", at("socket").display()))
            .arg(format!("--unixctl={}", at("control").display()))
            .arg("-vconsole:warn")
            .arg(file_in(&directory))
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
        let mut server = ServerProcess {
            program: program.to_owned(),
            child,
            opened_in: Duration::ZERO,
            directory,
        };
        while call(&server.socket(), "list_dbs").is_err() {
            if server.child.try_wait()?.is_some() || started.elapsed() > START {
                let log =
                    fs::read_to_string(server.directory.path().join("log")).unwrap_or_default();
                return Err(Error::Deaf {
                    program: program.to_owned(),
                    log,
                });
            }
            std::thread::sleep(TRY_EVERY);
        }
        server.opened_in = started.elapsed();
        Ok(server)
    }

    /// How long it took from its start to its first answer.
    pub(crate) fn opened_in(&self) -> Duration {
        self.opened_in
    }

    /// Runs a control command to its end.
    pub(crate) fn control(&self, command: &str) -> Result<(), Error> {
        let reply = call(&self.directory.path().join("control"), command)?;
        match reply.get("error") {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(Error::Refused(
                String::from_utf8_lossy(&reply.to_bytes()).into_owned(),
            )),
        }
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
        Ok(fs::metadata(file_in(&self.directory))?.len())
    }

    fn end(&mut self) {
        // The process is ours alone and its files go with it; failing to end it leaves nothing to be done.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.end();
    }
}

fn directory() -> Result<TempDir, Error> {
    Ok(tempfile::Builder::new().prefix("corvid-bench-").tempdir()?)
}

fn file_in(directory: &TempDir) -> PathBuf {
    directory.path().join("bench.db")
}

/// One request without parameters on a connection of its own.
fn call(socket: &Path, method: &str) -> Result<Value, Error> {
    let mut stream = UnixStream::connect(socket)?;
    let request = format!(r#"{{"method":"{method}","params":[],"id":0}}"#);
    stream.write_all(request.as_bytes())?;
    let (mut reply, mut room) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut room)? {
            0 => return Err(Error::Closed),
            count => reply.extend_from_slice(&room[..count]),
        }
        // Short replies come whole; one that does not yet parse is not complete.
        if let Ok(value) = Value::parse(&reply) {
            return Ok(value);
        }
    }
}
