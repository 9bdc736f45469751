//! The operations of a handler on its shard's connections.
//!
//! Calls only queue work; writing and closing happen at the end of the wake-up. The id of a closed
//! connection is ignored everywhere, so a handler may use a stale one.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mio::{Interest, Registry, Token};
use slab::Slab;

use super::conn::{Conn, Finish};
use super::limits::{Accounts, Charge, Owner};
use super::timers::Timers;
use super::unfinished::{Account, Evicted};
use super::{CloseReason, ConnId, ConnInfo, ListenerId};
use crate::segment::Segment;
use corvid_net::errno;
use corvid_net::logging::{self, Module, RateLimit};
use corvid_net::stream::{Resolve, Stream};
use corvid_net::target::Active;
use corvid_net::tls::Credentials;

/// The maximum number of connections per shard, far above any limit of descriptors.
pub(super) const CONNECTIONS_MAX: usize = 1 << ConnId::SLOT_BITS;

/// The connections of a shard, and the work queued for them.
pub struct Io {
    pub(super) registry: Registry,
    /// The credentials for connections over TLS.
    pub(super) credentials: Option<Arc<Credentials>>,
    pub(super) accounts: Arc<Accounts>,
    /// The number of this shard in its group.
    shard: usize,
    /// Connections of other shards that must be closed, because unfinished messages hold too much.
    pub(super) evicted: Vec<Evicted>,
    pub(super) conns: Slab<Conn>,
    pub(super) timers: Timers,
    /// Connections with input or undelivered texts.
    pub(super) scheduled: VecDeque<ConnId>,
    /// Connections with output to write.
    pub(super) dirty: Vec<ConnId>,
    /// Connections to close.
    pub(super) to_close: Vec<ConnId>,
    pub(super) now_ms: u64,
    pub(super) is_shutdown: bool,
}

impl Io {
    pub(super) fn new(
        registry: Registry,
        credentials: Option<Arc<Credentials>>,
        accounts: Arc<Accounts>,
        shard: usize,
    ) -> Io {
        Io {
            registry,
            credentials,
            accounts,
            shard,
            evicted: Vec::new(),
            conns: Slab::new(),
            timers: Timers::default(),
            scheduled: VecDeque::new(),
            dirty: Vec::new(),
            to_close: Vec::new(),
            now_ms: 0,
            is_shutdown: false,
        }
    }

    /// Queues output.
    pub fn send(&mut self, conn: ConnId, segment: impl Into<Segment>) {
        self.send_all(conn, [segment.into()]);
    }

    /// Queues several pieces of output, in this order.
    pub fn send_all(&mut self, conn: ConnId, segments: impl IntoIterator<Item = Segment>) {
        let Some(found) = self.conn(conn) else { return };
        segments
            .into_iter()
            .for_each(|segment| found.channel.output.push(segment));
        if found.is_blocked {
            self.check_backlog(conn);
        } else {
            self.mark_dirty(conn);
        }
    }

    /// Closes the connection; its queued output is lost.
    pub fn close(&mut self, conn: ConnId) {
        self.close_with(conn, CloseReason::Local);
    }

    /// Stops reading, sends what is queued, and then closes.
    pub fn close_after_flush(&mut self, conn: ConnId) {
        if let Some(found) = self.conn(conn) {
            found.finish.get_or_insert(Finish::Written);
            self.mark_dirty(conn);
        }
    }

    /// Stops reading, sends what the peer accepts without waiting, and then closes. A peer that
    /// does not read cannot delay the close.
    pub fn close_unless_blocked(&mut self, conn: ConnId) {
        if let Some(found) = self.conn(conn) {
            found.finish = Some(Finish::WrittenOrBlocked);
            if found.wants_writable {
                self.close(conn);
            } else {
                self.mark_dirty(conn);
            }
        }
    }

    /// Delivers no more texts of this connection until [`Io::resume_reading`].
    pub fn pause_reading(&mut self, conn: ConnId) {
        if let Some(found) = self.conn(conn) {
            found.is_paused = true;
        }
    }

    /// Delivers texts again.
    pub fn resume_reading(&mut self, conn: ConnId) {
        if let Some(found) = self.conn(conn) {
            found.is_paused = false;
            self.schedule(conn);
        }
    }

    /// Whether the peer keeps up: no write has left bytes unsent. If false,
    /// [`Handler::drained`](super::Handler::drained) will be called. Output queued during this
    /// wake-up does not count. True for a closed connection.
    #[must_use]
    pub fn is_drained(&self, conn: ConnId) -> bool {
        self.get(conn).is_none_or(|found| !found.is_blocked)
    }

    /// The number of bytes queued and not yet accepted by the kernel.
    #[must_use]
    pub fn backlog_bytes(&self, conn: ConnId) -> usize {
        self.get(conn)
            .map_or(0, |found| found.channel.output.bytes())
    }

    /// When the peer was last active (a byte was received, or unsent output was accepted),
    /// monotonic ms.
    #[must_use]
    pub fn received_ms(&self, conn: ConnId) -> Option<u64> {
        self.get(conn).map(|found| found.received_ms)
    }

    /// Name, listener and identity of a connection.
    #[must_use]
    pub fn info(&self, conn: ConnId) -> Option<&ConnInfo> {
        self.get(conn).map(|found| &found.info)
    }

    /// Sets the connection's timer to a monotonic time, ms. Replaces an earlier setting.
    pub fn set_timer(&mut self, conn: ConnId, at_ms: u64) {
        self.move_timer(conn, Some(at_ms));
    }

    /// Disables the connection's timer.
    pub fn clear_timer(&mut self, conn: ConnId) {
        self.move_timer(conn, None);
    }

    fn move_timer(&mut self, conn: ConnId, at_ms: Option<u64>) {
        if let Some(found) = self
            .conns
            .get_mut(conn.slot())
            .filter(|found| found.id == conn)
        {
            self.timers.set(conn, &mut found.timer, at_ms);
        }
    }

    /// Begins to open a connection, which is logged as `name`. The handler gets `opened`, or
    /// `closed` with `ConnectFailed`. A host name is looked up in the background: until it is
    /// resolved this fails with EAFNOSUPPORT; try again later.
    ///
    /// # Errors
    /// The attempt fails at once.
    pub fn connect(&mut self, target: &Active, name: &str, dscp: u8) -> io::Result<ConnId> {
        let stream = Stream::connect(target, dscp, Resolve::Later, self.credentials.as_ref())?;
        let info = ConnInfo {
            name: name.into(),
            listener: None,
            is_network: stream.is_network(),
            address: None,
            pid: None,
            identity: None,
        };
        self.insert(stream, info, false)
    }

    /// The numbers of bytes received and sent since the connection was opened.
    #[must_use]
    pub fn traffic(&self, conn: ConnId) -> (u64, u64) {
        self.get(conn)
            .map_or((0, 0), |found| (found.received_bytes, found.sent_bytes))
    }

    /// Exempts this peer's input from all limits, because this process opened the connection.
    pub fn trust(&mut self, conn: ConnId) {
        if let Some(found) = self.conn(conn) {
            found.trust();
        }
    }

    /// The connections of this shard, including those that are being opened.
    pub fn connections(&self) -> impl Iterator<Item = (ConnId, &ConnInfo)> {
        self.conns.iter().map(|(_, conn)| (conn.id, &conn.info))
    }

    /// Ends the shard's thread after this wake-up. All its connections are closed.
    pub fn shutdown(&mut self) {
        self.is_shutdown = true;
    }

    /// Adds a connection; `is_open` says whether its handshake is complete.
    pub(super) fn insert(
        &mut self,
        mut stream: Stream,
        info: ConnInfo,
        is_open: bool,
    ) -> io::Result<ConnId> {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let entry = self.conns.vacant_entry();
        if entry.key() >= CONNECTIONS_MAX {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let interest = if is_open {
            Interest::READABLE
        } else {
            Interest::READABLE | Interest::WRITABLE
        };
        self.registry
            .register(stream.source(), Token(entry.key()), interest)?;
        let id = ConnId::new(SERIAL.fetch_add(1, Ordering::Relaxed), entry.key());
        let owner = Owner {
            conn: id,
            shard: self.shard,
            account: Account::new(info.listener, info.address),
        };
        let charge = Charge::new(&self.accounts, owner);
        let mut conn = Conn::new(id, info, stream, is_open, self.now_ms, charge);
        conn.wants_writable = !is_open;
        entry.insert(conn);
        self.schedule(id);
        Ok(id)
    }

    /// Switches readiness for writing on or off.
    pub(super) fn want_writable(&mut self, conn: ConnId, wanted: bool) -> io::Result<()> {
        let Some(found) = self
            .conns
            .get_mut(conn.slot())
            .filter(|found| found.id == conn)
        else {
            return Ok(());
        };
        if found.wants_writable == wanted {
            return Ok(());
        }
        found.wants_writable = wanted;
        let interest = if wanted {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        self.registry
            .reregister(found.channel.stream.source(), Token(conn.slot()), interest)
    }

    pub(super) fn close_listener(&mut self, listener: ListenerId) {
        let of_listener =
            |(_, conn): (usize, &Conn)| (conn.info.listener == Some(listener)).then_some(conn.id);
        let ids: Vec<ConnId> = self.conns.iter().filter_map(of_listener).collect();
        ids.into_iter()
            .for_each(|id| self.close_with(id, CloseReason::ListenerRemoved));
    }

    /// Closes a connection at the end of this wake-up; the first reason wins.
    pub(super) fn close_with(&mut self, conn: ConnId, reason: CloseReason) {
        if let Some(found) = self.conn(conn).filter(|found| found.closing.is_none()) {
            found.closing = Some(reason);
            self.to_close.push(conn);
        }
    }

    /// Disconnects a peer that leaves too much output unread.
    pub(super) fn check_backlog(&mut self, conn: ConnId) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        let backlog = self.backlog_bytes(conn);
        let backlog_max = self.accounts.backlog_bytes_max();
        if backlog > backlog_max {
            let name = self.name(conn);
            logging::warn_limited(
                &LIMIT,
                Module::Jsonrpc,
                format_args!(
                    "sending backlog exceeded maximum size ({backlog} > {backlog_max} bytes), disconnecting, jsonrpc: {name}."
                ),
            );
            self.close_with(conn, CloseReason::LimitReached);
        }
    }

    /// Makes room if unfinished messages hold too much. The evicted connections may belong to any
    /// shard of the group.
    pub(super) fn check_unfinished(&mut self) {
        if !self.accounts.is_overdrawn() {
            return;
        }
        let accounts = Arc::clone(&self.accounts);
        for evicted in accounts.evict(self.now_ms) {
            if evicted.shard == self.shard {
                self.evict(evicted);
            } else {
                self.evicted.push(evicted);
            }
        }
    }

    /// Disconnects a peer whose unfinished message must make room.
    pub(super) fn evict(&mut self, evicted: Evicted) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        let Evicted {
            conn,
            bytes,
            idle_ms,
            shard: _,
        } = evicted;
        let name = self.name(conn);
        let Some(found) = self.conn(conn) else { return };
        found.drop_unfinished();
        logging::warn_limited(
            &LIMIT,
            Module::Jsonrpc,
            format_args!(
                "{name}: incomplete messages of all clients take too much memory, disconnecting the client of one with {bytes} bytes (no progress for {idle_ms} ms)"
            ),
        );
        self.close_with(conn, CloseReason::LimitReached);
    }

    pub(super) fn schedule(&mut self, conn: ConnId) {
        if let Some(found) = self.conn(conn).filter(|found| !found.is_scheduled) {
            found.is_scheduled = true;
            self.scheduled.push_back(conn);
        }
    }

    pub(super) fn mark_dirty(&mut self, conn: ConnId) {
        if let Some(found) = self.conn(conn).filter(|found| !found.is_dirty) {
            found.is_dirty = true;
            self.dirty.push(conn);
        }
    }

    pub(super) fn conn(&mut self, conn: ConnId) -> Option<&mut Conn> {
        self.conns
            .get_mut(conn.slot())
            .filter(|found| found.id == conn)
    }

    pub(super) fn get(&self, conn: ConnId) -> Option<&Conn> {
        self.conns.get(conn.slot()).filter(|found| found.id == conn)
    }

    /// Whether a listener has accepted the connection; this process opened the others.
    pub(super) fn is_accepted(&self, conn: ConnId) -> bool {
        self.info(conn).is_some_and(|info| info.listener.is_some())
    }

    /// Logs that an accepted connection ends because its peer violated the protocol. For the
    /// handler, which closes the connection.
    pub fn log_protocol_error(&self, conn: ConnId) {
        self.log_dropped(conn, libc::EPROTO);
    }

    /// Logs that an accepted connection ends because of an error. The owner of a connection that
    /// this process opened logs its errors itself.
    pub(super) fn log_dropped(&self, conn: ConnId, code: i32) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        if self.is_accepted(conn) {
            let (name, text) = (self.name(conn), errno::text_of(code));
            let line = format_args!("{name}: connection dropped ({text})");
            logging::warn_limited(&LIMIT, Module::Reconnect, line);
        }
    }

    pub(super) fn name(&self, conn: ConnId) -> Arc<str> {
        self.get(conn)
            .map_or_else(|| Arc::from(""), |found| Arc::clone(&found.info.name))
    }
}
