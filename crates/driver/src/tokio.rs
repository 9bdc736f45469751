//! A client for asynchronous programs, on tokio. Needs the feature `tokio`.
//!
//! One task owns a client. The client works while that task awaits one of its methods, and is idle
//! in between. Dropping the future of a method loses nothing: the next call continues the work. For
//! a time limit wrap a call in `tokio::time::timeout`; [`polled::Client::last_failure`] then gives
//! the reason of the delay.

use std::ops::{ControlFlow, Deref, DerefMut};

use corvid_idl::{Class, FetchId, FetchOutcome, Idl, Status, TableCondition, TxnId};
use corvid_net::readiness;
use corvid_session::history::Question as HistoryQuestion;

use crate::abort::Abort;
use crate::calls::{self, Front};
use crate::committed::Committed;
use crate::error::Error;
use crate::history;
use crate::polled;
use crate::session::SessionState;
use crate::setup::Setup;

/// A client whose waits are futures. It derefs to [`polled::Client`], and through that to [`Idl`],
/// for everything that does not wait.
#[derive(Debug)]
pub struct Client {
    inner: polled::Client,
}

impl Client {
    /// Creates a client, as [`polled::Client::connect`] does. The first awaited call starts to
    /// connect.
    ///
    /// # Errors
    /// Those of [`polled::Client::connect`].
    pub fn connect(class: Class, remotes: &str) -> Result<Client, Error> {
        Ok(Client::over(polled::Client::connect(class, remotes)?))
    }

    /// Creates a client, as [`polled::Client::connect_with`] does. The first awaited call starts to
    /// connect.
    ///
    /// # Errors
    /// Those of [`polled::Client::connect_with`].
    pub fn connect_with(class: Class, remotes: &str, setup: &Setup) -> Result<Client, Error> {
        let client = polled::Client::connect_with(class, remotes, setup)?;
        Ok(Client::over(client))
    }

    /// Turns a polled client into an asynchronous one.
    #[must_use]
    pub fn over(client: polled::Client) -> Client {
        Client { inner: client }
    }

    /// Waits until `holds` returns true. The client calls it after every change.
    ///
    /// # Errors
    /// A transaction is open, or no remote is left to try.
    pub async fn wait_until(&mut self, holds: impl FnMut(&Idl) -> bool) -> Result<(), Error> {
        calls::until(self, holds).await
    }

    /// Waits until `is_wanted` returns true for the session's state, for example connected,
    /// disconnected, or connected to the leader.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub async fn wait_for_session(
        &mut self,
        is_wanted: impl FnMut(&SessionState) -> bool,
    ) -> Result<(), Error> {
        calls::session(self, is_wanted).await
    }

    /// Waits until the client has contents, from this connection or an earlier one.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub async fn wait_for_contents(&mut self) -> Result<(), Error> {
        self.wait_until(Idl::has_ever_connected).await
    }

    /// Waits until [`Idl::change_seqno`] differs from `seqno`, and returns the new number.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub async fn wait_for_change(&mut self, seqno: u64) -> Result<u64, Error> {
        calls::new_seqno(self, seqno).await
    }

    /// Sets the condition of a table, as [`polled::Client::set_condition`] does, and waits until
    /// the server applies it.
    ///
    /// # Errors
    /// Those of [`Client::wait_until`]: the condition stays set. [`Error::Misuse`] for a clause
    /// that any server would refuse and [`Error::ConditionRefused`] for the server's refusal: the
    /// previous condition stays in force.
    pub async fn set_condition(
        &mut self,
        condition: impl Into<TableCondition>,
    ) -> Result<(), Error> {
        calls::set_condition(self, condition).await
    }

    /// Waits until the client holds the lock that [`polled::Client::set_lock`] requested.
    ///
    /// # Errors
    /// Those of [`Client::wait_until`], and [`Error::LockRefused`].
    pub async fn wait_for_lock(&mut self) -> Result<(), Error> {
        calls::lock(self).await
    }

    /// Waits for a fetch to end, and returns its outcome.
    ///
    /// # Errors
    /// Those of [`Client::wait_until`], and [`Misuse::RowGone`] if the outcome has already been
    /// taken.
    pub async fn finish_fetch(&mut self, fetch: FetchId) -> Result<FetchOutcome, Error> {
        calls::finish_fetch(self, fetch).await
    }

    /// Commits the open transaction and waits for its outcome.
    ///
    /// # Errors
    /// No transaction is open; otherwise those of [`Client::wait_until`].
    pub async fn commit(&mut self) -> Result<(TxnId, Status), Error> {
        calls::commit(self).await
    }

    /// Builds a transaction, commits it and retries it, as [`crate::blocking::Client::transact`]
    /// does.
    ///
    /// # Errors
    /// Those of [`crate::blocking::Client::transact`], except for the time limit.
    pub async fn transact<T, E: Abort>(
        &mut self,
        make: impl FnMut(&mut Idl) -> Result<T, E>,
    ) -> Result<Committed<T>, E::Error> {
        calls::transact(self, make).await
    }

    /// Reads the history of the database from the server, as
    /// [`crate::blocking::Client::read_history`] does.
    ///
    /// # Errors
    /// Those of [`crate::blocking::Client::read_history`], except for the time limit.
    pub async fn read_history(
        &mut self,
        question: &HistoryQuestion,
        line: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        history::read(self, question, line).await
    }

    /// Executes `select` operations on the contents at a moment, as
    /// [`crate::blocking::Client::select_at`] does.
    ///
    /// # Errors
    /// Those of [`crate::blocking::Client::select_at`], except for the time limit.
    pub async fn select_at(&mut self, moment: &str, operations: &str) -> Result<Vec<u8>, Error> {
        history::select_at(self, moment, operations).await
    }
}

impl Front for Client {
    fn look<T>(&self, look: impl FnOnce(&polled::Client) -> T) -> T {
        look(&self.inner)
    }

    fn change<T>(&mut self, act: impl FnOnce(&mut polled::Client) -> T) -> T {
        act(&mut self.inner)
    }

    async fn wait<T>(
        &mut self,
        mut found: impl FnMut(&polled::Client) -> Option<T>,
    ) -> Result<T, Error> {
        loop {
            self.inner.run()?;
            if let Some(found) = found(&self.inner) {
                return Ok(found);
            }
            self.inner.check_alive()?;
            readiness::ready(self.inner.wanted()).await?;
        }
    }
}

/// Gives access to the settings and the session's state, and through a second deref to the replica.
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
