//! A client for asynchronous programs, on tokio. With the feature `tokio`.
//!
//! One task owns a client. The client works while that task awaits one of its methods, and does nothing in between. The futures of these
//! methods may be dropped at any moment without loss: the next call continues the work. For a time limit put `tokio::time::timeout` around a
//! call; [`polled::Client::last_failure`] then gives the reason of the delay.

use std::ops::{Deref, DerefMut};

use corvid_idl::{Class, FetchId, FetchOutcome, Idl, Status, TableCondition, TxnId};
use corvid_net::readiness;

use crate::abort::Abort;
use crate::calls::{self, Front};
use crate::committed::Committed;
use crate::error::Error;
use crate::polled;
use crate::session::SessionState;
use crate::setup::Setup;

/// A client whose waits are futures. It derefs to [`polled::Client`] and through that to [`Idl`], for everything that needs no waiting.
#[derive(Debug)]
pub struct Client {
    inner: polled::Client,
}

impl Client {
    /// As [`polled::Client::connect`]. Nothing is connected before something is awaited.
    ///
    /// # Errors
    /// As there.
    pub fn connect(class: Class, remotes: &str) -> Result<Client, Error> {
        Ok(Client::over(polled::Client::connect(class, remotes)?))
    }

    /// As [`polled::Client::connect_with`]. Nothing is connected before something is awaited.
    ///
    /// # Errors
    /// As there.
    pub fn connect_with(class: Class, remotes: &str, setup: &Setup) -> Result<Client, Error> {
        let client = polled::Client::connect_with(class, remotes, setup)?;
        Ok(Client::over(client))
    }

    /// An asynchronous client from a poll-style one.
    #[must_use]
    pub fn over(client: polled::Client) -> Client {
        Client { inner: client }
    }

    /// Waits until `holds` returns true. It is called after every change.
    ///
    /// # Errors
    /// A transaction is open, or no remote is left to try.
    pub async fn wait_until(&mut self, holds: impl FnMut(&Idl) -> bool) -> Result<(), Error> {
        calls::until(self, holds).await
    }

    /// Waits until the state of the session is as wanted: connected, without a server, at the leader.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub async fn wait_for_session(
        &mut self,
        is_wanted: impl FnMut(&SessionState) -> bool,
    ) -> Result<(), Error> {
        calls::session(self, is_wanted).await
    }

    /// Waits for the initial contents, of this connection or an earlier one.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub async fn wait_for_contents(&mut self) -> Result<(), Error> {
        self.wait_until(Idl::has_ever_connected).await
    }

    /// Waits until [`Idl::change_seqno`] is another one than `seqno`; returns the new one.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub async fn wait_for_change(&mut self, seqno: u64) -> Result<u64, Error> {
        calls::new_seqno(self, seqno).await
    }

    /// Sets the condition of a table and waits until the server applies it: as [`polled::Client::set_condition`].
    ///
    /// # Errors
    /// As [`Client::wait_until`]; the condition stays set. A clause that a server would refuse, or
    /// a refusal by the server: the condition before it stays in force.
    pub async fn set_condition(
        &mut self,
        condition: impl Into<TableCondition>,
    ) -> Result<(), Error> {
        calls::set_condition(self, condition).await
    }

    /// Waits until the lock is held that [`polled::Client::set_lock`] asked for.
    ///
    /// # Errors
    /// As [`Client::wait_until`]; [`Error::LockRefused`].
    pub async fn wait_for_lock(&mut self) -> Result<(), Error> {
        calls::lock(self).await
    }

    /// Waits for the end of a fetch.
    ///
    /// # Errors
    /// As [`Client::wait_until`]; [`Misuse::RowGone`] when its end was told before.
    pub async fn finish_fetch(&mut self, fetch: FetchId) -> Result<FetchOutcome, Error> {
        calls::finish_fetch(self, fetch).await
    }

    /// Commits the open transaction and waits for its outcome.
    ///
    /// # Errors
    /// None is open; as [`Client::wait_until`] otherwise.
    pub async fn commit(&mut self) -> Result<(TxnId, Status), Error> {
        calls::commit(self).await
    }

    /// Makes a transaction, commits it, and retries it; as
    /// [`crate::blocking::Client::transact`].
    ///
    /// # Errors
    /// As there, without a time limit.
    pub async fn transact<T, E: Abort>(
        &mut self,
        make: impl FnMut(&mut Idl) -> Result<T, E>,
    ) -> Result<Committed<T>, E::Error> {
        calls::transact(self, make).await
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
