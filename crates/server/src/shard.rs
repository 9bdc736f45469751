//! Runs a [`Frontend`] on a connection shard: bytes in, bytes out, messages to and from databases.
//!
//! The reactor calls [`ShardSessions`] for each event of a connection. [`ShardSessions`] maps
//! connections to sessions, passes frames to the frontend, carries out the frontend's outputs,
//! probes silent clients, and owns the connections that the server opens itself. It collects
//! messages to databases ([`queues`]) and posts them at the end of a batch, so that an idle
//! database executes them on this thread ([`crate::database::handle`]).

mod frame_parser;
mod listing;
mod metrics;
pub(crate) mod queues;
mod sources;
pub(crate) mod wire_log;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use corvid_data::TrustedKeys;
use corvid_json::Pieces;
use corvid_monitor::SessionId;
use corvid_net::clock::{self, Now};
use corvid_reactor::segment::Segment;
use corvid_reactor::shard::{CloseReason, ConnId, ConnInfo, Handler, Io, ListenerId, ShardHandle};
use corvid_rpc::message::PROBE;
use corvid_rpc::probe::Demand;
use corvid_rpc::{LogEvent, Probe};
use corvid_service::Frontend;
use corvid_service::frontend::{Close, InboundFrame, is_passed_on, session_id};
use corvid_service::message::{DatabaseId, Deliver, Piece, SessionInfo, ToShard};
use corvid_service::replication::{SourceId, SourceOrder};
use corvid_service::served_databases::ServedDatabases;
use corvid_shell::vlog::{self, Module, RateLimit};

use crate::coverage;
use crate::database::handle::DatabaseHandle;
use crate::main_handle::MainHandle;
use crate::metrics::shard::{End, ShardFigures};
use crate::metrics::switch::Switched;
use crate::process_figures;
use crate::read_history::HistoryReaders;
use crate::remotes::options::RemoteOptions;
use crate::remotes::outgoing::{OutgoingRemote, SharedStatus};
use crate::session_cost::ShardSpan;
use crate::shard::queues::DatabaseQueues;
use crate::trusted_relays::TrustedRelays;
use frame_parser::FrameParser;
use sources::Sources;

/// A message to a shard.
#[derive(Debug)]
pub(crate) enum ShardMessage {
    /// A message for the frontend.
    Service(ToShard),
    /// A delivery, and what it has cost its session so far, ns.
    Deliver(Deliver, u64),
    /// Another thread has worked for this session so long, ns.
    Charge(SessionId, u64),
    /// A long frame of this session has been parsed.
    FrameParsed(SessionId, InboundFrame),
    /// Connect to this remote, reconnect whenever the connection ends, and publish the connection's
    /// status.
    Connect(String, RemoteOptions, SharedStatus),
    /// The options of a remote have changed. They apply to its open sessions too.
    SetOptions(SessionOrigin, RemoteOptions),
    /// Close the connection to this remote, and do not reconnect.
    Disconnect(String),
    /// A request about the connection of a backup to its source.
    Source(SourceId, ToSource),
    /// The served databases and their handles.
    Databases(Arc<ServedDatabases>, HashMap<DatabaseId, DatabaseHandle>),
    /// Publish the totals of the sessions for the metrics.
    Sample,
    /// List the sessions for the main thread, under this token.
    ListSessions(u64, MainHandle),
    /// Close this session, and report to the main thread under this token whether the session
    /// existed.
    CloseSession(SessionId, u64, MainHandle),
}

/// Requests about the connection of a backup to its source.
#[derive(Debug)]
pub(crate) enum ToSource {
    /// Connect to this server for this database, and reconnect whenever the connection ends.
    Open(DatabaseId, String, RemoteOptions),
    /// Change the options of the connection.
    SetOptions(RemoteOptions),
    /// An order of the database to the connection with this number.
    Order(u64, SourceOrder),
    /// Close the connection, and do not reconnect.
    Close,
}

/// Where a session comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionOrigin {
    /// A client connected to this listener.
    Listener(ListenerId),
    /// The server connected to this remote.
    Remote(String),
}

/// Names and options of listening remotes, by listener. The main thread writes the table; shards
/// read it when a client connects.
pub(crate) type RemoteTable = Arc<Mutex<HashMap<ListenerId, (Arc<str>, RemoteOptions)>>>;

/// The handler of one shard.
pub(crate) struct ShardSessions {
    number: u16,
    frontend: Frontend,
    sessions: HashMap<ConnId, SessionConnection, TrustedKeys>,
    conns: HashMap<SessionId, ConnId, TrustedKeys>,
    next_session: u64,
    outgoing: Vec<OutgoingRemote>,
    sources: Sources,
    remotes: RemoteTable,
    trusted_relays: Arc<TrustedRelays>,
    readers: Arc<HistoryReaders>,
    queues: DatabaseQueues,
    frame_parser: FrameParser,
    shards: Vec<ShardHandle<ShardMessage>>,
    /// Sessions with new output in this wake-up.
    written: Vec<SessionId>,
    /// The time of this wake-up, with which sessions are charged.
    span: ShardSpan,
    /// The figures.
    figures: Switched<ShardFigures>,
}

struct SessionConnection {
    session: SessionId,
    /// `None`: the remote was removed while the connection was being opened.
    origin: Option<SessionOrigin>,
    probe: Probe,
    /// The client's process and its program, if they are known.
    process: Option<(u32, Arc<str>)>,
    /// When the session began, monotonic ms.
    opened_ms: u64,
    /// The time of the newest input reported to the probe, monotonic ms.
    heard_ms: u64,
    /// When the oldest unsent update arrived, ns; 0: no update is unsent, or metrics are off.
    updates_since_ns: u64,
    /// Why the server is closing the connection; `None`: it is not, or the end of the connection
    /// will give the reason.
    end: Option<End>,
}

impl ShardSessions {
    /// A shard without connections.
    pub(crate) fn new(
        number: u16,
        frontend: Frontend,
        remotes: RemoteTable,
        trusted_relays: Arc<TrustedRelays>,
        readers: Arc<HistoryReaders>,
        shards: Vec<ShardHandle<ShardMessage>>,
        figures: Switched<ShardFigures>,
    ) -> ShardSessions {
        ShardSessions {
            number,
            frontend,
            sessions: HashMap::default(),
            conns: HashMap::default(),
            next_session: 0,
            outgoing: Vec::new(),
            sources: Sources::default(),
            remotes,
            trusted_relays,
            readers,
            queues: DatabaseQueues::default(),
            frame_parser: FrameParser::new(shards[usize::from(number)].clone()),
            shards,
            written: Vec::new(),
            span: ShardSpan::default(),
            figures,
        }
    }

    /// The outgoing remote that owns this connection, if any.
    fn outgoing_of(&mut self, conn: ConnId) -> Option<&mut OutgoingRemote> {
        self.outgoing
            .iter_mut()
            .find(|outgoing| outgoing.conn() == Some(conn))
    }

    /// Carries out the frontend's outputs. Messages to databases stay in their queues until the end
    /// of the batch.
    fn carry_out(&mut self, io: &mut Io) {
        let outputs = self.frontend.outputs();
        if let Some(figures) = self.figures.counted() {
            let bytes: usize = outputs.send.iter().map(|(_, piece)| piece.len()).sum();
            figures
                .sent_bytes
                .fetch_add(bytes as u64, Ordering::Relaxed);
        }
        // Output comes first: a session that is closed below still gets what was queued before its
        // end.
        let mut sent = 0;
        for (session, piece) in outputs.send.drain(..) {
            let Some(conn) = self.conns.get(&session) else {
                continue;
            };
            sent += 1;
            wire_log::sent(io, *conn, &piece);
            match piece {
                Piece::Message(bytes) => io.send(*conn, bytes),
                Piece::Long(frame) | Piece::Update(frame) => {
                    io.send(*conn, frame.head);
                    for piece in frame.body.pieces() {
                        let segment = match frame.body.guard() {
                            Some(guard) => Segment::Guarded(piece.clone(), guard.clone()),
                            None => Segment::Shared(piece.clone()),
                        };
                        io.send(*conn, segment);
                    }
                    io.send(*conn, Segment::Static(frame.tail));
                }
            }
            if self.written.last() != Some(&session) {
                self.written.push(session);
            }
        }
        if sent > 0 {
            coverage::JSONRPC_SENT.add(sent);
        }
        for (database, message) in outputs.to_databases.drain(..) {
            self.queues.push(database, message);
        }
        // Most calls end here: everything below is rare.
        if outputs.is_usual() {
            return;
        }
        for (session, paused) in outputs.pause.drain(..) {
            match self.conns.get(&session) {
                Some(conn) if paused => io.pause_reading(*conn),
                Some(conn) => io.resume_reading(*conn),
                None => {}
            }
        }
        for (session, why) in outputs.close.drain(..) {
            let Some(conn) = self.conns.get(&session).copied() else {
                continue;
            };
            log_close(io.info(conn).map_or("", |info| &info.name), &why);
            if matches!(why, Close::BadMessage(_)) {
                io.log_protocol_error(conn);
                let ours = self.outgoing.iter_mut();
                ours.filter(|ours| ours.conn() == Some(conn))
                    .for_each(OutgoingRemote::refuse);
            }
            if let Some(client) = self.sessions.get_mut(&conn) {
                client.end = End::of(&why);
            }
            match why {
                Close::Disconnect(_) => io.close_unless_blocked(conn),
                Close::BadMessage(_) | Close::UnexpectedReply | Close::EndOfInput => {
                    io.close_after_flush(conn);
                }
            }
        }
        for (session, text) in outputs.to_parse.drain(..) {
            self.frame_parser.parse(session, text);
        }
        for input in outputs.to_history.drain(..) {
            self.readers.handle(input);
        }
        for (shard, message) in outputs.to_shards.drain(..) {
            if let Some(handle) = self.shards.get(usize::from(shard)) {
                handle.post(ShardMessage::Service(message));
            }
        }
    }

    /// Changes a remote's options, also for its open sessions.
    fn set_options(
        &mut self,
        now: Now,
        source: &SessionOrigin,
        options: &RemoteOptions,
        io: &mut Io,
    ) {
        for outgoing in &mut self.outgoing {
            if matches!(source, SessionOrigin::Remote(name) if name == outgoing.name()) {
                outgoing.set_options(options.clone());
            }
        }
        let mut concerned = Vec::new();
        for (conn, client) in &mut self.sessions {
            if client.origin.as_ref() == Some(source) {
                let is_network = io.info(*conn).is_some_and(|info| info.is_network);
                client
                    .probe
                    .set_interval(options.probe_interval_ms(is_network));
                concerned.push(*conn);
            }
        }
        for conn in concerned {
            self.watch(now, conn, io);
        }
    }

    /// Runs the probe of a connection: sends a probe if one is due, closes the connection if a
    /// probe was not answered, and sets the timer.
    fn watch(&mut self, now: Now, conn: ConnId, io: &mut Io) {
        let Some(client) = self.sessions.get_mut(&conn) else {
            return;
        };
        client.probe.receive_attempted(now.mono_ms);
        if let Some(received_ms) = io
            .received_ms(conn)
            .filter(|received_ms| *received_ms > client.heard_ms)
        {
            client.heard_ms = received_ms;
            client.probe.activity(received_ms);
        }
        match client.probe.handle(now.mono_ms) {
            None => {}
            Some(Demand::Probe { .. }) => {
                coverage::PROBE_SENT.bump();
                wire_log::sent_text(io, conn, PROBE);
                io.send(conn, PROBE.to_vec());
            }
            Some(Demand::Disconnect { unanswered_ms }) => {
                let name = io
                    .info(conn)
                    .map(|info| info.name.clone())
                    .unwrap_or_default();
                let notice = LogEvent::Unanswered { unanswered_ms };
                vlog::err(Module::Reconnect, format_args!("{name}: {notice}"));
                coverage::PROBE_UNANSWERED.bump();
                client.end = Some(End::Probe);
                io.close(conn);
                return;
            }
        }
        if let Some(at_ms) = client.probe.deadline_ms(now.mono_ms) {
            io.set_timer(conn, at_ms);
        }
    }
}

impl Handler for ShardSessions {
    type Message = ShardMessage;

    fn opened(&mut self, now: Now, conn: ConnId, info: &ConnInfo, io: &mut Io) {
        if self.sources.opened(now, conn, &mut self.queues) {
            return;
        }
        self.next_session += 1;
        let session = session_id(self.number, self.next_session);
        let (source, remote, options) = match info.listener {
            Some(listener) => {
                let remotes = self.remotes.lock().unwrap_or_else(PoisonError::into_inner);
                let (remote, options) = remotes.get(&listener).cloned().unzip();
                (Some(SessionOrigin::Listener(listener)), remote, options)
            }
            None => match self.outgoing_of(conn) {
                Some(outgoing) => {
                    outgoing.opened(now, session);
                    let source = SessionOrigin::Remote(outgoing.name().to_owned());
                    let remote = Arc::from(outgoing.name());
                    (Some(source), Some(remote), Some(outgoing.options().clone()))
                }
                None => (None, None, None),
            },
        };
        let options = options.unwrap_or_default();
        let probe = Probe::new(now.mono_ms, options.probe_interval_ms(info.is_network));
        self.sessions.insert(
            conn,
            SessionConnection {
                session,
                origin: source,
                probe,
                process: process_of(info),
                opened_ms: now.mono_ms,
                heard_ms: now.mono_ms,
                updates_since_ns: 0,
                end: None,
            },
        );
        coverage::SESSION_OPEN.bump();
        if let Some(figures) = self.figures.counted() {
            figures.open(info);
        }
        self.conns.insert(session, conn);
        self.frontend.opened(
            session,
            SessionInfo::new(
                options.read_only,
                options.role,
                info.identity.as_deref().map(str::to_owned),
            )
            .of_peer(info.name.clone(), remote.unwrap_or_default())
            .of_trusted_relay(self.trusted_relays.contains(info.identity.as_deref())),
        );
        self.watch(now, conn, io);
    }

    fn frame(&mut self, now: Now, conn: ConnId, frame: Pieces, io: &mut Io) {
        wire_log::received(io, conn, &frame);
        let Some(client) = self.sessions.get(&conn) else {
            self.sources.frame(conn, frame, io, &mut self.queues);
            return;
        };
        coverage::JSONRPC_RECEIVED.bump();
        if !self.figures.is_on() {
            self.frontend.set_stamp(0);
            self.frontend.frame(now.mono_ms, client.session, frame);
            self.carry_out(io);
            return;
        }
        let began_ns = clock::mono_ns();
        let bytes = frame.len() as u64;
        self.frontend.set_stamp(began_ns);
        self.frontend.frame(now.mono_ms, client.session, frame);
        self.carry_out(io);
        let figures = self.figures.state();
        figures.received_bytes.fetch_add(bytes, Ordering::Relaxed);
        figures.read.add(clock::mono_ns() - began_ns);
    }

    fn is_passed_on(begun: &[u8]) -> bool {
        is_passed_on(begun)
    }

    fn overlong(&mut self, _now: Now, conn: ConnId, begun: Pieces, bytes_max: usize, io: &mut Io) {
        if let Some(client) = self.sessions.get(&conn) {
            let session = client.session;
            self.frontend.overlong(session, begun.first(), bytes_max);
            self.carry_out(io);
        }
    }

    /// The client has ended its side of the connection. The connection closes once all earlier
    /// requests are answered.
    fn end_of_input(&mut self, _now: Now, conn: ConnId, io: &mut Io) {
        let Some(client) = self.sessions.get(&conn) else {
            io.close_after_flush(conn);
            return;
        };
        if self.frontend.end_of_input(client.session) {
            io.close_after_flush(conn);
        }
    }

    fn closed(&mut self, now: Now, conn: ConnId, reason: CloseReason, io: &mut Io) {
        let is_source = self.sources.closed(now, conn, &reason, &mut self.queues);
        let is_ours = is_source || self.outgoing_of(conn).is_some();
        if let Some(outgoing) = self.outgoing_of(conn) {
            outgoing.closed(now, &reason);
        }
        let client = self.sessions.remove(&conn);
        if let Some(figures) = self.figures.counted() {
            let end = client.as_ref().map(|client| client.end);
            figures.ended(is_ours, end, &reason);
        }
        if let Some(client) = client {
            coverage::SESSION_CLOSE.bump();
            self.conns.remove(&client.session);
            self.frontend.closed(client.session);
            self.carry_out(io);
            self.queues.post();
        }
    }

    fn drained(&mut self, _now: Now, conn: ConnId, _io: &mut Io) {
        if let Some(client) = self.sessions.get(&conn) {
            self.written.push(client.session);
        }
    }

    fn message(&mut self, now: Now, message: ShardMessage, io: &mut Io) {
        match message {
            ShardMessage::Service(message) => self.frontend.message(now.mono_ms, message),
            ShardMessage::Deliver(deliver, cpu_ns) => {
                self.stamp_updates(&deliver);
                self.frontend.charge_cpu(deliver.session, cpu_ns);
                let deliver = ToShard::Deliver(deliver);
                self.frontend.message(now.mono_ms, deliver);
            }
            ShardMessage::Charge(session, cpu_ns) => self.frontend.charge_cpu(session, cpu_ns),
            ShardMessage::Sample => self.publish_totals(io),
            ShardMessage::ListSessions(token, main) => {
                main.sessions_listed(token, self.list(now, io));
            }
            ShardMessage::CloseSession(session, token, main) => {
                let reason = Arc::from("user ran ovsdb-server/close-session");
                let is_closed = self.frontend.disconnect_session(session, &reason);
                main.session_closed(token, is_closed);
            }
            ShardMessage::FrameParsed(session, text) => {
                self.frontend.frame_parsed(now.mono_ms, session, text);
            }
            ShardMessage::Connect(name, options, board) => {
                let mut outgoing = OutgoingRemote::new(now, name, options, board);
                outgoing.run(now, io);
                self.outgoing.push(outgoing);
            }
            ShardMessage::SetOptions(source, options) => {
                self.set_options(now, &source, &options, io);
            }
            ShardMessage::Disconnect(name) => {
                for outgoing in self
                    .outgoing
                    .extract_if(.., |outgoing| outgoing.name() == name)
                {
                    outgoing.conn().into_iter().for_each(|conn| io.close(conn));
                }
            }
            ShardMessage::Source(id, message) => self.sources.message(now, id, message, io),
            ShardMessage::Databases(directory, databases) => {
                self.queues.replace(databases);
                self.frontend
                    .message(now.mono_ms, ToShard::ServedDatabases(directory));
            }
        }
        self.carry_out(io);
    }

    fn held_bytes(&self, conn: ConnId) -> usize {
        let client = self.sessions.get(&conn);
        client.map_or(0, |client| self.frontend.bytes_buffered(client.session))
    }

    fn timer(&mut self, now: Now, conn: ConnId, io: &mut Io) {
        self.watch(now, conn, io);
    }

    fn timeout(&mut self, now: Now, io: &mut Io) {
        for outgoing in &mut self.outgoing {
            outgoing.run(now, io);
        }
        self.sources.run(now, io);
        self.readers.refuse_overdue(now.mono_ms);
    }

    fn next_timeout(&self) -> Option<u64> {
        self.outgoing
            .iter()
            .filter_map(OutgoingRemote::deadline_ms)
            .chain(self.sources.deadline_ms())
            .chain(self.readers.deadline_ms())
            .min()
    }

    fn transferred(&mut self, now: Now, conn: ConnId, bytes: usize) {
        if let Some(client) = self.sessions.get(&conn) {
            let session = client.session;
            self.span.transferred(now.mono_ns, session, bytes);
        }
    }

    /// Posts the messages to databases before the shard writes, so that databases and shard work in
    /// parallel.
    fn batch_end(&mut self, _now: Now, _io: &mut Io) {
        self.queues.post();
    }

    fn flushed(&mut self, _now: Now, io: &mut Io) {
        let mut now_ns = None;
        let mut written = std::mem::take(&mut self.written);
        for session in written.drain(..) {
            let conn = self.conns.get(&session).copied();
            if let Some(conn) = conn.filter(|conn| io.is_drained(*conn)) {
                self.count_drained(conn, &mut now_ns);
                self.frontend.drained(session);
            }
        }
        self.written = written;
        self.carry_out(io);
        self.queues.post();
        let frontend = &self.frontend;
        self.span
            .end(|session, cpu_ns| frontend.charge_cpu(session, cpu_ns));
    }
}

/// The client's process and its program. Read when the session begins: later, another process might
/// have the number.
fn process_of(info: &ConnInfo) -> Option<(u32, Arc<str>)> {
    let pid = info.pid?;
    Some((pid, process_figures::program_of(pid)?.into()))
}

fn log_close(name: &str, why: &Close) {
    static LIMIT: RateLimit = RateLimit::new(5, 5);
    match why {
        Close::BadMessage(what) => {
            let message = format_args!("{name}: {what}");
            vlog::warn_limited(&LIMIT, Module::Jsonrpc, message);
        }
        Close::UnexpectedReply => {
            let message = format_args!("{name}: received unexpected reply message");
            vlog::warn_limited(&LIMIT, Module::OvsdbJsonrpcServer, message);
        }
        Close::EndOfInput => {}
        Close::Disconnect(reason) => {
            vlog::info(
                Module::OvsdbJsonrpcServer,
                format_args!("{name}: disconnecting ({reason})"),
            );
        }
    }
}
