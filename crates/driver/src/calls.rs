//! The calls that wait, each written once for all fronts.
//!
//! A [`Front`] gives access to a client and has one way to wait: by blocking, by waiting for
//! another thread, or as a future. A call is a sequence of looks, changes and waits. The front's
//! time limit covers all waits of a call together. This file has no effects: it uses neither a
//! clock nor a descriptor.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use corvid_idl::{FetchId, FetchOutcome, Idl, Misuse, Status, TableCondition, TxnId};

use crate::abort::Abort;
use crate::committed::Committed;
use crate::error::{self, Error};
use crate::polled;
use crate::session::SessionState;

/// A client, and the way to wait for it.
pub(crate) trait Front {
    /// Calls `look` with shared access to the client.
    fn look<T>(&self, look: impl FnOnce(&polled::Client) -> T) -> T;

    /// Calls `act` with exclusive access to the client. Requests to the server are sent during the
    /// next wait.
    fn change<T>(&mut self, act: impl FnOnce(&mut polled::Client) -> T) -> T;

    /// Sends requests without a wait, because the call ends.
    fn flush(&mut self) {
        self.change(polled::Client::flush);
    }

    /// Waits until `found` returns a value. The front calls it after every change.
    async fn wait<T>(
        &mut self,
        found: impl FnMut(&polled::Client) -> Option<T>,
    ) -> Result<T, Error>;
}

/// Runs a call of a blocking front, whose waits are complete when they return.
pub(crate) fn block<T>(call: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(call).poll(&mut context) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => unreachable!("a front that blocks has no wait under way"),
    }
}

pub(crate) async fn until(
    front: &mut impl Front,
    mut holds: impl FnMut(&Idl) -> bool,
) -> Result<(), Error> {
    let found = |client: &polled::Client| holds(client.idl()).then_some(());
    front.wait(found).await
}

pub(crate) async fn session(
    front: &mut impl Front,
    mut is_wanted: impl FnMut(&SessionState) -> bool,
) -> Result<(), Error> {
    let found = |client: &polled::Client| is_wanted(&client.session()).then_some(());
    front.wait(found).await
}

/// Waits for a `change_seqno` other than `seqno`, and returns it.
pub(crate) async fn new_seqno(front: &mut impl Front, seqno: u64) -> Result<u64, Error> {
    let found = |client: &polled::Client| Some(client.change_seqno()).filter(|now| *now != seqno);
    front.wait(found).await
}

pub(crate) async fn set_condition(
    front: &mut impl Front,
    condition: impl Into<TableCondition>,
) -> Result<(), Error> {
    let promise = front.change(|client| client.set_condition(condition))?;
    let found = |client: &polled::Client| {
        let is_over = client.condition_seqno() >= promise;
        is_over.then(|| error::condition_outcome(client.idl(), promise))
    };
    front.wait(found).await?
}

pub(crate) async fn lock(front: &mut impl Front) -> Result<(), Error> {
    front
        .wait(|client| error::lock_outcome(client.idl()))
        .await?
}

pub(crate) async fn finish_fetch(
    front: &mut impl Front,
    fetch: FetchId,
) -> Result<FetchOutcome, Error> {
    loop {
        let (outcome, seqno) = front.change(|client| {
            let outcome = client.idl_mut().take_fetch_outcome(fetch);
            (outcome, client.change_seqno())
        });
        match outcome {
            Some(FetchOutcome::Pending) => {}
            Some(outcome) => return Ok(outcome),
            None => return Err(Error::Misuse(Misuse::RowGone)),
        }
        new_seqno(front, seqno).await?;
    }
}

/// Commits the open transaction and waits for its outcome.
pub(crate) async fn commit(front: &mut impl Front) -> Result<(TxnId, Status), Error> {
    let txn = front.change(|client| {
        let txn = client.open_txn().ok_or(Misuse::NoTransaction)?;
        client.idl_mut().commit().map(|_| txn)
    })?;
    Ok((txn, outcome(front, txn).await?))
}

/// Waits for the outcome of a committed transaction.
async fn outcome(front: &mut impl Front, txn: TxnId) -> Result<Status, Error> {
    let is_over = |idl: &Idl| idl.status(txn) != Some(Status::Incomplete);
    // A transaction without changes completes at once, without a server.
    if !front.look(|client| is_over(client.idl())) {
        until(front, is_over).await?;
    }
    let status = front.look(|client| client.status(txn));
    status.ok_or(Error::Misuse(Misuse::NoTransaction))
}

pub(crate) async fn transact<T, E: Abort>(
    front: &mut impl Front,
    mut make: impl FnMut(&mut Idl) -> Result<T, E>,
) -> Result<Committed<T>, E::Error> {
    loop {
        let (txn, seqno, value) =
            front.change(|client| begin_and_commit(client.idl_mut(), &mut make))?;
        let outcome = outcome(front, txn).await;
        // Runs also after a failed wait. Otherwise the replica would keep the outcome forever.
        let finished = front.change(|client| client.idl_mut().finish(txn));
        let (_, Some(finished)) = (outcome?, finished) else {
            return Err(Error::Misuse(Misuse::NoTransaction).into());
        };
        if finished.status == Status::TryAgain {
            // A retry needs other contents than those on which the verification failed, so it waits
            // for a change.
            new_seqno(front, seqno).await?;
        } else {
            return Ok(Committed::of(value, finished)?);
        }
    }
}

/// Builds a transaction and commits it. Returns its id, the `change_seqno` that `make` saw, and the
/// value of `make`.
fn begin_and_commit<T, E: Abort>(
    idl: &mut Idl,
    make: &mut impl FnMut(&mut Idl) -> Result<T, E>,
) -> Result<(TxnId, u64, T), E::Error> {
    // Read before `make` reads the replica: a retry waits for contents that `make` has not seen.
    let seqno = idl.change_seqno();
    let txn = idl.begin().map_err(Error::from)?;
    let value = make(idl).map_err(|error| {
        idl.forget(txn);
        error.into_error()
    })?;
    if let Err(misuse) = idl.commit() {
        idl.finish(txn);
        return Err(Error::from(misuse).into());
    }
    Ok((txn, seqno, value))
}
