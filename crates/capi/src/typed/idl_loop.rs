//! One transaction for each turn of a daemon's main loop (docs/spec/idl.md 2.8).

use std::ffi::{c_int, c_uint};
use std::ptr;

use super::idl::{
    corvid_idl, corvid_idl_destroy, corvid_idl_get_seqno, corvid_idl_run, corvid_idl_wait,
};
use super::transaction::{
    corvid_idl_txn, corvid_idl_txn_commit, corvid_idl_txn_create, corvid_idl_txn_destroy,
};
use crate::abi::{SizedOut, Versioned, sized_array};
use crate::error::{Failure, guard};
use crate::poll_loop::corvid_poll_timer;

/// The state of a main loop. Begin with CORVID_IDL_LOOP_INIT.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_idl_loop {
    /// `sizeof(struct corvid_idl_loop)`, set by the caller.
    pub size: usize,
    /// The replica.
    pub idl: *mut corvid_idl,
    /// At this change number another attempt would fail as the last one did.
    pub skip_seqno: c_uint,
    /// The transaction that was sent.
    pub committing_txn: *mut corvid_idl_txn,
    /// The change number before the commit.
    pub precommit_seqno: c_uint,
    /// The transaction of this turn.
    pub open_txn: *mut corvid_idl_txn,
    /// The program's: the configuration that the database has.
    pub cur_cfg: i64,
    /// The program's: the configuration that the transaction brings.
    pub next_cfg: i64,
}

// SAFETY: numbers and pointers only, the size first.
unsafe impl Versioned for corvid_idl_loop {
    const NAME: &'static str = "corvid_idl_loop";
    const LEAST: usize = 64;
}

const UNCHANGED: c_int = 1;
const INCOMPLETE: c_int = 2;
const SUCCESS: c_int = 4;
const TRY_AGAIN: c_int = 5;

/// Does something with the loop of the program.
fn with_loop<R>(
    name: &'static str,
    state: *mut corvid_idl_loop,
    default: R,
    work: impl FnOnce(&mut corvid_idl_loop) -> R,
) -> R {
    let mut result = default;
    guard(name, || {
        let out = SizedOut::new(state)?;
        let mut held = sized_array(state.cast_const(), 1, "loop")?
            .next()
            .ok_or_else(|| Failure::null("loop"))??;
        result = work(&mut held);
        out.set(held);
        Ok(())
    });
    result
}

/// Runs the replica of a loop, and opens the transaction of this turn. Null: the last one is still
/// being committed, or nothing has changed since it failed.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_loop_run(state: *mut corvid_idl_loop) -> *mut corvid_idl_txn {
    with_loop("corvid_idl_loop_run", state, ptr::null_mut(), |state| {
        corvid_idl_run(state.idl);
        if !state.committing_txn.is_null() && corvid_idl_txn_commit(state.committing_txn) == SUCCESS
        {
            finish(state);
        }
        let is_skipped = corvid_idl_get_seqno(state.idl) == state.skip_seqno;
        state.open_txn = if state.committing_txn.is_null() && !is_skipped {
            corvid_idl_txn_create(state.idl)
        } else {
            ptr::null_mut()
        };
        state.open_txn
    })
}

/// Commits the transaction of this turn, and registers the events of the loop for
/// corvid_poll_block. Returns 1 if nothing is in progress and all is committed, 0 after a failure,
/// -1 while a transaction is in progress.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_loop_commit_and_wait(state: *mut corvid_idl_loop) -> c_int {
    with_loop("corvid_idl_loop_commit_and_wait", state, 0, |state| {
        if !state.open_txn.is_null() {
            state.committing_txn = state.open_txn;
            state.open_txn = ptr::null_mut();
            state.precommit_seqno = corvid_idl_get_seqno(state.idl);
        }
        let mut result = 1;
        if !state.committing_txn.is_null() {
            result = match corvid_idl_txn_commit(state.committing_txn) {
                INCOMPLETE => -1,
                SUCCESS => {
                    finish(state);
                    // The program is to see its own changes.
                    corvid_poll_timer(0);
                    1
                }
                UNCHANGED => {
                    finish(state);
                    1
                }
                status => {
                    if status == TRY_AGAIN {
                        state.skip_seqno = state.precommit_seqno;
                        if corvid_idl_get_seqno(state.idl) != state.skip_seqno {
                            corvid_poll_timer(0);
                        }
                    }
                    corvid_idl_txn_destroy(state.committing_txn);
                    state.committing_txn = ptr::null_mut();
                    0
                }
            };
        }
        corvid_idl_wait(state.idl);
        result
    })
}

fn finish(state: &mut corvid_idl_loop) {
    state.cur_cfg = state.next_cfg;
    corvid_idl_txn_destroy(state.committing_txn);
    state.committing_txn = ptr::null_mut();
}

/// Frees the transactions and the replica of a loop. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_loop_destroy(state: *mut corvid_idl_loop) {
    if state.is_null() {
        return;
    }
    with_loop("corvid_idl_loop_destroy", state, (), |state| {
        corvid_idl_txn_destroy(state.open_txn);
        corvid_idl_txn_destroy(state.committing_txn);
        corvid_idl_destroy(state.idl);
        (state.open_txn, state.committing_txn) = (ptr::null_mut(), ptr::null_mut());
        state.idl = ptr::null_mut();
    });
}
