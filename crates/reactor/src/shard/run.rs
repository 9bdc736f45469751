//! The loop of one shard.
//!
//! In one wake-up, the shard records readiness, receives messages, serves connections that have
//! input, and fires timers. Then it reports the end of the batch to the handler, receives the
//! messages that answer the batch at once, writes all queued output, and closes the connections
//! that are to be closed. Work beyond a fairness limit is left to the next wake-up, which then does
//! not wait.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use corvid_json::Pieces;
use mio::{Events, Poll, Token};
use slab::Slab;

use super::accept::{Accepted, Acceptor};
use super::closed_queue::ClosedQueue;
use super::conn::{Finish, Frame, InputEnd};
use super::group::WAKER;
use super::inbox::Envelope;
use super::io::Io;
use super::limits::Accounts;
use super::{CloseReason, ConnId, Handler, ListenerId, ShardHandle};
use crate::channel::may_write;
use crate::events;
use crate::output::Progress;
use crate::poll_interval::PollInterval;
use corvid_net::clock::Now;
use corvid_net::errno;
use corvid_net::logging::{self, Module, RateLimit};
use corvid_net::tls::Credentials;

/// The number of bytes read at a time.
const READ_BYTES: usize = 128 * 1024;
/// The number of bytes read from one connection in one wake-up, so that others get their turn.
const READ_BYTES_PER_TURN: usize = 4 * READ_BYTES;
/// The number of texts delivered for one connection in one wake-up.
const FRAMES_PER_TURN: usize = 128;
/// Output up to this length is written at once, bytes.
const SMALL_OUTPUT_BYTES: usize = 64 * 1024;
/// The number of bytes of longer output written in one wake-up, to all connections together: about
/// 500 us. Otherwise a peer that reads as fast as the shard writes would occupy the shard until all
/// its output is sent.
const LARGE_OUTPUT_BYTES_PER_TURN: usize = 2 << 20;
/// How often in one wake-up the shard looks for replies to the batches that its handler sent.
/// Replies that come at once are written together with the other output of the wake-up.
const REPLY_ROUNDS: usize = 4;
/// The maximum duration of an accepted connection's handshake, ms: as long as the default probe
/// interval tolerates a silent peer.
const HANDSHAKE_MS_MAX: u64 = 10_000;
/// The number of events taken from the kernel at a time.
const EVENTS: usize = 1024;
/// Tokens of listeners lie above those of connections.
const LISTENER_TOKENS: usize = super::io::CONNECTIONS_MAX;

pub(super) struct Shard<H: Handler> {
    poll: Poll,
    io: Io,
    handler: H,
    inbox: ShardHandle<H::Message>,
    /// All shards of the group; accepted connections are distributed over them.
    group: Vec<ShardHandle<H::Message>>,
    next_in_group: usize,
    acceptors: Slab<Acceptor>,
    scratch: Box<[u8]>,
    envelopes: Vec<Envelope<H::Message>>,
    interval: PollInterval,
    closed_queue: ClosedQueue,
}

impl<H: Handler> Shard<H> {
    pub(super) fn new(
        index: usize,
        poll: Poll,
        group: Vec<ShardHandle<H::Message>>,
        credentials: Option<Arc<Credentials>>,
        accounts: Arc<Accounts>,
        handler: H,
    ) -> io::Result<Shard<H>> {
        let io = Io::new(poll.registry().try_clone()?, credentials, accounts, index);
        Ok(Shard {
            poll,
            io,
            handler,
            inbox: group[index].clone(),
            group,
            next_in_group: 0,
            acceptors: Slab::new(),
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            envelopes: Vec::new(),
            interval: PollInterval::new(&format!("shard{index}")),
            closed_queue: ClosedQueue::default(),
        })
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        while !self.io.is_shutdown {
            let timeout = self.wait();
            if timeout.is_some_and(|timeout| timeout.is_zero()) {
                events::POLL_ZERO_TIMEOUT.bump();
            }
            match self.poll.poll(&mut events, timeout) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    logging::err(
                        Module::PollLoop,
                        format_args!("poll: {}", errno::text(&error)),
                    );
                    break;
                }
            }
            events::SHARD_WAKEUP.bump();
            self.turn(&events);
            self.interval.end();
        }
        let ids: Vec<ConnId> = self.io.connections().map(|(id, _)| id).collect();
        ids.into_iter()
            .for_each(|id| self.io.close_with(id, CloseReason::Shutdown));
        self.reap_closed(Now::read());
    }

    /// The maximum time to wait for events; `None`: forever.
    fn wait(&self) -> Option<Duration> {
        let has_work = !self.io.scheduled.is_empty()
            || !self.io.dirty.is_empty()
            || !self.closed_queue.is_empty();
        if has_work || !self.inbox.sleep() {
            return Some(Duration::ZERO);
        }
        let retry = self
            .acceptors
            .iter()
            .filter_map(|(_, acceptor)| acceptor.listening.retry_ms())
            .min();
        let deadlines = [self.io.timers.next_ms(), self.handler.next_timeout(), retry];
        deadlines
            .into_iter()
            .flatten()
            .min()
            .map(|deadline| Now::read().until(deadline))
    }

    fn turn(&mut self, events: &Events) {
        let now = Now::read();
        self.io.now_ms = now.mono_ms;
        self.interval.begin(now.mono_ms);
        self.record_readiness(events, now);
        self.receive(now);
        self.retry_listeners(now);
        // Connections that schedule themselves again meanwhile wait for the next wake-up, so that
        // one busy client cannot keep the shard here.
        for _ in 0..self.io.scheduled.len() {
            if let Some(conn) = self.io.scheduled.pop_front() {
                self.serve(conn, now);
            }
        }
        self.pass_on_evicted();
        self.fire_timers(now);
        if self
            .handler
            .next_timeout()
            .is_some_and(|at_ms| at_ms <= now.mono_ms)
        {
            self.handler.timeout(now, &mut self.io);
        }
        // The handler posts its batches before the shard writes: databases work while the kernel
        // copies, and replies that are ready at once share this wake-up's writes.
        for _ in 0..REPLY_ROUNDS {
            self.handler.batch_end(now, &mut self.io);
            if !self.receive(now) {
                break;
            }
        }
        self.flush_all(now);
        self.handler.flushed(now, &mut self.io);
        self.closed_queue.reap();
        // Last, because every step above may close connections.
        self.reap_closed(now);
    }

    fn record_readiness(&mut self, events: &Events, now: Now) {
        for event in events {
            let Token(token) = event.token();
            if event.token() == WAKER {
                continue;
            }
            if token >= LISTENER_TOKENS {
                self.accept(token - LISTENER_TOKENS, now);
                continue;
            }
            let Some(conn) = self.io.conns.get_mut(token) else {
                continue;
            };
            let id = conn.id;
            if !conn.channel.is_open {
                conn.channel.record(event);
                self.finish_connecting(id, now);
                continue;
            }
            if conn.channel.record(event) {
                self.io.schedule(id);
            }
            if may_write(event) && self.io.get(id).is_some_and(|conn| conn.is_blocked) {
                self.io.mark_dirty(id);
            }
        }
    }

    /// Handles the messages of other threads. Returns false if there were none.
    fn receive(&mut self, now: Now) -> bool {
        let mut envelopes = std::mem::take(&mut self.envelopes);
        self.inbox.take(&mut envelopes);
        let any = !envelopes.is_empty();
        for envelope in envelopes.drain(..) {
            match envelope {
                Envelope::Message(message) => self.handler.message(now, message, &mut self.io),
                Envelope::Adopt(accepted) => self.adopt(accepted, now),
                Envelope::Listen(acceptor) => self.listen(*acceptor, now),
                Envelope::Unlisten(listener) => self.unlisten(listener),
                Envelope::CloseAll(listener) => self.io.close_listener(listener),
                Envelope::Evict(evicted) => self.io.evict(evicted),
                Envelope::Shutdown => self.io.shutdown(),
            }
        }
        self.envelopes = envelopes;
        any
    }

    fn adopt(&mut self, accepted: Accepted, now: Now) {
        let Accepted {
            stream,
            info,
            guard,
        } = accepted;
        let is_open = !stream.needs_handshake();
        match self.io.insert(stream, info.clone(), is_open) {
            Ok(conn) => {
                if let Some(conn) = self.io.conn(conn) {
                    conn.guard = Some(guard);
                }
                if is_open {
                    self.handler.opened(now, conn, &info, &mut self.io);
                } else {
                    self.io.set_timer(conn, now.mono_ms + HANDSHAKE_MS_MAX);
                }
            }
            Err(error) => {
                logging::err(
                    Module::Stream,
                    format_args!("{}: {}", info.name, errno::text(&error)),
                );
            }
        }
    }

    fn finish_connecting(&mut self, id: ConnId, now: Now) {
        let Some(conn) = self.io.conn(id) else { return };
        match conn.channel.finish_opening() {
            Ok(false) => {}
            Ok(true) => {
                conn.received_ms = now.mono_ms;
                conn.info.identity = conn.channel.stream.peer_identity().map(Arc::from);
                let info = conn.info.clone();
                if let Err(error) = self.io.want_writable(id, false) {
                    self.io.close_with(id, failed(&error));
                }
                self.io.clear_timer(id);
                // Part of the handshake may still be unsent.
                self.io.mark_dirty(id);
                self.handler.opened(now, id, &info, &mut self.io);
                self.io.schedule(id);
            }
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(libc::EIO);
                self.connecting_failed(id, code);
            }
        }
    }

    /// Closes a connection that was never open.
    fn connecting_failed(&mut self, id: ConnId, code: i32) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        if self.io.is_accepted(id) {
            let (name, text) = (self.io.name(id), errno::text_of(code));
            logging::warn_limited(
                &LIMIT,
                Module::Jsonrpc,
                format_args!("{name}: receive error: {text}"),
            );
            self.io.log_dropped(id, code);
        }
        self.io.close_with(id, CloseReason::ConnectFailed(code));
    }

    /// Reads from a connection and delivers its texts, as far as the rules allow.
    fn serve(&mut self, id: ConnId, now: Now) {
        let (mut bytes, mut frames) = (0, 0);
        if let Some(conn) = self.io.conn(id) {
            conn.is_scheduled = false;
        }
        loop {
            let Some(conn) = self.io.conn(id).filter(|conn| conn.is_reading()) else {
                self.update_charge(id, now);
                return;
            };
            if frames >= FRAMES_PER_TURN || bytes >= READ_BYTES_PER_TURN {
                self.io.schedule(id);
                return;
            }
            if let Some(text) = conn.frames.pop_front() {
                frames += 1;
                match text {
                    Frame::Whole(frame) => self.handler.frame(now, id, frame, &mut self.io),
                    Frame::Overlong(begun) => self.refuse_overlong(id, begun, now),
                }
            } else if let Some(end) = conn.input_end.clone() {
                if conn.channel.is_hung_up && end == InputEnd::EndOfFile {
                    // The peer reads no replies, so the handler gets no chance to delay the close
                    // until its last request is answered, which may be never.
                    self.io.close_with(id, CloseReason::EndOfFile);
                } else if !conn.is_end_reported {
                    self.input_ended(id, end, now);
                }
                return;
            } else if conn.channel.may_read {
                let received = conn.read(&mut self.scratch, H::is_passed_on);
                bytes += received;
                if received > 0 {
                    conn.received_ms = now.mono_ms;
                }
                if conn.charge_partial(now.mono_ms) {
                    self.io.check_unfinished();
                }
                if received > 0 {
                    self.handler.transferred(now, id, received);
                }
            } else {
                self.update_charge(id, now);
                return;
            }
        }
    }

    /// Handles an oversized text that a peer has passed on. The peer's connection stays.
    fn refuse_overlong(&mut self, id: ConnId, begun: Pieces, now: Now) {
        let limit = self.io.accounts.text_bytes_max();
        self.log_too_long(id, limit);
        (self.handler).overlong(now, id, begun, limit, &mut self.io);
    }

    fn log_too_long(&self, id: ConnId, limit: usize) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        let name = self.io.name(id);
        logging::warn_limited(
            &LIMIT,
            Module::Jsonrpc,
            format_args!("{name}: message exceeds the limit of {limit} bytes"),
        );
    }

    /// Charges what a connection holds now: texts that the handler has finished with no longer
    /// count, waiting texts do.
    fn update_charge(&mut self, id: ConnId, now: Now) {
        let held_bytes = self.handler.held_bytes(id);
        let conn = self.io.conn(id);
        if conn.is_some_and(|conn| conn.update_charge(now.mono_ms, held_bytes)) {
            self.io.check_unfinished();
        }
    }

    /// Asks other shards to close their connections that must make room.
    fn pass_on_evicted(&mut self) {
        for evicted in self.io.evicted.drain(..) {
            self.group[evicted.shard].extend([Envelope::Evict(evicted)]);
        }
    }

    fn input_ended(&mut self, id: ConnId, end: InputEnd, now: Now) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        let name = self.io.name(id);
        match end {
            InputEnd::EndOfFile => self.tell_end_of_input(id, now),
            InputEnd::Failed(code) => {
                let text = errno::text_of(code);
                logging::warn_limited(
                    &LIMIT,
                    Module::Jsonrpc,
                    format_args!("{name}: receive error: {text}"),
                );
                self.io.log_dropped(id, code);
                self.io.close_with(id, CloseReason::Failed(code));
            }
            InputEnd::TooLong => {
                self.log_too_long(id, self.io.accounts.text_bytes_max());
                self.tell_end_of_input(id, now);
            }
            InputEnd::BadFraming { text, protocol } => {
                logging::warn_limited(
                    &LIMIT,
                    Module::Jsonrpc,
                    format_args!("{name}: error parsing stream: {text}"),
                );
                if let Some(protocol) = protocol {
                    static LIMIT: RateLimit = RateLimit::new(5, 5);
                    logging::warn_limited(
                        &LIMIT,
                        Module::Jsonrpc,
                        format_args!("{name}: received {protocol} data on JSON-RPC channel"),
                    );
                }
                self.io.log_dropped(id, libc::EPROTO);
                self.tell_end_of_input(id, now);
            }
        }
    }

    /// Stops reading. The handler closes the connection once it has answered the earlier texts.
    fn tell_end_of_input(&mut self, id: ConnId, now: Now) {
        if let Some(conn) = self.io.conn(id) {
            conn.is_end_reported = true;
            conn.drop_unfinished();
        }
        self.handler.end_of_input(now, id, &mut self.io);
    }

    fn fire_timers(&mut self, now: Now) {
        while let Some((at_ms, id)) = self.io.timers.pop(now.mono_ms) {
            let Io { conns, timers, .. } = &mut self.io;
            let Some(conn) = conns
                .get_mut(id.slot())
                .filter(|conn| conn.id == id && conn.closing.is_none())
            else {
                continue;
            };
            if timers.fires(id, &mut conn.timer, at_ms, now.mono_ms) {
                if conn.channel.is_open {
                    self.handler.timer(now, id, &mut self.io);
                } else {
                    self.connecting_failed(id, libc::ETIMEDOUT);
                }
            }
        }
    }

    /// Writes queued output: short output first, then long output up to the limit; the next wake-up
    /// writes the rest.
    fn flush_all(&mut self, now: Now) {
        let is_large = |io: &Io, conn| io.backlog_bytes(conn) > SMALL_OUTPUT_BYTES;
        let mut much = Vec::new();
        for conn in std::mem::take(&mut self.io.dirty) {
            if is_large(&self.io, conn) {
                much.push(conn);
            } else {
                self.flush(conn, now, &mut { usize::MAX });
            }
        }
        let mut limit = LARGE_OUTPUT_BYTES_PER_TURN;
        let mut much = much.into_iter();
        let paused = much
            .by_ref()
            .find(|conn| self.flush(*conn, now, &mut limit) == Some(Progress::Paused));
        // Connections that had no turn come before the one that was paused.
        for id in much.chain(paused) {
            if let Some(conn) = self.io.conn(id) {
                conn.is_blocked = true;
                conn.is_dirty = true;
                self.io.dirty.push(id);
            }
        }
    }

    /// Writes a connection's output. Returns how far the write got, if it did not fail.
    fn flush(&mut self, id: ConnId, now: Now, limit: &mut usize) -> Option<Progress> {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        let conn = self.io.conn(id)?;
        conn.is_dirty = false;
        if !conn.channel.is_open || conn.closing.is_some() {
            return None;
        }
        let sent_before = conn.sent_bytes;
        let progress = conn.write(now.mono_ms, limit);
        let sent = (conn.sent_bytes - sent_before) as usize;
        if conn.is_charged() {
            conn.update_charge(now.mono_ms, self.handler.held_bytes(id));
        }
        if sent > 0 {
            self.handler.transferred(now, id, sent);
        }
        match &progress {
            Ok(Progress::Drained) => {
                let was_blocked = std::mem::take(&mut conn.is_blocked);
                if conn.finish.is_some() {
                    let reason = match conn.input_end {
                        Some(InputEnd::EndOfFile) => CloseReason::EndOfFile,
                        Some(InputEnd::BadFraming { .. }) => CloseReason::BadFraming,
                        Some(InputEnd::TooLong) => CloseReason::LimitReached,
                        Some(InputEnd::Failed(_)) | None => CloseReason::Local,
                    };
                    self.io.close_with(id, reason);
                } else if was_blocked {
                    if let Err(error) = self.io.want_writable(id, false) {
                        self.io.close_with(id, failed(&error));
                    }
                    self.handler.drained(now, id, &mut self.io);
                    // Input was not read while the output was blocked, and no further event reports
                    // it.
                    self.io.schedule(id);
                }
            }
            Ok(Progress::Blocked) => {
                conn.is_blocked = true;
                if conn.finish == Some(Finish::WrittenOrBlocked) {
                    self.io.close(id);
                } else {
                    if let Err(error) = self.io.want_writable(id, true) {
                        self.io.close_with(id, failed(&error));
                    }
                    self.io.check_backlog(id);
                }
            }
            Ok(Progress::Paused) => {}
            Err(error) => {
                let (name, text) = (self.io.name(id), errno::text(error));
                logging::warn_limited(
                    &LIMIT,
                    Module::Jsonrpc,
                    format_args!("{name}: send error: {text}"),
                );
                let code = error.raw_os_error().unwrap_or(libc::EIO);
                self.io.log_dropped(id, code);
                self.io.close_with(id, failed(error));
            }
        }
        progress.ok()
    }

    /// Closes the connections that are to be closed. Closing one may add others.
    fn reap_closed(&mut self, now: Now) {
        while let Some(id) = self.io.to_close.pop() {
            let Some(mut conn) = self
                .io
                .get(id)
                .is_some()
                .then(|| self.io.conns.remove(id.slot()))
            else {
                continue;
            };
            let _ = self.io.registry.deregister(conn.channel.stream.source());
            let reason = conn.closing.take().unwrap_or(CloseReason::Local);
            self.closed_queue
                .push(std::mem::take(&mut conn.channel.output));
            // The socket is closed before the handler learns of it.
            drop(conn);
            self.handler.closed(now, id, reason, &mut self.io);
        }
    }
}

fn failed(error: &io::Error) -> CloseReason {
    CloseReason::Failed(error.raw_os_error().unwrap_or(libc::EIO))
}

/// Listeners; only the first shard of a group has any.
impl<H: Handler> Shard<H> {
    fn listen(&mut self, mut acceptor: Acceptor, now: Now) {
        let token = Token(LISTENER_TOKENS + self.acceptors.vacant_key());
        let listening = &mut acceptor.listening;
        listening.register(&self.io.registry, token);
        if listening.listener().is_some() {
            // No edge reports clients that connected before the registration.
            listening.accept_at(Some(now.mono_ms));
        }
        self.acceptors.insert(acceptor);
    }

    fn unlisten(&mut self, listener: ListenerId) {
        let key = self
            .acceptors
            .iter()
            .find(|(_, acceptor)| acceptor.id == listener)
            .map(|(key, _)| key);
        if let Some(key) = key {
            let acceptor = self.acceptors.remove(key);
            acceptor.listening.close(&self.io.registry);
        }
        // Connections that were distributed earlier reach their shards before this message.
        for shard in &self.group {
            shard.extend([Envelope::CloseAll(listener)]);
        }
    }

    fn retry_listeners(&mut self, now: Now) {
        let acceptors = self.acceptors.iter();
        let due = acceptors.filter(|(_, acceptor)| acceptor.listening.is_due(now.mono_ms));
        let keys: Vec<usize> = due.map(|(key, _)| key).collect();
        for key in keys {
            let acceptor = &mut self.acceptors[key];
            if acceptor.open(now.mono_ms) {
                let token = Token(LISTENER_TOKENS + key);
                acceptor.listening.register(&self.io.registry, token);
            }
            self.accept(key, now);
        }
    }

    fn accept(&mut self, key: usize, now: Now) {
        let Some(acceptor) = self.acceptors.get_mut(key) else {
            return;
        };
        // Accepted connections go through the queues, even to this shard: messages posted before a
        // client connected are then received before its connection.
        for accepted in acceptor.accept(now.mono_ms) {
            let turn = self.next_in_group;
            self.next_in_group = (turn + 1) % self.group.len();
            self.group[turn].extend([Envelope::Adopt(accepted)]);
        }
    }
}
