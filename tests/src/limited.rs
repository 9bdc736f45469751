//! Runs a program to its end, but not for ever: a test that waits for a program that hangs must fail and show where it hung.
//!
//! Programs in Python print the stacks of their threads when they are aborted, if they run with `-X faulthandler`.

use std::io::{self, Read};
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Several times what the longest of these programs takes on a busy machine, and less than a whole run of tests may take.
const LIMIT: Duration = Duration::from_secs(8 * 60);
/// Between two looks at the program.
const POLL: Duration = Duration::from_millis(5);

/// The output of a command without input, as [`Command::output`]. A program that has not ended after some minutes is aborted.
///
/// # Errors
///
/// The program cannot be started.
pub fn output(command: &mut Command) -> io::Result<Output> {
    output_within(command, LIMIT)
}

fn output_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            abort(&mut child)?;
            break child.wait()?;
        }
        thread::sleep(POLL);
    };
    Ok(Output {
        status,
        stdout: collected(stdout),
        stderr: collected(stderr),
    })
}

/// Has a program abort; one that does not is killed.
fn abort(child: &mut Child) -> io::Result<()> {
    let pid = child.id().to_string();
    Command::new("kill").args(["-ABRT", &pid]).status()?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            return child.kill();
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A program that is killed may leave half a character; bytes are kept as they are.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn collected(reader: JoinHandle<Vec<u8>>) -> Vec<u8> {
    reader.join().unwrap_or_default()
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
}
