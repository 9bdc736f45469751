//! The supervisor of `--monitor`: waits for the server, and restarts it after a crash.
//!
//! It restarts the server after signals that indicate a programming error, at most once per
//! [`RESTART_INTERVAL`]; after any other end of the server it exits with status 0. It keeps the
//! working directory and the open log file of the start, so that a restarted server begins where
//! the first one did. It forwards SIGHUP to a server that rereads files on it ([`hangup`]).

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::fork::{self, Forked, describe, fork_and_wait};
use super::title::{Title, set_comm};
use crate::vlog::{self, Module};
use crate::{hangup, program};

/// The minimum time between two restarts.
const RESTART_INTERVAL: Duration = Duration::from_secs(10);

/// Signals after which the server is restarted.
const CRASHES: [libc::c_int; 9] = [
    libc::SIGABRT,
    libc::SIGALRM,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGPIPE,
    libc::SIGSEGV,
    libc::SIGXCPU,
    libc::SIGXFSZ,
];

/// Supervises `child`, which is ready; `detach` releases the caller. Returns in a restarted server,
/// with the descriptor on which that server announces its readiness.
pub(super) fn run(mut child: libc::pid_t, detach: impl FnOnce()) -> OwnedFd {
    let name = program::name();
    let title = Title::capture();
    let show = |text: &str| {
        if let Some(title) = &title {
            title.show(&format!("{name}: {text}"));
        }
    };
    vlog::set_subprogram("monitor");
    set_comm("monitor");
    // Set up before the caller continues, because the caller may send the signal at once.
    hangup::pass_on_to(child);
    detach();
    let mut crashes = 0;
    let mut summary = format!("monitoring pid {child} (healthy)");
    let mut last_restart: Option<Instant> = None;
    loop {
        show(&summary);
        // The log may be rotated while the supervisor waits, and no command reaches the supervisor.
        // So it closes the file now, and opens the current one when the child has ended.
        if vlog::has_file() {
            vlog::info(Module::Vlog, format_args!("closing log file"));
        }
        vlog::close_file();
        hangup::pass_on_to(child);
        let status = fork::wait_for(child);
        // The pid of the child may be reused from now on, so no signal may be sent to it.
        hangup::pass_on_to(0);
        if vlog::has_file() {
            // If that fails, the supervisor continues without a log file.
            let _ = vlog::reopen_file();
        }
        if !is_crash(status) {
            vlog::info(
                Module::DaemonUnix,
                format_args!("pid {child} died, {}, exiting", describe(status)),
            );
            std::process::exit(0);
        }
        crashes += 1;
        let text = format!("{crashes} crashes: pid {child} died, {}", describe(status));
        if libc::WTERMSIG(status) == libc::SIGSEGV {
            vlog::warn(
                Module::Backtrace,
                format_args!("SIGSEGV detected, backtrace:"),
            );
        }
        if libc::WCOREDUMP(status) {
            disable_core_dumps();
        }
        wait_for_turn(last_restart, &text);
        last_restart = Some(Instant::now());
        vlog::err(Module::DaemonUnix, format_args!("{text}, restarting"));
        match fork_and_wait() {
            Ok(Forked::Parent { child: restarted }) => {
                child = restarted;
                summary = format!("monitoring pid {child} ({text})");
            }
            Ok(Forked::Child { ready }) => {
                vlog::set_subprogram(name);
                set_comm(name);
                if let Some(title) = &title {
                    title.restore();
                }
                return ready;
            }
            Err(error) => super::give_up(&error, "could not restart the monitored process"),
        }
    }
}

fn is_crash(status: libc::c_int) -> bool {
    libc::WIFSIGNALED(status) && CRASHES.contains(&libc::WTERMSIG(status))
}

fn wait_for_turn(last_restart: Option<Instant>, text: &str) {
    let left = last_restart.map_or(Duration::ZERO, |last| {
        RESTART_INTERVAL.saturating_sub(last.elapsed())
    });
    if !left.is_zero() {
        let seconds = RESTART_INTERVAL.as_secs();
        vlog::warn(
            Module::DaemonUnix,
            format_args!("{text}, waiting until {seconds} seconds since last restart"),
        );
        // Meanwhile a signal ends the supervisor by its default action.
        let _ = corvid_net::poll::wait(None, Some(left));
    }
}

/// One core file is enough; a crash loop must not fill the disk.
fn disable_core_dumps() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if setrlimit(Resource::Core, none).is_err() {
        vlog::warn(
            Module::DaemonUnix,
            format_args!("failed to disable core dumps"),
        );
    }
}
