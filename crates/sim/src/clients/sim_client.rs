//! A client: a replica of the library, its connection, its requests and their outcomes.
//!
//! After every input, the client checks the promises of the library: each transaction ends once, a
//! success is visible when it is reported, and the replica shows only whole transactions.

use std::collections::BTreeMap;

use corvid_data::{Atom, Datum, Uuid};
use corvid_idl::{FetchId, FetchOutcome, Idl, Resync, Status, TxnId};
use corvid_rpc::log_event::End as LinkEnd;
use corvid_session::{Clause, Condition, Function, Input, Options, Output};

use super::content::{self, Contents};
use super::failed_waits::FailedWaits;
use super::ledger::{End, Ledger};
use super::workload::{self, LOCK};
use crate::world::dice::Dice;
use crate::world::network::connections::{Caller, ConnId, Connections, Parcel, To};
use crate::world::trace::Trace;

/// Addresses for a client: the address of the active host, or the addresses of both hosts.
pub(super) const ACTIVE: &str = "tcp:10.0.0.9:6640";
pub(super) const HOSTS: [&str; 2] = ["tcp:10.0.0.1:6640", "tcp:10.0.0.2:6640"];

/// Age up to which the library has a lost transaction executed, ms.
const FINDABLE_MS: u64 = 60_000;

/// A transaction that was sent.
struct Sent {
    number: i64,
    /// The library's number of the session at the time of sending.
    session_seqno: u64,
    /// The time until which a server can find out what became of it, ms. 0 if perhaps none can,
    /// because the transaction has no id or asserts a lock, or the client knew no commit.
    findable_ms: u64,
    ended: Option<Status>,
}

pub(super) struct SimClient {
    number: usize,
    pub(super) idl: Idl,
    conn: Option<ConnId>,
    /// The network has established the connection.
    is_open: bool,
    /// The client sleeps: it neither reads nor checks its clock.
    pub(super) is_deaf: bool,
    /// The client detects by itself that the server does not answer.
    pub(super) probes: bool,
    /// A conversion closes sessions that are not change-aware. Such a session may get the reply to
    /// a transaction before it is closed.
    is_change_aware: bool,
    /// The server has canceled a transaction over this connection: it may have been executed.
    /// Without a connection nothing is canceled, so what is tried then was not executed.
    pub(super) may_be_canceled: bool,
    /// The server may be a relay that follows another relay. When it changes to one that is behind
    /// what it has shown, it goes back (docs/internals/relay.md).
    pub(super) may_go_back: bool,
    sent: BTreeMap<TxnId, Sent>,
    failed_waits: FailedWaits,
    fetches: Vec<FetchId>,
    /// The greatest `n` of the items to which the client subscribes.
    limit: Option<i64>,
    promise: u64,
    /// The content when tracked changes were last cleared.
    shadow: Contents,
    epoch: u64,
    wake_ms: Option<u64>,
    /// The time of the last input or output, ms.
    now_ms: u64,
    has_ids: bool,
    /// Transactions that were canceled although they had ids, a server could have looked for them,
    /// and little time had passed.
    pub(super) unexplained: Vec<i64>,
    trace: Trace,
}

impl SimClient {
    /// Returns a client of two hosts.
    pub(super) fn new(number: usize, dice: &mut Dice, now_ms: u64, trace: &Trace) -> SimClient {
        SimClient::of(number, dice, now_ms, trace, |dice| {
            let remote = if dice.chance(60) {
                ACTIVE.to_owned()
            } else {
                HOSTS.join(",")
            };
            (remote, true)
        })
    }

    /// Returns a client. `draw_remote` returns its remotes, and whether only a leader will do.
    pub(super) fn of(
        number: usize,
        dice: &mut Dice,
        now_ms: u64,
        trace: &Trace,
        draw_remote: impl FnOnce(&mut Dice) -> (String, bool),
    ) -> SimClient {
        let mut options = Options::new("A", dice.draw());
        let class = workload::class(dice);
        options.schema = Some(class.schema().clone());
        options.version_max = *dice.pick(&[1, 2, 3, 3, 3]);
        options.is_change_aware = dice.chance(80);
        let is_change_aware = options.is_change_aware;
        let mut idl = Idl::with_options(class, options);
        if dice.chance(25) {
            idl.set_resync(Resync::Reload);
        }
        let session = idl.session();
        // The others are as clients of the reference.
        let has_ids = dice.chance(80);
        if has_ids {
            let key = u128::from(dice.draw()) << 64 | u128::from(dice.draw());
            session.set_transaction_ids(key);
        }
        let probe_ms = *dice.pick(&[0, 1000, 5000]);
        session.set_probe_interval(Some(probe_ms));
        let (remote, leader_only) = draw_remote(dice);
        session.set_leader_only(now_ms, leader_only);
        session.set_remote(now_ms, &remote, true);
        SimClient {
            number,
            idl,
            conn: None,
            is_open: false,
            is_deaf: false,
            probes: probe_ms > 0,
            is_change_aware,
            may_be_canceled: false,
            may_go_back: false,
            sent: BTreeMap::new(),
            failed_waits: FailedWaits::default(),
            fetches: Vec::new(),
            limit: None,
            promise: 0,
            shadow: Contents::new(),
            epoch: 0,
            wake_ms: None,
            now_ms,
            has_ids,
            unexplained: Vec::new(),
            trace: trace.clone(),
        }
    }

    pub(super) fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    /// Returns the time at which the library wants to be called again, ms. The library is asked
    /// after every call, and not while time passes.
    pub(super) fn wake_ms(&self) -> Option<u64> {
        self.wake_ms
    }

    /// Handles the passing of time without input.
    pub(super) fn tick(
        &mut self,
        now_ms: u64,
        host_of: &dyn Fn(&str) -> usize,
        network: &mut Connections,
        ledger: &mut Ledger,
    ) -> Result<(), String> {
        self.expire(now_ms, ledger)?;
        self.output(now_ms, host_of, network)
    }

    /// Lets the library check its clock.
    pub(super) fn expire(&mut self, now_ms: u64, ledger: &mut Ledger) -> Result<(), String> {
        let input = if self.is_open {
            Input::Received(&[])
        } else {
            Input::Tick
        };
        self.input(now_ms, input, ledger)
    }

    /// Accepts a parcel from the client's connection.
    pub(super) fn take(
        &mut self,
        now_ms: u64,
        conn: ConnId,
        parcel: Parcel,
        network: &mut Connections,
        ledger: &mut Ledger,
    ) -> Result<(), String> {
        if self.conn != Some(conn) {
            network.close(now_ms, conn, To::Caller);
            return Ok(());
        }
        match parcel {
            Parcel::Open => {
                self.is_open = true;
                self.failed_waits.connected();
                self.input(now_ms, Input::Connected, ledger)
            }
            Parcel::Bytes(bytes) => {
                self.trace.line(format_args!(
                    "client {} <- {}",
                    self.number,
                    String::from_utf8_lossy(&bytes)
                ));
                self.failed_waits.received(&bytes)?;
                self.input(now_ms, Input::Received(&bytes), ledger)
            }
            Parcel::End => {
                network.vanish(conn, To::Caller);
                self.conn = None;
                self.may_be_canceled = false;
                let end = if std::mem::take(&mut self.is_open) {
                    LinkEnd::Closed
                } else {
                    LinkEnd::Failed("Connection refused".to_owned())
                };
                self.trace
                    .line(format_args!("client {} loses {conn:?}", self.number));
                self.input(now_ms, Input::Disconnected(end), ledger)
            }
        }
    }

    fn input(&mut self, now_ms: u64, input: Input<'_>, ledger: &mut Ledger) -> Result<(), String> {
        self.now_ms = now_ms;
        self.idl
            .handle(now_ms, input)
            .map_err(|misuse| misuse.to_string())?;
        while let Some(note) = self.idl.poll_log() {
            self.trace
                .line(format_args!("client {}: {note}", self.number));
        }
        self.judge(ledger)
    }

    /// Executes the library's requests, and asks when to call the library again.
    /// `host_of` returns the host at an address.
    pub(super) fn output(
        &mut self,
        now_ms: u64,
        host_of: &dyn Fn(&str) -> usize,
        network: &mut Connections,
    ) -> Result<(), String> {
        while let Some(output) = self.idl.poll_output() {
            match output {
                Output::Connect { remote } => {
                    if self.conn.is_some() {
                        return Err("it connects while it is connected".to_owned());
                    }
                    let host = host_of(&remote);
                    let conn = network.dial(now_ms, Caller::Client(self.number), host);
                    self.trace.line(format_args!(
                        "client {} calls host {host}: {conn:?}",
                        self.number
                    ));
                    self.conn = Some(conn);
                }
                Output::Disconnect => {
                    self.is_open = false;
                    self.may_be_canceled = false;
                    if let Some(conn) = self.conn.take() {
                        network.close(now_ms, conn, To::Caller);
                    }
                }
                Output::Send(bytes) => {
                    let conn = self.conn.filter(|_| self.is_open);
                    let conn = conn.ok_or("it sends and is not connected")?;
                    self.failed_waits.sent(&bytes)?;
                    network.send(now_ms, conn, To::Server, Parcel::Bytes(bytes));
                }
            }
        }
        self.wake_ms = self.idl.poll_timeout(now_ms);
        Ok(())
    }

    /// Checks the replica, and whether transactions have ended.
    fn judge(&mut self, ledger: &mut Ledger) -> Result<(), String> {
        let shown = content::shown(&self.idl);
        if let Some((txns, count)) = &shown
            && txns.len() as i64 != *count
        {
            return Err(format!("half of something is shown: {count} of {txns:?}"));
        }
        let session_seqno = self.idl.session_state().session_seqno();
        for (id, sent) in &mut self.sent {
            let status = self.idl.status(*id).ok_or("a transaction was forgotten")?;
            if let Some(ended) = sent.ended {
                if ended != status {
                    let number = sent.number;
                    return Err(format!("transaction {number} was {ended:?}, is {status:?}"));
                }
                continue;
            }
            // An operation has failed, so the transaction was not canceled.
            let error = self.idl.txn_error(*id);
            let is_judged = error.is_some_and(|error| error.starts_with('{'))
                || self.failed_waits.contains(sent.number);
            let end = match status {
                Status::Incomplete => continue,
                Status::Success => {
                    let is_shown = shown
                        .as_ref()
                        .is_some_and(|(txns, _)| txns.contains(&sent.number));
                    let is_same_session = session_seqno == sent.session_seqno;
                    if !is_shown
                        && is_same_session
                        && self.is_change_aware
                        && !self.may_go_back
                        && !ledger.is_lost(sent.number)
                    {
                        return Err(format!(
                            "transaction {} succeeded out of sight",
                            sent.number
                        ));
                    }
                    if self.idl.incremented_to(*id).is_none() {
                        return Err(format!("transaction {} did not count", sent.number));
                    }
                    End::Committed
                }
                Status::TryAgain if session_seqno != sent.session_seqno && !is_judged => {
                    End::Unknown
                }
                Status::TryAgain | Status::Error if self.may_be_canceled && !is_judged => {
                    End::Unknown
                }
                Status::TryAgain | Status::NotLocked | Status::Error => End::Refused,
                other => return Err(format!("transaction {} is {other:?}", sent.number)),
            };
            if end == End::Unknown && self.may_be_canceled && self.now_ms < sent.findable_ms {
                self.unexplained.push(sent.number);
            }
            self.trace.line(format_args!(
                "client {}: transaction {} ends as {status:?} {}",
                self.number,
                sent.number,
                self.idl.txn_error(*id).unwrap_or_default()
            ));
            sent.ended = Some(status);
            ledger.ended(sent.number, end, self.idl.incremented_to(*id))?;
        }
        Ok(())
    }
}

/// Actions of the client itself.
impl SimClient {
    /// Makes a transaction of some changes, then commits or aborts it.
    pub(super) fn transact(&mut self, dice: &mut Dice, ledger: &mut Ledger) -> Result<(), String> {
        let before = content::held(&self.idl, true);
        let txn = self.idl.begin().map_err(|misuse| misuse.to_string())?;
        let number = ledger.begin();
        let mut made = workload::mark(&mut self.idl, number);
        for _ in 0..dice.below(4) {
            made = made.and_then(|is_marked| {
                workload::change(&mut self.idl, dice)?;
                Ok(is_marked)
            });
        }
        let is_marked = made.map_err(|misuse| format!("transaction {number}: {misuse}"))?;
        content::check_index(&self.idl)?;
        if !is_marked || dice.chance(15) {
            self.idl.abort(txn);
        } else {
            self.commit(txn, number, ledger)?;
        }
        if content::held(&self.idl, true) != before {
            return Err(format!("transaction {number} was not taken back"));
        }
        Ok(())
    }

    /// Makes a transaction that only counts, and has no reason to fail. Returns its number, or
    /// `None` if the replica is empty.
    pub(super) fn count(&mut self, ledger: &mut Ledger) -> Result<Option<i64>, String> {
        let txn = self.idl.begin().map_err(|misuse| misuse.to_string())?;
        let number = ledger.begin();
        if !workload::mark(&mut self.idl, number).map_err(|misuse| misuse.to_string())? {
            self.idl.abort(txn);
            return Ok(None);
        }
        self.commit(txn, number, ledger)?;
        Ok(Some(number))
    }

    fn commit(&mut self, txn: TxnId, number: i64, ledger: &mut Ledger) -> Result<(), String> {
        let status = self.idl.commit().map_err(|misuse| misuse.to_string())?;
        self.trace.line(format_args!(
            "client {}: transaction {number}: {status:?}",
            self.number
        ));
        ledger.sent(number);
        let session = self.idl.session_state();
        // A new session has to own the lock again before anything that asserts it is executed.
        let has_lock = session.lock_name().is_some();
        // The id of contents before the first commit changes with each start of a server.
        let has_commits = content::shown(&self.idl).is_some_and(|(_, count)| count > 0);
        let is_known = session.last_id() != Uuid::ZERO && has_commits;
        let is_findable = self.has_ids && is_known && !has_lock;
        let sent = Sent {
            number,
            session_seqno: session.session_seqno(),
            findable_ms: if is_findable {
                self.now_ms + FINDABLE_MS
            } else {
                0
            },
            ended: None,
        };
        self.sent.insert(txn, sent);
        self.judge(ledger)
    }

    /// Cancels or drops a transaction that was sent.
    pub(super) fn give_up(&mut self, dice: &mut Dice, ledger: &mut Ledger) -> Result<(), String> {
        let ids: Vec<TxnId> = self.sent.keys().copied().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let id = *dice.pick(&ids);
        let Some(sent) = self.sent.remove(&id) else {
            return Ok(());
        };
        if sent.ended.is_none() {
            ledger.ended(sent.number, End::Unknown, None)?;
        }
        if dice.chance(50) {
            self.idl.abort(id);
            if sent.ended.is_none() && self.idl.status(id) != Some(Status::Aborted) {
                return Err(format!("transaction {} was not given up", sent.number));
            }
            return Ok(());
        }
        self.idl.forget(id);
        Ok(())
    }

    /// Subscribes to other items, or to all.
    pub(super) fn want(&mut self, now_ms: u64, dice: &mut Dice) {
        self.limit = dice.chance(70).then(|| dice.between(-1, 9));
        let mut condition = Condition::none();
        match self.limit {
            None => condition = Condition::all(),
            Some(limit) => {
                let argument = Datum::one(Atom::Integer(limit));
                condition.add(Clause::new("n", Function::LessOrEqual, &argument, false));
            }
        }
        let table = workload::column(&self.idl, "Item", "n").table;
        self.trace.line(format_args!(
            "client {} wants n <= {:?}",
            self.number, self.limit
        ));
        self.promise = self
            .idl
            .set_condition(now_ms, table, condition)
            .expect("accepted");
    }

    /// Requests or releases the lock.
    pub(super) fn lock(&mut self, now_ms: u64, dice: &mut Dice) {
        let name = dice.chance(50).then_some(LOCK);
        self.idl.session().set_lock(now_ms, name);
    }

    /// Fetches an on-demand column if the client can.
    pub(super) fn fetch(&mut self, dice: &mut Dice) {
        let big = workload::column(&self.idl, "Item", "big");
        let rows = workload::rows(&self.idl, "Item");
        let begun = match dice.below(3) {
            0 if !rows.is_empty() => self.idl.fetch_row(*dice.pick(&rows), big),
            1 => self.idl.fetch_table(big.table),
            _ => self.idl.fetch_column(big),
        };
        self.fetches.extend(begun);
    }

    /// Checks the tracked changes.
    pub(super) fn check(&mut self) -> Result<(), String> {
        if self.idl.resync_epoch() != self.epoch {
            self.epoch = self.idl.resync_epoch();
            self.shadow.clear();
        }
        content::replay(&self.idl, &mut self.shadow)?;
        let held = content::held(&self.idl, false);
        if let Some(difference) = content::difference(&self.idl, &self.shadow, &held) {
            return Err(format!("tracked changes lead elsewhere: {difference}"));
        }
        self.idl.clear_changes();
        self.idl.check_consistency()?;
        content::check_index(&self.idl)
    }
}

/// Conditions that must hold when the run is idle.
impl SimClient {
    /// Whether the client waits for no reply.
    pub(super) fn is_content(&self) -> bool {
        self.idl.session_state().is_monitoring()
            && self.idl.outstanding_count() == 0
            && self.idl.condition_seqno() >= self.promise
    }

    /// Returns the greatest `n` of items in the replica, or `None` if it has all items.
    pub(super) fn limit(&self) -> Option<i64> {
        let has_conditions = self.idl.session_state().conditions_supported();
        self.limit.filter(|_| has_conditions)
    }

    /// Fetches all on-demand columns.
    pub(super) fn fetch_all(&mut self) -> Result<(), String> {
        let big = workload::column(&self.idl, "Item", "big");
        if self.idl.class().mode(big).is_on_demand {
            let fetch = self.idl.fetch_column(big);
            self.fetches.push(fetch.map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Checks that every fetch has ended without an error.
    pub(super) fn check_fetches(&mut self) -> Result<(), String> {
        for fetch in self.fetches.drain(..) {
            match self.idl.take_fetch_outcome(fetch) {
                None | Some(FetchOutcome::Pending) => return Err("a fetch has no end".to_owned()),
                Some(FetchOutcome::Error(error)) => return Err(format!("a fetch fails: {error}")),
                Some(_) => {}
            }
            if self.idl.take_fetch_outcome(fetch).is_some() {
                return Err("a fetch ends twice".to_owned());
            }
        }
        Ok(())
    }
}
