//! A client for programs that do one thing at a time: every call blocks until its result is there.
//!
//! A call takes a time limit, after which it fails with [`Error::TimedOut`]; `None` waits for ever. Between calls the client reads nothing and
//! answers no probes. If the program makes no call for longer than the server's probe limit, the server closes the connection; the next call
//! makes a new one.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use corvid_idl::{Class, FetchId, FetchOutcome, Idl, Status, TableCondition};
use corvid_net::readiness;

use crate::abort::Abort;
use crate::calls::{self, Front, block};
use crate::committed::Committed;
use crate::error::Error;
use crate::polled::{self, millis};
use crate::session::SessionState;
use crate::setup::Setup;

/// A client whose calls block. It derefs to [`polled::Client`] and through that to [`Idl`], for everything that needs no waiting.
#[derive(Debug)]
pub struct Client {
    inner: polled::Client,
}

impl Client {
    /// As [`polled::Client::connect`]. Nothing is connected before something is waited for.
    ///
    /// # Errors
    /// As there.
    pub fn connect(class: Class, remotes: &str) -> Result<Client, Error> {
        Ok(Client::over(polled::Client::connect(class, remotes)?))
    }

    /// As [`polled::Client::connect_with`]. Nothing is connected before something is waited for.
    ///
    /// # Errors
    /// As there.
    pub fn connect_with(class: Class, remotes: &str, setup: &Setup) -> Result<Client, Error> {
        let client = polled::Client::connect_with(class, remotes, setup)?;
        Ok(Client::over(client))
    }

    /// A blocking client from a poll-style one that was set up otherwise.
    #[must_use]
    pub fn over(client: polled::Client) -> Client {
        Client {
            inner: client.resolving_now(),
        }
    }

    /// Waits until `holds` returns true. It is called after every change.
    ///
    /// # Errors
    /// A transaction is open; the time limit has passed or no remote is left to try, with the last failure.
    pub fn wait_until(
        &mut self,
        timeout: Option<Duration>,
        holds: impl FnMut(&Idl) -> bool,
    ) -> Result<(), Error> {
        block(calls::until(&mut self.within(timeout), holds))
    }

    /// Waits until the state of the session is as wanted: connected, without a server, at the leader.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn wait_for_session(
        &mut self,
        timeout: Option<Duration>,
        is_wanted: impl FnMut(&SessionState) -> bool,
    ) -> Result<(), Error> {
        block(calls::session(&mut self.within(timeout), is_wanted))
    }

    /// The front of one call, which fails when the time has passed.
    fn within(&mut self, timeout: Option<Duration>) -> Timed<'_> {
        let begin_ms = self.inner.now_ms();
        Timed {
            client: &mut self.inner,
            end_ms: timeout.map(|timeout| begin_ms.saturating_add(millis(timeout))),
        }
    }

    /// Waits for the initial contents, of this connection or an earlier one.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn wait_for_contents(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.wait_until(timeout, Idl::has_ever_connected)
    }

    /// Waits until [`Idl::change_seqno`] is another one than `seqno`; returns the new one.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn wait_for_change(&mut self, seqno: u64, timeout: Option<Duration>) -> Result<u64, Error> {
        block(calls::new_seqno(&mut self.within(timeout), seqno))
    }

    /// Sets the condition of a table and waits until the server applies it: as [`polled::Client::set_condition`].
    ///
    /// # Errors
    /// As [`Client::wait_until`]; the condition stays set. A clause that a server would refuse, or
    /// a refusal by the server: the condition before it stays in force.
    pub fn set_condition(
        &mut self,
        condition: impl Into<TableCondition>,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        block(calls::set_condition(&mut self.within(timeout), condition))
    }

    /// Waits until the lock is held that [`polled::Client::set_lock`] asked for.
    ///
    /// # Errors
    /// As [`Client::wait_until`]; [`Error::LockRefused`].
    pub fn wait_for_lock(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        block(calls::lock(&mut self.within(timeout)))
    }

    /// Waits for the end of a fetch.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn finish_fetch(
        &mut self,
        fetch: FetchId,
        timeout: Option<Duration>,
    ) -> Result<FetchOutcome, Error> {
        block(calls::finish_fetch(&mut self.within(timeout), fetch))
    }

    /// Commits the open transaction and waits for its outcome. After a timeout the outcome is unknown.
    ///
    /// # Errors
    /// None is open; as [`Client::wait_until`] otherwise.
    pub fn commit(&mut self, timeout: Option<Duration>) -> Result<Status, Error> {
        let (_, status) = block(calls::commit(&mut self.within(timeout)))?;
        Ok(status)
    }

    /// Makes a transaction and commits it. After a failed verification or a lost connection it calls `make` again, on the replica's new
    /// contents, so `make` must allow several calls. An error of `make` ends the transaction and the call. That error is [`Misuse`] or the
    /// program's own: see [`Abort`].
    ///
    /// The server may have carried out a transaction whose connection was lost. `make` notices that if it reads the rows before it changes
    /// them.
    ///
    /// # Errors
    /// Those of `make`, as they are; [`Error::Refused`] when the server refuses, [`Error::Ended`] when the lock is not held; as
    /// [`Client::wait_until`] otherwise.
    pub fn transact<T, E: Abort>(
        &mut self,
        timeout: Option<Duration>,
        make: impl FnMut(&mut Idl) -> Result<T, E>,
    ) -> Result<Committed<T>, E::Error> {
        block(calls::transact(&mut self.within(timeout), make))
    }
}

/// A client that blocks until a moment.
struct Timed<'c> {
    client: &'c mut polled::Client,
    /// Monotonic; `None` is for ever.
    end_ms: Option<u64>,
}

impl Front for Timed<'_> {
    fn look<T>(&self, look: impl FnOnce(&polled::Client) -> T) -> T {
        look(self.client)
    }

    fn change<T>(&mut self, act: impl FnOnce(&mut polled::Client) -> T) -> T {
        act(self.client)
    }

    async fn wait<T>(
        &mut self,
        mut found: impl FnMut(&polled::Client) -> Option<T>,
    ) -> Result<T, Error> {
        loop {
            self.client.run()?;
            if let Some(found) = found(self.client) {
                return Ok(found);
            }
            self.client.check_alive()?;
            let left_ms = (self.end_ms).map(|end_ms| end_ms.saturating_sub(self.client.now_ms()));
            if left_ms == Some(0) {
                return Err(Error::TimedOut(self.client.last_failure()));
            }
            let mut wanted = self.client.wanted();
            let left = left_ms.map(Duration::from_millis);
            wanted.timeout = wanted.timeout.into_iter().chain(left).min();
            readiness::wait(&wanted)?;
        }
    }
}

/// Settings and the state of the session; and reading, as that derefs to [`Idl`].
impl Deref for Client {
    type Target = polled::Client;

    fn deref(&self) -> &polled::Client {
        &self.inner
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut polled::Client {
        &mut self.inner
    }
}
