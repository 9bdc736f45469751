//! A client for programs with an event loop of their own: a descriptor to poll, a time to come back at.
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
//! The descriptor changes with the connection, so the loop asks for it before each wait. Nothing here blocks. A separate thread looks host
//! names up; connections to a host by name fail until the thread has the address.
//!
//! A client belongs to the process that begins to connect it. A daemon may make its clients before
//! it forks; if it has run one, the forked child calls [`inherit`](crate::fork::inherit).

use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use corvid_data::Uuid;
use corvid_data::members::is_id;
use corvid_idl::{Class, Idl, Misuse, TableCondition};
use corvid_net::clock;
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
use crate::transport::{Happened, Transport};

/// Events handled in one [`Client::run`], so that a server that sends much leaves the loop time for its other work.
const STEPS_MAX: usize = 64;

/// A client and its connection.
#[derive(Debug)]
pub struct Client {
    idl: Idl,
    transport: Transport,
    random: Random,
    credentials: Option<Arc<Credentials>>,
    /// Whether the client tries to connect for ever.
    is_persistent: bool,
    /// Whether the lock was held when the last run ended, as far as the program can know.
    had_lock: bool,
    log_forwarder: LogForwarder,
    outage: Outage,
}

/// The events to wait for: the first one ends the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The connection's descriptor, good until the next [`Client::run`]; `None` when there is nothing to poll.
    pub fd: Option<RawFd>,
    /// Wait until it can be read (or has failed).
    pub readable: bool,
    /// Wait until it can be written (or has failed).
    pub writable: bool,
    /// Time limit of the wait; `None` is for ever.
    pub timeout: Option<Duration>,
}

/// Whether a server accepts a name for a lock, or none.
///
/// # Errors
/// [`Misuse::LockName`]: it is not an `<id>` (RFC 7047 3.1).
pub fn check_lock_name(name: Option<&str>) -> Result<(), Misuse> {
    match name.filter(|name| !is_id(name.as_bytes())) {
        Some(name) => Err(Misuse::LockName(name.to_owned())),
        None => Ok(()),
    }
}

impl Client {
    /// A client that connects to one of the remotes of a comma-separated list, for example `ssl:10.0.0.1:6641,ssl:10.0.0.2:6641`, and to
    /// another one after a lost connection. The first attempt begins with the first [`Client::run`].
    ///
    /// # Errors
    /// A remote is malformed, of an unknown scheme, or needs TLS, for which [`Client::connect_with`] takes credentials; the list is empty; the
    /// operating system gives no random bytes.
    pub fn connect(class: Class, remotes: &str) -> Result<Client, Error> {
        Client::connect_with(class, remotes, &Setup::default())
    }

    /// As [`Client::connect`], with other settings than the usual ones.
    ///
    /// # Errors
    /// As there; or the credentials for TLS are incomplete, or a server would refuse the name of
    /// the lock.
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

    /// A client without remotes, for settings of the session that [`Setup`] does not have ([`Idl::session`]). The seed and interest of
    /// `options` are set here.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
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
            credentials: None,
            is_persistent: true,
            had_lock: false,
            log_forwarder: LogForwarder::default(),
            outage: Outage::default(),
        })
    }

    /// Looks host names up at once, and waits for the answer.
    pub(crate) fn resolving_now(mut self) -> Client {
        self.transport.set_resolve(Resolve::Now);
        self
    }

    /// Key, certificate and CA for `ssl:` and `pssl:`, from the next connection on.
    pub fn set_credentials(&mut self, credentials: Option<Arc<Credentials>>) {
        self.credentials.clone_from(&credentials);
        self.transport.set_credentials(credentials);
    }

    /// The client.
    #[must_use]
    pub fn idl(&self) -> &Idl {
        &self.idl
    }

    /// The replica, for changes. Requests are sent by the next [`Client::run`] or [`Client::wait`].
    pub fn idl_mut(&mut self) -> &mut Idl {
        &mut self.idl
    }

    /// A random UUID, for a row to be inserted.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn uuid(&mut self) -> io::Result<Uuid> {
        Ok(Uuid::from_random(self.random.bytes()?))
    }

    /// The time of the client's monotonic clock, in milliseconds: the `now_ms` of [`Idl`]'s methods. It is unrelated to the time of day.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        clock::mono_ms()
    }

    /// The state of the session: whether it is connected, to which server, whether that leads, the last failure.
    #[must_use]
    pub fn session(&self) -> SessionState {
        SessionState::new(self.idl.session_state(), self.last_failure())
    }

    /// The failure that keeps the client from its contents, or from a part of them; `None` without one.
    #[must_use]
    pub fn last_failure(&self) -> Option<Failure> {
        failure::of_session(self.idl.session_state(), self.transport.reason())
    }
}

/// Settings that may change at any time. They take effect at the next [`Client::run`].
impl Client {
    /// Connects to other remotes; a connection to one that is still listed is kept.
    ///
    /// # Errors
    /// As [`Client::connect`]; then nothing has changed.
    pub fn set_remotes(&mut self, remotes: &str) -> Result<(), RemoteError> {
        remotes::check(remotes, self.credentials.as_deref())?;
        let (now_ms, is_persistent) = (self.now_ms(), self.is_persistent);
        let session = self.idl.session();
        session.set_remote(now_ms, remotes, is_persistent);
        Ok(())
    }

    /// Whether the client connects only to the leader of a cluster.
    pub fn set_leader_only(&mut self, is_leader_only: bool) {
        let now_ms = self.now_ms();
        self.idl.session().set_leader_only(now_ms, is_leader_only);
    }

    /// How long the server may be silent before the client probes it; zero never probes, `None` is the default.
    pub fn set_probe_interval(&mut self, interval: Option<Duration>) {
        let interval_ms = interval.map(millis);
        self.idl.session().set_probe_interval(interval_ms);
    }

    /// Ends the connection and makes another one.
    pub fn reconnect(&mut self) {
        let now_ms = self.now_ms();
        self.idl.session().force_reconnect(now_ms);
    }

    /// Asks the server for a lock, in place of another one, or gives it back. One of the clients that ask for a lock holds it; the others
    /// queue for it. While a lock is set, transactions of a client that does not hold it end as "not locked".
    ///
    /// # Errors
    /// [`Misuse::LockName`]: a server would refuse the name. Nothing has changed.
    pub fn set_lock(&mut self, name: Option<&str>) -> Result<(), Misuse> {
        check_lock_name(name)?;
        let now_ms = self.now_ms();
        self.idl.session().set_lock(now_ms, name);
        Ok(())
    }

    /// Whether the lock is held, by the server's last message.
    #[must_use]
    pub fn has_lock(&self) -> bool {
        self.idl.session_state().has_lock()
    }

    /// Sets the condition of a table, which chooses the rows that are replicated: a typed condition, a clause of one, or a table with an untyped condition. Returns the number that
    /// [`Idl::condition_seqno`] must reach before the condition is in force.
    ///
    /// # Errors
    /// As [`Idl::set_condition`].
    pub fn set_condition(&mut self, condition: impl Into<TableCondition>) -> Result<u64, Misuse> {
        let now_ms = self.now_ms();
        let TableCondition { table, condition } = condition.into();
        self.idl.set_condition(now_ms, table, condition)
    }
}

/// The work.
impl Client {
    /// Does all work that needs no waiting, within bounds. Returns whether the replica or the
    /// session's state changed. Log messages go to the `log` facade ([`crate::LOG_TARGET`]). A lock
    /// that is lost ends the work, so that [`Client::has_lock`] tells of it after each call.
    ///
    /// # Errors
    /// A transaction is open; [`Misuse::Forked`].
    pub fn run(&mut self) -> Result<bool, Misuse> {
        self.work(false)
    }

    /// As [`Client::run`], but returns as soon as something has changed, with work left to do: call it again until it returns false. A program that is to
    /// see the state after each message of the server has the session handle one at a time
    /// ([`set_messages_max`](corvid_session::Client::set_messages_max)).
    ///
    /// # Errors
    /// A transaction is open; [`Misuse::Forked`].
    pub fn run_to_change(&mut self) -> Result<bool, Misuse> {
        self.work(true)
    }

    /// Fails in a process that was forked after the client began to connect. There the client can
    /// be read and dropped, without a trace on the parent's connection. Settings and transactions
    /// have no effect there, because nothing is sent.
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
        let seqno = self.idl.change_seqno();
        // The program sees each loss of its lock, even if the next message or connection brings the
        // lock back. A call since the last run may have lost it: then nothing is read in this run.
        let had_lock = self.has_lock();
        let is_lock_lost = self.had_lock && !had_lock;
        self.transport.begin_round();
        self.idl.handle(self.now_ms(), Input::Tick)?;
        for _ in 0..STEPS_MAX {
            self.carry_out();
            if ends_at_change && self.idl.change_seqno() != seqno {
                break;
            }
            if had_lock && !self.has_lock() {
                break;
            }
            let wants_input = !is_lock_lost && self.idl.session_state().wants_input();
            let input = match self.transport.step(wants_input) {
                Some(Happened::Listening) => Input::Listening,
                Some(Happened::Connected) => Input::Connected,
                Some(Happened::Received(count)) => Input::Received(self.transport.bytes(count)),
                Some(Happened::Sent) => Input::Sent,
                Some(Happened::Ended(end)) => Input::Disconnected(end),
                // Messages that have been read are left.
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

    /// Logs what keeps the client from its contents, for a program that waits for them.
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

    /// Fails if no remote is left to try, so that no wait would end.
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        match self.idl.session_state().is_alive() {
            true => Ok(()),
            false => Err(Error::Dead(self.last_failure())),
        }
    }

    /// The events to wait for before the next [`Client::run`]. May be called while a transaction is open; the transaction must end before
    /// that run.
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

    /// As [`Client::wait`], for those who wait here.
    pub(crate) fn wanted(&mut self) -> Wanted<'_> {
        if self.transport.is_foreign() {
            // The next run tells why.
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

/// Reading needs no other name.
impl Deref for Client {
    type Target = Idl;

    fn deref(&self) -> &Idl {
        &self.idl
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
