//! Calls that block until the contents have arrived or a transaction has ended.
//!
//! Each returns when corvid_interrupt asks for it, when its time limit has passed and when no
//! server is left to try. Log messages reach the program while it waits.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corvid::Status;

use super::cell::{Cell, State, idl as core};
use super::idl::{Replica, corvid_idl};
use super::transaction::{Txn, corvid_idl_txn, corvid_idl_txn_commit, end, is_final};
use crate::client::corvid_wait;
use crate::error::{Failure, corvid_error, guard};
use crate::handle;
use crate::logging;
use crate::process;
use crate::transaction::number_of;

/// How a blocking call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Done,
    TimeOut,
    Interrupted,
    /// No server is left to try.
    Dead,
}

/// The end of a time limit; `None` for a negative one, which is none.
fn end_of(timeout_ms: i64) -> Option<Instant> {
    let timeout_ms = u64::try_from(timeout_ms).ok()?;
    Instant::now().checked_add(Duration::from_millis(timeout_ms))
}

/// Runs a replica and waits for its next event, until `is_done` is true.
fn run_until(
    cell: &Arc<Cell>,
    until: Option<Instant>,
    is_done: impl Fn(&State) -> bool,
) -> Result<Ended, Failure> {
    loop {
        let wait = cell.with(|state| {
            state.run(cell)?;
            if is_done(state) {
                return Ok(Err(Ended::Done));
            }
            let client = state.client()?;
            if !client.session().is_alive {
                return Ok(Err(Ended::Dead));
            }
            Ok(Ok(client.wait()))
        })?;
        logging::deliver();
        let wait = match wait {
            Ok(wait) => corvid_wait::of(&wait),
            Err(ended) => return Ok(ended),
        };
        // The descriptor first: an interrupt after this line leaves a byte in it.
        let interrupting = process::interrupting_fd();
        if process::is_interrupted() {
            return Ok(Ended::Interrupted);
        }
        let left_ms = match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => -1,
            Some(Duration::ZERO) => return Ok(Ended::TimeOut),
            Some(left) => {
                c_int::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX)
            }
        };
        // Without a descriptor the flag is looked at now and then: the transaction may have been
        // sent, so this is no reason to fail.
        let look_ms = if interrupting < 0 { 100 } else { -1 };
        let limits = [wait.timeout_ms, left_ms, look_ms];
        let timeout_ms = limits
            .into_iter()
            .filter(|limit| *limit >= 0)
            .min()
            .unwrap_or(-1);
        let mut fds = [(wait.fd, wait.events), (interrupting, libc::POLLIN)].map(|(fd, events)| {
            libc::pollfd {
                fd,
                events,
                revents: 0,
            }
        });
        // SAFETY: there are two elements; a negative descriptor is passed over.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, timeout_ms) };
        if fds[1].revents != 0 && !process::is_interrupted() {
            process::drain(interrupting);
        }
    }
}

/// The reason why a replica has no server, for a message.
fn reason(cell: &Cell) -> String {
    let failure = cell.with(|state| Ok(state.client()?.last_failure()));
    match failure {
        Ok(Some(failure)) => format!(": {failure}"),
        _ => String::new(),
    }
}

/// Runs and waits until the contents have come, or until corvid_interrupt, or no server is left to
/// try: corvid_idl_has_ever_connected tells.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_get_initial_snapshot(replica: *mut corvid_idl) {
    corvid_idl_get_initial_snapshot_timeout(replica, -1);
}

/// As corvid_idl_get_initial_snapshot, for at most some milliseconds; -1 for ever.
/// CORVID_ERR_NOT_CONNECTED: the contents have not come; corvid_error_text tells why.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_get_initial_snapshot_timeout(
    replica: *mut corvid_idl,
    timeout_ms: i64,
) -> corvid_error {
    guard("corvid_idl_get_initial_snapshot", || {
        let replica = handle::get::<Replica>(replica)?;
        let ended = run_until(&replica.0, end_of(timeout_ms), |state| {
            core(state).is_ok_and(corvid::Idl::has_ever_connected)
        })?;
        let text = match ended {
            Ended::Done => return Ok(()),
            Ended::TimeOut => "timed out",
            Ended::Interrupted => "interrupted",
            Ended::Dead => "no server is left to try",
        };
        let text = format!("{text}{}", reason(&replica.0));
        if ended == Ended::Dead {
            log::warn!(target: corvid::LOG_TARGET, "no contents: {text}");
        }
        Err(Failure::new(corvid_error::CORVID_ERR_NOT_CONNECTED, text))
    })
}

/// Commits a transaction, and runs the replica and waits until the status is final.
/// CORVID_TXN_INCOMPLETE after corvid_interrupt. Without a server that is left to try, the
/// transaction is aborted.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_commit_block(txn: *mut corvid_idl_txn) -> c_int {
    corvid_idl_txn_commit_block_timeout(txn, -1)
}

/// As corvid_idl_txn_commit_block, for at most some milliseconds; -1 for ever.
/// CORVID_TXN_INCOMPLETE: the time is over, and the transaction may still be committed. Call it
/// again, or give up.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_commit_block_timeout(
    txn: *mut corvid_idl_txn,
    timeout_ms: i64,
) -> c_int {
    let until = end_of(timeout_ms);
    let mut status = corvid_idl_txn_commit(txn);
    if is_final(status) {
        return status;
    }
    let outcome = guard("corvid_idl_txn_commit_block", || {
        let txn = handle::get::<Txn>(txn)?;
        let of = |state: &State| {
            let client = state.client.as_ref();
            let found = client.and_then(|client| client.status(txn.id));
            number_of(found.unwrap_or(Status::Aborted))
        };
        if run_until(&txn.cell, until, |state| is_final(of(state)))? == Ended::Dead {
            let reason = reason(&txn.cell);
            log::warn!(target: corvid::LOG_TARGET, "transaction aborted: no server is left to try{reason}");
            txn.cell.with(|state| {
                state.client()?.idl_mut().abort(txn.id);
                end(state, txn.id);
                Ok(())
            })?;
        }
        status = txn.cell.with(|state| Ok(of(state)))?;
        Ok(())
    });
    // A failure is final: another call would wait for a status that never comes.
    if outcome != corvid_error::CORVID_OK && !is_final(status) {
        status = number_of(Status::Error);
    }
    status
}
