//! A client for asynchronous programs, on tokio. With the feature `tokio`.
//!
//! One task owns a client. The client works while that task awaits one of its methods, and does nothing in between. The futures of these
//! methods may be dropped at any moment without loss: the next call continues the work. For a time limit put `tokio::time::timeout` around a
//! call; [`polled::Client::last_failure`] then gives the reason of the delay.

use std::ops::{Deref, DerefMut};

use corvid_idl::{Class, FetchId, FetchOutcome, Idl, Misuse, Status, TableCondition, TxnId};
use corvid_net::readiness;

use crate::abort::Abort;
use crate::committed::Committed;
use crate::error::{self, Error};
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
    pub async fn wait_until(&mut self, mut holds: impl FnMut(&Idl) -> bool) -> Result<(), Error> {
        self.wait_for(|client| holds(client.idl())).await
    }

    /// Waits until the state of the session is as wanted: connected, without a server, at the leader.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub async fn wait_for_session(
        &mut self,
        mut is_wanted: impl FnMut(&SessionState) -> bool,
    ) -> Result<(), Error> {
        self.wait_for(|client| is_wanted(&client.session())).await
    }

    async fn wait_for(
        &mut self,
        mut holds: impl FnMut(&polled::Client) -> bool,
    ) -> Result<(), Error> {
        loop {
            self.inner.run()?;
            if holds(&self.inner) {
                return Ok(());
            }
            if !self.inner.idl().session_state().is_alive() {
                return Err(Error::Dead(self.inner.last_failure()));
            }
            readiness::ready(self.inner.wanted()).await?;
        }
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
        self.wait_until(|idl| idl.change_seqno() != seqno).await?;
        Ok(self.idl().change_seqno())
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
        let promise = self.inner.set_condition(condition)?;
        self.wait_until(|idl| idl.condition_seqno() >= promise)
            .await?;
        error::condition_outcome(self.idl(), promise)
    }

    /// Waits until the lock is held that [`polled::Client::set_lock`] asked for.
    ///
    /// # Errors
    /// As [`Client::wait_until`]; [`Error::LockRefused`].
    pub async fn wait_for_lock(&mut self) -> Result<(), Error> {
        let mut outcome = None;
        self.wait_until(|idl| {
            outcome = error::lock_outcome(idl);
            outcome.is_some()
        })
        .await?;
        outcome.unwrap_or(Ok(()))
    }

    /// Waits for the end of a fetch.
    ///
    /// # Errors
    /// As [`Client::wait_until`]; [`Misuse::RowGone`] when its end was told before.
    pub async fn finish_fetch(&mut self, fetch: FetchId) -> Result<FetchOutcome, Error> {
        loop {
            match self.idl_mut().take_fetch_outcome(fetch) {
                Some(FetchOutcome::Pending) => {}
                Some(outcome) => return Ok(outcome),
                None => return Err(Error::Misuse(Misuse::RowGone)),
            }
            let seqno = self.idl().change_seqno();
            self.wait_for_change(seqno).await?;
        }
    }

    /// Commits the open transaction and waits for its outcome.
    ///
    /// # Errors
    /// None is open; as [`Client::wait_until`] otherwise.
    pub async fn commit(&mut self) -> Result<(TxnId, Status), Error> {
        let txn = self.idl().open_txn().ok_or(Misuse::NoTransaction)?;
        self.idl_mut().commit()?;
        let is_final = |idl: &Idl| idl.status(txn) != Some(Status::Incomplete);
        if !is_final(self.idl()) {
            self.wait_until(is_final).await?;
        }
        let status = self.idl().status(txn).ok_or(Misuse::NoTransaction)?;
        Ok((txn, status))
    }

    /// Makes a transaction, commits it, and retries it; as
    /// [`crate::blocking::Client::transact`].
    ///
    /// # Errors
    /// As there, without a time limit.
    pub async fn transact<T, E: Abort>(
        &mut self,
        mut make: impl FnMut(&mut Idl) -> Result<T, E>,
    ) -> Result<Committed<T>, E::Error> {
        loop {
            let seqno = self.idl().change_seqno();
            let txn = self.idl_mut().begin().map_err(Error::from)?;
            let value = make(self.idl_mut()).map_err(|error| {
                self.inner.idl_mut().forget(txn);
                error.into_error()
            })?;
            let outcome = self.commit().await;
            let finished = self.idl_mut().finish(txn);
            let (_, Some(finished)) = (outcome?, finished) else {
                return Err(Error::Misuse(Misuse::NoTransaction).into());
            };
            if finished.status == Status::TryAgain {
                self.wait_for_change(seqno).await?;
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
