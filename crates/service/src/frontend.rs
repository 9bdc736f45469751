//! The sessions of one shard: parses JSON-RPC messages, answers those that concern no database,
//! sends the others to the database that they name, and keeps each session's requests in order
//! across databases.
//!
//! Order: requests for one database are in flight together, up to a limit. A request for another
//! database, or one that the shard answers, waits until those are complete. A database that is no
//! longer served still answers earlier requests but gets no new ones.
//!
//! Cost per request: one hash look-up for the session, one for the database, no copy of the
//! message.

mod held_deliveries;
mod history_requests;
mod inbound_frame;
mod local_requests;
mod lock_notifications;
mod outputs;
mod passed_on;
mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use corvid_data::{Tag, TrustedKeys, Uuid, WireError};
use corvid_json::{Kind, Pieces, Reader};
use corvid_monitor::SessionId;
use corvid_rpc::message;

pub use inbound_frame::InboundFrame;
use inbound_frame::{Envelope, Method, Parsed, ParsedRequest, only_param};
pub use outputs::{Close, Outputs, ToHistory};
pub use passed_on::is_passed_on;
use session::Session;

use crate::client_memory::{ClientMemory, SHORT_BYTES};
use crate::locks::Locks;
use crate::message::{
    Completion, DatabaseMethod, Deliver, Piece, Request, SessionInfo, ToDatabase, ToShard,
};
use crate::schema_epoch::SchemaEpochs;
use crate::served_databases::{ServedDatabases, absence_reason};

/// The upper 16 bits of a session's number identify its shard.
const SHARD_SHIFT: u32 = 48;

/// Frames longer than this are parsed on another thread, bytes: parsing takes about 1 ms per
/// megabyte.
const PARSE_HERE_BYTES_MAX: usize = 256 * 1024;

/// The shard that owns a session.
#[must_use]
pub fn shard_of(session: SessionId) -> u16 {
    (session.0 >> SHARD_SHIFT) as u16
}

/// The id of the `n`-th session of a shard.
#[must_use]
pub fn session_id(shard: u16, n: u64) -> SessionId {
    SessionId((u64::from(shard) << SHARD_SHIFT) | n)
}

/// The state machine of one shard's sessions.
#[derive(Debug)]
pub struct Frontend {
    shard: u16,
    sessions: HashMap<SessionId, Session, TrustedKeys>,
    served: Arc<ServedDatabases>,
    locks: Arc<Mutex<Locks>>,
    server_id: Uuid,
    cond_disabled: bool,
    /// Something answers [`Outputs::to_history`].
    reads_history: bool,
    /// The stamp that frames get on arrival.
    stamp: u64,
    /// Requests of all sessions, those that have ended included.
    requests_received: u64,
    epochs: SchemaEpochs,
    memory: Arc<ClientMemory>,
    outputs: Outputs,
}

/// The status of a session, for operators.
#[derive(Clone, Debug)]
pub struct SessionStatus {
    /// The session's client and remote.
    pub info: Arc<SessionInfo>,
    /// Number of monitors.
    pub monitors: usize,
    /// Number of unanswered requests.
    pub requests: usize,
    /// The last request except `echo`: method and time, ms.
    pub last_request: Option<(&'static str, u64)>,
    /// Requests received so far, `echo` included.
    pub requests_received: u64,
    /// Updates of monitors sent so far.
    pub updates_sent: u64,
}

/// The outcome of one attempt to handle a message.
enum Step {
    /// The message is handled.
    Done,
    /// The message must wait for earlier requests.
    Wait(InboundFrame),
    /// Another thread parses the message.
    Parse,
}

impl Frontend {
    /// A shard without sessions. `server_id` is the answer to `get_server_id`.
    #[must_use]
    pub fn new(
        shard: u16,
        served: Arc<ServedDatabases>,
        locks: Arc<Mutex<Locks>>,
        epochs: SchemaEpochs,
        server_id: Uuid,
    ) -> Frontend {
        Frontend {
            shard,
            sessions: HashMap::default(),
            served,
            locks,
            server_id,
            cond_disabled: false,
            reads_history: false,
            stamp: 0,
            requests_received: 0,
            epochs,
            memory: Arc::default(),
            outputs: Outputs::default(),
        }
    }

    /// Sets the account that replies are charged to.
    pub fn set_client_memory(&mut self, memory: Arc<ClientMemory>) {
        self.memory = memory;
    }

    /// Accepts requests about history: the driver answers [`Outputs::to_history`]. Without this,
    /// their methods are unknown.
    pub fn read_history(&mut self) {
        self.reads_history = true;
    }

    /// Outputs accumulated so far; the driver drains them.
    pub fn outputs(&mut self) -> &mut Outputs {
        &mut self.outputs
    }

    /// Number of sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Number of requests received so far, `echo` and those of sessions that have ended included.
    #[must_use]
    pub fn requests_received(&self) -> u64 {
        self.requests_received
    }

    /// Whether there are no sessions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Bytes of a session's messages that are not complete: in flight, being parsed or queued.
    #[must_use]
    pub fn bytes_buffered(&self, session: SessionId) -> usize {
        self.sessions
            .get(&session)
            .map_or(0, Session::bytes_buffered)
    }

    /// The status of a session; `None`: there is no such session.
    #[must_use]
    pub fn status(&self, session: SessionId) -> Option<SessionStatus> {
        let session = self.sessions.get(&session)?;
        Some(SessionStatus {
            info: session.info.clone(),
            monitors: session.monitors.len(),
            requests: session.in_flight.len() + session.waiting.len(),
            last_request: session.last_request,
            requests_received: session.requests_received,
            updates_sent: session.updates_sent,
        })
    }

    /// Charges CPU time to a session, ns. A session that has ended is not charged.
    pub fn charge_cpu(&self, id: SessionId, cpu_ns: u64) {
        if let Some(session) = self.sessions.get(&id) {
            session.info.charge_cpu(cpu_ns);
        }
    }

    /// Closes one session. Returns false if there is no such session or it is already closing.
    pub fn disconnect_session(&mut self, id: SessionId, reason: &Arc<str>) -> bool {
        let session = self.sessions.get_mut(&id);
        let Some(session) = session.filter(|session| !session.is_closing) else {
            return false;
        };
        session.is_closing = true;
        let close = Close::Disconnect(reason.clone());
        self.outputs.close.push((id, close));
        true
    }

    /// Adds the session of a client that has connected.
    pub fn opened(&mut self, session: SessionId, mut info: SessionInfo) {
        info.epoch = self.epochs.current();
        assert_eq!(
            shard_of(session),
            self.shard,
            "the number of a session tells its shard"
        );
        let mut opened = Session::new(Arc::new(info));
        opened.is_closing = self.served.is_exiting();
        let before = self.sessions.insert(session, opened);
        assert!(before.is_none(), "numbers of sessions are not used again");
    }

    /// Removes the session of a client that has disconnected: its locks pass to the next waiters,
    /// its monitors and blocked transactions are dropped.
    pub fn closed(&mut self, id: SessionId) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        if session.has_readings {
            self.outputs.to_history.push(ToHistory::Closed(id));
        }
        // Before the messages below: a database that has transactions of this session queued drops
        // them instead of blocking them.
        session.info.set_closed();
        for database in session.contacted {
            self.outputs
                .to_databases
                .push((database, ToDatabase::Closed(id)));
        }
        let notified = self.lock_table().remove_session(id);
        self.pass_on_locks(notified);
    }

    /// Sets the stamp of frames that arrive from here on. Their requests carry it to the database
    /// and back. Its meaning is the driver's, for example a time; 0 means no stamp.
    pub fn set_stamp(&mut self, stamp: u64) {
        self.stamp = stamp;
    }

    /// Handles one whole JSON text from a client.
    pub fn frame(&mut self, now_ms: u64, id: SessionId, frame: impl Into<Pieces>) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if session.ignores_input() {
            return;
        }
        let inbound = InboundFrame::new(frame).stamped(self.stamp);
        // A message never overtakes an earlier one of its session.
        if session.is_parsing || !session.waiting.is_empty() {
            session.waiting.push_back(inbound);
            return;
        }
        match self.step(now_ms, id, inbound) {
            Step::Done => return,
            Step::Parse => {}
            Step::Wait(inbound) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.waiting.push_back(inbound);
                }
            }
        }
        // A message of the session waits or is being parsed. The driver stops reading the client,
        // so later messages stay in the socket and slow the client down.
        self.outputs.pause.push((id, true));
    }

    /// A frame from [`Outputs::to_parse`] has returned, parsed.
    pub fn frame_parsed(&mut self, now_ms: u64, id: SessionId, inbound: InboundFrame) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        assert!(
            session.is_parsing,
            "a message that was handed out comes back once"
        );
        session.is_parsing = false;
        session.parsing_bytes = 0;
        let requests = u64::from(inbound.is_request());
        session.requests_received += requests;
        self.requests_received += requests;
        session.waiting.push_front(inbound);
        self.resume(now_ms, id);
        self.close_if_finished(id);
    }

    /// The client sends no more messages: it has closed its sending side, or its stream is broken.
    /// Returns true if no message is in flight, so the session can be closed at once.
    pub fn end_of_input(&mut self, id: SessionId) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return true;
        };
        session.has_ended = true;
        session.is_idle()
    }

    /// The session's outbound queue is empty.
    pub fn drained(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        for database in session.updated_by.drain(..) {
            self.outputs
                .to_databases
                .push((database, ToDatabase::Drained(id)));
        }
    }

    /// Handles a message from a database, another shard or the main thread.
    pub fn message(&mut self, now_ms: u64, message: ToShard) {
        match message {
            ToShard::Deliver(deliver) => self.deliver(now_ms, deliver),
            ToShard::LockNotifications(session) => self.send_lock_notifications(now_ms, session),
            ToShard::ServedDatabases(served) => {
                let has_lost = self.served.ids().any(|id| !served.contains(id));
                self.served = served;
                for session in self.sessions.values_mut() {
                    session.keep(&self.served);
                    // The session closes when the database has gone. Until then it gets replies and
                    // sends no requests, so no reply calls the database unknown.
                    session.has_lost_database |= has_lost && !session.info.is_aware();
                    session.is_closing |= session.has_lost_database;
                    // An exiting server gives pending replies, and no others: that a database is
                    // unknown would be a wrong answer, after which clients try no other server.
                    session.is_closing |= self.served.is_exiting();
                }
                self.pass_on_locks([]);
            }
            ToShard::DisconnectUnaware(reason, epoch) => self.disconnect(&reason, |session| {
                let info = &session.info;
                info.has_missed_cancellation()
                    || session.has_lost_database
                    || info.is_concerned_by(epoch)
            }),
            ToShard::History(id, answer) => self.history_answered(now_ms, id, answer),
            ToShard::CloseSession(id, reason) => {
                self.disconnect_session(id, &reason);
            }
            ToShard::DisconnectAll(reason) => self.disconnect(&reason, |_| true),
            ToShard::DisableMonitorCond => self.cond_disabled = true,
        }
    }

    fn disconnect(&mut self, reason: &Arc<str>, is_affected: impl Fn(&Session) -> bool) {
        for (id, session) in &mut self.sessions {
            if is_affected(session) {
                // These deliveries were posted before the session had to close, so the client still
                // gets them.
                for deliver in session.held.take_all() {
                    let pieces = deliver.pieces.into_iter();
                    self.outputs.send.extend(pieces.map(|piece| (*id, piece)));
                }
                session.is_closing = true;
                session.is_dismissed = true;
                self.outputs
                    .close
                    .push((*id, Close::Disconnect(reason.clone())));
            }
        }
    }

    fn deliver(&mut self, now_ms: u64, deliver: Deliver) {
        let session = self.sessions.get(&deliver.session);
        if session.is_some_and(|session| !session.is_dismissed)
            && let Some(deliver) = self.hold(deliver)
        {
            self.pass_on(now_ms, deliver);
        }
    }

    /// Forwards a delivery to its session.
    fn pass_on(&mut self, now_ms: u64, deliver: Deliver) {
        let id = deliver.session;
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if deliver.report_drained && !session.updated_by.contains(&deliver.database) {
            session.updated_by.push(deliver.database);
        }
        let is_update = |piece: &&Piece| matches!(piece, Piece::Update(_));
        session.updates_sent += deliver.pieces.iter().filter(is_update).count() as u64;
        self.outputs
            .send
            .extend(deliver.pieces.into_iter().map(|piece| (id, piece)));
        // Replies of a database that is no longer served are still delivered, but its new monitors
        // are not recorded.
        let is_served = self.served.contains(deliver.database);
        let keep = |session: &mut Session, monitor| {
            if is_served {
                session.monitors.insert(monitor, deliver.database);
            }
        };
        match deliver.completion {
            Completion::None => return,
            Completion::Request => {}
            Completion::MonitorAdded(monitor) => keep(session, monitor),
            Completion::MonitorRenamed(old, new) => {
                session.monitors.remove(&old);
                keep(session, new);
            }
            Completion::MonitorRemoved(monitor) => {
                session.monitors.remove(&monitor);
            }
            Completion::MonitorLost(monitor) => {
                session.monitors.remove(&monitor);
                return;
            }
            Completion::LockNotification => return self.send_lock_notifications(now_ms, id),
            Completion::IndexFence => return self.index_fence_passed(now_ms, id),
            Completion::NotificationFence => {
                if self.fence_passed(id, deliver.database) {
                    self.resume_if_room(now_ms, id);
                }
                return;
            }
        }
        // Only now: the reply is queued above, and a request that starts here is answered after it.
        session.in_flight.end();
        self.resume_if_room(now_ms, id);
    }

    /// Resumes waiting messages as far as possible after a request has completed.
    fn resume_if_room(&mut self, now_ms: u64, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        // A throttled session resumes at half its limit, so it continues with many messages, not
        // one at a time. Any other waits until nothing is in flight.
        let has_room = session.is_throttled && session.in_flight.has_room();
        if session.in_flight.is_empty() || has_room {
            self.resume(now_ms, id);
            self.close_if_finished(id);
        }
    }

    /// Closes a session whose client sends no more messages, once its requests are answered.
    fn close_if_finished(&mut self, id: SessionId) {
        let has_ended =
            |session: &Session| session.has_ended && session.is_idle() && !session.is_closing;
        if self.sessions.get(&id).is_some_and(has_ended) {
            self.outputs.close.push((id, Close::EndOfInput));
        }
    }

    /// Handles queued messages until one must wait.
    fn resume(&mut self, now_ms: u64, id: SessionId) {
        while let Some(session) = self.sessions.get_mut(&id) {
            if session.is_parsing {
                return;
            }
            let Some(inbound) = session.waiting.pop_front() else {
                return;
            };
            if session.ignores_input() {
                session.waiting.clear();
                return;
            }
            let is_last = session.waiting.is_empty();
            match self.step(now_ms, id, inbound) {
                Step::Done if is_last => self.outputs.pause.push((id, false)),
                Step::Done => {}
                Step::Parse => return,
                Step::Wait(inbound) => {
                    if let Some(session) = self.sessions.get_mut(&id) {
                        session.waiting.push_front(inbound);
                    }
                    return;
                }
            }
        }
    }

    /// Handles one message, or returns it if it must wait. A long message is parsed on another
    /// thread so other sessions do not wait for it.
    fn step(&mut self, now_ms: u64, id: SessionId, inbound: InboundFrame) -> Step {
        if inbound.len() > PARSE_HERE_BYTES_MAX && !inbound.is_parsed() {
            if let Some(session) = self.sessions.get_mut(&id) {
                assert!(
                    !session.is_parsing,
                    "the messages of a session stay in order"
                );
                session.is_parsing = true;
                session.parsing_bytes = inbound.len();
                self.outputs.to_parse.push((id, inbound));
            }
            return Step::Parse;
        }
        let stamp = inbound.stamp();
        // A message that waited, or was parsed on another thread, has been counted.
        let is_new = !inbound.is_parsed();
        let (frame, parsed) = inbound.into_parts();
        if is_new
            && parsed.is_request()
            && let Some(session) = self.sessions.get_mut(&id)
        {
            session.requests_received += 1;
            self.requests_received += 1;
        }
        match parsed {
            Parsed::Request(mut envelope) => {
                if self.cond_disabled {
                    envelope.method = envelope.method.without_conditions();
                }
                // Every reply repeats the id, even the one that refuses the request.
                if envelope.id.len() > SHORT_BYTES {
                    return self.refuse_long_id(id, frame, envelope);
                }
                let request = ParsedRequest {
                    frame,
                    envelope,
                    stamp,
                };
                match request.envelope.method {
                    Method::Database(method) => self.for_database(now_ms, id, method, request),
                    Method::History(method) if self.reads_history => {
                        self.for_history(now_ms, id, method, request)
                    }
                    _ => self.answer_here(now_ms, id, request),
                }
            }
            Parsed::Echo(request_id) => self.echo(id, request_id, frame),
            // A cancellation is in flight too, once for each database that knows the session.
            Parsed::Cancel(request_id) => {
                if self
                    .sessions
                    .get_mut(&id)
                    .is_some_and(|session| !session.has_room())
                {
                    return Step::Wait(InboundFrame::again(frame, Parsed::Cancel(request_id)));
                }
                self.cancel(id, &request_id);
                Step::Done
            }
            Parsed::Ignored => Step::Done,
            // Earlier requests are answered before the session is closed for this message.
            parsed @ (Parsed::UnexpectedReply | Parsed::Malformed(_))
                if self.has_requests_in_flight(id) =>
            {
                Step::Wait(InboundFrame::again(frame, parsed))
            }
            Parsed::UnexpectedReply => {
                self.close(id, Close::UnexpectedReply);
                Step::Done
            }
            Parsed::Malformed(why) => {
                self.close(id, Close::BadMessage(why));
                Step::Done
            }
        }
    }

    /// Refuses, in its turn, a request whose id is longer than an error message may be.
    fn refuse_long_id(&mut self, id: SessionId, frame: Vec<u8>, envelope: Envelope) -> Step {
        if self.has_requests_in_flight(id) {
            return Step::Wait(InboundFrame::again(frame, Parsed::Request(envelope)));
        }
        let details = format!("request id is longer than {SHORT_BYTES} bytes");
        let error = object(&WireError::new(Tag::ResourcesExhausted, details));
        self.send_error(id, &envelope.id, &error);
        Step::Done
    }

    /// Whether the session has requests in flight.
    fn has_requests_in_flight(&self, id: SessionId) -> bool {
        let session = self.sessions.get(&id);
        session.is_some_and(|session| !session.in_flight.is_empty())
    }

    /// Closes the session; its later messages are ignored.
    fn close(&mut self, id: SessionId, why: Close) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.is_closing = true;
        }
        self.outputs.close.push((id, why));
    }

    fn cancel(&mut self, id: SessionId, request_id: &[u8]) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if session.history_request.as_deref() == Some(request_id) {
            self.outputs.to_history.push(ToHistory::Cancel(id));
        }
        // Requests that go to other databases or to this shard must be answered after the canceled
        // request.
        let is_only_target = session
            .contacted
            .iter()
            .all(|known| session.target == Some(*known));
        if !is_only_target {
            session.target = None;
        }
        for database in &session.contacted {
            session.in_flight.begin(0);
            self.outputs
                .to_databases
                .push((*database, ToDatabase::Cancel(id, request_id.into())));
        }
    }

    /// Sends a request to the database that must answer it.
    fn for_database(
        &mut self,
        now_ms: u64,
        id: SessionId,
        method: DatabaseMethod,
        request: ParsedRequest,
    ) -> Step {
        let Some(session) = self.sessions.get(&id) else {
            return Step::Done;
        };
        let target = match method {
            DatabaseMethod::MonitorCancel | DatabaseMethod::MonitorCondChange => {
                match route_by_monitor(session, method, request.params()) {
                    Route::To(database) => Ok(database),
                    // A monitor request in flight may be about to create this id.
                    Route::Unknown if !session.in_flight.is_empty() => {
                        return Step::Wait(request.into());
                    }
                    Route::Unknown => Err(unknown_monitor(method, request.params())),
                }
            }
            _ => self
                .database_by_name(method.name(), request.params())
                .map_err(|error| object(&error)),
        };
        match target {
            Ok(database) => {
                let Some(session) = self.sessions.get_mut(&id) else {
                    return Step::Done;
                };
                if !session.admits(database) {
                    return Step::Wait(request.into());
                }
                session.begin(database, request.frame.len());
                session.last_request = Some((method.name(), now_ms));
                let foreign_monitors = match method {
                    DatabaseMethod::Monitor(_) | DatabaseMethod::MonitorCondChange => {
                        session.monitors_elsewhere(database)
                    }
                    _ => Vec::new(),
                };
                let request = Box::new(Request {
                    session: id,
                    info: session.info.clone(),
                    arrived_ms: now_ms,
                    stamp: request.stamp,
                    id: request.envelope.id,
                    method,
                    frame: request.frame,
                    params: request.envelope.params,
                    seqno: None,
                    blocked: false,
                    foreign_monitors,
                    once: request.envelope.once,
                    client: request.envelope.client,
                });
                self.outputs
                    .to_databases
                    .push((database, ToDatabase::Request(request)));
                Step::Done
            }
            Err(error) => {
                // The error must follow the updates of every commit so far, like any reply of this
                // shard.
                if self.fence(id) {
                    return Step::Wait(request.into());
                }
                self.send_error(id, &request.envelope.id, &error);
                Step::Done
            }
        }
    }

    /// The database named by the first element of `params` (docs/spec/protocol.md 4.0).
    fn database_by_name(
        &self,
        method: &str,
        params: &[u8],
    ) -> Result<crate::message::DatabaseId, WireError> {
        let mut reader = Reader::trusted(params);
        let name = first_string(&mut reader).ok_or_else(|| {
            WireError::syntax(
                params,
                format!("{method} request params must begin with <db-name>"),
            )
        })?;
        let name = String::from_utf8_lossy(&name);
        self.served.get(&name).ok_or_else(|| {
            if let Some(absence) = self.served.absence(&name) {
                let details = format!(
                    "{method} request specifies database {name} which is not yet available because {}",
                    absence_reason(absence)
                );
                return WireError::new(Tag::DatabaseNotAvailable, details);
            }
            WireError::new(
                Tag::UnknownDatabase,
                format!("{method} request specifies unknown database {name}"),
            )
            .with_fragment(params)
        })
    }
}

enum Route {
    To(crate::message::DatabaseId),
    Unknown,
}

fn route_by_monitor(session: &Session, method: DatabaseMethod, params: &[u8]) -> Route {
    let id = match method {
        DatabaseMethod::MonitorCancel => only_param(params),
        _ => three_params(params),
    };
    match id.and_then(|id| session.monitors.get(id.as_slice()).copied()) {
        Some(database) => Route::To(database),
        None => Route::Unknown,
    }
}

/// The error of a monitor request whose id this session does not have (docs/spec/protocol.md 4.8,
/// 4.10), as JSON.
fn unknown_monitor(method: DatabaseMethod, params: &[u8]) -> Vec<u8> {
    match (method, only_param(params), three_params(params)) {
        (DatabaseMethod::MonitorCancel, Some(_), _) => b"\"unknown monitor\"".to_vec(),
        (DatabaseMethod::MonitorCancel, None, _) => b"\"invalid parameters\"".to_vec(),
        (_, _, Some(id)) => object(&WireError::syntax(&id, "unknown monitor session")),
        _ => object(&WireError::syntax(params, "invalid parameters")),
    }
}

fn object(error: &WireError) -> Vec<u8> {
    let mut json = Vec::new();
    error.write_json(&mut json);
    json
}

/// Canonical text of the first element of an array of three.
fn three_params(params: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::trusted(params);
    reader.begin_array().ok()?;
    let mut first = None;
    let mut count = 0;
    while reader.next_element().ok()? {
        let element = reader.skip().ok()?;
        first.get_or_insert(element);
        count += 1;
    }
    first.filter(|_| count == 3).map(message::canonical)
}

fn first_string<'a>(reader: &mut Reader<'a>) -> Option<std::borrow::Cow<'a, [u8]>> {
    reader.begin_array().ok()?;
    if !reader.next_element().ok()? || reader.peek().ok()? != Kind::String {
        return None;
    }
    reader.string().ok()
}
