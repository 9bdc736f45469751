//! A server under test: a program started in a directory of its own, with a file database and a Unix socket, ended with the
//! value; or one that runs already, at an address, of which no meters can be read.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corvid_data::Schema;
use corvid_json::Value;
use tempfile::TempDir;

use crate::database_file;
use crate::error::Error;
use crate::spell::{Book, Spell};
use crate::stream::Address;
use crate::target::Program;
use crate::usage::{self, Memory};

/// How long a server may take to load its file and listen.
const START: Duration = Duration::from_secs(600);
/// How often it is tried.
const TRY_EVERY: Duration = Duration::from_millis(1);

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    address: Address,
    /// From its start to its first answer.
    opened_in: Duration,
    process: Option<Process>,
    /// Where its spells are added up.
    book: Book,
}

/// What belongs to a server that we started.
#[derive(Debug)]
struct Process {
    program: Program,
    child: Child,
    started: Instant,
    /// Removed after the process, which `drop` ends first.
    directory: TempDir,
}

impl Server {
    /// Starts `program` with a copy of `file` and waits until it answers.
    pub(crate) fn open(program: &Program, file: &Path, book: &Book) -> Result<Server, Error> {
        let directory = directory()?;
        fs::copy(file, file_in(&directory))?;
        Server::launch(program.clone(), directory, book.clone())
    }

    /// The server at `address`, with no rows in the tables of the database of that schema.
    pub(crate) fn at(address: &Address, schema: &Schema, book: &Book) -> Result<Server, Error> {
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
        let reply = address.ask(&request)?.to_bytes();
        if crate::requests::is_error(&reply) {
            return Err(Error::Refused(String::from_utf8_lossy(&reply).into_owned()));
        }
        Ok(Server {
            address: address.clone(),
            opened_in: Duration::ZERO,
            process: None,
            book: book.clone(),
        })
    }

    /// Ends the server and starts it again with the file that it leaves.
    pub(crate) fn reopen(mut self) -> Result<Server, Error> {
        let mut process = self.process.take().ok_or(Error::NeedsProgram)?;
        process.end();
        let directory = directory()?;
        fs::rename(file_in(&process.directory), file_in(&directory))?;
        Server::launch(process.program.clone(), directory, self.book.clone())
    }

    fn launch(program: Program, directory: TempDir, book: Book) -> Result<Server, Error> {
        let at = |name: &str| directory.path().join(name);
        let started = Instant::now();
        let mut command = Command::new(&program.path);
        command
            .arg(format!("--remote=punix:{}", at("socket").display()))
            .arg(format!("--unixctl={}", at("control").display()))
            .arg("-vconsole:warn")
            .arg(file_in(&directory))
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
            book,
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// How long it took from its start to its first answer.
    pub(crate) fn opened_in(&self) -> Duration {
        self.opened_in
    }

    /// Its process, if it is ours.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.id())
    }

    /// Serves an empty database of that schema beside its own.
    pub(crate) fn add_database(&self, schema: &Schema) -> Result<(), Error> {
        let process = self.process.as_ref().ok_or(Error::NeedsProgram)?;
        let file = process.directory.path().join(format!("{}.db", schema.name));
        database_file::create_with(&file, schema)?;
        self.control("ovsdb-server/add-db", &[&file.to_string_lossy()])
    }

    /// Runs a control command to its end.
    pub(crate) fn control(&self, command: &str, arguments: &[&str]) -> Result<(), Error> {
        let process = self.process.as_ref().ok_or(Error::NeedsProgram)?;
        let control = Address::Unix(process.directory.path().join("control"));
        let reply = control.call(command, arguments)?;
        match reply.get("error") {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(Error::Refused(
                String::from_utf8_lossy(&reply.to_bytes()).into_owned(),
            )),
        }
    }

    /// Begins a spell of work.
    pub(crate) fn spell(&self) -> Result<Spell, Error> {
        Spell::begin(self.pid(), &self.book)
    }

    /// The spell that began when it was started.
    pub(crate) fn spell_since_start(&self) -> Spell {
        let started = self.process.as_ref().map(|process| process.started);
        Spell::since_start(self.pid(), &self.book, started.unwrap_or_else(Instant::now))
    }

    /// Memory now and at most; not numbers where there is no process of ours.
    pub(crate) fn memory(&self) -> Result<Memory, Error> {
        match self.pid() {
            Some(pid) => Ok(usage::memory(pid)?),
            None => Ok(Memory {
                resident_mib: f64::NAN,
                peak_mib: f64::NAN,
            }),
        }
    }

    /// Size of the database file, MiB; not a number where there is no process of ours.
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
        // The process is ours alone and its files go with it; failing to end it leaves nothing to be done.
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
