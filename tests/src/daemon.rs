//! One server as a daemon: detached from the process that started it, with a supervisor or without.
//!
//! Invariant: dropping a [`Daemon`] ends its processes, by its control socket or else by the number in its pidfile. All its files are in the folder
//! it was given. Called by the tests of daemons.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;

/// How long a daemon may take to end on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A server in the background.
#[derive(Debug)]
pub struct Daemon {
    folder: PathBuf,
}

impl Daemon {
    /// Starts one from `folder` as its working directory and returns when it serves: sockets `db.sock` (which `arguments` must name) and
    /// `server.ctl`, log `server.log`, pidfile `server.pid`. Databases are looked for in a directory that does not exist.
    ///
    /// # Errors
    ///
    /// A server that cannot be started, with its log.
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

    /// The number in its pidfile: of the server, or of its supervisor's latest one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        let text = fs::read_to_string(self.folder.join("server.pid")).ok()?;
        text.trim().parse().ok()
    }

    /// The text of its log file.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(self.folder.join("server.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Runs a control command and returns its whole reply message.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub fn control(&self, command: &str, arguments: &[&str]) -> io::Result<Value> {
        Client::connect(&self.folder.join("server.ctl"))?.call(command, &Value::from(arguments))
    }

    /// Sends a signal, such as `HUP`, to the process with this number.
    ///
    /// # Errors
    ///
    /// There is no such process.
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
            // It did not end by itself; it may have by now.
            pid.map(|pid| Daemon::signal(pid, "KILL"));
        }
    }
}
