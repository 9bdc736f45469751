//! A client for programs that do one thing at a time: every call blocks until it has a result.
//!
//! Each call takes a time limit, after which it fails with [`Error::TimedOut`]; `None` waits
//! forever. Between calls the client reads nothing and answers no probes. If the program makes no
//! call for longer than the server's probe limit, the server closes the connection. The next call
//! opens a new one.

use std::ops::{ControlFlow, Deref, DerefMut};
use std::time::Duration;

use corvid_idl::{Class, FetchId, FetchOutcome, Idl, Status, TableCondition};
use corvid_net::readiness;
use corvid_session::history::Question as HistoryQuestion;

use crate::abort::Abort;
use crate::calls::{self, Front, block};
use crate::committed::Committed;
use crate::error::Error;
use crate::history;
use crate::polled::{self, millis};
use crate::session::SessionState;
use crate::setup::Setup;

/// A client whose calls block. It derefs to [`polled::Client`], and through that to [`Idl`], for
/// everything that does not wait.
#[derive(Debug)]
pub struct Client {
    inner: polled::Client,
}

impl Client {
    /// Creates a client, as [`polled::Client::connect`] does. The first call that waits starts to
    /// connect.
    ///
    /// # Errors
    /// Those of [`polled::Client::connect`].
    pub fn connect(class: Class, remotes: &str) -> Result<Client, Error> {
        Ok(Client::over(polled::Client::connect(class, remotes)?))
    }

    /// Creates a client, as [`polled::Client::connect_with`] does. The first call that waits starts
    /// to connect.
    ///
    /// # Errors
    /// Those of [`polled::Client::connect_with`].
    pub fn connect_with(class: Class, remotes: &str, setup: &Setup) -> Result<Client, Error> {
        let client = polled::Client::connect_with(class, remotes, setup)?;
        Ok(Client::over(client))
    }

    /// Turns a polled client, which may have other settings, into a blocking one.
    #[must_use]
    pub fn over(client: polled::Client) -> Client {
        Client {
            inner: client.resolving_now(),
        }
    }

    /// Waits until `holds` returns true. The client calls it after every change.
    ///
    /// # Errors
    /// A transaction is open, the time limit has passed, or no remote is left to try. The last two
    /// carry the last failure.
    pub fn wait_until(
        &mut self,
        timeout: Option<Duration>,
        holds: impl FnMut(&Idl) -> bool,
    ) -> Result<(), Error> {
        block(calls::until(&mut self.within(timeout), holds))
    }

    /// Waits until `is_wanted` returns true for the session's state, for example connected,
    /// disconnected, or connected to the leader.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn wait_for_session(
        &mut self,
        timeout: Option<Duration>,
        is_wanted: impl FnMut(&SessionState) -> bool,
    ) -> Result<(), Error> {
        block(calls::session(&mut self.within(timeout), is_wanted))
    }

    /// The front for one call, which fails once `timeout` has passed.
    fn within(&mut self, timeout: Option<Duration>) -> Timed<'_> {
        let begin_ms = self.inner.now_ms();
        Timed {
            client: &mut self.inner,
            end_ms: timeout.map(|timeout| begin_ms.saturating_add(millis(timeout))),
        }
    }

    /// Waits until the client has contents, from this connection or an earlier one.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn wait_for_contents(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.wait_until(timeout, Idl::has_ever_connected)
    }

    /// Waits until [`Idl::change_seqno`] differs from `seqno`, and returns the new number.
    ///
    /// # Errors
    /// As [`Client::wait_until`].
    pub fn wait_for_change(&mut self, seqno: u64, timeout: Option<Duration>) -> Result<u64, Error> {
        block(calls::new_seqno(&mut self.within(timeout), seqno))
    }

    /// Sets the condition of a table, as [`polled::Client::set_condition`] does, and waits until
    /// the server applies it.
    ///
    /// # Errors
    /// Those of [`Client::wait_until`]: the condition stays set. [`Error::Misuse`] for a clause
    /// that any server would refuse and [`Error::ConditionRefused`] for the server's refusal: the
    /// previous condition stays in force.
    pub fn set_condition(
        &mut self,
        condition: impl Into<TableCondition>,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        block(calls::set_condition(&mut self.within(timeout), condition))
    }

    /// Waits until the client holds the lock that [`polled::Client::set_lock`] requested.
    ///
    /// # Errors
    /// Those of [`Client::wait_until`], and [`Error::LockRefused`].
    pub fn wait_for_lock(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        block(calls::lock(&mut self.within(timeout)))
    }

    /// Waits for a fetch to end, and returns its outcome.
    ///
    /// # Errors
    /// Those of [`Client::wait_until`], and [`Misuse::RowGone`] if the outcome has already been
    /// taken.
    pub fn finish_fetch(
        &mut self,
        fetch: FetchId,
        timeout: Option<Duration>,
    ) -> Result<FetchOutcome, Error> {
        block(calls::finish_fetch(&mut self.within(timeout), fetch))
    }

    /// Commits the open transaction and waits for its outcome. After a timeout the outcome is
    /// unknown.
    ///
    /// # Errors
    /// No transaction is open; otherwise those of [`Client::wait_until`].
    pub fn commit(&mut self, timeout: Option<Duration>) -> Result<Status, Error> {
        let (_, status) = block(calls::commit(&mut self.within(timeout)))?;
        Ok(status)
    }

    /// Calls `make` to build a transaction, and commits it. After a failed verification, and if the
    /// outcome is unknown after a lost connection, it calls `make` again, on the replica's new
    /// contents, so `make` must tolerate several calls. An error from `make` aborts the transaction
    /// and ends the call. That error is [`Misuse`] or the program's own type: see [`Abort`].
    ///
    /// After a lost connection, a server of Corvid tells the outcome of the transaction. If no
    /// server can tell, `make` is called again although the transaction may have been committed.
    /// `make` notices that if it reads the rows before it changes them.
    ///
    /// # Errors
    /// The errors of `make`, unchanged. [`Error::Refused`] if the server refuses the transaction,
    /// [`Error::Ended`] if the client does not hold its lock; otherwise those of
    /// [`Client::wait_until`].
    pub fn transact<T, E: Abort>(
        &mut self,
        timeout: Option<Duration>,
        make: impl FnMut(&mut Idl) -> Result<T, E>,
    ) -> Result<Committed<T>, E::Error> {
        block(calls::transact(&mut self.within(timeout), make))
    }

    /// Reads the history of the database from the server, as `ovsdb-client log` does. Waits for the
    /// contents first. `line` gets each line, one of the JSON objects that `ovsdb-tool --json`
    /// prints; a break ends the reading. Local times need a zone. A part that is missing, such as a
    /// file, is logged as a warning. A reading that ends early ends at the server too, which does
    /// few at a time.
    ///
    /// ```no_run
    /// # fn run(mut client: corvid_driver::blocking::Client) -> Result<(), corvid_driver::Error> {
    /// use corvid_driver::HistoryQuestion;
    /// use std::ops::ControlFlow;
    ///
    /// let question = HistoryQuestion::log().table("Port").since("-2h");
    /// client.read_history(&question, None, |line| {
    ///     println!("{}", String::from_utf8_lossy(line));
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::HistoryQuestion`], [`Error::HistoryUnsupported`], [`Error::HistoryRefused`] and
    /// [`Error::HistoryLost`]; otherwise those of [`Client::wait_until`].
    pub fn read_history(
        &mut self,
        question: &HistoryQuestion,
        timeout: Option<Duration>,
        line: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        block(history::read(&mut self.within(timeout), question, line))
    }

    /// Executes `select` operations on the contents at a moment (`HEAD~3`, `-2h`, ...), and returns
    /// their results, a JSON array. `operations` is a JSON array, too.
    ///
    /// # Errors
    /// [`Error::NotOperations`]; otherwise those of [`Client::read_history`].
    pub fn select_at(
        &mut self,
        moment: &str,
        operations: &str,
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>, Error> {
        block(history::select_at(
            &mut self.within(timeout),
            moment,
            operations,
        ))
    }
}

/// A client that blocks until a deadline.
struct Timed<'c> {
    client: &'c mut polled::Client,
    /// The deadline in milliseconds of the monotonic clock; `None` waits forever.
    end_ms: Option<u64>,
}

impl Front for Timed<'_> {
    fn look<T>(&self, look: impl FnOnce(&polled::Client) -> T) -> T {
        look(self.client)
    }

    fn change<T>(&mut self, act: impl FnOnce(&mut polled::Client) -> T) -> T {
        act(self.client)
    }

    async fn wait<T>(
        &mut self,
        mut found: impl FnMut(&polled::Client) -> Option<T>,
    ) -> Result<T, Error> {
        loop {
            self.client.run()?;
            if let Some(found) = found(self.client) {
                return Ok(found);
            }
            self.client.check_alive()?;
            let left_ms = (self.end_ms).map(|end_ms| end_ms.saturating_sub(self.client.now_ms()));
            if left_ms == Some(0) {
                return Err(Error::TimedOut(self.client.last_failure()));
            }
            let mut wanted = self.client.wanted();
            let left = left_ms.map(Duration::from_millis);
            wanted.timeout = wanted.timeout.into_iter().chain(left).min();
            readiness::wait(&wanted)?;
        }
    }
}

/// Gives access to the settings and the session's state, and through a second deref to the replica.
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
