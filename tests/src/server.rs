//! A server under test in a directory of its own: the files it begins with, and the process on them.
//!
//! Invariant: a [`Server`] owns exactly the process it started and the directory it made; both are gone when it is
//! dropped. It runs either our binary or the reference with the same options, and knows no test.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary;
use crate::client::Client;
use crate::database_file;
use crate::process::Process;

/// Which implementation is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    /// The binary of this repository, see [`binary::bin`].
    Corvid,
    /// The installed reference, see [`binary::reference`].
    Reference,
}

impl Implementation {
    /// The implementation asked for by the environment: the reference when `CORVID_REFERENCE` is set and not `0`.
    pub fn from_env() -> Implementation {
        match std::env::var("CORVID_REFERENCE") {
            Ok(value) if !value.is_empty() && value != "0" => Implementation::Reference,
            _ => Implementation::Corvid,
        }
    }

    /// The server binary, or an explanation why there is none.
    ///
    /// # Errors
    ///
    /// `NotFound` with a hint how to get the binary.
    pub fn server_binary(self) -> io::Result<PathBuf> {
        let (path, hint) = match self {
            Implementation::Corvid => (
                Some(binary::bin("ovsdb-server")),
                "build it with `cargo build --release`, or set CORVID_BIN_DIR",
            ),
            Implementation::Reference => {
                (binary::reference("ovsdb-server"), "install Open vSwitch")
            }
        };
        path.filter(|path| path.is_file()).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("no ovsdb-server of {self:?}: {hint}"),
            )
        })
    }
}

/// The server that a script is played on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// One with the databases of the script.
    Server(Implementation),
    /// A relay of one with these databases.
    Relay {
        /// The implementation of the relay.
        relay: Implementation,
        /// That of its source.
        source: Implementation,
    },
}

impl Subject {
    /// Whether the reference takes part.
    #[must_use]
    pub fn has_reference(self) -> bool {
        match self {
            Subject::Server(implementation) => implementation == Implementation::Reference,
            Subject::Relay { relay, source } => {
                [relay, source].contains(&Implementation::Reference)
            }
        }
    }

    /// Starts it.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub fn start(self, setup: &Setup) -> io::Result<Server> {
        match self {
            Subject::Server(implementation) => Server::start(implementation, setup),
            Subject::Relay { relay, source } => Server::start_relay(relay, source, setup),
        }
    }
}

/// Files and options that a server is started with.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Schemas of the databases that are opened at start; file `NAME.db` each, after the schema's name.
    pub databases: Vec<Value>,
    /// Schemas of database files that are made but not opened, for `ovsdb-server/add-db`.
    pub spares: Vec<Value>,
    /// Further command-line options, such as `--remote=db:…`; `<dir>` stands for the server's directory.
    pub options: Vec<String>,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// Removed after the processes, which are dropped first.
    process: Process,
    /// The source, if the server is a relay.
    source: Option<Process>,
    /// The names of the databases that the relay has from the source.
    relayed: Vec<String>,
    dir: TempDir,
}

/// How long a relay may take to get its initial contents, on a busy machine.
const CONTENTS_LIMIT: Duration = Duration::from_secs(60);

impl Server {
    /// Makes the directory and the files, starts the server and waits until it listens.
    ///
    /// # Errors
    ///
    /// A missing binary, a failed file operation, a schema without a name, or a server that ends or does not listen in
    /// time; then the text holds the server's log.
    pub fn start(implementation: Implementation, setup: &Setup) -> io::Result<Server> {
        let program = implementation.server_binary()?;
        let dir = tempfile::Builder::new().prefix("ovsdb").tempdir()?;
        let at = |name: &str| dir.path().join(name);
        let place = dir.path().to_string_lossy();
        let options = setup.options.iter();
        let mut arguments: Vec<OsString> = options
            .map(|option| option.replace("<dir>", &place).into())
            .collect();
        for schema in &setup.databases {
            let path = at(&file_name(schema)?);
            database_file::create(&path, schema)?;
            arguments.push(path.into());
        }
        for schema in &setup.spares {
            database_file::create(&at(&file_name(schema)?), schema)?;
        }
        let mut process = Process::new(&program, dir.path(), &arguments);
        process.start()?;
        Ok(Server {
            process,
            source: None,
            relayed: Vec::new(),
            dir,
        })
    }

    /// The same, but that the databases are those of another server, whose relay this one is. It has their contents.
    ///
    /// # Errors
    ///
    /// As [`Server::start`]; contents that do not come in time.
    pub fn start_relay(
        relay: Implementation,
        source: Implementation,
        setup: &Setup,
    ) -> io::Result<Server> {
        let program = relay.server_binary()?;
        let dir = tempfile::Builder::new().prefix("ovsdb").tempdir()?;
        let place = dir.path().to_string_lossy();
        let at_source = dir.path().join("source");
        fs::create_dir(&at_source)?;
        let options = setup.options.iter();
        let mut arguments: Vec<OsString> = options
            .map(|option| option.replace("<dir>", &place).into())
            .collect();
        let (mut files, mut relayed) = (Vec::new(), Vec::new());
        for schema in &setup.databases {
            let path = at_source.join(file_name(schema)?);
            database_file::create(&path, schema)?;
            files.push(path.into_os_string());
            let name = schema["name"].as_str().unwrap_or_default();
            let remote = format!("unix:{}/db.sock", at_source.display());
            arguments.push(format!("relay:{name}:{remote}").into());
            relayed.push(name.to_owned());
        }
        for schema in &setup.spares {
            database_file::create(&dir.path().join(file_name(schema)?), schema)?;
        }
        if files.is_empty() {
            files.push("--no-dbs".into());
        }
        let mut source = Process::new(&source.server_binary()?, &at_source, &files);
        source.start()?;
        let mut process = Process::new(&program, dir.path(), &arguments);
        process.start()?;
        let server = Server {
            process,
            source: Some(source),
            relayed,
            dir,
        };
        server.await_contents()?;
        Ok(server)
    }

    /// Waits until a relay has contents.
    fn await_contents(&self) -> io::Result<()> {
        let deadline = Instant::now() + CONTENTS_LIMIT;
        for name in &self.relayed {
            let select = json!({"op": "select", "table": "Database",
                "where": [["name", "==", name], ["connected", "==", true]], "columns": ["schema"]});
            let select = json!(["_Server", select]);
            // Connections are closed when the contents come.
            loop {
                let reply = self.connect()?.call("transact", &select);
                if reply.is_ok_and(|reply| reply["result"][0]["rows"][0]["schema"].is_string()) {
                    break;
                }
                if Instant::now() > deadline {
                    let log = self.log();
                    return Err(io::Error::other(format!("{name} has no contents:\n{log}")));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// The directory of the server's files and sockets.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The socket that speaks the database protocol.
    pub fn socket(&self) -> PathBuf {
        self.process.socket()
    }

    /// The control socket.
    pub fn control_socket(&self) -> PathBuf {
        self.process.control_socket()
    }

    /// The text of the server's log.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The port on which it listens first, as [`Process::port`].
    pub fn port(&self) -> Option<u16> {
        self.process.port()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether the process has ended by itself, which for a server under test means that it crashed.
    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    /// A new connection to the database protocol.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn connect(&self) -> io::Result<Client> {
        self.process.connect()
    }

    /// Runs a control command, such as `ovsdb-server/add-db`, and returns its whole reply message.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub fn control(&self, command: &str, arguments: &[String]) -> io::Result<Value> {
        self.process.control(command, arguments)
    }

    /// Ends the process without warning and starts it again on the same files; the source of a relay too.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub fn restart(&mut self) -> io::Result<()> {
        if let Some(source) = &mut self.source {
            source.start()?;
        }
        self.process.start()?;
        self.await_contents()
    }
}

fn file_name(schema: &Value) -> io::Result<String> {
    match schema.get("name").and_then(Value::as_str) {
        Some(name) => Ok(format!("{name}.db")),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the schema has no name",
        )),
    }
}
