//! A client's session with a suitable server from a list: from the connection to the stream of
//! updates (docs/spec/idl.md 1.5 to 1.14).
//!
//! A pure state machine. A driver reports events ([`Client::handle`]), carries out outputs
//! ([`Client::poll_output`]) and calls again at [`Client::poll_timeout`]. The user, a replica or a
//! relay, reads [`Client::poll_event`] after each of these calls. The machine keeps no rows. It
//! keeps the schema, the conditions, the lock, and the last transaction that the user's contents
//! include (`last_id`).
//!
//! Invariant: a user that applies each [`Update`](crate::Update) in order always holds the contents
//! of some server at one moment, restricted to the monitored part. A disconnection does not change
//! them.
//!
//! ```text
//!  Down -> ServerSchema -> ServerMonitor -> DataMonitor -> Monitoring
//!                |   refused     |   refused    ^   | unknown    |
//!                +-> DataSchema <+              |   | method     | monitor_canceled: from the top,
//!                        | ^    once more       |   |            | connection and conditions stay
//!                        | +--------------------|---|
//!                        +----------------------+   v
//!   anything that makes the server unfit ------> Retry -> Down, next remote
//! ```

mod contents;
mod handshake;
mod inbound;
mod lagging;
mod lost_relay;
mod repeatable;
mod requests;
mod traffic;

use std::collections::{BTreeMap, VecDeque};

use corvid_data::{Arc, Schema, Uuid};
use corvid_json::{ArrayWriter, write};
use corvid_rpc::log_event::End;
use corvid_rpc::message;
use corvid_rpc::remote::RemoteList;
use corvid_rpc::wire_log::Direction;

use crate::condition::Condition;
use crate::conditions::{Conditions, Known};
use crate::decoder::Decoder;
use crate::event::{Event, Input, Outcome, Output, RequestId};
use crate::failure::{Cause, Failure, LastError};
use crate::link::{Demand, Link};
use crate::lock::Lock;
use crate::log_message::LogMessage;
use crate::metrics::SessionMetrics;
use crate::plan::{Interest, Plan};
use crate::refused_clause::RefusedClause;
use crate::server_db::{ServerDb, ServerRequirements, ServerStatus};
use lagging::Lagging;
use lost_relay::LostRelay;
use repeatable::Repeatable;

/// Messages handled per call; the rest are handled by the next call, which is due at once.
pub const MESSAGES_MAX: usize = 50;

/// The fixed options of a session; changeable settings have setters.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of the database.
    pub database: String,
    /// The tables and columns to monitor.
    pub interest: Interest,
    /// The schema that the client was built for: used if the server's cannot be read.
    pub schema: Option<Arc<Schema>>,
    /// Whether servers may announce changes of schema instead of closing the connection.
    pub is_change_aware: bool,
    /// The highest version to request: 1 (`monitor`), 2 (`monitor_cond`), 3 (`monitor_cond_since`).
    pub version_max: u8,
    /// Whether updates are read strictly by the server's schema: an unknown column or an unreadable
    /// value is an error. Otherwise both are reported and skipped.
    pub is_strict: bool,
    /// Whether to request the server's id at the start of each connection ([`Client::server_id`]).
    pub asks_server_id: bool,
    /// Whether to stay at a relay that has lost its source if no other remote is better
    /// ([`Client::is_at_lost_relay`]). For relays, which pass that state on.
    pub stays_at_lost_relays: bool,
    /// Seed of random choices; give each client its own, so that clients spread over servers.
    pub seed: u64,
}

impl Options {
    /// A session for all of `database`, with defaults for the other options.
    #[must_use]
    pub fn new(database: &str, seed: u64) -> Options {
        Options {
            database: database.to_owned(),
            interest: Interest::All,
            schema: None,
            is_change_aware: true,
            version_max: 3,
            is_strict: false,
            asks_server_id: false,
            stays_at_lost_relays: false,
            seed,
        }
    }
}

/// The state of the session's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not connected.
    Down,
    /// The schema of `_Server` has been requested.
    ServerSchema,
    /// The contents of `_Server` have been requested.
    ServerMonitor,
    /// The database's schema has been requested.
    DataSchema,
    /// The database's contents have been requested.
    DataMonitor,
    /// The contents are complete and kept up to date.
    Monitoring,
    /// The server is unsuitable; the connection is being closed.
    Retry,
}

/// The purpose of a request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    ServerSchema,
    ServerMonitor,
    DataSchema,
    ServerId,
    /// Whether a relay that has its source again has sent everything.
    SourceFence,
    /// The database's contents, by this version of monitoring.
    DataMonitor(u8),
    Conditions,
    Lock,
    /// The answer does not matter.
    Courtesy,
    User,
}

/// A session; see the module for how to drive it.
#[derive(Debug)]
pub struct Client {
    options: Options,
    requirements: ServerRequirements,
    /// The cluster id set by [`Client::set_cluster_id`].
    own_cluster_id: Option<String>,
    link: Link,
    state: State,
    next_id: u64,
    pending: BTreeMap<u64, Purpose>,
    /// Transactions that can be sent again.
    repeatable: Repeatable,
    outputs: VecDeque<Output>,
    events: VecDeque<Event>,
    server_db: Option<ServerDb>,
    /// The server's id, once the server has sent it on this connection.
    server_id: Option<Uuid>,
    /// `_Server` is monitored on this connection.
    has_server_monitor: bool,
    /// The schema in `_Server` may differ from the database's, which was converted or refused it.
    is_schema_doubted: bool,
    decoder: Option<Decoder>,
    /// The version of the current monitor; 0 if there is none.
    version: u8,
    /// The last transaction that the contents include; zero if unknown.
    last_id: Uuid,
    conditions: Conditions,
    lock: Lock,
    /// Why the session has no current contents; `None` if it has.
    last_error: Option<LastError>,
    /// The schema that `_Server` last showed on this connection.
    shown_schema: Option<corvid_data::Str>,
    /// The text of the plan's schema, kept so that the same text is not parsed again.
    schema_text: Option<corvid_data::Str>,
    has_contents: bool,
    /// When the last update was handed to the user, monotonic ms.
    seen_ms: u64,
    /// The last transaction that the user has seen, under any schema, and its connection.
    seen: (Uuid, u64),
    /// Contents that may be older than those the user has seen.
    lagging: Option<Lagging>,
    /// Whether the server is a relay without a source.
    lost_relay: LostRelay,
    /// The time of the input that is being handled, monotonic ms.
    now_ms: u64,
    /// Length of the message that is being handled, bytes.
    message_bytes: usize,
    /// Messages handled per call.
    messages_max: usize,
    /// The last argument of [`Client::set_remote`].
    remote_setting: Option<(String, bool)>,
    /// Whether messages are logged.
    shows_messages: bool,
    metrics: SessionMetrics,
}

/// Settings.
impl Client {
    /// A session without remotes. By default it accepts only the leader of a cluster.
    #[must_use]
    pub fn new(options: Options) -> Client {
        let requirements = ServerRequirements {
            database: options.database.clone(),
            cluster_id: None,
            leader_only: true,
            index_min: None,
        };
        Client {
            requirements,
            own_cluster_id: None,
            link: Link::new(options.seed),
            options,
            state: State::Down,
            next_id: 1,
            pending: BTreeMap::new(),
            repeatable: Repeatable::default(),
            outputs: VecDeque::new(),
            events: VecDeque::new(),
            server_db: None,
            server_id: None,
            has_server_monitor: false,
            is_schema_doubted: false,
            decoder: None,
            version: 0,
            last_id: Uuid::ZERO,
            conditions: Conditions::default(),
            lock: Lock::default(),
            last_error: None,
            shown_schema: None,
            schema_text: None,
            has_contents: false,
            seen_ms: 0,
            seen: (Uuid::ZERO, 0),
            lagging: None,
            lost_relay: LostRelay::default(),
            now_ms: 0,
            message_bytes: 0,
            messages_max: MESSAGES_MAX,
            remote_setting: None,
            shows_messages: false,
            metrics: SessionMetrics::default(),
        }
    }

    /// Sets the remotes, as in `tcp:10.0.0.1:6642,tcp:10.0.0.2:6642,cid:6731fef6`. A connection to
    /// a remote that is still listed is kept if the cluster is the same. Without `retry`, each
    /// remote gets one attempt. An empty text ends the session; the same text again is a no-op.
    pub fn set_remote(&mut self, now_ms: u64, remote: &str, retry: bool) {
        let setting = Some((remote.to_owned(), retry));
        if self.remote_setting == setting {
            return;
        }
        self.remote_setting = setting;
        let list = RemoteList::parse(remote);
        let cluster_id = list.cluster_id.clone().or(self.own_cluster_id.clone());
        let is_same_cluster = cluster_id == self.requirements.cluster_id;
        self.requirements.cluster_id = cluster_id;
        let was_connected = self.link.is_connected();
        let was_alive = self.link.is_alive();
        let is_kept = self.link.set_remotes(now_ms, list, retry);
        if !self.link.is_alive() {
            if was_alive {
                self.outputs.push_back(Output::Disconnect);
                self.down(now_ms, None);
            }
        } else if !is_kept || (was_connected && !is_same_cluster) {
            self.link.force(true);
        }
        self.advance(now_ms);
    }

    /// Sets whether the next [`Client::set_remote`] shuffles the remotes; it does by default.
    pub fn set_shuffle_remotes(&mut self, shuffles: bool) {
        self.link.set_shuffle(shuffles);
    }

    /// Requires a server of this cluster, given by at least the first four characters of its id,
    /// and starts over. A `cid:` in a later [`Client::set_remote`] overrides it.
    pub fn set_cluster_id(&mut self, now_ms: u64, cluster_id: Option<String>) {
        self.own_cluster_id.clone_from(&cluster_id);
        if self.requirements.cluster_id != cluster_id {
            self.requirements.cluster_id = cluster_id;
            self.link.force(true);
            self.advance(now_ms);
        }
    }

    /// Sets whether only the leader of a cluster is accepted.
    pub fn set_leader_only(&mut self, now_ms: u64, leader_only: bool) {
        self.requirements.leader_only = leader_only;
        if leader_only && self.has_server_monitor {
            self.judge_again();
        }
        self.advance(now_ms);
    }

    /// Sets whether servers may announce changes of schema without closing the connection
    /// ([`Options::is_change_aware`]), from the next connection on.
    pub fn set_change_aware(&mut self, is_change_aware: bool) {
        self.options.is_change_aware = is_change_aware;
    }

    /// Forgets the highest index seen, for a cluster that was rebuilt from scratch.
    pub fn reset_index_min(&mut self) {
        self.requirements.index_min = None;
    }

    /// Sets the probe interval, ms; 0 disables probes, `None` selects the remote's default.
    pub fn set_probe_interval(&mut self, interval_ms: Option<u64>) {
        self.link.set_probe_interval(interval_ms);
    }

    /// Sets how many messages one call of [`Client::handle`] handles, [`MESSAGES_MAX`] by default;
    /// the rest is due at once. With 1, a user sees the state after each message.
    pub fn set_messages_max(&mut self, messages_max: usize) {
        self.messages_max = messages_max.max(1);
    }

    /// Sets the shortest and longest wait between attempts to connect, ms.
    pub fn set_backoff(&mut self, min_ms: u64, max_ms: u64) {
        self.link.set_backoff(min_ms, max_ms);
    }

    /// Retries forever from now on, even after a [`Client::set_remote`] without `retry`.
    pub fn enable_reconnect(&mut self, now_ms: u64) {
        self.link.enable_retries(now_ms);
        self.advance(now_ms);
    }

    /// Reconnects, at once if the current connection was good.
    pub fn force_reconnect(&mut self, now_ms: u64) {
        self.link.force(self.state == State::Monitoring);
        self.advance(now_ms);
    }

    /// Fetches all contents again, over a new connection: an update does not fit the user's.
    pub fn flag_inconsistency(&mut self, now_ms: u64, details: &str) {
        self.retry(Failure::Inconsistent(details.to_owned()));
        self.last_id = Uuid::ZERO;
        self.seen.0 = Uuid::ZERO;
        self.advance(now_ms);
    }
}

/// The state.
impl Client {
    /// The state of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the contents are complete and kept up to date.
    #[must_use]
    pub fn is_monitoring(&self) -> bool {
        self.state == State::Monitoring && self.link.is_connected()
    }

    /// Whether a connection is established.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.link.is_connected()
    }

    /// Whether the session is connected or will try to connect.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.link.is_alive()
    }

    /// Whether contents have ever arrived.
    #[must_use]
    pub fn has_ever_had_contents(&self) -> bool {
        self.has_contents
    }

    /// A number that increases whenever a connection is established or ends.
    #[must_use]
    pub fn session_seqno(&self) -> u64 {
        self.link.seqno()
    }

    /// The remotes, in the order of attempts.
    #[must_use]
    pub fn remotes(&self) -> &[String] {
        self.link.remotes()
    }

    /// The remote that is connected, or was last tried.
    #[must_use]
    pub fn remote(&self) -> &str {
        self.link.remote()
    }

    /// Name of the database.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.options.database
    }

    /// The monitored tables and columns of the last schema; `None` before the first.
    #[must_use]
    pub fn plan(&self) -> Option<&Arc<Plan>> {
        self.decoder.as_ref().map(Decoder::plan)
    }

    /// The last transaction that the contents include; zero if unknown.
    #[must_use]
    pub fn last_id(&self) -> Uuid {
        self.last_id
    }

    /// Why there are no contents, or none any more: the last failed attempt, or how the last
    /// connection ended, unless the user ended it. `None` once contents have arrived.
    #[must_use]
    pub fn last_error(&self) -> Option<&LastError> {
        self.last_error.as_ref()
    }

    /// Why the session left the last server, if the server caused [`Client::last_error`].
    #[must_use]
    pub fn last_failure(&self) -> Option<&Failure> {
        match &self.last_error.as_ref()?.cause {
            Cause::Server(failure) => Some(failure),
            Cause::Connection(_) => None,
        }
    }

    /// The server's role for the database; `None` if it has not sent any, or has no `_Server`.
    #[must_use]
    pub fn server_status(&self) -> Option<ServerStatus> {
        let server_db = self.server_db.as_ref().filter(|_| self.has_server_monitor);
        server_db?.status(&self.requirements)
    }

    /// The id of the connected server, which changes whenever it restarts; `None` if unknown. If it
    /// is requested ([`Options::asks_server_id`]), it arrives before the contents.
    #[must_use]
    pub fn server_id(&self) -> Option<Uuid> {
        self.server_id
    }

    /// The session's counters.
    #[must_use]
    pub fn metrics(&self) -> SessionMetrics {
        self.metrics
    }

    /// Whether the driver should read; false while many messages wait to be handled.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.link.wants_input()
    }

    /// Whether the session waits for the server: for a connection, for the reply to a request, or
    /// for the lock.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let wants_lock = self.lock_name().is_some() && !self.has_lock();
        !self.is_monitoring() || !self.pending.is_empty() || wants_lock
    }
}

/// Conditions and the lock.
impl Client {
    /// Sets the condition of a table. Returns the number that [`Client::condition_seqno`] must
    /// reach before the condition is in force.
    ///
    /// # Errors
    /// The server would refuse a clause, by its schema, or by [`Options::schema`] as long as the
    /// server's is unknown. Nothing has changed.
    pub fn set_condition(
        &mut self,
        now_ms: u64,
        table: &str,
        condition: Condition,
    ) -> Result<u64, RefusedClause> {
        let known = Known {
            own: self.options.schema.as_deref(),
            plan: self.decoder.as_ref().map(|decoder| &**decoder.plan()),
        };
        let is_sendable = self.version != 1;
        let promise = (self.conditions).set(table, condition, known, is_sendable)?;
        self.advance(now_ms);
        Ok(promise)
    }

    /// The server's error as JSON, if the server refused the last change of conditions and that
    /// change has this number. The earlier conditions are in force again.
    #[must_use]
    pub fn condition_refusal(&self, promise: u64) -> Option<&str> {
        self.conditions.refusal(promise)
    }

    /// The number up to which conditions are in force, or were refused
    /// ([`Client::condition_refusal`]); compare with `>=`.
    #[must_use]
    pub fn condition_seqno(&self) -> u64 {
        self.conditions.seqno()
    }

    /// Whether the server can select rows. One that cannot shows all rows, and every condition
    /// counts as in force. True while nothing is monitored.
    #[must_use]
    pub fn conditions_supported(&self) -> bool {
        self.version != 1
    }

    /// Requests a lock instead of the current one; `None` requests no lock.
    pub fn set_lock(&mut self, now_ms: u64, name: Option<&str>) {
        if self.lock.name() == name {
            return;
        }
        let before = self.lock.replace(name.map(str::to_owned));
        self.forget(|purpose| purpose == Purpose::Lock);
        if self.state != State::Down && self.link.is_connected() {
            if let Some(before) = before {
                self.request("unlock", &names(&[&before]), Purpose::Courtesy);
            }
            self.request_lock();
        }
        self.advance(now_ms);
    }

    /// The requested lock.
    #[must_use]
    pub fn lock_name(&self) -> Option<&str> {
        self.lock.name()
    }

    /// Whether the server has granted the lock; another client may have stolen it since.
    #[must_use]
    pub fn has_lock(&self) -> bool {
        self.lock.is_held()
    }

    /// Whether the server has reported that another client owns the lock.
    #[must_use]
    pub fn is_lock_contended(&self) -> bool {
        self.lock.is_contended()
    }

    /// The server's error as JSON, if it refused the lock request; the next connection retries.
    #[must_use]
    pub fn lock_refusal(&self) -> Option<&str> {
        self.lock.refusal()
    }
}

/// The machine.
impl Client {
    /// Handles an input. Read events and outputs after each call.
    pub fn handle(&mut self, now_ms: u64, input: Input<'_>) {
        match input {
            Input::Tick => {}
            Input::Listening => self.link.listening(now_ms),
            Input::Connected => {
                if !self.link.is_connected() {
                    self.link.connected(now_ms);
                    self.metrics.reconnects += u64::from(self.metrics.connects > 0);
                    self.metrics.connects += 1;
                    self.events.push_back(Event::Connected);
                    self.start();
                }
            }
            Input::Received(bytes) => {
                self.metrics.bytes_received += bytes.len() as u64;
                if let Err(reason) = self.link.received(now_ms, bytes) {
                    self.retry(Failure::Malformed(reason));
                }
            }
            Input::Sent => self.link.sent(now_ms),
            Input::Disconnected(end) => self.down(now_ms, Some(end)),
        }
        self.advance(now_ms);
    }

    /// The next output for the driver to carry out.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The next event for the user.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Client::handle`] must be called next, monotonic ms, with [`Input::Tick`] if there is
    /// no other input. `None` if nothing is due before the next input.
    #[must_use]
    pub fn poll_timeout(&self, now_ms: u64) -> Option<u64> {
        let deadlines = [
            self.link.deadline_ms(now_ms),
            self.lagging_until_ms(),
            self.stay_until_ms(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Handles what has arrived, then whatever is due.
    fn advance(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let had_lock = self.lock.is_held();
        for _ in 0..self.messages_max {
            if !self.link.is_connected() {
                break;
            }
            let Some(frame) = self.link.pop_frame() else {
                break;
            };
            self.metrics.messages_received += 1;
            self.message_bytes = frame.len();
            self.message(&frame);
            // The user must see this before a later message may return the lock.
            if had_lock && !self.lock.is_held() {
                break;
            }
        }
        // May complete the contents, so that conditions can be sent below.
        self.release_lagging_in_time();
        self.look_for_source();
        if self.is_monitoring() {
            self.link.is_good(now_ms);
            self.send_conditions();
        }
        // Before the caller can send another transaction.
        self.send_again();
        loop {
            // Logged before the next remote is tried: later messages carry its name.
            self.log_connection();
            let Some(demand) = self.link.handle(now_ms) else {
                break;
            };
            match demand {
                Demand::Connect(remote) => {
                    self.metrics.attempts += 1;
                    self.outputs.push_back(Output::Connect { remote });
                }
                Demand::Disconnect => {
                    self.outputs.push_back(Output::Disconnect);
                    self.down(now_ms, Some(End::Local));
                }
                Demand::Probe => self.send(message::PROBE.to_vec()),
            }
        }
        if !self.link.is_alive() {
            // The last attempt has just ended: no server can be asked.
            self.send_again();
        }
        self.log_connection();
    }

    fn log_connection(&mut self) {
        for event in self.link.take_log_events() {
            let remote = self.link.remote().to_owned();
            self.log(LogMessage::Connection { remote, event });
        }
    }

    /// The connection or the attempt has ended.
    fn down(&mut self, now_ms: u64, end: Option<End>) {
        let was_up = self.state != State::Down;
        let is_attempt_over = end.is_some();
        if let Some(end) = end {
            // A connection that the session abandoned ended for the reason recorded then, if any.
            if !self.link.is_forced() {
                self.failed(Cause::Connection(end.clone()));
            }
            self.link.disconnected(now_ms, end);
        }
        self.state = State::Down;
        if is_attempt_over {
            self.lost_relay.disconnected();
        }
        assert!(
            !self.link.is_connected(),
            "the state of a connection lives as long as the connection"
        );
        self.version = 0;
        self.lagging = None;
        self.server_db = None;
        self.server_id = None;
        self.has_server_monitor = false;
        self.is_schema_doubted = false;
        self.lock.unknown();
        self.conditions.disconnected();
        if was_up {
            self.metrics.disconnects += 1;
            self.events.push_back(Event::Disconnected);
        } else if is_attempt_over {
            self.metrics.failures += 1;
        }
        // No reply can arrive any more, so the outcome of these requests is unknown. Transactions
        // with ids wait for the next connection.
        for (id, purpose) in std::mem::take(&mut self.pending) {
            if purpose == Purpose::User && !self.keeps_lost(id, now_ms) {
                self.events.push_back(Event::Reply {
                    id: RequestId(id),
                    outcome: Outcome::Lost,
                });
            }
        }
    }

    /// Leaves the server.
    fn retry(&mut self, failure: Failure) {
        if matches!(self.state, State::Down | State::Retry) {
            return;
        }
        // The session has waited at the lost relay already, so the next remote is tried at once.
        let was_staying = self.is_at_lost_relay();
        let is_urgent = (self.state == State::Monitoring || was_staying)
            && matches!(
                failure,
                Failure::NotLeader
                    | Failure::Disconnected
                    | Failure::Stale
                    | Failure::NoSuchDatabase
            );
        self.state = State::Retry;
        self.lagging = None;
        self.metrics.servers_left += 1;
        let status = self.server_status();
        self.log(LogMessage::Leaving {
            remote: self.link.remote().to_owned(),
            database: self.options.database.clone(),
            is_relay: status.is_some_and(|status| status.model.as_str() == "relay"),
            failure: failure.clone(),
        });
        self.failed(Cause::Server(failure));
        self.link.force(is_urgent);
    }

    fn failed(&mut self, cause: Cause) {
        let remote = self.link.remote().to_owned();
        self.last_error = Some(LastError { remote, cause });
    }

    fn log(&mut self, message: LogMessage) {
        self.events.push_back(Event::Log(message));
    }

    fn send(&mut self, bytes: Vec<u8>) {
        assert!(
            self.link.is_connected(),
            "a message goes over the connection that it is meant for"
        );
        self.show_message(Direction::Sent, &bytes);
        self.metrics.bytes_sent += bytes.len() as u64;
        self.outputs.push_back(Output::Send(bytes));
    }

    /// Ignores the answers to these requests.
    fn forget(&mut self, is_meant: impl Fn(Purpose) -> bool) {
        self.pending.retain(|_, purpose| !is_meant(*purpose));
    }
}

/// A JSON array of strings.
fn names(texts: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut array = ArrayWriter::new(&mut out);
    for text in texts {
        write::string(array.element(), text.as_bytes());
    }
    array.end();
    out
}
