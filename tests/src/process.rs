//! One server process on given files. It can be started, killed, stopped and started again.
//!
//! Invariant: a [`Process`] owns exactly the process that it started, and dropping the value kills
//! that process. The sockets and the log are in the given folder, which belongs to the caller.
//! Either implementation runs with the same options. Called by [`crate::server`], and by the tests
//! of storage, which damage and move files while nothing runs.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;
use crate::peer;

/// The time limit for a server to listen or to stop on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A server, running or not.
#[derive(Debug)]
pub struct Process {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// The words before the command: a program that replaces itself by the server, for example
    /// `ip netns exec NAME`.
    prefix: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    folder: PathBuf,
    child: Option<Child>,
}

impl Process {
    /// Describes a server without starting it. Its sockets `db.sock` and `server.ctl`, its log
    /// `server.log` and its output `stderr` are in `folder`. `arguments` are further options and
    /// database files, in the order of the command line.
    #[must_use]
    pub fn new(program: &Path, folder: &Path, arguments: &[OsString]) -> Process {
        let mut remote = OsString::from("--remote=punix:");
        remote.push(folder.join("db.sock"));
        Process::without_remote(program, folder, &[&[remote], arguments].concat())
    }

    /// Like [`Process::new`], but without a remote: `arguments` must make the server listen on
    /// `db.sock`.
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

    /// Adds an environment variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<OsString>) -> Process {
        self.set_variable(name, value);
        self
    }

    /// Starts the server by a command that replaces itself by the program, so that the process id
    /// is that of the server.
    #[must_use]
    pub fn by_way_of(mut self, prefix: &[String]) -> Process {
        self.prefix = prefix.iter().map(OsString::from).collect();
        self
    }

    /// Makes another program run on the same files from the next start on.
    pub fn replace_program(&mut self, program: &Path) {
        program.clone_into(&mut self.program);
    }

    /// Sets an environment variable for the next start.
    pub fn set_variable(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.into(), value.into()));
    }

    /// Starts the server and waits until it listens, which means that its files are loaded.
    ///
    /// # Errors
    ///
    /// If the server cannot be started, ends, or does not listen in time. The text contains its
    /// log.
    pub fn start(&mut self) -> io::Result<()> {
        self.launch()?;
        self.wait_until_listening()
    }

    /// Starts the server and does not wait.
    ///
    /// # Errors
    ///
    /// If the server cannot be started.
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

    /// Waits until the server listens, which means that its files are loaded.
    ///
    /// # Errors
    ///
    /// The errors of [`Process::start`].
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

    /// Kills the process, which has the effect of a crash.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both calls fail only if the process has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops all threads of the process (`SIGSTOP`) and waits until the last one has stopped, or
    /// lets them continue.
    ///
    /// # Errors
    ///
    /// If the signal cannot be sent, or if the process still runs after the time limit.
    pub fn pause(&self, is_paused: bool) -> io::Result<()> {
        pause(self.pid(), is_paused)
    }

    /// Asks the server to exit, and waits until it has ended.
    ///
    /// # Errors
    ///
    /// If the server does not answer, does not end in time, or ends with an exit status other than
    /// success.
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

    /// Whether no process runs. If the test did not end the process, this means that it crashed.
    pub fn has_ended(&mut self) -> bool {
        self.child
            .as_mut()
            .is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Waits for the process to end by itself.
    ///
    /// # Errors
    /// It still runs after a minute: an error with what it has written.
    pub fn await_end(&mut self) -> io::Result<()> {
        let began = Instant::now();
        while !self.has_ended() {
            if began.elapsed() > LIMIT {
                return Err(io::Error::other(format!(
                    "it does not end\n{}",
                    self.said()
                )));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Returns the process id, or 0 if nothing runs.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Returns the path of the socket for the database protocol.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join("db.sock")
    }

    /// Returns the path of the control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.folder.join("server.ctl")
    }

    /// Returns the logs of all its starts.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(self.folder.join("server.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the first port on which the server listens according to its log; `None` if there is
    /// none (yet).
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        let log = self.log();
        let (_, rest) = log.split_once("listening on port ")?;
        let (digits, _) = rest.split_once('\n')?;
        digits.trim().parse().ok()
    }

    /// Returns the log and what the last start wrote to standard output and standard error, for
    /// reports of failures.
    #[must_use]
    pub fn said(&self) -> String {
        let errors = fs::read(self.folder.join("stderr")).unwrap_or_default();
        format!("{}{}", String::from_utf8_lossy(&errors), self.log())
    }

    /// Opens a new connection for the database protocol.
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
    /// The errors of [`Client::call`].
    pub fn control(&self, command: &str, arguments: &[String]) -> io::Result<Value> {
        Client::connect(&self.control_socket())?.call(command, &Value::from(arguments.to_vec()))
    }
}

/// Stops all threads of any process (`SIGSTOP`) and waits until the last one has stopped, or lets
/// them continue. `kill` returns as soon as the signal is queued, when a thread on another core may
/// still answer a request.
///
/// # Errors
///
/// If the signal cannot be sent, or if the process still runs after the time limit.
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
        // A thread that has just ended no longer has a state.
        let Ok(text) = fs::read_to_string(task?.path().join("stat")) else {
            continue;
        };
        // The state follows the name of the program. The name is in brackets and may contain any
        // character.
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
