//! One server process on given files: started, killed without warning, stopped politely, started again.
//!
//! Invariant: a [`Process`] owns exactly the process it started, and that is gone when it is dropped; sockets and log lie in
//! the folder it was given, which is its caller's. It runs either implementation with the same options. Called by
//! [`crate::server`] and by the tests of storage, which damage and move files while nothing runs.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;
use crate::peer;

/// How long a server may take to listen, or to stop, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A server, running or not.
#[derive(Debug)]
pub struct Process {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Words before the command: a program that becomes the server, `ip netns exec NAME` for example.
    prefix: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    folder: PathBuf,
    child: Option<Child>,
}

impl Process {
    /// A server that is not started yet: sockets `db.sock` and `server.ctl`, log `server.log` and standard output `stderr`
    /// in `folder`. `arguments` are further options and database files, in the order in which they are to stand.
    #[must_use]
    pub fn new(program: &Path, folder: &Path, arguments: &[OsString]) -> Process {
        let mut remote = OsString::from("--remote=punix:");
        remote.push(folder.join("db.sock"));
        Process::without_remote(program, folder, &[&[remote], arguments].concat())
    }

    /// The same, but that `arguments` must see to it that it listens on `db.sock`.
    #[must_use]
    pub fn without_remote(program: &Path, folder: &Path, arguments: &[OsString]) -> Process {
        let option = |name: &str, file: &str| {
            let mut text = OsString::from(name);
            text.push(folder.join(file));
            text
        };
        let mut all: Vec<OsString> = vec![
            "--no-chdir".into(),
            "-vconsole:off".into(),
            "-vfile:info".into(),
            option("--log-file=", "server.log"),
            option("--unixctl=", "server.ctl"),
        ];
        all.extend_from_slice(arguments);
        Process {
            program: program.to_owned(),
            arguments: all,
            prefix: Vec::new(),
            variables: Vec::new(),
            folder: folder.to_owned(),
            child: None,
        }
    }

    /// The same, with a variable of the environment besides.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<OsString>) -> Process {
        self.set_variable(name, value);
        self
    }

    /// The same, started by a command that becomes the program, so that the process id is the server's.
    #[must_use]
    pub fn by_way_of(mut self, prefix: &[String]) -> Process {
        self.prefix = prefix.iter().map(OsString::from).collect();
        self
    }

    /// From the next start on, another program runs on the same files.
    pub fn replace_program(&mut self, program: &Path) {
        program.clone_into(&mut self.program);
    }

    /// Sets a variable of the environment for the next start.
    pub fn set_variable(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.into(), value.into()));
    }

    /// Starts it and waits until it listens, that is, until its files are loaded.
    ///
    /// # Errors
    ///
    /// A server that cannot be started, ends, or does not listen in time; then the text holds its log.
    pub fn start(&mut self) -> io::Result<()> {
        self.launch()?;
        self.wait_until_listening()
    }

    /// Starts it and does not wait.
    ///
    /// # Errors
    ///
    /// A server that cannot be started.
    pub fn launch(&mut self) -> io::Result<()> {
        self.kill();
        for socket in [self.socket(), self.control_socket()] {
            fs::remove_file(socket).or_else(ignore_absent)?;
        }
        let output = fs::File::create(self.folder.join("stderr"))?;
        let mut words = self.prefix.clone();
        words.push(self.program.clone().into());
        let child = Command::new(&words[0])
            .args(&words[1..])
            .args(&self.arguments)
            .env("OVS_RUNDIR", &self.folder)
            .env("OVS_LOGDIR", &self.folder)
            .env("OVS_DBDIR", &self.folder)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        self.child = Some(child);
        Ok(())
    }

    /// Waits until it listens, that is, until its files are loaded.
    ///
    /// # Errors
    ///
    /// As [`Process::start`].
    pub fn wait_until_listening(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            if Client::connect(&self.socket()).is_ok()
                && Client::connect(&self.control_socket()).is_ok()
            {
                return Ok(());
            }
            if self.has_ended() || Instant::now() > deadline {
                return Err(io::Error::other(format!(
                    "the server does not listen:\n{}",
                    self.said()
                )));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends it without warning, as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both fail only when the process has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops its threads (`SIGSTOP`) and waits until the last one stands still, or lets them go on.
    ///
    /// # Errors
    ///
    /// The signal cannot be sent, or the process still runs after the time limit.
    pub fn pause(&self, is_paused: bool) -> io::Result<()> {
        pause(self.pid(), is_paused)
    }

    /// Asks it to exit, and waits until it has.
    ///
    /// # Errors
    ///
    /// A server that does not answer, does not end in time, or ends with another status than success.
    pub fn stop(&mut self) -> io::Result<()> {
        self.control("exit", &[])?;
        let deadline = Instant::now() + LIMIT;
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        loop {
            match child.try_wait()? {
                Some(status) if status.success() => {
                    self.child = None;
                    return Ok(());
                }
                Some(status) => {
                    return Err(io::Error::other(format!("{status}\n{}", self.said())));
                }
                None if Instant::now() > deadline => {
                    return Err(io::Error::other("the server does not exit"));
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Whether no process runs: it crashed, if the test did not end it.
    pub fn has_ended(&mut self) -> bool {
        self.child
            .as_mut()
            .is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// The process id, 0 when nothing runs.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// The socket that speaks the database protocol.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join("db.sock")
    }

    /// The control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.folder.join("server.ctl")
    }

    /// The logs of all its starts.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(self.folder.join("server.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The port on which it listens first, by its log; `None` if it does not (yet).
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        let log = self.log();
        let (_, rest) = log.split_once("listening on port ")?;
        let (digits, _) = rest.split_once('\n')?;
        digits.trim().parse().ok()
    }

    /// Its log and what the last start wrote to standard output and standard error, for reports of failures.
    #[must_use]
    pub fn said(&self) -> String {
        let errors = fs::read(self.folder.join("stderr")).unwrap_or_default();
        format!("{}{}", String::from_utf8_lossy(&errors), self.log())
    }

    /// A new connection to the database protocol.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn connect(&self) -> io::Result<Client> {
        Client::connect(&self.socket())
    }

    /// Runs a control command, such as `ovsdb-server/compact`, and returns its whole reply message.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub fn control(&self, command: &str, arguments: &[String]) -> io::Result<Value> {
        Client::connect(&self.control_socket())?.call(command, &Value::from(arguments.to_vec()))
    }
}

/// Stops the threads of any process (`SIGSTOP`) and waits until the last one stands still, or lets
/// them go on. `kill` returns as soon as the signal is queued: a thread on another core may still
/// answer a request.
///
/// # Errors
///
/// The signal cannot be sent, or the process still runs after the time limit.
pub fn pause(pid: u32, is_paused: bool) -> io::Result<()> {
    let signal = if is_paused { "-STOP" } else { "-CONT" };
    peer::run(Command::new("kill").args([signal, &pid.to_string()]))?;
    let deadline = Instant::now() + LIMIT;
    while is_paused && !stands_still(pid)? {
        if Instant::now() > deadline {
            return Err(io::Error::other("the process does not stop"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Whether every thread of a process is stopped.
fn stands_still(pid: u32) -> io::Result<bool> {
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that ends meanwhile has no state any more.
        let Ok(text) = fs::read_to_string(task?.path().join("stat")) else {
            continue;
        };
        // The state follows the name of the program, which is in brackets and may contain any character.
        let state = text.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        if !state.is_some_and(|state| state.starts_with('T')) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn ignore_absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound {
        Ok(())
    } else {
        Err(error)
    }
}
