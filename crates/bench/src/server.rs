//! A server under test: a program that the benchmark starts, or a running server at an address.
//!
//! A program runs in its own directory with a file database and a Unix socket, and ends when the
//! value is dropped. The CPU time and memory of a server at an address cannot be measured.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corvid_data::Schema;
use corvid_json::Value;
use tempfile::TempDir;

use crate::cpu_interval::{CpuInterval, CpuTotals};
use crate::database_file;
use crate::error::Error;
use crate::stream::Address;
use crate::target::Program;
use crate::usage::{self, Memory};

/// The time limit for a server to load its file and listen.
const START: Duration = Duration::from_secs(600);
/// The interval between attempts to connect.
const TRY_EVERY: Duration = Duration::from_millis(1);

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    address: Address,
    /// The time from the start of the server to its first reply.
    opened_in: Duration,
    process: Option<Process>,
    /// The sum of the server's measured intervals.
    cpu_totals: CpuTotals,
}

/// The process of a server that the benchmark started.
#[derive(Debug)]
struct Process {
    program: Program,
    child: Child,
    started: Instant,
    /// Removed after the process has ended.
    directory: TempDir,
}

impl Server {
    /// Starts `program` with a copy of `file`, and waits until it answers.
    pub(crate) fn open(
        program: &Program,
        file: &Path,
        cpu_totals: &CpuTotals,
    ) -> Result<Server, Error> {
        let directory = directory()?;
        fs::copy(file, file_in(&directory))?;
        database_file::write_through(&file_in(&directory))?;
        Server::launch(program.clone(), directory, None, cpu_totals.clone())
    }

    /// Starts `program` as a relay of a database at `source`, and waits until it answers. The relay
    /// may not have any contents by then.
    pub(crate) fn relay(
        program: &Program,
        database: &str,
        source: &Address,
        cpu_totals: &CpuTotals,
    ) -> Result<Server, Error> {
        let served = format!("relay:{database}:{source}");
        Server::launch(
            program.clone(),
            directory()?,
            Some(served),
            cpu_totals.clone(),
        )
    }

    /// Starts `program` with a file, and waits until it answers. `make` makes the file at the path
    /// that it gets.
    pub(crate) fn open_made(
        program: &Program,
        cpu_totals: &CpuTotals,
        make: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<Server, Error> {
        let directory = directory()?;
        make(&file_in(&directory))?;
        Server::launch(program.clone(), directory, None, cpu_totals.clone())
    }

    /// The running server at `address`. Deletes all rows of the database with the given schema.
    pub(crate) fn at(
        address: &Address,
        schema: &Schema,
        cpu_totals: &CpuTotals,
    ) -> Result<Server, Error> {
        let mut request = format!(
            r#"{{"id":0,"method":"transact","params":["{}""#,
            schema.name
        );
        for table in schema.tables() {
            request.push_str(&format!(
                r#",{{"op":"delete","table":"{}","where":[]}}"#,
                table.name
            ));
        }
        request.push_str("]}");
        let reply = address.request(&request)?.to_bytes();
        if crate::requests::is_error(&reply) {
            return Err(Error::Refused(String::from_utf8_lossy(&reply).into_owned()));
        }
        Ok(Server {
            address: address.clone(),
            opened_in: Duration::ZERO,
            process: None,
            cpu_totals: cpu_totals.clone(),
        })
    }

    /// Ends the server, and starts it again with its file.
    pub(crate) fn reopen(mut self) -> Result<Server, Error> {
        let mut process = self.process.take().ok_or(Error::NeedsProgram)?;
        process.end();
        let directory = directory()?;
        fs::rename(file_in(&process.directory), file_in(&directory))?;
        Server::launch(
            process.program.clone(),
            directory,
            None,
            self.cpu_totals.clone(),
        )
    }

    /// Starts the process and waits until it answers. If `served` is given, the command line names
    /// it instead of the file in the directory.
    fn launch(
        program: Program,
        directory: TempDir,
        served: Option<String>,
        cpu_totals: CpuTotals,
    ) -> Result<Server, Error> {
        let at = |name: &str| directory.path().join(name);
        let started = Instant::now();
        let mut command = Command::new(&program.path);
        command
            .arg(format!("--remote=punix:{}", at("socket").display()))
            .arg(format!("--unixctl={}", at("control").display()))
            .arg("-vconsole:warn")
            .arg(served.map_or_else(|| file_in(&directory), PathBuf::from))
            .env("OVS_RUNDIR", directory.path())
            .env("OVS_LOGDIR", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(at("log"))?);
        command.envs(program.variables.iter().cloned());
        if !program.preload.is_empty() {
            let libraries: Vec<_> = program
                .preload
                .iter()
                .map(|path| path.to_string_lossy())
                .collect();
            command.env("LD_PRELOAD", libraries.join(":"));
        }
        let child = command.spawn().map_err(|source| Error::Start {
            program: program.path.clone(),
            source,
        })?;
        let address = Address::Unix(at("socket"));
        let mut process = Process {
            program,
            child,
            directory,
            started,
        };
        while address.call("list_dbs", &[]).is_err() {
            if process.child.try_wait()?.is_some() || started.elapsed() > START {
                let log =
                    fs::read_to_string(process.directory.path().join("log")).unwrap_or_default();
                return Err(Error::Deaf {
                    program: process.program.path.clone(),
                    log,
                });
            }
            std::thread::sleep(TRY_EVERY);
        }
        Ok(Server {
            address,
            opened_in: started.elapsed(),
            process: Some(process),
            cpu_totals,
        })
    }

    /// Returns the address at which the server listens.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the time from the start of the server to its first reply.
    pub(crate) fn opened_in(&self) -> Duration {
        self.opened_in
    }

    /// Returns the server's process id, if the benchmark started the server.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.id())
    }

    /// Makes the server serve one more database, which is empty and has the given schema.
    pub(crate) fn add_database(&self, schema: &Schema) -> Result<(), Error> {
        let process = self.process.as_ref().ok_or(Error::NeedsProgram)?;
        let file = process.directory.path().join(format!("{}.db", schema.name));
        database_file::create_with(&file, schema)?;
        self.control("ovsdb-server/add-db", &[&file.to_string_lossy()])?;
        Ok(())
    }

    /// Runs a control command and waits for its end. Returns its output.
    pub(crate) fn control(&self, command: &str, arguments: &[&str]) -> Result<String, Error> {
        let process = self.process.as_ref().ok_or(Error::NeedsProgram)?;
        let control = Address::Unix(process.directory.path().join("control"));
        let reply = control.call(command, arguments)?;
        match reply.get("error") {
            None | Some(Value::Null) => {
                let output = reply.get("result").and_then(Value::as_str);
                Ok(output.unwrap_or_default().to_owned())
            }
            Some(_) => Err(Error::Refused(
                String::from_utf8_lossy(&reply.to_bytes()).into_owned(),
            )),
        }
    }

    /// Begins to measure CPU time.
    pub(crate) fn measure_cpu(&self) -> Result<CpuInterval, Error> {
        CpuInterval::begin(self.pid(), &self.cpu_totals)
    }

    /// Returns the measurement that began with the start of the server.
    pub(crate) fn measure_cpu_since_start(&self) -> CpuInterval {
        let started = self.process.as_ref().map(|process| process.started);
        CpuInterval::since_start(
            self.pid(),
            &self.cpu_totals,
            started.unwrap_or_else(Instant::now),
        )
    }

    /// Returns the current and the peak memory; NaN for a server at an address.
    pub(crate) fn memory(&self) -> Result<Memory, Error> {
        match self.pid() {
            Some(pid) => Ok(usage::memory(pid)?),
            None => Ok(Memory {
                resident_mib: f64::NAN,
                peak_mib: f64::NAN,
            }),
        }
    }

    /// The database file; `None` for a server at an address.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let process = self.process.as_ref()?;
        Some(file_in(&process.directory))
    }

    /// Returns the size of the database file in MiB; NaN for a server at an address.
    pub(crate) fn file_mib(&self) -> Result<f64, Error> {
        match &self.process {
            Some(process) => {
                let bytes = fs::metadata(file_in(&process.directory))?.len();
                Ok(bytes as f64 / (1024.0 * 1024.0))
            }
            None => Ok(f64::NAN),
        }
    }
}

impl Process {
    fn end(&mut self) {
        // A failure to end the process is ignored, because nothing else uses it or its files.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
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
