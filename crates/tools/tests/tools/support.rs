//! Shared by all tests: scratch directories, running a command line, and normalizing its output.

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The time limit of every wait.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A directory; dropping the value removes it. Its name is short, because it holds sockets.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Dir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "corvid-tools-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a scratch directory can be made");
        Dir(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The outcome of a command line. If a signal ended the process, the status is the negative signal
/// number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A command in `directory`, which is also its RUNDIR, LOGDIR and DBDIR.
pub(crate) fn command(program: &str, directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    // Messages about options begin with the name by which the program was called.
    command
        .arg0(Path::new(program).file_name().unwrap_or_default())
        .args(args)
        .current_dir(directory);
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
        command.env(variable, directory);
    }
    command
        .env_remove("OVS_CTL_TIMEOUT")
        .env_remove("POSIXLY_CORRECT");
    command
}

/// Runs a command line to completion.
pub(crate) fn run(program: &str, directory: &Path, args: &[&str], input: &[u8]) -> Outcome {
    let mut child = command(program, directory, args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that does not read its input may have ended by now.
    let _ = child
        .stdin
        .take()
        .expect("stdin is a pipe")
        .write_all(input);
    let output = child.wait_with_output().expect("the program ends");
    Outcome {
        status: status(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: without_dates(&String::from_utf8_lossy(&output.stderr)),
    }
}

pub(crate) fn status(status: std::process::ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| -status.signal().unwrap_or(0))
}

/// Waits until `done`; a failure's message names the condition as `what`.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !done() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Removes date and counter from log lines.
pub(crate) fn without_dates(text: &str) -> String {
    lines(text, |line| match line.split_once("Z|") {
        Some((date, rest))
            if date.len() == "2026-11-21T04:55:04".len() && date.starts_with("20") =>
        {
            rest.split_once('|')
                .map_or(rest, |(_, rest)| rest)
                .to_owned()
        }
        _ => line.to_owned(),
    })
}

/// Replaces every UUID with a word of the same width.
pub(crate) fn without_uuids(text: &str) -> String {
    const LENGTH: usize = 36;
    let is_uuid = |bytes: &[u8]| {
        bytes.iter().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    let mut bytes = text.as_bytes().to_vec();
    let mut place = 0;
    while place + LENGTH <= bytes.len() {
        if is_uuid(&bytes[place..place + LENGTH]) {
            bytes[place..place + LENGTH].fill(b'u');
            place += LENGTH;
        } else {
            place += 1;
        }
    }
    String::from_utf8(bytes).expect("only ASCII was replaced")
}

pub(crate) fn lines(text: &str, change: impl Fn(&str) -> String) -> String {
    text.split('\n').map(change).collect::<Vec<_>>().join("\n")
}
