//! One server as a daemon: detached from the process that started it, with or without a supervisor.
//!
//! Invariant: dropping a [`Daemon`] ends its processes, through its control socket or otherwise by
//! the process id in its pidfile. All its files are in the folder that it was given. Called by the
//! tests of daemons.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;

/// The time limit for a daemon to end on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A server that runs in the background.
#[derive(Debug)]
pub struct Daemon {
    folder: PathBuf,
}

impl Daemon {
    /// Starts a daemon with `folder` as its working directory, and returns when it serves. Its
    /// sockets are `db.sock` (which `arguments` must name) and `server.ctl`, its log is
    /// `server.log` and its pidfile is `server.pid`. Databases are looked for in a directory that
    /// does not exist.
    ///
    /// # Errors
    ///
    /// If the server cannot be started. The text contains its log.
    pub fn start(program: &Path, folder: &Path, arguments: &[&str]) -> io::Result<Daemon> {
        let option = |name: &str, file: &str| format!("--{name}={}", folder.join(file).display());
        let status = Command::new(program)
            .args(["--detach", "-vconsole:off", "-vfile:info"])
            .arg(option("pidfile", "server.pid"))
            .arg(option("unixctl", "server.ctl"))
            .arg(option("log-file", "server.log"))
            .args(arguments)
            .env("OVS_RUNDIR", folder)
            .env("OVS_DBDIR", folder.join("elsewhere"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        let daemon = Daemon {
            folder: folder.to_owned(),
        };
        if status.success() {
            Ok(daemon)
        } else {
            Err(io::Error::other(format!("{status}\n{}", daemon.log())))
        }
    }

    /// Returns the process id in the pidfile: that of the server, or of the latest one that the
    /// supervisor has started.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        let text = fs::read_to_string(self.folder.join("server.pid")).ok()?;
        text.trim().parse().ok()
    }

    /// Returns the text of the log file.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(self.folder.join("server.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Runs a control command and returns its whole reply message.
    ///
    /// # Errors
    ///
    /// The errors of [`Client::call`].
    pub fn control(&self, command: &str, arguments: &[&str]) -> io::Result<Value> {
        Client::connect(&self.folder.join("server.ctl"))?.call(command, &Value::from(arguments))
    }

    /// Sends a signal, such as `HUP`, to the process with this id.
    ///
    /// # Errors
    ///
    /// If there is no such process.
    pub fn signal(pid: u32, signal: &str) -> io::Result<()> {
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &pid.to_string()])
            .stderr(Stdio::null())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("kill -{signal} {pid}: {status}")))
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = self.pid();
        let asked = self.control("exit", &[]);
        let deadline = Instant::now() + LIMIT;
        while asked.is_ok() && self.pid().is_some() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        if self.pid().is_some() {
            // The server did not end when it was asked to. It may have ended since.
            pid.map(|pid| Daemon::signal(pid, "KILL"));
        }
    }
}
