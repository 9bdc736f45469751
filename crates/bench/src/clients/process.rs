//! A client as a process that is measured from outside: the time until it has the contents of the
//! database, its CPU time and its memory.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::replica::SYNCED;
use crate::error::Error;
use crate::stream::Address;
use crate::usage::{self, Memory};

/// The library that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    /// The C library, within `ovn-nbctl`.
    Packaged,
    Python,
}

/// The system's Python, in which the packages are installed.
const PYTHON: &str = "/usr/bin/python3";
const SCRIPT: &str = include_str!("replica.py");

/// A client is idle if its CPU time has grown by less than this within this time.
const QUIET_US: f64 = 200.0;
const QUIET: Duration = Duration::from_millis(100);
/// The time limit for a client to become idle.
const TIMEOUT: Duration = Duration::from_secs(120);

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ours => "our client",
            Kind::Packaged => "the C library",
            Kind::Python => "the library for Python",
        }
    }

    /// Returns the reason why this client cannot be measured on this machine, if there is one.
    pub(crate) fn unavailable_reason(self) -> Option<&'static str> {
        let works = |command: &mut Command| {
            let output = command.stdin(Stdio::null()).output();
            output.is_ok_and(|output| output.status.success())
        };
        match self {
            Kind::Ours => None,
            Kind::Packaged => (!works(Command::new("ovn-nbctl").arg("--version")))
                .then_some("no ovn-nbctl (package ovn-common)"),
            Kind::Python => (!works(Command::new(PYTHON).args(["-c", "import ovs._json"])))
                .then_some("no module ovs with a C parser (package python3-openvswitch)"),
        }
    }
}

/// A running client. Dropping the value ends it.
#[derive(Debug)]
pub(crate) struct Client {
    pid: u32,
    /// The time from its start until it has the contents of the database.
    pub(crate) synced_in: Duration,
    end: End,
    /// The folder of its sockets and files.
    _directory: TempDir,
}

/// How the client is ended.
#[derive(Debug)]
enum End {
    Kill(Child),
    /// A daemon, which is not a child process.
    Control(Address),
}

impl Client {
    /// Starts a client of the database whose schema is in the file `schema`, and waits until it has
    /// the contents.
    pub(crate) fn start(kind: Kind, server: &Address, schema: &Path) -> Result<Client, Error> {
        let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
        let remote = server.to_string();
        let mut command = match kind {
            Kind::Packaged => return daemon(&remote, directory),
            Kind::Ours => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("hold");
                command
            }
            Kind::Python => {
                let mut command = Command::new(PYTHON);
                command.args(["-c", SCRIPT]);
                command
            }
        };
        let began = Instant::now();
        let mut child = command
            .arg(remote)
            .arg(schema)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let pid = child.id();
        let output = child.stdout.take();
        // The guard is made first, so that a failure below ends the process.
        let mut client = Client {
            pid,
            synced_in: Duration::ZERO,
            end: End::Kill(child),
            _directory: directory,
        };
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output).read_line(&mut line)?;
        }
        if line.trim_end() != SYNCED {
            return Err(Error::Client(format!("{} ended", kind.name())));
        }
        client.synced_in = began.elapsed();
        Ok(client)
    }

    /// Returns the CPU time so far, in microseconds.
    pub(crate) fn cpu_us(&self) -> Result<f64, Error> {
        Ok(usage::cpu_us(self.pid)?)
    }

    /// Waits until the client is idle. Returns its CPU time then, in microseconds.
    pub(crate) fn idle_cpu_us(&self) -> Result<f64, Error> {
        let began = Instant::now();
        let mut before = self.cpu_us()?;
        while began.elapsed() < TIMEOUT {
            thread::sleep(QUIET);
            let now = self.cpu_us()?;
            if now - before < QUIET_US {
                return Ok(now);
            }
            before = now;
        }
        Err(Error::Silent(TIMEOUT.as_secs()))
    }

    pub(crate) fn memory(&self) -> Result<Memory, Error> {
        Ok(usage::memory(self.pid)?)
    }
}

/// Starts `ovn-nbctl` as a daemon, which has a replica of all tables. It answers a command once the
/// replica is complete.
fn daemon(remote: &str, directory: TempDir) -> Result<Client, Error> {
    let at = |name: &str| directory.path().join(name);
    let began = Instant::now();
    let started = Command::new("ovn-nbctl")
        .arg(format!("--db={remote}"))
        .args(["--no-leader-only", "--detach", "-vconsole:off"])
        .arg(format!("--pidfile={}", at("pid").display()))
        .arg(format!("--unixctl={}", at("control").display()))
        .env("OVN_RUNDIR", directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !started.success() {
        return Err(Error::Client("ovn-nbctl did not start".to_owned()));
    }
    let control = Address::Unix(at("control"));
    let pid = std::fs::read_to_string(at("pid"))?;
    let pid = pid.trim().parse();
    let mut client = Client {
        pid: pid.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?,
        synced_in: Duration::ZERO,
        end: End::Control(control.clone()),
        _directory: directory,
    };
    let command = r#"["--if-exists","get","Address_Set","nobody","name"]"#;
    control.request(&format!(r#"{{"id":0,"method":"run","params":{command}}}"#))?;
    client.synced_in = began.elapsed();
    Ok(client)
}

impl Drop for Client {
    fn drop(&mut self) {
        // A failure to end the process is ignored, because nothing else uses it.
        match &mut self.end {
            End::Kill(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            End::Control(control) => {
                let _ = control.call("exit", &[]);
            }
        }
    }
}
