//! A client for programs that do one thing at a time: every call waits for what it is about.
//!
//! Waits take a time after which they fail with [`Error::TimedOut`]; `None` waits for ever. While nobody waits nothing is read, and
//! probes of the server are not answered, so a program that is away for longer than the server's patience finds its connection gone; the
//! next call makes another one.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use corvid_cs::Condition;
use corvid_data::{TableId, Uuid};
use corvid_idl::{Class, FetchId, FetchOutcome, Idl, Misuse, Status};
use corvid_os::readiness;
use corvid_os::tls::Credentials;

use crate::committed::Committed;
use crate::error::Error;
use crate::polled;

/// A client whose calls wait.
#[derive(Debug)]
pub struct Client {
    inner: polled::Client,
}

impl Client {
    /// As [`polled::Client::connect`]. Nothing is connected before something is waited for.
    ///
    /// # Errors
    /// As there.
    pub fn connect(class: Class, remotes: &str) -> io::Result<Client> {
        Ok(Client::over(polled::Client::connect(class, remotes)?))
    }

    /// A blocking client from a poll-style one that was set up otherwise.
    #[must_use]
    pub fn over(client: polled::Client) -> Client {
        Client {
            inner: client.resolving_now(),
        }
    }

    /// As [`polled::Client::set_credentials`].
    pub fn set_credentials(&mut self, credentials: Option<Arc<Credentials>>) {
        self.inner.set_credentials(credentials);
    }

    /// The client.
    #[must_use]
    pub fn idl(&self) -> &Idl {
        self.inner.idl()
    }

    /// The client, to change something through it.
    pub fn idl_mut(&mut self) -> &mut Idl {
        self.inner.idl_mut()
    }

    /// As [`polled::Client::uuid`].
    ///
    /// # Errors
    /// As there.
    pub fn uuid(&mut self) -> io::Result<Uuid> {
        self.inner.uuid()
    }

    /// Waits until something holds, which is looked at after every change.
    ///
    /// # Errors
    /// A transaction is open, the time is over, or no remote is left to try.
    pub fn wait_until(
        &mut self,
        timeout: Option<Duration>,
        mut holds: impl FnMut(&Idl) -> bool,
    ) -> Result<(), Error> {
        let begin_ms = self.inner.now_ms();
        let end_ms = timeout.map(|timeout| begin_ms.saturating_add(millis(timeout)));
        loop {
            self.inner.run()?;
            if holds(self.inner.idl()) {
                return Ok(());
            }
            if !self.inner.idl().session_state().is_alive() {
                return Err(Error::Dead);
            }
            let left_ms = end_ms.map(|end_ms| end_ms.saturating_sub(self.inner.now_ms()));
            if left_ms == Some(0) {
                return Err(Error::TimedOut);
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

    /// Waits for the first contents, of this connection or any before.
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

    /// Wants other rows of a table, and waits until that is in force.
    ///
    /// # Errors
    /// As [`Client::wait_until`]; the wish remains.
    pub fn set_condition(
        &mut self,
        table: TableId,
        condition: Condition,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        let now_ms = self.inner.now_ms();
        let promise = self.idl_mut().set_condition(now_ms, table, condition);
        self.wait_until(timeout, |idl| idl.condition_seqno() >= promise)
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

    /// Commits the open transaction and waits for what comes of it. Of a transaction that timed out nobody knows what will.
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

    /// Makes a transaction, commits it, and makes it again from what the replica shows then as long as that may help: after a failed
    /// verification, a lost connection. `make` must therefore be good for several calls; an error of it ends the transaction and the
    /// call.
    ///
    /// A transaction whose connection was lost may have been carried out: `make` sees that if it looks at what is there before it
    /// changes it.
    ///
    /// # Errors
    /// Those of `make`; [`Error::Refused`] when the server refuses, [`Error::Ended`] when the lock is not held; as
    /// [`Client::wait_until`] otherwise.
    pub fn transact<T>(
        &mut self,
        timeout: Option<Duration>,
        mut make: impl FnMut(&mut Idl) -> Result<T, Misuse>,
    ) -> Result<Committed<T>, Error> {
        let begin = self.inner.now_ms();
        loop {
            let passed = Duration::from_millis(self.inner.now_ms().saturating_sub(begin));
            let left = timeout.map(|timeout| timeout.saturating_sub(passed));
            let seqno = self.idl().change_seqno();
            let txn = self.idl_mut().begin()?;
            let value = make(self.idl_mut()).inspect_err(|_| self.inner.idl_mut().forget(txn))?;
            let outcome = self.commit(left);
            let finished = self.idl_mut().finish(txn);
            let (_, Some(finished)) = (outcome?, finished) else {
                return Err(Error::Misuse(Misuse::NoTransaction));
            };
            if finished.status == Status::TryAgain {
                self.wait_for_change(seqno, left)?;
            } else {
                return Committed::of(value, finished);
            }
        }
    }
}

/// Reading goes without a word.
impl Deref for Client {
    type Target = Idl;

    fn deref(&self) -> &Idl {
        self.idl()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
