//! Runs a program to its end, but only for a limited time. A test that waits for a program that
//! hangs must fail and show where the program hung.
//!
//! If Python programs run with `-X faulthandler`, they print the stacks of their threads when they
//! are aborted. The output goes through files, not through pipes, because descendants of an aborted
//! program may keep a pipe open for any time.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time limit for a program. It is several times what the longest of these programs takes on a
/// busy machine, and less than the time limit of a whole run of tests.
const LIMIT: Duration = Duration::from_secs(8 * 60);
/// The time limit for a program to abort.
const ABORT_LIMIT: Duration = Duration::from_secs(10);
/// The interval at which the program is checked.
const POLL: Duration = Duration::from_millis(5);

/// Runs a command without input and returns its output, like [`Command::output`]. A program that
/// has not ended after a few minutes is aborted.
///
/// # Errors
///
/// If the program cannot be started, or its output cannot be kept.
pub fn output(command: &mut Command) -> io::Result<Output> {
    output_within(command, LIMIT)
}

fn output_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        .spawn()?;
    let status = match wait(&mut child, limit)? {
        Some(status) => status,
        None => abort(&mut child)?,
    };
    Ok(Output {
        status,
        stdout: text_of(stdout)?,
        stderr: text_of(stderr)?,
    })
}

/// Returns the status of a program if it ends within `limit`.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() > deadline {
            return Ok(status);
        }
        thread::sleep(POLL);
    }
}

/// Aborts a program. If it does not end, it is killed.
fn abort(child: &mut Child) -> io::Result<ExitStatus> {
    let pid = child.id().to_string();
    Command::new("kill").args(["-ABRT", &pid]).status()?;
    if let Some(status) = wait(child, ABORT_LIMIT)? {
        return Ok(status);
    }
    child.kill()?;
    child.wait()
}

fn text_of(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_status_are_those_of_the_program() {
        let mut command = Command::new("sh");
        let output =
            output(command.args(["-c", "echo out; echo err >&2; exit 3"])).expect("a shell");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (output.stdout.as_slice(), output.stderr.as_slice()),
            (&b"out\n"[..], &b"err\n"[..])
        );
    }

    #[test]
    fn program_that_hangs_is_aborted_and_shows_where() {
        let mut command = Command::new("python3");
        command.args([
            "-X",
            "faulthandler",
            "-c",
            "import time\nprint('here', flush=True)\ntime.sleep(600)",
        ]);
        let output = output_within(&mut command, Duration::from_secs(2)).expect("python3");
        assert!(!output.status.success(), "{output:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("line 3"), "{errors}");
    }

    #[test]
    fn what_an_aborted_program_leaves_behind_is_not_waited_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $!; wait"]);
        let output = output_within(&mut command, Duration::from_secs(1)).expect("a shell");
        assert!(!output.status.success(), "{output:?}");
        let pid = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let killed = Command::new("kill").arg(pid).status().expect("started");
        assert!(killed.success(), "it was still there");
    }
}
