//! A client for programs that do one thing at a time: every call blocks until its result is there.
//!
//! A call takes a time limit, after which it fails with [`Error::TimedOut`]; `None` waits for ever. Between calls the client reads nothing and
//! answers no probes. If the program makes no call for longer than the server's probe limit, the server closes the connection; the next call
//! makes a new one.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use corvid_idl::{Class, FetchId, FetchOutcome, Idl, Misuse, Status, TableCondition};
use corvid_net::readiness;

use crate::abort::Abort;
use crate::committed::Committed;
use crate::error::{self, Error};
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
        mut holds: impl FnMut(&Idl) -> bool,
    ) -> Result<(), Error> {
        self.wait_for(timeout, |client| holds(client.idl()))
    }

    /// Waits until the state of the session is as wanted: connected, without a server, at the leader.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn wait_for_session(
        &mut self,
        timeout: Option<Duration>,
        mut is_wanted: impl FnMut(&SessionState) -> bool,
    ) -> Result<(), Error> {
        self.wait_for(timeout, |client| is_wanted(&client.session()))
    }

    fn wait_for(
        &mut self,
        timeout: Option<Duration>,
        mut holds: impl FnMut(&polled::Client) -> bool,
    ) -> Result<(), Error> {
        let begin_ms = self.inner.now_ms();
        let end_ms = timeout.map(|timeout| begin_ms.saturating_add(millis(timeout)));
        loop {
            self.inner.run()?;
            if holds(&self.inner) {
                return Ok(());
            }
            if !self.inner.idl().session_state().is_alive() {
                return Err(Error::Dead(self.inner.last_failure()));
            }
            let left_ms = end_ms.map(|end_ms| end_ms.saturating_sub(self.inner.now_ms()));
            if left_ms == Some(0) {
                return Err(Error::TimedOut(self.inner.last_failure()));
            }
            let mut wanted = self.inner.wanted();
            let left = left_ms.map(Duration::from_millis);
            wanted.timeout = match (wanted.timeout, left) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            readiness::wait(&wanted)?;
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
        self.wait_until(timeout, |idl| idl.change_seqno() != seqno)?;
        Ok(self.idl().change_seqno())
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
        let promise = self.inner.set_condition(condition)?;
        self.wait_until(timeout, |idl| idl.condition_seqno() >= promise)?;
        error::condition_outcome(self.idl(), promise)
    }

    /// Waits until the lock is held that [`polled::Client::set_lock`] asked for.
    ///
    /// # Errors
    /// As [`Client::wait_until`]; [`Error::LockRefused`].
    pub fn wait_for_lock(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let mut outcome = None;
        self.wait_until(timeout, |idl| {
            outcome = error::lock_outcome(idl);
            outcome.is_some()
        })?;
        outcome.unwrap_or(Ok(()))
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
        let begin = self.inner.now_ms();
        loop {
            match self.idl_mut().take_fetch_outcome(fetch) {
                Some(FetchOutcome::Pending) => {}
                Some(outcome) => return Ok(outcome),
                None => return Err(Error::Misuse(Misuse::RowGone)),
            }
            let seqno = self.idl().change_seqno();
            let passed = Duration::from_millis(self.inner.now_ms().saturating_sub(begin));
            let left = timeout.map(|timeout| timeout.saturating_sub(passed));
            self.wait_for_change(seqno, left)?;
        }
    }

    /// Commits the open transaction and waits for its outcome. After a timeout the outcome is unknown.
    ///
    /// # Errors
    /// None is open; as [`Client::wait_until`] otherwise.
    pub fn commit(&mut self, timeout: Option<Duration>) -> Result<Status, Error> {
        let txn = self.idl().open_txn().ok_or(Misuse::NoTransaction)?;
        self.idl_mut().commit()?;
        let is_final = |idl: &Idl| idl.status(txn) != Some(Status::Incomplete);
        if !is_final(self.idl()) {
            self.wait_until(timeout, is_final)?;
        }
        self.idl()
            .status(txn)
            .ok_or(Error::Misuse(Misuse::NoTransaction))
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
        mut make: impl FnMut(&mut Idl) -> Result<T, E>,
    ) -> Result<Committed<T>, E::Error> {
        let begin = self.inner.now_ms();
        loop {
            let passed = Duration::from_millis(self.inner.now_ms().saturating_sub(begin));
            let left = timeout.map(|timeout| timeout.saturating_sub(passed));
            let seqno = self.idl().change_seqno();
            let txn = self.idl_mut().begin().map_err(Error::from)?;
            let value = make(self.idl_mut()).map_err(|error| {
                self.inner.idl_mut().forget(txn);
                error.into_error()
            })?;
            let outcome = self.commit(left);
            let finished = self.idl_mut().finish(txn);
            let (_, Some(finished)) = (outcome?, finished) else {
                return Err(Error::Misuse(Misuse::NoTransaction).into());
            };
            if finished.status == Status::TryAgain {
                self.wait_for_change(seqno, left)?;
            } else {
                return Ok(Committed::of(value, finished)?);
            }
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
