//! A client for multi-threaded programs: a handle that can be cloned, sent to other threads and
//! used from all of them at once.
//!
//! A background thread waits for the server, applies its updates and sends requests. So the replica
//! stays up to date, and probes are answered, while the program's threads are busy. A reader-writer
//! lock protects the replica. Readers access it on their own threads, with closures that may borrow
//! from their surroundings. A reader delays updates, so its closure should not block. A transaction
//! is built under the write lock; the wait for its outcome does not hold the lock.
//!
//! ```no_run
//! use corvid_driver::shared::Client;
//! # use corvid_idl::{Class, Column};
//! # fn run(class: Class, name: Column) -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(class, "unix:/var/run/openvswitch/db.sock")?;
//! client.wait_for_contents(None)?;
//! let other = client.clone();
//! std::thread::spawn(move || println!("{} rows", other.read(|idl| idl.row_count(name.table))));
//! client.transact(None, |idl| idl.insert_new(name.table))?;     // returns its outcome
//! # Ok(())
//! # }
//! ```
//!
//! Invariants. A transaction is open only while its maker holds the write lock. Only the background
//! thread does I/O, so the descriptor stays valid while that thread waits for it. Dropping the last
//! handle ends the thread and closes the connection.
//!
//! A forked child lacks the background thread. Every call fails there, and calls that return no
//! error panic.
//!
//! Locks do not nest. Calling a handle from its own closures or event handlers would deadlock, so
//! it panics.

use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use corvid_idl::{Class, Idl, Metrics, Misuse, TableCondition};
use corvid_net::fork::Home;
use corvid_net::waker::{self, Sleeper, Waker};
use corvid_session::history::Question as HistoryQuestion;

use crate::abort::Abort;
use crate::calls::{self, Front, block};
use crate::committed::Committed;
use crate::error::Error;
use crate::history;
use crate::polled;
use crate::remotes::RemoteError;
use crate::session::SessionState;
use crate::setup::Setup;

thread_local! {
    /// Addresses of the clients whose locks this thread holds.
    static HELD: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A handle to a client. Clones share the same client.
#[derive(Debug, Clone)]
pub struct Client {
    owner: Arc<Owner>,
}

/// Exists once per client. Dropping it stops the thread.
#[derive(Debug)]
struct Owner {
    common: Arc<Common>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the handles and the thread.
#[derive(Debug)]
struct Common {
    client: RwLock<polled::Client>,
    progress: Mutex<Progress>,
    has_progressed: Condvar,
    waker: Waker,
    /// See [`Client::set_reading_pause`]; in milliseconds.
    reading_pause_ms: AtomicU64,
    /// The process in which the thread runs.
    home: Home,
}

/// How far the thread has come.
#[derive(Debug, Default)]
struct Progress {
    /// Incremented after each run of the client.
    round: u64,
    /// The last handle has been dropped.
    is_unwanted: bool,
    /// The thread has ended; `failure` holds the reason if it failed.
    has_ended: bool,
    failure: Option<io::ErrorKind>,
}

/// How a wait for the thread ended.
enum Waited {
    Progress,
    TimeOut,
    /// The thread has ended, with the reason if it failed.
    End(Option<io::ErrorKind>),
}

impl Client {
    /// Creates a client, as [`polled::Client::connect`] does, and starts to connect at once.
    ///
    /// # Errors
    /// Those of [`polled::Client::connect`], or no thread or descriptor is available.
    pub fn connect(class: Class, remotes: &str) -> Result<Client, Error> {
        Ok(Client::over(polled::Client::connect(class, remotes)?)?)
    }

    /// Works like [`Client::connect`], with settings other than the defaults: see
    /// [`polled::Client::connect_with`].
    ///
    /// # Errors
    /// Those of [`polled::Client::connect_with`], or no thread or descriptor is available.
    pub fn connect_with(class: Class, remotes: &str, setup: &Setup) -> Result<Client, Error> {
        let client = polled::Client::connect_with(class, remotes, setup)?;
        Ok(Client::over(client)?)
    }

    /// Turns a polled client, which may have other settings, into a shared one.
    ///
    /// # Errors
    /// No thread or descriptor is available.
    pub fn over(client: polled::Client) -> io::Result<Client> {
        let (waker, sleeper) = waker::pair()?;
        let common = Arc::new(Common {
            client: RwLock::new(client),
            progress: Mutex::default(),
            has_progressed: Condvar::new(),
            waker,
            reading_pause_ms: AtomicU64::new(0),
            home: Home::this_process(),
        });
        let serving = common.clone();
        let thread = thread::Builder::new()
            .name("corvid-client".to_owned())
            .spawn(move || serve(&serving, sleeper))?;
        Ok(Client {
            owner: Arc::new(Owner {
                common,
                thread: Some(thread),
            }),
        })
    }

    fn common(&self) -> &Common {
        &self.owner.common
    }

    /// Calls `look` with the replica. Other readers may run at the same time; updates wait.
    ///
    /// # Panics
    /// If called within a closure or an event handler of the same client, or in a forked child.
    pub fn read<T>(&self, look: impl FnOnce(&Idl) -> T) -> T {
        self.look(|client| look(client.idl()))
    }

    fn look<T>(&self, look: impl FnOnce(&polled::Client) -> T) -> T {
        let common = self.common();
        common.assert_process();
        let _held = HeldLock::new(common);
        let client = common.client.read();
        look(&client.unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `act` with exclusive access to the client, for example to register event handlers, set
    /// conditions or clear changes. If `act` leaves a transaction open, it is aborted.
    ///
    /// # Panics
    /// Those of [`Client::read`].
    pub fn with<T>(&self, act: impl FnOnce(&mut Idl) -> T) -> T {
        self.change(|client| act(client.idl_mut()))
    }

    /// Calls `act` with exclusive access, then wakes the thread to carry out the consequences.
    /// `act` must not do I/O. If it leaves a transaction open, it is aborted.
    fn change<T>(&self, act: impl FnOnce(&mut polled::Client) -> T) -> T {
        let common = self.common();
        common.assert_process();
        let value = {
            let _held = HeldLock::new(common);
            let client = common.client.write();
            let mut client = client.unwrap_or_else(PoisonError::into_inner);
            let tidied = Tidied(&mut client);
            act(&mut *tidied.0)
        };
        common.waker.wake();
        value
    }

    /// The session's state: see [`polled::Client::session`].
    #[must_use]
    pub fn session(&self) -> SessionState {
        self.look(polled::Client::session)
    }

    /// Replaces the list of remotes: see [`polled::Client::set_remotes`].
    ///
    /// # Errors
    /// Those of [`polled::Client::set_remotes`].
    pub fn set_remotes(&self, remotes: &str) -> Result<(), RemoteError> {
        self.change(|client| client.set_remotes(remotes))
    }

    /// Sets how long the thread pauses after updates before it reads again; zero by default. A
    /// server that sends many updates then wakes the thread once for all updates of a pause, which
    /// saves CPU time of both. Updates that follow another one arrive later by up to the pause, and
    /// so do answers to the server's probes.
    ///
    /// The thread does not pause while the client waits for a connection, a reply or a lock, and
    /// each call that may send something ends the pause. Updates that are not read wait at the
    /// server, which sends their net change.
    pub fn set_reading_pause(&self, pause: Duration) {
        let pause_ms = &self.common().reading_pause_ms;
        pause_ms.store(polled::millis(pause), Ordering::Relaxed);
    }

    /// Requests or releases a lock: see [`polled::Client::set_lock`].
    ///
    /// # Errors
    /// Those of [`polled::Client::set_lock`], and [`Misuse::Forked`].
    pub fn set_lock(&self, name: Option<&str>) -> Result<(), Misuse> {
        self.common().check_process()?;
        self.change(|client| client.set_lock(name))
    }

    /// The client's counters since its creation.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.read(Idl::metrics)
    }

    /// Waits until `holds` returns true. The calling thread calls it after every change.
    ///
    /// # Errors
    /// The time limit has passed, no remote is left to try, or [`Misuse::Forked`].
    ///
    /// # Panics
    /// Those of [`Client::read`].
    pub fn wait_until(
        &self,
        timeout: Option<Duration>,
        holds: impl FnMut(&Idl) -> bool,
    ) -> Result<(), Error> {
        block(calls::until(&mut self.within(timeout)?, holds))
    }

    /// Waits until `is_wanted` returns true for the session's state, for example connected,
    /// disconnected, or connected to the leader.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn wait_for_session(
        &self,
        timeout: Option<Duration>,
        is_wanted: impl FnMut(&SessionState) -> bool,
    ) -> Result<(), Error> {
        block(calls::session(&mut self.within(timeout)?, is_wanted))
    }

    /// The front for one call, which fails once `timeout` has passed.
    fn within(&self, timeout: Option<Duration>) -> Result<Timed<'_>, Misuse> {
        self.common().check_process()?;
        Ok(Timed {
            client: self,
            end: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
        })
    }

    /// Waits until the client has contents, from this connection or an earlier one.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn wait_for_contents(&self, timeout: Option<Duration>) -> Result<(), Error> {
        self.wait_until(timeout, Idl::has_ever_connected)
    }

    /// Waits until [`Idl::change_seqno`] differs from `seqno`, and returns the new number.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn wait_for_change(&self, seqno: u64, timeout: Option<Duration>) -> Result<u64, Error> {
        block(calls::new_seqno(&mut self.within(timeout)?, seqno))
    }

    /// Sets the condition of a table, as [`polled::Client::set_condition`] does, and waits until
    /// the server applies it.
    ///
    /// # Errors
    /// Those of [`Client::wait_until`]: the condition stays set. [`Error::Misuse`] for a clause
    /// that any server would refuse and [`Error::ConditionRefused`] for the server's refusal: the
    /// previous condition stays in force.
    pub fn set_condition(
        &self,
        condition: impl Into<TableCondition>,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        block(calls::set_condition(&mut self.within(timeout)?, condition))
    }

    /// Waits until the client holds the lock that [`Client::set_lock`] requested.
    ///
    /// # Errors
    /// Those of [`Client::wait_until`], and [`Error::LockRefused`].
    pub fn wait_for_lock(&self, timeout: Option<Duration>) -> Result<(), Error> {
        block(calls::lock(&mut self.within(timeout)?))
    }

    /// Builds a transaction, commits it and retries it, as [`crate::blocking::Client::transact`]
    /// does. Several threads may do so at once: each builds its own under the write lock, and waits
    /// for its outcome without the lock.
    ///
    /// # Errors
    /// Those of [`crate::blocking::Client::transact`], and [`Misuse::Forked`].
    ///
    /// # Panics
    /// Those of [`Client::read`].
    pub fn transact<T, E: Abort>(
        &self,
        timeout: Option<Duration>,
        make: impl FnMut(&mut Idl) -> Result<T, E>,
    ) -> Result<Committed<T>, E::Error> {
        let front = self.within(timeout).map_err(Error::from);
        block(calls::transact(&mut front?, make))
    }

    /// Reads the history of the database from the server, as
    /// [`crate::blocking::Client::read_history`] does. `line` is called without the lock.
    ///
    /// # Errors
    /// Those of [`crate::blocking::Client::read_history`], and [`Misuse::Forked`].
    pub fn read_history(
        &self,
        question: &HistoryQuestion,
        timeout: Option<Duration>,
        line: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        block(history::read(&mut self.within(timeout)?, question, line))
    }

    /// Executes `select` operations on the contents at a moment, as
    /// [`crate::blocking::Client::select_at`] does.
    ///
    /// # Errors
    /// Those of [`crate::blocking::Client::select_at`], and [`Misuse::Forked`].
    pub fn select_at(
        &self,
        moment: &str,
        operations: &str,
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>, Error> {
        block(history::select_at(
            &mut self.within(timeout)?,
            moment,
            operations,
        ))
    }
}

/// A client that waits for its thread until a deadline.
struct Timed<'c> {
    client: &'c Client,
    /// The deadline; `None` waits forever.
    end: Option<Instant>,
}

impl Front for Timed<'_> {
    fn look<T>(&self, look: impl FnOnce(&polled::Client) -> T) -> T {
        self.client.look(look)
    }

    fn change<T>(&mut self, act: impl FnOnce(&mut polled::Client) -> T) -> T {
        self.client.change(act)
    }

    fn flush(&mut self) {
        // The client's thread does all input and output, and each change wakes it.
    }

    async fn wait<T>(
        &mut self,
        mut found: impl FnMut(&polled::Client) -> Option<T>,
    ) -> Result<T, Error> {
        let common = self.client.common();
        loop {
            // Read before the look, so that a change after the look ends the wait.
            let round = common.progress().round;
            let (found, is_alive) = self.look(|client| (found(client), client.check_alive()));
            if let Some(found) = found {
                return Ok(found);
            }
            is_alive?;
            match common.wait_for_round(round, self.end) {
                Waited::Progress => {}
                Waited::TimeOut => {
                    return Err(Error::TimedOut(self.look(polled::Client::last_failure)));
                }
                Waited::End(None) => return Err(Error::Dead(None)),
                Waited::End(Some(kind)) => return Err(Error::Io(kind.into())),
            }
        }
    }
}

impl Common {
    /// Fails in a forked child: the thread is missing there, and may have held a lock at the time
    /// of the fork.
    fn check_process(&self) -> Result<(), Misuse> {
        if self.home.is_this_process() {
            return Ok(());
        }
        Err(Misuse::Forked)
    }

    fn assert_process(&self) {
        let outcome = self.check_process();
        assert!(outcome.is_ok(), "{}", Misuse::Forked);
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the thread's round differs from `round`.
    fn wait_for_round(&self, round: u64, end: Option<Instant>) -> Waited {
        let mut progress = self.progress();
        while progress.round == round {
            if progress.has_ended {
                return Waited::End(progress.failure);
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Waited::TimeOut;
            }
            progress = match left {
                Some(left) => {
                    let waited = self.has_progressed.wait_timeout(progress, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.has_progressed.wait(progress);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        Waited::Progress
    }
}

/// The thread's body: runs until the last handle is dropped or polling fails.
fn serve(common: &Common, mut sleeper: Sleeper) {
    let ended = Ended(common);
    while !common.progress().is_unwanted {
        let pause = Duration::from_millis(common.reading_pause_ms.load(Ordering::Relaxed));
        let (wait, pauses) = {
            let _held = HeldLock::new(common);
            let client = common.client.write();
            let mut client = client.unwrap_or_else(PoisonError::into_inner);
            // Cannot fail: no transaction is open while the lock is free.
            let has_changed = client.run().unwrap_or(false);
            let pauses = has_changed && !pause.is_zero() && !client.session_state().is_waiting();
            (client.wait(), pauses)
        };
        // Counted after the client's lock is released. A handle that wakes up can read the client
        // at once.
        common.progress().round += 1;
        common.has_progressed.notify_all();
        let is_early = |timeout| pause < timeout;
        let waited = match pauses && !wait.writable && wait.timeout.is_none_or(is_early) {
            // Input does not end the pause, so the server has nobody to wake.
            true => sleeper.wait(None, (false, false), Some(pause)),
            false => sleeper.wait(wait.fd, (wait.readable, wait.writable), wait.timeout),
        };
        if let Err(error) = waited {
            common.progress().failure = Some(error.kind());
            break;
        }
    }
    drop(ended);
}

/// Tells waiting handles that the thread has ended, even if an event handler panicked in it.
struct Ended<'a>(&'a Common);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.progress().has_ended = true;
        self.0.has_progressed.notify_all();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.common.check_process().is_err() {
            // The thread exists only in the parent. Dropping its handle here would detach a thread
            // that the C library does not have.
            std::mem::forget(thread);
            return;
        }
        // Set before the wake-up, so that the thread sees it when it wakes.
        self.common.progress().is_unwanted = true;
        self.common.waker.wake();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // The thread has logged its failure, and the panic hook has reported a panic.
            let _ = thread.join();
        }
    }
}

/// Aborts a transaction that a closure left open, even by panicking.
struct Tidied<'a>(&'a mut polled::Client);

impl Drop for Tidied<'_> {
    fn drop(&mut self) {
        if let Some(txn) = self.0.open_txn() {
            self.0.idl_mut().forget(txn);
        }
    }
}

/// Marks that this thread holds a client's lock.
struct HeldLock(usize);

impl HeldLock {
    fn new(common: &Common) -> HeldLock {
        let address = std::ptr::from_ref(common).addr();
        HELD.with_borrow_mut(|held| {
            assert!(
                !held.contains(&address),
                "a shared client was called within one of its own closures or event handlers"
            );
            held.push(address);
        });
        HeldLock(address)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|held| held.retain(|address| *address != self.0));
    }
}
