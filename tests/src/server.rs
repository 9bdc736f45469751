//! A server under test in its own directory: the files with which it begins, and its process.
//!
//! Invariant: a [`Server`] owns exactly the process that it started and the directory that it made;
//! dropping the value kills the process and removes the directory. It runs either our binary or the
//! reference, with the same options. It does not know any particular test.

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
    /// Returns the implementation that the environment asks for: the reference if
    /// `CORVID_REFERENCE` is set and not `0`.
    pub fn from_env() -> Implementation {
        match std::env::var("CORVID_REFERENCE") {
            Ok(value) if !value.is_empty() && value != "0" => Implementation::Reference,
            _ => Implementation::Corvid,
        }
    }

    /// Returns the path of the server binary, or an explanation why there is none.
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

/// The server on which a script is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A server with the databases of the script.
    Server(Implementation),
    /// A relay of such a server.
    Relay {
        /// The implementation of the relay.
        relay: Implementation,
        /// The implementation of the source.
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

    /// Starts the subject.
    ///
    /// # Errors
    ///
    /// The errors of [`Server::start`].
    pub fn start(self, setup: &Setup) -> io::Result<Server> {
        match self {
            Subject::Server(implementation) => Server::start(implementation, setup),
            Subject::Relay { relay, source } => Server::start_relay(relay, source, setup),
        }
    }
}

/// The files and options with which a server is started.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// The schemas of the databases that are opened at start. Each is in a file `NAME.db`, where
    /// NAME is the name of the schema.
    pub databases: Vec<Value>,
    /// The schemas of database files that are made but not opened, for `ovsdb-server/add-db`.
    pub spares: Vec<Value>,
    /// Further command-line options, such as `--remote=db:…`. `<dir>` stands for the server's
    /// directory.
    pub options: Vec<String>,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// The process. It comes before the directory, so that the process is dropped before the
    /// directory is removed.
    process: Process,
    /// The source, if the server is a relay.
    source: Option<Process>,
    /// The names of the databases that the relay gets from the source.
    relayed: Vec<String>,
    dir: TempDir,
}

/// The time limit for a relay to get its initial contents on a busy machine.
const CONTENTS_LIMIT: Duration = Duration::from_secs(60);

impl Server {
    /// Makes the directory and the files, starts the server and waits until it listens.
    ///
    /// # Errors
    ///
    /// If the binary is missing, a file operation fails, a schema has no name, or the server ends
    /// or does not listen in time. In the last case, the text contains the server's log.
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

    /// Starts two servers: a source with the databases, and this server as its relay. Waits until
    /// the relay has the contents.
    ///
    /// # Errors
    ///
    /// The errors of [`Server::start`], and if the contents do not come in time.
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
            // The relay closes its connections when the contents come, so each attempt uses a new
            // one.
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

    /// Returns the directory of the server's files and sockets.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the path of the socket for the database protocol.
    pub fn socket(&self) -> PathBuf {
        self.process.socket()
    }

    /// Returns the path of the control socket.
    pub fn control_socket(&self) -> PathBuf {
        self.process.control_socket()
    }

    /// Returns the text of the server's log.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Returns the first port on which the server listens, see [`Process::port`].
    pub fn port(&self) -> Option<u16> {
        self.process.port()
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether the process has ended by itself, which means that the server under test crashed.
    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    /// Waits for the process to end by itself.
    ///
    /// # Errors
    /// As [`Process::await_end`].
    pub fn await_end(&mut self) -> io::Result<()> {
        self.process.await_end()
    }

    /// Opens a new connection for the database protocol.
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
    /// The errors of [`Client::call`].
    pub fn control(&self, command: &str, arguments: &[String]) -> io::Result<Value> {
        self.process.control(command, arguments)
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Kills the process and starts it again on the same files. The source of a relay is restarted,
    /// too.
    ///
    /// # Errors
    ///
    /// The errors of [`Server::start`].
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
