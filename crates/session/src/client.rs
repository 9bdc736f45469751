//! A client's session with a suitable server of a list: from the connection to the stream of updates (docs/spec/idl.md 1.5 to 1.14).
//!
//! A pure state machine. A driver reports events ([`Client::handle`]), carries out outputs ([`Client::poll_output`]) and calls again at
//! [`Client::poll_timeout`]. The user, a replica or a relay, reads [`Client::poll_event`] after each of these calls. The machine keeps no
//! rows. It keeps the schema, the conditions, the lock, and the last transaction that its user's contents include (`last_id`).
//!
//! Invariant: a user that applies each [`Update`](crate::Update) in order always holds the contents of some server at one moment, restricted
//! to the monitored part. A disconnection changes nothing in them.
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

/// Messages handled at one call; the rest waits for the next, which is due at once.
pub const MESSAGES_MAX: usize = 50;

/// The fixed options of a session. Settings that may change have setters.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of the database.
    pub database: String,
    /// The tables and columns to monitor.
    pub interest: Interest,
    /// The schema that the client was made for: used where the server's cannot be read.
    pub schema: Option<Arc<Schema>>,
    /// Whether servers may tell of changes of schema without closing the connection. Short-lived tools need not ask for it.
    pub is_change_aware: bool,
    /// The highest version of monitoring to ask for: 1 (`monitor`), 2 (`monitor_cond`) or 3 (`monitor_cond_since`).
    pub version_max: u8,
    /// Whether updates are read by the constraints of the server's schema, and an unknown column or an unreadable value is an error. If
    /// not, both are reported and left out.
    pub is_strict: bool,
    /// Whether the server's id is asked for at the beginning of each connection ([`Client::server_id`]).
    pub asks_server_id: bool,
    /// Whether to stay at a relay that has lost its source where no other remote is better
    /// ([`Client::is_at_lost_relay`]). For relays, which pass that on.
    pub stays_at_lost_relays: bool,
    /// Seed of the random choices. Give each client another one, so that clients spread over servers and time.
    pub seed: u64,
}

impl Options {
    /// A session for all of `database`, with the other options at their defaults.
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
    /// There is no connection.
    Down,
    /// The schema of `_Server` was asked for.
    ServerSchema,
    /// The contents of `_Server` were asked for.
    ServerMonitor,
    /// The database's schema was asked for.
    DataSchema,
    /// The database's contents were asked for.
    DataMonitor,
    /// The contents are complete and kept up to date.
    Monitoring,
    /// The server is not suitable; the connection is being closed.
    Retry,
}

/// The purpose of an outstanding request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    ServerSchema,
    ServerMonitor,
    DataSchema,
    ServerId,
    /// Of a relay that has its source again.
    SourceFence,
    /// By version.
    DataMonitor(u8),
    Conditions,
    Lock,
    /// Nothing depends on the answer.
    Courtesy,
    User,
}

/// The session.
#[derive(Debug)]
pub struct Client {
    options: Options,
    requirements: ServerRequirements,
    /// As [`Client::set_cluster_id`] set it.
    own_cluster_id: Option<String>,
    link: Link,
    state: State,
    next_id: u64,
    pending: BTreeMap<u64, Purpose>,
    outputs: VecDeque<Output>,
    events: VecDeque<Event>,
    server_db: Option<ServerDb>,
    /// The server's id, once it has told it on this connection.
    server_id: Option<Uuid>,
    /// `_Server` is monitored on this connection.
    has_server_monitor: bool,
    /// The schema in `_Server` may be another one than the database's: that was converted on this connection, or refuses what the schema promises.
    is_schema_doubted: bool,
    decoder: Option<Decoder>,
    /// The version of the monitor in force, 0 when there is none.
    version: u8,
    /// The last transaction that the contents include; zero when unknown.
    last_id: Uuid,
    conditions: Conditions,
    lock: Lock,
    /// Since the contents were last there.
    last_error: Option<LastError>,
    /// The schema that `_Server` showed last on this connection.
    shown_schema: Option<corvid_data::Str>,
    /// The text that the plan's schema was read from, so that it is not read again.
    schema_text: Option<corvid_data::Str>,
    has_contents: bool,
    /// When the last update was handed to the user.
    seen_ms: u64,
    /// The last transaction that the user has seen, whatever its schema, and the connection over which it came.
    seen: (Uuid, u64),
    /// Contents that may be behind those.
    lagging: Option<Lagging>,
    /// Whether the server is a relay without a source.
    lost_relay: LostRelay,
    /// The time of the input that is being handled.
    now_ms: u64,
    /// The length of the message that is being handled.
    message_bytes: usize,
    /// Messages handled at one call.
    messages_max: usize,
    /// The last argument of [`Client::set_remote`].
    remote_setting: Option<(String, bool)>,
    /// Messages are logged.
    shows_messages: bool,
    metrics: SessionMetrics,
}

/// Settings.
impl Client {
    /// A session without remotes; by default it accepts only the leader of a cluster.
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

    /// Sets the remotes, as in `tcp:10.0.0.1:6642,tcp:10.0.0.2:6642,cid:6731fef6`. A connection to one that is still listed is kept, if
    /// the cluster is the same. Without `retry`, each remote gets one attempt. An empty text ends the session; the same one again changes
    /// nothing.
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

    /// Whether the next [`Client::set_remote`] shuffles, which is the default.
    pub fn set_shuffle_remotes(&mut self, shuffles: bool) {
        self.link.set_shuffle(shuffles);
    }

    /// Requires a server of this cluster, by its id or at least its first four characters. Starts over with the next remote. A `cid:` among the remotes
    /// of a later [`Client::set_remote`] takes its place.
    pub fn set_cluster_id(&mut self, now_ms: u64, cluster_id: Option<String>) {
        self.own_cluster_id.clone_from(&cluster_id);
        if self.requirements.cluster_id != cluster_id {
            self.requirements.cluster_id = cluster_id;
            self.link.force(true);
            self.advance(now_ms);
        }
    }

    /// Whether only the leader of a cluster is accepted.
    pub fn set_leader_only(&mut self, now_ms: u64, leader_only: bool) {
        self.requirements.leader_only = leader_only;
        if leader_only && self.has_server_monitor {
            self.judge_again();
        }
        self.advance(now_ms);
    }

    /// Whether servers may tell of changes of schema without closing the connection
    /// ([`Options::is_change_aware`]), from the next connection on.
    pub fn set_change_aware(&mut self, is_change_aware: bool) {
        self.options.is_change_aware = is_change_aware;
    }

    /// Forgets the highest index seen, for a cluster that was built from scratch.
    pub fn reset_index_min(&mut self) {
        self.requirements.index_min = None;
    }

    /// The interval of probes in milliseconds, 0 for none, `None` for the default of the remote.
    pub fn set_probe_interval(&mut self, interval_ms: Option<u64>) {
        self.link.set_probe_interval(interval_ms);
    }

    /// How many messages one call of [`Client::handle`] handles, [`MESSAGES_MAX`] by default; the rest is due at once. With one, a user sees the state
    /// after each of them.
    pub fn set_messages_max(&mut self, messages_max: usize) {
        self.messages_max = messages_max.max(1);
    }

    /// The shortest and longest wait between attempts in milliseconds.
    pub fn set_backoff(&mut self, min_ms: u64, max_ms: u64) {
        self.link.set_backoff(min_ms, max_ms);
    }

    /// Retries for ever from now on, also after a [`Client::set_remote`] without `retry`.
    pub fn enable_reconnect(&mut self, now_ms: u64) {
        self.link.enable_retries(now_ms);
        self.advance(now_ms);
    }

    /// Makes a new connection, at once if the present one was good.
    pub fn force_reconnect(&mut self, now_ms: u64) {
        self.link.force(self.state == State::Monitoring);
        self.advance(now_ms);
    }

    /// The user's contents do not fit an update: fetches all contents again, over a new connection.
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

    /// Whether it is connected, or going to try.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.link.is_alive()
    }

    /// Whether contents have ever arrived.
    #[must_use]
    pub fn has_ever_had_contents(&self) -> bool {
        self.has_contents
    }

    /// Grows whenever a connection is established or ends.
    #[must_use]
    pub fn session_seqno(&self) -> u64 {
        self.link.seqno()
    }

    /// The remotes in the order in which they are tried.
    #[must_use]
    pub fn remotes(&self) -> &[String] {
        self.link.remotes()
    }

    /// The remote that is connected, or was tried last.
    #[must_use]
    pub fn remote(&self) -> &str {
        self.link.remote()
    }

    /// Name of the database.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.options.database
    }

    /// The monitored tables and columns, by the last schema.
    #[must_use]
    pub fn plan(&self) -> Option<&Arc<Plan>> {
        self.decoder.as_ref().map(Decoder::plan)
    }

    /// The last transaction that the contents include; zero when unknown.
    #[must_use]
    pub fn last_id(&self) -> Uuid {
        self.last_id
    }

    /// Why there are no contents, or none any more: the last attempt that failed, or the last connection that ended otherwise than at
    /// the user's request. `None` once contents have arrived.
    #[must_use]
    pub fn last_error(&self) -> Option<&LastError> {
        self.last_error.as_ref()
    }

    /// Why the last server was left, if the server was the reason of [`Client::last_error`].
    #[must_use]
    pub fn last_failure(&self) -> Option<&Failure> {
        match &self.last_error.as_ref()?.cause {
            Cause::Server(failure) => Some(failure),
            Cause::Connection(_) => None,
        }
    }

    /// The server's role for the database; `None` until it has sent it, and for servers without `_Server`.
    #[must_use]
    pub fn server_status(&self) -> Option<ServerStatus> {
        let server_db = self.server_db.as_ref().filter(|_| self.has_server_monitor);
        server_db?.status(&self.requirements)
    }

    /// The id of the server that is connected, which changes whenever it is started; `None` if it is not known. Where it is asked for
    /// ([`Options::asks_server_id`]), it comes before the contents.
    #[must_use]
    pub fn server_id(&self) -> Option<Uuid> {
        self.server_id
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> SessionMetrics {
        self.metrics
    }

    /// Whether the driver is to read: not while many messages wait to be handled.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.link.wants_input()
    }
}

/// Conditions and the lock.
impl Client {
    /// Sets the condition of a table. Returns the number that [`Client::condition_seqno`] must reach before the condition is in force.
    ///
    /// # Errors
    /// The server would refuse a clause, by its schema, or by [`Options::schema`] before the
    /// server's is known. Nothing has changed.
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

    /// The server's error as JSON, if it refused the last change of conditions and the change has
    /// this number. The conditions before it are in force again.
    #[must_use]
    pub fn condition_refusal(&self, promise: u64) -> Option<&str> {
        self.conditions.refusal(promise)
    }

    /// The number up to which conditions are in force, or were refused
    /// ([`Client::condition_refusal`]): compare with `>=`.
    #[must_use]
    pub fn condition_seqno(&self) -> u64 {
        self.conditions.seqno()
    }

    /// Whether the server can choose rows; one that cannot shows all of them, and every condition counts as in force. True while
    /// nothing is monitored.
    #[must_use]
    pub fn conditions_supported(&self) -> bool {
        self.version != 1
    }

    /// Asks for a lock in place of the present one, or for none.
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

    /// The lock that is wanted.
    #[must_use]
    pub fn lock_name(&self) -> Option<&str> {
        self.lock.name()
    }

    /// Whether the server said that the lock is held; another client may have stolen it since.
    #[must_use]
    pub fn has_lock(&self) -> bool {
        self.lock.is_held()
    }

    /// Whether the server said that another client holds it.
    #[must_use]
    pub fn is_lock_contended(&self) -> bool {
        self.lock.is_contended()
    }

    /// The server's error as JSON, if it refused the request for the lock. The next connection
    /// asks again.
    #[must_use]
    pub fn lock_refusal(&self) -> Option<&str> {
        self.lock.refusal()
    }
}

/// Requests of the user.
impl Client {
    /// Sends a request of any method, `params` being a JSON array; `None`, and nothing is sent, unless the contents are kept up. Its
    /// answer is an [`Event::Reply`], and what it changed is an update before that.
    pub fn send_request(&mut self, method: &str, params: &[u8]) -> Option<RequestId> {
        self.is_monitoring()
            .then(|| RequestId(self.request(method, params, Purpose::User)))
    }

    /// Sends a transaction: `operations` is a list of JSON values, separated by commas.
    pub fn transact(&mut self, operations: &[u8]) -> Option<RequestId> {
        let mut params = Vec::with_capacity(operations.len() + self.options.database.len() + 8);
        params.push(b'[');
        write::string(&mut params, self.options.database.as_bytes());
        if !operations.is_empty() {
            params.push(b',');
            params.extend_from_slice(operations);
        }
        params.push(b']');
        self.send_request("transact", &params)
    }

    /// Asks the server to cancel a request, which helps only while the request waits there. Its answer comes as without this.
    pub fn cancel_request(&mut self, id: RequestId) {
        if self.pending.get(&id.0) == Some(&Purpose::User) {
            let mut text = Vec::new();
            message::write_notification(&mut text, "cancel", format!("[{}]", id.0).as_bytes());
            self.send(text);
        }
    }

    /// No longer wants the answer to a request; it is carried out all the same.
    pub fn forget_request(&mut self, id: RequestId) {
        if self.pending.get(&id.0) == Some(&Purpose::User) {
            self.pending.remove(&id.0);
        }
    }
}

/// The machine.
impl Client {
    /// Handles an event. Read events and outputs after it.
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

    /// When [`Client::handle`] is to be called next, with [`Input::Tick`] if nothing else; `None` when nothing is due before the next
    /// input.
    #[must_use]
    pub fn poll_timeout(&self, now_ms: u64) -> Option<u64> {
        let deadlines = [
            self.link.deadline_ms(now_ms),
            self.lagging_until_ms(),
            self.stay_until_ms(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Does what can be done now.
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
            // The user looks before the next message may bring the lock back: what it did as the
            // owner is void.
            if had_lock && !self.lock.is_held() {
                break;
            }
        }
        self.release_lagging_in_time();
        self.look_for_source();
        if self.is_monitoring() {
            self.link.is_good(now_ms);
            self.send_conditions();
        }
        loop {
            // Before the next remote is tried, whose name later notices carry.
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
        self.log_connection();
    }

    fn log_connection(&mut self) {
        for event in self.link.take_log_events() {
            let remote = self.link.remote().to_owned();
            self.log(LogMessage::Connection { remote, event });
        }
    }

    /// The connection, or the attempt, is over.
    fn down(&mut self, now_ms: u64, end: Option<End>) {
        let was_up = self.state != State::Down;
        let is_attempt_over = end.is_some();
        if let Some(end) = end {
            // A connection that was given up on purpose ended for the reason that was recorded then, if for any.
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
        for (id, purpose) in std::mem::take(&mut self.pending) {
            if purpose == Purpose::User {
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
        // It has waited already where it was.
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

    /// Sends a request; returns its id.
    fn request(&mut self, method: &str, params: &[u8], purpose: Purpose) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let mut text = Vec::with_capacity(params.len() + method.len() + 48);
        message::write_request(&mut text, method, params, id.to_string().as_bytes());
        let before = self.pending.insert(id, purpose);
        assert!(before.is_none(), "an answer belongs to one request");
        self.send(text);
        id
    }

    /// Answers to these requests will be passed over.
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
