//! A server under test: its directory, its database files, its process and its sockets.
//!
//! Invariant: a [`Server`] owns exactly the process it started and the directory it made; both are gone when it is
//! dropped. It runs either our binary or the reference with the same options, and never knows what is tested with it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::binary;
use crate::client::Client;
use crate::database_file;

/// How long a server may take to listen, or to stop, on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(30);

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

/// What a server is started with.
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
    dir: TempDir,
    program: PathBuf,
    arguments: Vec<OsString>,
    child: Child,
}

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
        let option = |name: &str, path: PathBuf| {
            let mut text = OsString::from(name);
            text.push(path);
            text
        };
        let mut arguments: Vec<OsString> = vec![
            "--no-chdir".into(),
            "-vconsole:off".into(),
            "-vfile:info".into(),
            option("--log-file=", at("server.log")),
            option("--unixctl=", at("server.ctl")),
            option("--remote=punix:", at("db.sock")),
        ];
        let place = dir.path().to_string_lossy();
        arguments.extend(
            setup
                .options
                .iter()
                .map(|option| option.replace("<dir>", &place).into()),
        );
        for schema in &setup.databases {
            let path = at(&file_name(schema)?);
            database_file::create(&path, schema)?;
            arguments.push(path.into());
        }
        for schema in &setup.spares {
            database_file::create(&at(&file_name(schema)?), schema)?;
        }
        let child = spawn(&program, &arguments, dir.path())?;
        let mut server = Server {
            dir,
            program,
            arguments,
            child,
        };
        server.wait_until_listening()?;
        Ok(server)
    }

    /// The directory of the server's files and sockets.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The socket that speaks the database protocol.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("db.sock")
    }

    /// The control socket.
    pub fn control_socket(&self) -> PathBuf {
        self.dir.path().join("server.ctl")
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("server.log")).unwrap_or_default()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has ended by itself, which for a server under test means that it crashed.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// A new connection to the database protocol.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    pub fn connect(&self) -> io::Result<Client> {
        Client::connect(&self.socket())
    }

    /// Runs a control command, such as `ovsdb-server/add-db`, and returns its whole reply message.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub fn control(&self, command: &str, arguments: &[String]) -> io::Result<Value> {
        Client::connect(&self.control_socket())?.call(command, &Value::from(arguments.to_vec()))
    }

    /// Ends the process without warning and starts it again on the same files.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub fn restart(&mut self) -> io::Result<()> {
        self.kill();
        for socket in ["db.sock", "server.ctl"] {
            fs::remove_file(self.dir.path().join(socket)).or_else(ignore_absent)?;
        }
        self.child = spawn(&self.program, &self.arguments, self.dir.path())?;
        self.wait_until_listening()
    }

    fn kill(&mut self) {
        // Both fail only when the process has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn wait_until_listening(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if Client::connect(&self.socket()).is_ok()
                && Client::connect(&self.control_socket()).is_ok()
            {
                return Ok(());
            }
            if self.has_ended() || Instant::now() > deadline {
                let errors = fs::read_to_string(self.dir.path().join("stderr")).unwrap_or_default();
                return Err(io::Error::other(format!(
                    "the server does not listen:\n{errors}{}",
                    self.log()
                )));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(program: &Path, arguments: &[OsString], dir: &Path) -> io::Result<Child> {
    let output = fs::File::create(dir.join("stderr"))?;
    Command::new(program)
        .args(arguments)
        .env("OVS_RUNDIR", dir)
        .env("OVS_LOGDIR", dir)
        .env("OVS_DBDIR", dir)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
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

fn ignore_absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound {
        Ok(())
    } else {
        Err(error)
    }
}
