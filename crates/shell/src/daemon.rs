//! Becoming a daemon: detaching, supervision, pidfile, another user (docs/spec/cli.md 1.2).
//!
//! The caller learns the outcome through a pipe: it waits until the server calls
//! [`Startup::complete`], or exits with the server's status. All of this forks, so it must run
//! before the first thread is created: [`Options::start`] follows option parsing and precedes the
//! opening of files.

mod fork;
mod supervisor;
mod title;
mod user;

use std::fs::OpenOptions;
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;

use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::args::{Arg, Spec};
use crate::vlog::{self, Destination, Level, Module};
use crate::{crash, output, pidfile, program, signals};
use corvid_net::{cleanup, errno};

use fork::Forked;
use user::User;

/// The options that daemons share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is named by its option")]
pub enum DaemonOption {
    Pidfile,
    OverwritePidfile,
    Detach,
    Monitor,
    NoChdir,
    NoSelfConfinement,
    User,
}

/// The table of these options, in the order in which the error about an ambiguous abbreviation
/// lists them; `wrap` converts them to options of the program.
pub fn specs<I: Copy>(wrap: impl Fn(DaemonOption) -> I) -> [Spec<I>; 7] {
    let option = |name, arg, option| Spec::long(name, arg, wrap(option)).within(GROUP);
    [
        option("detach", Arg::None, DaemonOption::Detach).means("", "run in the background").more(
            "The command returns when the daemon serves, or with the daemon's exit status if it fails to start. Until then errors go to \
            the terminal; afterwards standard input, output and error are `/dev/null`.",
        ),
        option("no-self-confinement", Arg::None, DaemonOption::NoSelfConfinement)
            .means("", "accepted for compatibility, without effect"),
        option("no-chdir", Arg::None, DaemonOption::NoChdir)
            .means("", "with --detach, do not change directory to /"),
        option("pidfile", Arg::Optional, DaemonOption::Pidfile)
            .means("FILE", "create a pidfile (default: {rundir}/{program}.pid)")
            .more(
                "It holds the id of the serving process, never of its supervisor, and is locked while that process lives: programs that look \
                up a daemon by name trust only a locked pidfile. A relative FILE is relative to `{rundir}`.",
            ),
        option("overwrite-pidfile", Arg::None, DaemonOption::OverwritePidfile)
            .means("", "with --pidfile, start even if it names a running process"),
        option("monitor", Arg::None, DaemonOption::Monitor)
            .means("", "supervise the daemon and restart it after a crash")
            .more(
                "A crash is a death by SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGSEGV, SIGXCPU or SIGXFSZ. The supervisor restarts \
                the daemon at once the first time, and at most every ten seconds after that. If the daemon ends in any other way, the \
                supervisor exits too.",
            ),
        option("user", Arg::Required, DaemonOption::User)
            .means("USER[:GROUP]", "run as this user and group")
            .more(
                "Requires root. Files and sockets are created as that user. The process keeps the capabilities to bind low ports and to \
                lock memory, and drops all others.",
            ),
    ]
}

/// The heading of these options.
pub const GROUP: &str = "Daemon options";

/// How to become a daemon.
#[derive(Debug, Default)]
pub struct Options {
    pidfile: Option<PathBuf>,
    overwrite: bool,
    detach: bool,
    monitor: bool,
    no_chdir: bool,
    user: Option<User>,
    /// The descriptors 0 to 2 that stay open after detaching.
    kept: [bool; 3],
}

impl Options {
    /// Applies one option. An unusable `--user` ends the process.
    pub fn apply(&mut self, option: DaemonOption, value: Option<&str>) {
        match option {
            DaemonOption::Pidfile => self.pidfile = Some(pidfile::path(value)),
            DaemonOption::OverwritePidfile => self.overwrite = true,
            DaemonOption::Detach => self.detach = true,
            DaemonOption::Monitor => self.monitor = true,
            DaemonOption::NoChdir => self.no_chdir = true,
            DaemonOption::NoSelfConfinement => {}
            DaemonOption::User => {
                let prefix = self
                    .pidfile
                    .as_ref()
                    .map_or("(null)".to_owned(), |path| path.display().to_string());
                match User::parse(value.unwrap_or_default()) {
                    Ok(user) => self.user = Some(user),
                    Err(text) => {
                        program::fatal_logged(Module::Daemon, format_args!("{prefix}: {text}"))
                    }
                }
            }
        }
    }

    /// Whether the program is to run in the background.
    #[must_use]
    pub fn is_detached(&self) -> bool {
        self.detach
    }

    /// Keeps a standard descriptor (0 to 2) open after detaching.
    pub fn keep_open(&mut self, descriptor: RawFd) {
        if let Some(kept) = usize::try_from(descriptor)
            .ok()
            .and_then(|descriptor| self.kept.get_mut(descriptor))
        {
            *kept = true;
        }
    }

    /// Changes the user, forks as requested, catches fatal signals and writes the pidfile. Returns
    /// in the server; a failure ends the process with a message.
    pub fn start(self) -> Startup {
        vlog::end_of_options();
        // A forked child would print the buffered output a second time. If flushing fails, the exit
        // reports it.
        let _ = output::flush();
        if let Some(user) = &self.user {
            user.switch_or_die();
        }
        let mut ready = None;
        if self.detach {
            match fork::fork_and_wait() {
                Ok(Forked::Parent { .. }) => std::process::exit(0),
                Ok(Forked::Child { ready: pipe }) => ready = Some(pipe),
                Err(error) => give_up(&error, "could not detach from foreground session"),
            }
            // Cannot fail: a forked child is not a process group leader.
            let _ = rustix::process::setsid();
        }
        if self.monitor {
            let outer = ready.take();
            match fork::fork_and_wait() {
                Ok(Forked::Parent { child }) => {
                    // Supervises until the server ends for good. Returns only in a restarted
                    // server.
                    ready = Some(supervisor::run(child, || {
                        fork::announce(outer);
                        if self.detach {
                            close_standard_descriptors(self.kept);
                        }
                    }));
                }
                Ok(Forked::Child { ready: pipe }) => ready = Some(pipe),
                Err(error) => give_up(&error, "could not initiate process monitoring"),
            }
        }
        if let Err(error) = signals::init().and_then(|()| crash::init()) {
            program::fatal_error("could not catch signals", &error);
        }
        if let Some(path) = &self.pidfile {
            pidfile::create_or_die(path, self.overwrite);
        }
        Startup {
            ready,
            monitor: self.monitor,
            detach: self.detach,
            no_chdir: self.no_chdir,
            kept: self.kept,
        }
    }
}

fn give_up(error: &str, what: &str) -> ! {
    vlog::err(Module::DaemonUnix, format_args!("{error}"));
    program::fatal_logged(Module::DaemonUnix, what)
}

/// A daemon that is not ready yet: its caller is waiting, and standard error is still the caller's.
#[derive(Debug)]
#[must_use = "the caller waits until `complete` is called"]
pub struct Startup {
    ready: Option<OwnedFd>,
    monitor: bool,
    detach: bool,
    no_chdir: bool,
    kept: [bool; 3],
}

impl Startup {
    /// The main process of the service: the supervisor if there is one, else this one.
    #[must_use]
    pub fn main_pid(&self) -> u32 {
        if self.monitor {
            std::os::unix::process::parent_id()
        } else {
            std::process::id()
        }
    }

    /// Reports to the caller that the daemon is ready, and releases its terminal and directory.
    pub fn complete(self) {
        if self.detach && !self.no_chdir {
            // The root directory always exists.
            let _ = std::env::set_current_dir("/");
        }
        if self.detach {
            close_standard_descriptors(self.kept);
        }
        fork::announce(self.ready);
    }
}

/// Redirects the standard descriptors to `/dev/null` and switches the console log off.
fn close_standard_descriptors(kept: [bool; 3]) {
    let _ = output::flush();
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let redirects = [dup2_stdin, dup2_stdout, dup2_stderr];
        for (redirect, _) in redirects.into_iter().zip(kept).filter(|(_, kept)| !kept) {
            if let Err(error) = redirect(&null) {
                let reason = errno::text(&error.into());
                vlog::warn(Module::DaemonUnix, format_args!("dup2: {reason}"));
            }
        }
    }
    vlog::set_level(None, Some(Destination::Console), Level::Off);
}

/// Resets the state that a forked child must not inherit from its parent.
fn become_child() {
    cleanup::clear();
    // The parent waits for the child and does not use its connections any more.
    corvid_net::fork::inherit();
    signals::set_all_default();
}
