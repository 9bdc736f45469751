//! The replica: settings, the run, the state of its session.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::Arc;
use std::time::Duration;

use corvid::fork::Lock;
use corvid::{Authority, Credentials, Settings, polled};

use super::cell::{Cell, Mode, State, idl as core};
use super::class::{Layout, corvid_idl_class, corvid_idl_column, corvid_idl_table_class};
use crate::abi::SizedOut;
use crate::client::corvid_wait;
use crate::error::{Failure, Outcome, corvid_error, guard};
use crate::handle::{self, Kind};
use crate::pointer;
use crate::poll_loop;

/// A replica with typed rows. Free it with corvid_idl_destroy. One thread at a time uses it,
/// because the program reads the structs of rows without a lock.
pub struct corvid_idl {
    _private: [u8; 0],
}

/// The object behind the handle.
pub(crate) struct Replica(pub(crate) Arc<Cell>);

impl Kind for Replica {
    type Opaque = corvid_idl;
    const NAME: &'static str = "replica";
    const IS_CACHED: bool = true;
}

/// Does something with the replica of a handle.
pub(crate) fn with<R>(
    replica: *const corvid_idl,
    work: impl FnOnce(&Arc<Cell>, &mut State) -> Result<R, Failure>,
) -> Result<R, Failure> {
    handle::with::<Replica, R>(replica, |replica| {
        replica.0.with(|state| work(&replica.0, state))
    })
}

/// Runs the body of a function that returns a number or a truth; `default` after a failure.
fn value_or<T>(name: &'static str, default: T, work: impl FnOnce() -> Result<T, Failure>) -> T {
    let mut value = default;
    guard(name, || {
        value = work()?;
        Ok(())
    });
    value
}

/// Makes a replica of a class that ovsdb-idlc has made. It connects once corvid_idl_set_remote
/// gives it remotes. Null after a failure, which corvid_error_text explains. Free it with
/// corvid_idl_destroy.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_create_unconnected(
    class: *const corvid_idl_class,
    monitor_everything: bool,
) -> *mut corvid_idl {
    value_or(
        "corvid_idl_create_unconnected",
        std::ptr::null_mut(),
        || {
            crate::logging::install();
            let layout = Layout::of(class)?;
            let cell = Arc::new(Cell {
                state: Lock::new(Some(State::new(layout, monitor_everything))),
            });
            let made = handle::store(Replica(cell.clone()))?;
            cell.with(|state| {
                for table in &mut state.tables {
                    table.handle.idl = made;
                }
                Ok(())
            })?;
            Ok(made)
        },
    )
}

/// As corvid_idl_create_unconnected, with remotes; `retry` as in corvid_idl_set_remote.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_create(
    remote: *const c_char,
    class: *const corvid_idl_class,
    monitor_everything: bool,
    retry: bool,
) -> *mut corvid_idl {
    let made = corvid_idl_create_unconnected(class, monitor_everything);
    if !made.is_null() {
        corvid_idl_set_remote(made, remote, retry);
    }
    made
}

/// Frees a replica, its rows and their structs. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_destroy(replica: *mut corvid_idl) {
    guard("corvid_idl_destroy", || {
        if let Some(replica) = handle::take::<Replica>(replica)? {
            // Left locked by a fork, it stays as it is: there is no safe way to drop it.
            let state = replica.0.state.lock_to_drop();
            let taken = state
                .map_err(|error| Failure::locking("replica", error))?
                .take();
            // Without the lock: code of synthetic columns may run.
            drop(taken);
        }
        Ok(())
    });
}

fn set(
    name: &'static str,
    replica: *const corvid_idl,
    work: impl FnOnce(&mut State) -> Outcome,
) -> corvid_error {
    guard(name, || with(replica, |_, state| work(state)))
}

/// Connects to one of the remotes of a comma-separated list, for ever or, without `retry`, once
/// each. Null ends the session.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_set_remote(
    replica: *mut corvid_idl,
    remote: *const c_char,
    retry: bool,
) {
    set("corvid_idl_set_remote", replica, |state| {
        let remote = pointer::optional_text(remote, "remote")?;
        state.remote = remote.map(str::to_owned);
        state.setup.is_persistent = retry;
        let remote = remote.unwrap_or_default().to_owned();
        if let Some(client) = &mut state.client {
            let now_ms = client.now_ms();
            client
                .idl_mut()
                .session()
                .set_remote(now_ms, &remote, retry);
        }
        Ok(())
    });
}

/// Sets the files for `ssl:` remotes, in place of those of the process
/// (corvid_tls_set_private_key_file), from the next connection on.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_set_tls(
    replica: *mut corvid_idl,
    private_key: *const c_char,
    certificate: *const c_char,
    ca_certificate: *const c_char,
) -> corvid_error {
    set("corvid_idl_set_tls", replica, |state| {
        let authority = pointer::owned_text(ca_certificate, "ca_certificate")?;
        let settings = Settings {
            private_key: pointer::owned_text(private_key, "private_key")?,
            certificate: pointer::owned_text(certificate, "certificate")?,
            authority: authority.map(|file| Authority {
                file,
                is_bootstrapped: false,
            }),
            ..Settings::default()
        };
        state.setup.credentials = Some(Credentials::new(&settings));
        let credentials = state.setup.credentials.clone();
        if let Some(client) = &mut state.client {
            client.set_credentials(credentials);
        }
        Ok(())
    })
}

/// Whether remotes are tried in random order; the next corvid_idl_set_remote heeds it.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_set_shuffle_remotes(replica: *mut corvid_idl, shuffle: bool) {
    set("corvid_idl_set_shuffle_remotes", replica, |state| {
        state.setup.is_shuffled = shuffle;
        if let Some(client) = &mut state.client {
            client.idl_mut().session().set_shuffle_remotes(shuffle);
        }
        Ok(())
    });
}

/// Whether the client connects only to the leader of a cluster. The default is true.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_set_leader_only(replica: *mut corvid_idl, leader_only: bool) {
    set("corvid_idl_set_leader_only", replica, |state| {
        state.setup.is_leader_only = leader_only;
        if let Some(client) = &mut state.client {
            client.set_leader_only(leader_only);
        }
        Ok(())
    });
}

/// After how many milliseconds of silence the server is probed; 0 never.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_set_probe_interval(replica: *const corvid_idl, interval_ms: c_int) {
    set("corvid_idl_set_probe_interval", replica, |state| {
        let interval = u64::try_from(interval_ms);
        let interval = interval.map_err(|_| Failure::argument("the interval is negative"))?;
        let interval = Some(Duration::from_millis(interval));
        state.setup.probe_interval = interval;
        if let Some(client) = &mut state.client {
            client.set_probe_interval(interval);
        }
        Ok(())
    });
}

/// Ends the connection and makes another one.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_force_reconnect(replica: *mut corvid_idl) {
    set("corvid_idl_force_reconnect", replica, |state| {
        state.client()?.reconnect();
        Ok(())
    });
}

/// Asks the server for a lock, in place of another one; null gives it back.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_set_lock(replica: *mut corvid_idl, name: *const c_char) {
    set("corvid_idl_set_lock", replica, |state| {
        let name = pointer::optional_text(name, "name")?;
        match &mut state.client {
            Some(client) => client.set_lock(name)?,
            None => polled::check_lock_name(name)?,
        }
        state.setup.lock = name.map(str::to_owned);
        Ok(())
    });
}

/// Changes the mode of a column, before the first run.
fn set_mode(
    name: &'static str,
    replica: *mut corvid_idl,
    column: *const corvid_idl_column,
    work: impl FnOnce(&mut Mode),
) {
    set(name, replica, |state| {
        let (table, column) = state.layout.column(column)?;
        is_open(state)?;
        work(&mut state.tables[table].modes[column]);
        if state.tables[table].modes[column].is_monitored {
            let layout = state.layout.clone();
            let column = &layout.tables[table].columns[column];
            let targets = [
                column.key.target,
                column.value.and_then(|value| value.target),
            ];
            for target in targets.into_iter().flatten() {
                state.tables[target].is_needed = true;
            }
        }
        Ok(())
    });
}

fn is_open(state: &State) -> Outcome {
    if state.client.is_none() {
        return Ok(());
    }
    Err(Failure::argument("columns are chosen before the first run"))
}

/// Replicates a column, and the rows that it may refer to. Like all calls that choose columns,
/// before the first corvid_idl_run.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_add_column(
    replica: *mut corvid_idl,
    column: *const corvid_idl_column,
) {
    set_mode("corvid_idl_add_column", replica, column, |mode| {
        *mode = Mode::MONITOR;
    });
}

/// Replicates the rows of a table, with or without columns.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_add_table(
    replica: *mut corvid_idl,
    class: *const corvid_idl_table_class,
) {
    set("corvid_idl_add_table", replica, |state| {
        let table = state.layout.table(class)?;
        is_open(state)?;
        state.tables[table].is_needed = true;
        Ok(())
    });
}

/// Takes a column out of the replica.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_omit(replica: *mut corvid_idl, column: *const corvid_idl_column) {
    set_mode("corvid_idl_omit", replica, column, |mode| {
        *mode = Mode::default();
    });
}

/// Replicates a column without alerts on its changes.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_omit_alert(
    replica: *mut corvid_idl,
    column: *const corvid_idl_column,
) {
    set_mode("corvid_idl_omit_alert", replica, column, |mode| {
        (mode.alerts, mode.is_tracked) = (false, false);
    });
}

/// Drops writes of the present value to a column, or not.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_set_write_changed_only(
    replica: *mut corvid_idl,
    column: *const corvid_idl_column,
    enable: bool,
) {
    set_mode(
        "corvid_idl_set_write_changed_only",
        replica,
        column,
        |mode| {
            mode.writes_changed_only = enable;
        },
    );
}

/// The same for all columns that are replicated with alerts.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_set_write_changed_only_all(replica: *mut corvid_idl, enable: bool) {
    set("corvid_idl_set_write_changed_only_all", replica, |state| {
        is_open(state)?;
        for mode in state.tables.iter_mut().flat_map(|table| &mut table.modes) {
            mode.writes_changed_only = enable && mode.alerts;
        }
        Ok(())
    });
}

/// Tracks changes of a column; replicates it if it was not.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_track_add_column(
    replica: *mut corvid_idl,
    column: *const corvid_idl_column,
) {
    set_mode("corvid_idl_track_add_column", replica, column, |mode| {
        if !mode.alerts {
            *mode = Mode::MONITOR;
        }
        mode.is_tracked = true;
    });
}

/// Tracks changes of every column that is replicated with alerts by now.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_track_add_all(replica: *mut corvid_idl) {
    set("corvid_idl_track_add_all", replica, |state| {
        is_open(state)?;
        for mode in state.tables.iter_mut().flat_map(|table| &mut table.modes) {
            mode.is_tracked |= mode.is_monitored && mode.alerts;
        }
        Ok(())
    });
}

/// Does all work that needs no waiting, and brings the structs of rows up to date. No transaction
/// may be open.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_run(replica: *mut corvid_idl) {
    guard("corvid_idl_run", || {
        with(replica, |cell, state| state.run(cell))
    });
}

/// Tells the events to wait for before the next corvid_idl_run.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_wait_for(
    replica: *mut corvid_idl,
    wait: *mut corvid_wait,
) -> corvid_error {
    guard("corvid_idl_wait_for", || {
        let out = SizedOut::new(wait)?;
        let wait = with(replica, |_, state| Ok(state.client()?.wait()))?;
        out.set(corvid_wait::of(&wait));
        Ok(())
    })
}

/// Registers these events for corvid_poll_block.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_wait(replica: *mut corvid_idl) {
    guard("corvid_idl_wait", || {
        let wait = with(replica, |_, state| Ok(state.client()?.wait()))?;
        register(corvid_wait::of(&wait));
        Ok(())
    });
}

/// Registers events with the loop of the thread.
fn register(wait: corvid_wait) {
    if wait.fd >= 0 {
        poll_loop::corvid_poll_fd(wait.fd, wait.events);
    }
    if wait.timeout_ms >= 0 {
        poll_loop::corvid_poll_timer(wait.timeout_ms.into());
    }
}

/// The change number: it grows with every visible change of the replica.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_get_seqno(replica: *const corvid_idl) -> c_uint {
    value_or("corvid_idl_get_seqno", 0, || {
        with(replica, |_, state| Ok(state.seqno() as c_uint))
    })
}

/// Whether contents have ever arrived.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_has_ever_connected(replica: *const corvid_idl) -> bool {
    value_or("corvid_idl_has_ever_connected", false, || {
        with(replica, |_, state| {
            Ok(core(state).is_ok_and(corvid::Idl::has_ever_connected))
        })
    })
}

/// Whether the session is connected or going to try.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_is_alive(replica: *const corvid_idl) -> bool {
    value_or("corvid_idl_is_alive", false, || {
        with(replica, |_, state| Ok(state.client()?.session().is_alive))
    })
}

/// Whether a connection is established.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_is_connected(replica: *const corvid_idl) -> bool {
    value_or("corvid_idl_is_connected", false, || {
        with(replica, |_, state| {
            Ok(state.client()?.session().is_connected)
        })
    })
}

/// Whether the lock is held, by the server's last message.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_has_lock(replica: *const corvid_idl) -> bool {
    value_or("corvid_idl_has_lock", false, || {
        with(replica, |_, state| Ok(state.client()?.has_lock()))
    })
}

/// Whether another client holds the lock.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_is_lock_contended(replica: *const corvid_idl) -> bool {
    value_or("corvid_idl_is_lock_contended", false, || {
        with(replica, |_, state| {
            Ok(core(state)?.session_state().is_lock_contended())
        })
    })
}

/// Whether the last server has a table.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_server_has_table(
    replica: *const corvid_idl,
    class: *const corvid_idl_table_class,
) -> bool {
    value_or("corvid_idl_server_has_table", false, || {
        with(replica, |_, state| {
            let table = state.layout.tables[state.layout.table(class)?].table;
            Ok(core(state).is_ok_and(|idl| idl.server_has_table(table)))
        })
    })
}

/// Whether the last server has a column.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_server_has_column(
    replica: *const corvid_idl,
    column: *const corvid_idl_column,
) -> bool {
    value_or("corvid_idl_server_has_column", false, || {
        with(replica, |_, state| {
            let column = state.column(state.layout.column(column)?);
            Ok(core(state).is_ok_and(|idl| idl.server_column(column).is_some()))
        })
    })
}
