//! A client for programs with their own event loop: a descriptor to poll and a time limit for the
//! wait.
//!
//! ```no_run
//! # use corvid_driver::polled::{Client, Wait};
//! # fn poll(wait: &Wait) {}
//! # fn run(mut client: Client) -> Result<(), Box<dyn std::error::Error>> {
//! loop {
//!     let has_changed = client.run()?;
//!     // Read, begin and commit transactions here.
//!     poll(&client.wait());
//! }
//! # }
//! ```
//!
//! The descriptor changes with the connection, so the loop asks for it before each wait. Nothing
//! here blocks. A separate thread resolves host names; connections to a named host fail until its
//! address is known.
//!
//! A client belongs to the process that starts to connect it. A daemon may create its clients
//! before it forks. If it has run one of them, the forked child calls
//! [`inherit`](crate::fork::inherit).

use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use corvid_data::Uuid;
use corvid_data::members::is_id;
use corvid_idl::{Class, Idl, Misuse, TableCondition};
use corvid_net::clock;
use corvid_net::fork::Home;
use corvid_net::random::Random;
use corvid_net::readiness::Wanted;
use corvid_net::stream::Resolve;
use corvid_net::tls::Credentials;
use corvid_session::{Input, Options};

use crate::error::Error;
use crate::failure::{self, Failure};
use crate::logging::{self, LogForwarder};
use crate::outage::Outage;
use crate::remotes::{self, RemoteError};
use crate::session::SessionState;
use crate::setup::Setup;
use crate::transport::{Transport, TransportEvent};

/// Limit on events handled in one [`Client::run`], so that a busy server leaves the loop time for
/// its other work.
const STEPS_MAX: usize = 64;

/// A client and its connection.
#[derive(Debug)]
pub struct Client {
    idl: Idl,
    transport: Transport,
    random: Random,
    /// The process for which transactions get ids; `None` before the first run.
    numbered_in: Option<Home>,
    credentials: Option<Arc<Credentials>>,
    /// Whether the client keeps trying to connect forever.
    is_persistent: bool,
    /// Whether the client held the lock at the end of the last run, which is the last state that
    /// the program could see.
    had_lock: bool,
    log_forwarder: LogForwarder,
    outage: Outage,
}

/// The events that end the wait; any one of them suffices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The connection's descriptor, valid until the next [`Client::run`]; `None` if there is
    /// nothing to poll.
    pub fd: Option<RawFd>,
    /// Wait until the descriptor is readable or has failed.
    pub readable: bool,
    /// Wait until the descriptor is writable or has failed.
    pub writable: bool,
    /// Time limit of the wait; `None` waits forever.
    pub timeout: Option<Duration>,
}

/// Checks that a server would accept `name` as a lock's name. `None` always passes.
///
/// # Errors
/// [`Misuse::LockName`]: the name is not an `<id>` (RFC 7047 3.1).
pub fn check_lock_name(name: Option<&str>) -> Result<(), Misuse> {
    match name.filter(|name| !is_id(name.as_bytes())) {
        Some(name) => Err(Misuse::LockName(name.to_owned())),
        None => Ok(()),
    }
}

impl Client {
    /// Creates a client for a comma-separated list of remotes, for example
    /// `ssl:10.0.0.1:6641,ssl:10.0.0.2:6641`. It connects to one of them, and to another after a
    /// lost connection. The first attempt starts with the first [`Client::run`].
    ///
    /// # Errors
    /// The list is empty, a remote is malformed or has an unknown scheme, or a remote needs TLS
    /// ([`Client::connect_with`] takes credentials). The operating system provides no random bytes.
    pub fn connect(class: Class, remotes: &str) -> Result<Client, Error> {
        Client::connect_with(class, remotes, &Setup::default())
    }

    /// Creates a client, as [`Client::connect`] does, with settings other than the defaults.
    ///
    /// # Errors
    /// Those of [`Client::connect`]; also incomplete TLS credentials, and a lock name that servers
    /// would refuse.
    pub fn connect_with(class: Class, remotes: &str, setup: &Setup) -> Result<Client, Error> {
        if setup.are_remotes_checked {
            remotes::check(remotes, setup.credentials.as_deref())?;
        }
        let mut client = Client::new(class, None)?;
        client.set_credentials(setup.credentials.clone());
        client.is_persistent = setup.is_persistent;
        client.set_leader_only(setup.is_leader_only);
        client.set_probe_interval(setup.probe_interval);
        client.set_lock(setup.lock.as_deref())?;
        let session = client.idl.session();
        session.set_shuffle_remotes(setup.is_shuffled);
        session.set_remote(clock::mono_ms(), remotes, setup.is_persistent);
        Ok(client)
    }

    /// A client without remotes, for session settings that [`Setup`] lacks ([`Idl::session`]). The
    /// client itself chooses the seed and the interest of `options`.
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn new(class: Class, options: Option<Options>) -> io::Result<Client> {
        let mut random = Random::new()?;
        let seed = u64::from_ne_bytes(random.bytes()?);
        let idl = match options {
            None => Idl::new(class, seed),
            Some(options) => Idl::with_options(class, Options { seed, ..options }),
        };
        Ok(Client {
            idl,
            transport: Transport::new(Resolve::Later),
            random,
            numbered_in: None,
            credentials: None,
            is_persistent: true,
            had_lock: false,
            log_forwarder: LogForwarder::default(),
            outage: Outage::default(),
        })
    }

    /// Makes the client resolve host names inline, blocking until the answer arrives.
    pub(crate) fn resolving_now(mut self) -> Client {
        self.transport.set_resolve(Resolve::Now);
        self
    }

    /// Sets the key, certificate and CA for `ssl:` and `pssl:` remotes, from the next connection
    /// on.
    pub fn set_credentials(&mut self, credentials: Option<Arc<Credentials>>) {
        self.credentials.clone_from(&credentials);
        self.transport.set_credentials(credentials);
    }

    /// The replica, for reading.
    #[must_use]
    pub fn idl(&self) -> &Idl {
        &self.idl
    }

    /// The replica, for changes. The next [`Client::run`] or [`Client::wait`] sends the requests.
    pub fn idl_mut(&mut self) -> &mut Idl {
        &mut self.idl
    }

    /// A random UUID for a row to insert.
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn uuid(&mut self) -> io::Result<Uuid> {
        Ok(Uuid::from_random(self.random.bytes()?))
    }

    /// The client's monotonic clock in milliseconds: the `now_ms` of [`Idl`]'s methods. It is
    /// unrelated to the time of day.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        clock::mono_ms()
    }

    /// The session's state: whether it is connected, to which server, whether that server leads,
    /// and the last failure.
    #[must_use]
    pub fn session(&self) -> SessionState {
        SessionState::new(self.idl.session_state(), self.last_failure())
    }

    /// The failure that keeps the client from some or all of its contents; `None` if there is none.
    #[must_use]
    pub fn last_failure(&self) -> Option<Failure> {
        failure::of_session(self.idl.session_state(), self.transport.reason())
    }
}

/// Settings that may change at any time. They take effect at the next [`Client::run`].
impl Client {
    /// Replaces the list of remotes. The connection is kept if its remote is still listed.
    ///
    /// # Errors
    /// Those of [`Client::connect`]; nothing has changed then.
    pub fn set_remotes(&mut self, remotes: &str) -> Result<(), RemoteError> {
        remotes::check(remotes, self.credentials.as_deref())?;
        let (now_ms, is_persistent) = (self.now_ms(), self.is_persistent);
        let session = self.idl.session();
        session.set_remote(now_ms, remotes, is_persistent);
        Ok(())
    }

    /// Sets whether the client connects only to the leader of a cluster.
    pub fn set_leader_only(&mut self, is_leader_only: bool) {
        let now_ms = self.now_ms();
        self.idl.session().set_leader_only(now_ms, is_leader_only);
    }

    /// Sets how long the server may be silent before the client probes it. Zero disables probes;
    /// `None` restores the default.
    pub fn set_probe_interval(&mut self, interval: Option<Duration>) {
        let interval_ms = interval.map(millis);
        self.idl.session().set_probe_interval(interval_ms);
    }

    /// Closes the connection and opens a new one.
    pub fn reconnect(&mut self) {
        let now_ms = self.now_ms();
        self.idl.session().force_reconnect(now_ms);
    }

    /// Requests a lock in place of the previous one, or releases it (`None`). One client holds a
    /// lock, and the other clients that requested it queue for it. While a lock is set,
    /// transactions of a client that does not hold it end as "not locked".
    ///
    /// # Errors
    /// [`Misuse::LockName`]: servers would refuse the name. Nothing has changed.
    pub fn set_lock(&mut self, name: Option<&str>) -> Result<(), Misuse> {
        check_lock_name(name)?;
        let now_ms = self.now_ms();
        self.idl.session().set_lock(now_ms, name);
        Ok(())
    }

    /// Whether the client holds the lock, according to the server's last message.
    #[must_use]
    pub fn has_lock(&self) -> bool {
        self.idl.session_state().has_lock()
    }

    /// Sets the condition of a table, which selects the rows to replicate. It may be a typed
    /// condition, a single clause of one, or a table with an untyped condition. The condition is in
    /// force once [`Idl::condition_seqno`] reaches the returned number.
    ///
    /// # Errors
    /// Those of [`Idl::set_condition`].
    pub fn set_condition(&mut self, condition: impl Into<TableCondition>) -> Result<u64, Misuse> {
        let now_ms = self.now_ms();
        let TableCondition { table, condition } = condition.into();
        self.idl.set_condition(now_ms, table, condition)
    }
}

/// Running the client.
impl Client {
    /// Does all work that needs no waiting, up to a limit. Returns whether the replica or the
    /// session's state changed. Log messages go to the `log` facade ([`crate::LOG_TARGET`]). Losing
    /// the lock ends the run, so [`Client::has_lock`] after each call shows every loss.
    ///
    /// # Errors
    /// A transaction is open, or [`Misuse::Forked`].
    pub fn run(&mut self) -> Result<bool, Misuse> {
        self.work(false)
    }

    /// Works like [`Client::run`], but returns as soon as something has changed, even with work
    /// left: call it again until it returns false. To see the state after each of the server's
    /// messages, also make the session handle one message at a time
    /// ([`set_messages_max`](corvid_session::Client::set_messages_max)).
    ///
    /// # Errors
    /// A transaction is open, or [`Misuse::Forked`].
    pub fn run_until_change(&mut self) -> Result<bool, Misuse> {
        self.work(true)
    }

    /// Fails in a process that was forked after the client began to connect. That process can read
    /// and drop the client without affecting the parent's connection. Its settings and transactions
    /// have no effect, because nothing is sent.
    ///
    /// # Errors
    /// [`Misuse::Forked`].
    pub fn check_process(&self) -> Result<(), Misuse> {
        if self.transport.is_foreign() {
            return Err(Misuse::Forked);
        }
        Ok(())
    }

    fn work(&mut self, ends_at_change: bool) -> Result<bool, Misuse> {
        self.check_process()?;
        self.number_transactions();
        let seqno = self.idl.change_seqno();
        // The program must see each loss of its lock, even if the next message or connection brings
        // the lock back. If a call since the last run lost the lock, this run reads nothing:
        // reading could bring the lock back before the program has looked.
        let had_lock = self.has_lock();
        let is_lock_lost = self.had_lock && !had_lock;
        self.transport.begin_round();
        self.idl.handle(self.now_ms(), Input::Tick)?;
        for _ in 0..STEPS_MAX {
            self.carry_out();
            if ends_at_change && self.idl.change_seqno() != seqno {
                break;
            }
            // Ends the run at the loss, before later input can return the lock.
            if had_lock && !self.has_lock() {
                break;
            }
            let wants_input = !is_lock_lost && self.idl.session_state().wants_input();
            let input = match self.transport.step(wants_input) {
                Some(TransportEvent::Listening) => Input::Listening,
                Some(TransportEvent::Connected) => Input::Connected,
                Some(TransportEvent::Received(count)) => {
                    Input::Received(self.transport.bytes(count))
                }
                Some(TransportEvent::Sent) => Input::Sent,
                Some(TransportEvent::Ended(end)) => Input::Disconnected(end),
                // The session still has received messages that it has not handled. A tick handles
                // the next.
                None if ends_at_change && self.is_due() => Input::Tick,
                None => break,
            };
            self.idl.handle(clock::mono_ms(), input)?;
        }
        self.carry_out();
        self.had_lock = self.has_lock();
        self.log_forwarder.drain(&mut self.idl);
        self.tell_outage();
        Ok(self.idl.change_seqno() != seqno)
    }

    /// Gives the session ids for transactions that no other process draws: a forked child may have
    /// a copy of the client, created before the fork.
    fn number_transactions(&mut self) {
        if self.numbered_in.is_some_and(Home::is_this_process) {
            return;
        }
        // Without random bytes, transactions have no ids: their outcome is unknown after a lost
        // connection.
        if let Ok(key) = self.random.bytes() {
            let key = u128::from_ne_bytes(key);
            self.idl.session().set_transaction_ids(key);
            self.numbered_in = Some(Home::this_process());
        }
    }

    /// Logs the obstacle that keeps the client from its contents, for a program that is waiting for
    /// them.
    fn tell_outage(&mut self) {
        let session = self.idl.session_state();
        if session.is_monitoring() || session.remotes().is_empty() {
            self.outage.ends();
            return;
        }
        if self.outage.is_told() {
            return;
        }
        let failure = self.last_failure();
        if self.outage.goes_on(clock::mono_ms(), failure.as_ref())
            && let Some(failure) = failure
        {
            logging::outage(&failure);
        }
    }

    fn is_due(&self) -> bool {
        let now_ms = clock::mono_ms();
        self.idl
            .poll_timeout(now_ms)
            .is_some_and(|due_ms| due_ms <= now_ms)
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.idl.poll_output() {
            self.transport.carry_out(output);
        }
    }

    /// Fails if no remote is left to try: a wait would never end.
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        match self.idl.session_state().is_alive() {
            true => Ok(()),
            false => Err(Error::Dead(self.last_failure())),
        }
    }

    /// The events to wait for before the next [`Client::run`]. May be called while a transaction is
    /// open, but the transaction must end before that run.
    #[must_use]
    pub fn wait(&mut self) -> Wait {
        let wanted = self.wanted();
        Wait {
            fd: wanted.fd.map(|fd| fd.as_raw_fd()),
            readable: wanted.readable,
            writable: wanted.writable,
            timeout: wanted.timeout,
        }
    }

    /// Sends requests as far as the connection takes them, for a program that does not go on to
    /// wait. [`Client::run`] does so too.
    pub fn flush(&mut self) {
        if !self.transport.is_foreign() {
            self.carry_out();
            self.transport.flush();
        }
    }

    /// Works like [`Client::wait`], for the fronts of this crate, which poll the descriptor
    /// themselves.
    pub(crate) fn wanted(&mut self) -> Wanted<'_> {
        if self.transport.is_foreign() {
            // The next run returns the error.
            return Wanted {
                fd: None,
                readable: false,
                writable: false,
                timeout: Some(Duration::ZERO),
            };
        }
        self.carry_out();
        let now_ms = self.now_ms();
        let wants_input = self.idl.session_state().wants_input();
        let interest = self.transport.interest(wants_input);
        let due_ms = if interest.is_due {
            Some(now_ms)
        } else {
            self.idl.poll_timeout(now_ms)
        };
        Wanted {
            fd: interest.fd,
            readable: interest.readable,
            writable: interest.writable,
            timeout: due_ms.map(|due_ms| Duration::from_millis(due_ms.saturating_sub(now_ms))),
        }
    }
}

/// Gives direct access to the methods of [`Idl`] that only read.
impl Deref for Client {
    type Target = Idl;

    fn deref(&self) -> &Idl {
        &self.idl
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
