//! The session of a typed replica, beyond what [`super::idl`] has: errors of connections, the
//! class, what the replica costs.

use std::ffi::c_int;
use std::io;
use std::ptr;

use corvid::rpc::log_event::End;
use corvid::session::Cause;

use super::cell::{State, idl as core};
use super::class::corvid_idl_class;
use super::idl::{corvid_idl, with};
use crate::error::{Outcome, guard};
use crate::pointer::Out;

/// The end of a connection that the peer closed, as `EOF` of stdio.h.
const EOF: c_int = -1;

/// The highest error number of the systems that the library runs on.
const ERRNO_MAX: c_int = 133;

fn set(name: &'static str, replica: *const corvid_idl, work: impl FnOnce(&mut State) -> Outcome) {
    guard(name, || with(replica, |_, state| work(state)));
}

/// Why the replica has no server: 0 without a reason, EOF if the server closed the connection, else
/// a number of errno.h. A server that was left, because it lacks the database for example, is
/// EPROTO; the log tells more.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_get_last_error(replica: *const corvid_idl) -> c_int {
    let mut number = 0;
    guard("corvid_idl_get_last_error", || {
        number = with(replica, |_, state| {
            let Some(client) = &state.client else {
                return Ok(0);
            };
            let error = client.idl().session_state().last_error();
            Ok(error.map_or(0, |error| number_of(&error.cause)))
        })?;
        Ok(())
    });
    number
}

fn number_of(cause: &Cause) -> c_int {
    match cause {
        Cause::Connection(End::Closed) => EOF,
        Cause::Connection(End::Failed(text)) => errno_of(text),
        Cause::Connection(End::Local) => libc::ETIMEDOUT,
        Cause::Server(_) => libc::EPROTO,
    }
}

/// The number of an error of the operating system that is told in its words. The session keeps
/// words only, because the reason may be that of another layer, such as TLS.
fn errno_of(text: &str) -> c_int {
    let is_it = |number: &c_int| {
        let words = io::Error::from_raw_os_error(*number).to_string();
        words
            .strip_prefix(text)
            .is_some_and(|rest| rest.starts_with(" (os error "))
    };
    (1..=ERRNO_MAX).find(is_it).unwrap_or(libc::EPROTO)
}

/// Connects for ever from now on, also after a corvid_idl_set_remote without `retry`.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_enable_reconnect(replica: *mut corvid_idl) {
    set("corvid_idl_enable_reconnect", replica, |state| {
        state.setup.is_persistent = true;
        if let Some(client) = &mut state.client {
            let now_ms = client.now_ms();
            client.idl_mut().session().enable_reconnect(now_ms);
        }
        Ok(())
    });
}

/// Forgets which state of a cluster's log the replica has seen, so that a cluster that was built
/// from scratch is not taken for a stale server.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_reset_min_index(replica: *mut corvid_idl) {
    set("corvid_idl_reset_min_index", replica, |state| {
        if let Some(client) = &mut state.client {
            client.idl_mut().session().reset_index_min();
        }
        Ok(())
    });
}

/// Whether the server may tell of changes of its databases, such as a conversion of the schema,
/// without closing the connection. From the next connection on. The default is true.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_set_db_change_aware(replica: *mut corvid_idl, aware: bool) {
    set("corvid_idl_set_db_change_aware", replica, |state| {
        state.is_change_aware = aware;
        if let Some(client) = &mut state.client {
            client.idl_mut().session().set_change_aware(aware);
        }
        Ok(())
    });
}

/// From now on, a write of a column that is replicated with alerts makes its transaction fail. For
/// programs that write only columns that they have named to corvid_idl_omit_alert.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_verify_write_only(replica: *mut corvid_idl) {
    set("corvid_idl_verify_write_only", replica, |state| {
        state.writes_only_silent = true;
        Ok(())
    });
}

/// The class that the replica was made of, or null.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_get_class(replica: *const corvid_idl) -> *const corvid_idl_class {
    let mut class = ptr::null();
    guard("corvid_idl_get_class", || {
        let address = with(replica, |_, state| Ok(state.layout.class))?;
        class = ptr::without_provenance(address);
        Ok(())
    });
    class
}

/// Counts what the replica holds: `*cells` are its rows times their replicated columns, and
/// `*transactions` those that were sent and are not answered. Both may be null.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_count(
    replica: *const corvid_idl,
    cells: *mut u64,
    transactions: *mut u64,
) {
    guard("corvid_idl_count", || {
        let (n_cells, n_transactions) = with(replica, |_, state| {
            let cells = state.tables.iter().map(|table| {
                let columns = table.modes.iter().filter(|mode| mode.is_monitored).count();
                (table.by_uuid.len() * columns) as u64
            });
            let outstanding = core(state).map_or(0, corvid::Idl::outstanding);
            Ok((cells.sum(), outstanding))
        })?;
        if !cells.is_null() {
            Out::new(cells, "cells")?.set(n_cells);
        }
        if !transactions.is_null() {
            Out::new(transactions, "transactions")?.set(n_transactions);
        }
        Ok(())
    });
}
