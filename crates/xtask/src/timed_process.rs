//! One process of a run of tests. Its output is collected and its time is limited.
//!
//! Invariant: [`TimedProcess::run`] returns a few seconds after the limit at the latest, whatever
//! the process and its descendants do. The process leads its own process group, and no process of
//! this group is left when `run` returns. Called by `test_run`. It does not know about tests.

use std::fmt;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corvid_shell::signals;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::process_tree;

/// How long other processes may keep the output open after the process has ended.
const LINGER: Duration = Duration::from_secs(5);
/// The interval at which the process is checked.
const POLL: Duration = Duration::from_millis(20);

/// The limits of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The time limit of the process itself.
    pub(crate) run: Duration,
    /// The time limit for the end of its output, after the process has ended.
    pub(crate) linger: Duration,
}

impl Limits {
    /// Returns the limits of a process that may take `run`.
    pub(crate) fn of(run: Duration) -> Limits {
        Limits {
            run,
            linger: LINGER,
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It ended by itself.
    Exited(ExitStatus),
    /// It took longer than this, so it was killed.
    OutOfTime(Duration),
    /// This program received a signal to end, so the process was killed.
    Interrupted,
}

impl End {
    pub(crate) fn is_success(self) -> bool {
        matches!(self, End::Exited(status) if status.success())
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exited(status) => write!(f, "{status}"),
            End::OutOfTime(limit) => write!(f, "ended after its limit of {} s", limit.as_secs()),
            End::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct TimedProcess {
    pub(crate) end: End,
    pub(crate) output: String,
    pub(crate) errors: String,
    /// The threads and descendants of a process that was killed, each on a line.
    pub(crate) still_running: String,
    /// Whether another process still had the output open when `run` gave up waiting for the end of
    /// the output.
    pub(crate) is_output_open: bool,
}

impl TimedProcess {
    /// Runs a command without input.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub(crate) fn run(command: &mut Command, limits: Limits) -> std::io::Result<TimedProcess> {
        let began = Instant::now();
        let mut child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().map(Collected::from_pipe);
        let errors = child.stderr.take().map(Collected::from_pipe);
        let (end, still_running) = wait(&mut child, began, limits.run)?;
        // A test that fails may leave processes behind. They would keep the output open.
        end_group(&child);
        let deadline = Instant::now() + limits.linger;
        let is_open = |pipe: &Option<Collected>| {
            pipe.as_ref()
                .is_some_and(|pipe| !pipe.is_complete_by(deadline))
        };
        let is_output_open = is_open(&output) | is_open(&errors);
        let text = |pipe: Option<Collected>| pipe.map(|pipe| pipe.text()).unwrap_or_default();
        Ok(TimedProcess {
            end,
            output: text(output),
            errors: text(errors),
            still_running,
            is_output_open,
        })
    }
}

/// Waits for the end of a process, and kills it when its time is over. Also returns a description
/// of what was running then.
fn wait(child: &mut Child, began: Instant, limit: Duration) -> std::io::Result<(End, String)> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((End::Exited(status), String::new()));
        }
        let end = if signals::received().is_some() {
            End::Interrupted
        } else if began.elapsed() >= limit {
            End::OutOfTime(limit)
        } else {
            thread::sleep(POLL);
            continue;
        };
        let still_running = process_tree::describe(child.id());
        end_group(child);
        child.wait()?;
        return Ok((end, still_running));
    }
}

/// Kills all processes that are left in the group of a process.
fn end_group(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // This fails if nobody is left in the group.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// The bytes that have come through a pipe. A thread reads them, which ends at the end of the pipe.
#[derive(Debug)]
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// This channel is closed at the end of the pipe. Nothing is sent through it.
    end: Receiver<()>,
}

impl Collected {
    fn from_pipe(mut pipe: impl Read + Send + 'static) -> Collected {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (sender, end) = mpsc::channel();
        let shared = bytes.clone();
        thread::spawn(move || {
            let _sender: mpsc::Sender<()> = sender;
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                let mut bytes = shared.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.extend_from_slice(&buffer[..count]);
            }
        });
        Collected { bytes, end }
    }

    /// Waits for the end of the pipe. Returns false if it has not come in time.
    fn is_complete_by(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        self.end.recv_timeout(left) != Err(RecvTimeoutError::Timeout)
    }

    fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far longer than a stub program needs on a busy machine.
    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(300);

    fn shell(script: &str, run: Duration, linger: Duration) -> TimedProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        TimedProcess::run(&mut command, Limits { run, linger }).expect("a shell")
    }

    /// Whether the process whose id is in this text is alive.
    fn is_alive(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
            .is_ok_and(|stat| !stat.contains(") Z "))
    }

    fn expect_gone(pid: &str) {
        let began = Instant::now();
        while is_alive(pid) {
            assert!(began.elapsed() < LONG, "process {pid} is still there");
            thread::sleep(POLL);
        }
    }

    #[test]
    fn output_and_status_are_collected() {
        let process = shell("echo out; echo err >&2; exit 3", LONG, LONG);
        assert!(
            !process.end.is_success() && process.end.to_string() == "exit status: 3",
            "{process:?}"
        );
        assert_eq!(
            (process.output.as_str(), process.errors.as_str()),
            ("out\n", "err\n")
        );
        assert!(!process.is_output_open);
        assert!(shell("true", LONG, LONG).end.is_success());
    }

    #[test]
    fn process_out_of_time_is_ended_with_its_children_and_its_output_is_kept() {
        // The child keeps the pipe open, and is in the same group.
        let began = Instant::now();
        let process = shell("sleep 600 & echo $!; wait", SHORT, LONG);
        assert_eq!(process.end, End::OutOfTime(SHORT));
        assert!(!process.end.is_success() && !process.is_output_open);
        assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
        expect_gone(&process.output);
        assert!(process.still_running.contains(" sleep 600"), "{process:?}");
    }

    #[test]
    fn children_that_a_process_leaves_behind_are_ended() {
        let process = shell("sleep 600 & echo $!", LONG, LONG);
        assert!(
            process.end.is_success() && !process.is_output_open,
            "{process:?}"
        );
        expect_gone(&process.output);
    }

    #[test]
    fn descendant_outside_the_group_does_not_hold_the_runner_up() {
        let began = Instant::now();
        let process = shell("setsid --wait sh -c 'sleep 600 & echo $!'", LONG, SHORT);
        assert!(
            process.end.is_success() && process.is_output_open,
            "{process:?}"
        );
        assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
        let mut kill = Command::new("kill");
        assert!(
            kill.arg(process.output.trim())
                .status()
                .expect("started")
                .success()
        );
    }
}
