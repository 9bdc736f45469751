//! The client: a replica and its session behind a lock.
//!
//! Invariant: every call holds the lock until it returns, so calls from several threads run one
//! after another. A freed client is taken out of its cell; objects made from it report that from
//! then on.

use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::time::Duration;

use corvid::fork::Lock;
use corvid::{LockState, polled};

use crate::abi::{SizedOut, Versioned};
use crate::config::{Config, corvid_config};
use crate::error::{Failure, corvid_error, guard};
use crate::handle::{self, Kind};
use crate::pointer::{self, Out, copy_text};

/// A client of one database. Free it with corvid_client_free.
pub struct corvid_client {
    _private: [u8; 0],
}

/// The object behind the handle. `None` once it was freed.
pub(crate) struct Cell {
    state: Lock<Option<polled::Client>>,
}

/// The handle's object: a count of the cell, of which transactions and indexes hold one too.
pub(crate) struct Client(pub(crate) Arc<Cell>);

impl Kind for Client {
    type Opaque = corvid_client;
    const NAME: &'static str = "client";
    const IS_CACHED: bool = true;
}

impl Cell {
    /// Does something under the lock.
    pub(crate) fn with<R>(
        &self,
        work: impl FnOnce(&mut polled::Client) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut state = self
            .state
            .lock()
            .map_err(|error| Failure::locking("client", error))?;
        match &mut *state {
            Some(client) => {
                client.check_process()?;
                work(client)
            }
            None => Err(Failure::new(
                corvid_error::CORVID_ERR_HANDLE,
                "the client was freed",
            )),
        }
    }
}

/// Does something with the client of a handle.
pub(crate) fn with<R>(
    client: *const corvid_client,
    work: impl FnOnce(&mut polled::Client) -> Result<R, Failure>,
) -> Result<R, Failure> {
    handle::with::<Client, R>(client, |client| client.0.with(work))
}

fn remote_failure(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(corvid_error::CORVID_ERR_REMOTE, error.to_string())
}

/// Makes a client of settings, which stay with the caller. `remotes` is a comma-separated list such
/// as "ssl:10.0.0.1:6641,ssl:10.0.0.2:6641" or "unix:/run/openvswitch/db.sock". The first attempt
/// to connect begins with the first corvid_client_run. Free the client with corvid_client_free.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_new(
    config: *const corvid_config,
    remotes: *const c_char,
    client: *mut *mut corvid_client,
) -> corvid_error {
    guard("corvid_client_new", || {
        let out = Out::new(client, "client")?;
        let config = handle::get::<Config>(config)?;
        let remotes = pointer::text(remotes, "remotes")?;
        let (class, setup) = config.make();
        let made = polled::Client::connect_with(class, remotes, &setup)
            .map_err(|error| remote_failure(&error))?;
        let cell = Cell {
            state: Lock::new(Some(made)),
        };
        out.set(handle::store(Client(Arc::new(cell)))?);
        Ok(())
    })
}

/// Closes the connection and frees a client. Null is fine. Handles of its transactions, indexes and
/// cursors report CORVID_ERR_HANDLE from then on, and are to be freed all the same.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_free(client: *mut corvid_client) -> corvid_error {
    guard("corvid_client_free", || {
        if let Some(client) = handle::take::<Client>(client)? {
            // Left locked by a fork, it stays as it is: there is no safe way to drop it.
            let state = client.0.state.lock_to_drop();
            let taken = state
                .map_err(|error| Failure::locking("client", error))?
                .take();
            drop(taken);
        }
        Ok(())
    })
}

/// Does all work that needs no waiting: connects, receives, applies updates, sends. `*changed` says
/// whether the replica changed; `changed` may be null. Call it when corvid_client_wait says so.
/// CORVID_ERR_TXN_OPEN: a transaction is open.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_run(
    client: *mut corvid_client,
    changed: *mut bool,
) -> corvid_error {
    guard("corvid_client_run", || {
        let out = (!changed.is_null()).then(|| Out::new(changed, "changed"));
        let out = out.transpose()?;
        let has_changed = with(client, |client| Ok(client.run()?))?;
        if let Some(out) = out {
            out.set(has_changed);
        }
        Ok(())
    })
}

/// The events to wait for before the next corvid_client_run. Begin with CORVID_WAIT_INIT.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_wait {
    /// `sizeof(corvid_wait)`, set by the caller.
    pub size: usize,
    /// The descriptor to poll, which belongs to the library and is good until the next
    /// corvid_client_run; -1 for none.
    pub fd: c_int,
    /// The events of poll(2) to wait for: POLLIN, POLLOUT, both or neither.
    pub events: i16,
    /// How long to wait at most, in milliseconds, as for poll(2); -1 for ever.
    pub timeout_ms: c_int,
}

/// `POLLIN` and `POLLOUT` of poll(2), which have these values on Linux and the BSDs.
const POLLIN: i16 = 1;
const POLLOUT: i16 = 4;

/// Sends what is due, and tells the events to wait for. `wait` fits poll(2): the descriptor changes
/// with the connection, so ask before each wait.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_wait(
    client: *mut corvid_client,
    wait: *mut corvid_wait,
) -> corvid_error {
    guard("corvid_client_wait", || {
        let out = SizedOut::new(wait)?;
        let wait = with(client, |client| Ok(client.wait()))?;
        out.set(corvid_wait::of(&wait));
        Ok(())
    })
}

// SAFETY: numbers only, the size first.
unsafe impl Versioned for corvid_wait {
    const NAME: &'static str = "corvid_wait";
    const LEAST: usize = 24;
}

// SAFETY: numbers and truths only, the size first.
unsafe impl Versioned for corvid_session {
    const NAME: &'static str = "corvid_session";
    const LEAST: usize = 24;
}

impl corvid_wait {
    /// The events of a client as C polls them.
    pub(crate) fn of(wait: &polled::Wait) -> corvid_wait {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        corvid_wait {
            size: size_of::<corvid_wait>(),
            fd: wait.fd.unwrap_or(-1),
            events: flag(wait.readable, POLLIN) | flag(wait.writable, POLLOUT),
            timeout_ms: wait.timeout.map_or(-1, rounded_up_ms),
        }
    }
}

/// Rounded up, so that the time has come after the wait.
fn rounded_up_ms(time: Duration) -> c_int {
    let ms = time.as_nanos().div_ceil(1_000_000);
    c_int::try_from(ms).unwrap_or(c_int::MAX)
}

/// The change number: it grows with every visible change of the replica. 0 for a handle that is
/// none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_seqno(client: *const corvid_client) -> u64 {
    let mut seqno = 0;
    guard("corvid_client_seqno", || {
        seqno = with(client, |client| Ok(client.change_seqno()))?;
        Ok(())
    });
    seqno
}

/// The state of a lock.
#[repr(C)]
pub enum corvid_lock_state {
    /// The client wants no lock.
    CORVID_LOCK_UNSET = 0,
    /// It is requested.
    CORVID_LOCK_REQUESTED = 1,
    /// Another client holds it.
    CORVID_LOCK_CONTENDED = 2,
    /// This client holds it.
    CORVID_LOCK_HELD = 3,
    /// The server refused the request. The next connection asks again.
    CORVID_LOCK_REFUSED = 4,
}

/// The state of a session. Begin with CORVID_SESSION_INIT.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_session {
    /// `sizeof(corvid_session)`, set by the caller.
    pub size: usize,
    /// Whether a connection is established.
    pub connected: bool,
    /// Whether the replica is complete and receives the server's changes.
    pub synced: bool,
    /// Whether contents have ever arrived.
    pub has_contents: bool,
    /// Whether the client is connected or going to try.
    pub alive: bool,
    /// A corvid_lock_state.
    pub lock: c_int,
    /// Grows whenever a connection is established or ends.
    pub seqno: u64,
}

/// The state of the session.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_session(
    client: *const corvid_client,
    session: *mut corvid_session,
) -> corvid_error {
    guard("corvid_client_session", || {
        let out = SizedOut::new(session)?;
        let state = with(client, |client| Ok(client.session()))?;
        out.set(corvid_session {
            size: size_of::<corvid_session>(),
            connected: state.is_connected,
            synced: state.is_synced,
            has_contents: state.has_contents,
            alive: state.is_alive,
            lock: match &state.lock {
                LockState::Unset => 0,
                LockState::Requested => 1,
                LockState::Contended => 2,
                LockState::Held => 3,
                LockState::Refused(_) => 4,
            },
            seqno: state.seqno,
        });
        Ok(())
    })
}

/// Copies the failure that keeps the client from its contents, in words, into `buffer`, cut to
/// `size` bytes with its NUL. `*length` is the length of the whole text; `length` may be null.
/// CORVID_ERR_NONE: there is no failure.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_failure(
    client: *const corvid_client,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> corvid_error {
    guard("corvid_client_failure", || {
        let failure = with(client, |client| Ok(client.last_failure()))?;
        let failure = failure.ok_or_else(|| Failure::none("there is no failure"))?;
        put_text(&failure.to_string(), buffer, size, length)
    })
}

/// Copies a text to the caller, and its length if that is wanted.
pub(crate) fn put_text(
    text: &str,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> Result<(), Failure> {
    let out = (!length.is_null()).then(|| Out::new(length, "length"));
    let out = out.transpose()?;
    let whole = copy_text(text, buffer, size)?;
    if let Some(out) = out {
        out.set(whole);
    }
    Ok(())
}

/// Connects to other remotes; a connection to one that is still listed is kept.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_set_remotes(
    client: *mut corvid_client,
    remotes: *const c_char,
) -> corvid_error {
    guard("corvid_client_set_remotes", || {
        let remotes = pointer::text(remotes, "remotes")?;
        with(client, |client| {
            client
                .set_remotes(remotes)
                .map_err(|error| remote_failure(&error))
        })
    })
}

/// Whether the client connects only to the leader of a cluster.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_set_leader_only(
    client: *mut corvid_client,
    leader_only: bool,
) -> corvid_error {
    guard("corvid_client_set_leader_only", || {
        with(client, |client| {
            client.set_leader_only(leader_only);
            Ok(())
        })
    })
}

/// After how many milliseconds of silence the client probes the server; 0 never.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_set_probe_interval(
    client: *mut corvid_client,
    interval_ms: u32,
) -> corvid_error {
    guard("corvid_client_set_probe_interval", || {
        with(client, |client| {
            client.set_probe_interval(Some(Duration::from_millis(interval_ms.into())));
            Ok(())
        })
    })
}

/// Asks the server for a lock, in place of another one; null gives it back. While a lock is set,
/// transactions of a client that does not hold it end as CORVID_TXN_NOT_LOCKED.
/// corvid_client_session tells whether it is held.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_set_lock(
    client: *mut corvid_client,
    name: *const c_char,
) -> corvid_error {
    guard("corvid_client_set_lock", || {
        let name = pointer::optional_text(name, "name")?;
        with(client, |client| Ok(client.set_lock(name)?))
    })
}

/// Ends the connection and makes another one.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_client_reconnect(client: *mut corvid_client) -> corvid_error {
    guard("corvid_client_reconnect", || {
        with(client, |client| {
            client.reconnect();
            Ok(())
        })
    })
}
