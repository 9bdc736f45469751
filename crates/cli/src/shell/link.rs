//! The shell's connection, which is made again when it is lost.
//!
//! While the user types, a thread answers the server's probes ([`while_idle`]). Without answers the
//! server would close the idle connection.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use corvid_data::Schema;
use corvid_net::{clock, interrupt, poll};
use corvid_shell::{output, signals};

use super::prompt::Role;
use crate::failure::{Failure, Kind};
use crate::server::{self, Server};
use crate::settings::Settings;

/// A command waits this long for a server that has gone.
pub(crate) const RECONNECT_MS: u64 = 10_000;
/// Between two attempts to connect.
pub(crate) const PAUSE: Duration = Duration::from_millis(250);
/// Limit on the time of the questions before a prompt.
const SOON_MS: u64 = 900;

/// The connection.
pub(crate) struct Link {
    server: Option<Server>,
    /// The connection broke, which the user should know; otherwise it was closed on purpose.
    is_lost: bool,
    /// The number of connections so far.
    generation: u64,
}

impl Link {
    /// An open connection.
    pub(crate) fn new(server: Server) -> Link {
        Link {
            server: Some(server),
            is_lost: false,
            generation: 1,
        }
    }

    /// The number of the connection; 0 while there is none. Schemas may differ between connections.
    #[must_use]
    pub(crate) fn generation(&self) -> u64 {
        self.server.as_ref().map_or(0, |_| self.generation)
    }

    /// The schema of a database, if the server tells it soon.
    pub(crate) fn schema(&mut self, database: Option<&str>) -> Option<Schema> {
        let database = database?;
        self.server.as_mut()?.schema_by(database, soon()).ok()
    }

    /// The databases of the server, if it tells them soon.
    pub(crate) fn databases(&mut self) -> Vec<String> {
        let databases = self
            .server
            .as_mut()
            .map(|server| server.databases_by(soon()));
        databases.and_then(Result::ok).unwrap_or_default()
    }

    /// Whether the connection broke.
    #[must_use]
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The address of the connected server.
    #[must_use]
    pub(crate) fn remote(&self) -> Option<&str> {
        self.server.as_ref().map(Server::remote)
    }

    /// Closes the connection on purpose: the next command opens another one in silence.
    pub(crate) fn close(&mut self) {
        self.server = None;
        self.is_lost = false;
    }

    /// The connection broke: the next command says so and opens another one.
    pub(crate) fn lose(&mut self) {
        self.server = None;
        self.is_lost = true;
    }

    /// The connection; a new one if there is none.
    ///
    /// # Errors
    /// No server can be reached for some seconds, or the user has cancelled.
    pub(crate) fn server(&mut self, settings: &Settings) -> Result<&mut Server, Failure> {
        // The server may have closed the connection since the last command.
        if let Some(server) = &mut self.server
            && server.answer_probes().is_err()
        {
            match interrupt::is_cancelled() {
                true => self.close(),
                false => self.lose(),
            }
        }
        let is_new = self.server.is_none();
        let server = match self.server.take() {
            Some(server) => server,
            None => connect(settings, self.is_lost)?,
        };
        self.is_lost = false;
        self.generation += u64::from(is_new);
        Ok(self.server.insert(server))
    }

    /// The server's role for a database, if it tells one soon.
    pub(crate) fn role(&mut self, database: &str) -> Option<Role> {
        // A broken connection is noticed while the user types.
        self.server.as_mut()?.role(database, soon()).ok()?
    }
}

/// When the questions before a prompt time out (monotonic ms).
fn soon() -> u64 {
    clock::mono_ms() + SOON_MS
}

/// Connects, with several attempts. Reports the loss of an earlier connection.
fn connect(settings: &Settings, is_lost: bool) -> Result<Server, Failure> {
    let address = server::address(settings);
    if is_lost {
        output::error_line(format_args!(
            "the connection to {address} was lost; connecting again"
        ));
    }
    let end_ms = clock::mono_ms() + RECONNECT_MS;
    loop {
        match Server::connect(settings) {
            Ok(server) => {
                if is_lost {
                    output::error_line(format_args!("connected to {}", server.remote()));
                }
                return Ok(server);
            }
            Err(failure) if failure.kind != Kind::Connection || clock::mono_ms() > end_ms => {
                return Err(failure);
            }
            Err(_) => {
                poll::wait(None, Some(PAUSE))?;
            }
        }
    }
}

/// Runs `read`, and answers the server's probes meanwhile.
///
/// `is_entered` becomes true when a line is complete, so that SIGINT is meant for its command.
pub(crate) fn while_idle<T>(
    link: &Mutex<Link>,
    is_entered: &AtomicBool,
    read: impl FnOnce() -> T,
) -> T {
    let Ok((stop, stopped)) = UnixStream::pair() else {
        // Without descriptors the connection may be lost, which is mended later.
        return read();
    };
    thread::scope(|scope| {
        scope.spawn(|| answer(link, is_entered, &stopped));
        let outcome = read();
        drop(stop);
        outcome
    })
}

/// Answers probes until the other end of `stopped` is closed. A fatal signal ends the process here.
fn answer(link: &Mutex<Link>, is_entered: &AtomicBool, stopped: &UnixStream) {
    loop {
        let fd = lock(link).server.as_ref().map(Server::fd);
        let wanted = [
            Some((stopped.as_raw_fd(), poll::events(true, false))),
            fd.map(|fd| (fd, poll::events(true, false))),
        ];
        match poll::wait_for_two(wanted, None) {
            Ok([0, _]) => {
                let mut link = lock(link);
                if let Some(server) = &mut link.server
                    && server.answer_probes().is_err()
                    && !interrupt::is_cancelled()
                {
                    link.lose();
                }
            }
            Ok(_) => return,
            // SIGINT for the last command, or from elsewhere: there is no command to cancel.
            Err(_) if !is_entered.load(Ordering::SeqCst) && signals::take_cancellation() => {}
            // The command that is about to begin takes it.
            Err(_) => return,
        }
    }
}

/// The link, also after a panic of another thread.
pub(crate) fn lock(link: &Mutex<Link>) -> MutexGuard<'_, Link> {
    link.lock().unwrap_or_else(PoisonError::into_inner)
}
