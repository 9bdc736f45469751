//! Connection shards: threads that each own many connections and run a state machine over them.
//!
//! A shard is one epoll loop. It reads, cuts the stream into JSON texts, hands them to its
//! [`Handler`], and writes the output that the handler queued, with one vectored write per
//! connection and wake-up. Readiness is edge-triggered; a write is tried first, and readiness for
//! writing is requested only after the kernel refused. A handler runs only on its shard's thread,
//! so it needs no locks. Other threads reach it through [`ShardHandle::post`], which wakes it once
//! per batch.
//!
//! Invariants:
//! - While a connection has unsent output after a write, nothing is read from it and no text is
//!   delivered.
//! - Texts of a connection are delivered in arrival order. Texts before a framing error, an
//!   oversized text or an end of file are delivered, and the handler answers them, before the
//!   connection is closed. Bytes after that point are not read.
//! - [`Handler::closed`] is called exactly once for each connection, and nothing about the
//!   connection is reported afterwards.
//!
//! The loop does not parse texts. The handler takes care of requests, probes, sessions and
//! reconnecting.

mod accept;
mod closed_queue;
mod conn;
mod group;
mod inbox;
mod io;
mod limits;
mod run;
mod timers;
mod unfinished;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

pub use accept::{ListenerId, ListenerStatus};
pub use group::{ListenerHandle, Shards};
pub use inbox::ShardHandle;
pub use io::Io;
pub use limits::{Limits, Refusals};

use corvid_json::Pieces;

use corvid_net::clock::Now;

/// The number of bytes kept of an oversized text.
pub const BEGINNING_BYTES: usize = 1024;

/// Names a connection for the life of the process; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(u64);

impl ConnId {
    const SLOT_BITS: u32 = 24;

    fn new(serial: u64, slot: usize) -> ConnId {
        ConnId(serial << Self::SLOT_BITS | slot as u64)
    }

    /// The connection's index in the shard's table.
    fn slot(self) -> usize {
        (self.0 & ((1 << Self::SLOT_BITS) - 1)) as usize
    }
}

/// Name, listener and peer of a connection.
#[derive(Debug, Clone)]
pub struct ConnInfo {
    /// The name in log lines: `tcp:IP:PORT`, `unix#N`, or the target of a connection that this
    /// process opened.
    pub name: Arc<str>,
    /// The listener that accepted the connection; `None` if this process opened it.
    pub listener: Option<ListenerId>,
    /// Whether the connection crosses a network, where a silent peer may have failed.
    pub is_network: bool,
    /// The peer's network address; `None`: it has none, or this process opened the connection.
    pub address: Option<IpAddr>,
    /// The peer's process; `None`: it is not known, or this process opened the connection.
    pub pid: Option<u32>,
    /// The name in the peer's certificate, with TLS.
    pub identity: Option<Arc<str>>,
}

/// Why a connection was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The handler asked for it.
    Local,
    /// The peer closed its side, and the handler then closed the connection.
    EndOfFile,
    /// Reading or writing failed with this error number; logged where the reference logs it.
    Failed(i32),
    /// The stream is not a sequence of JSON objects and arrays; logged.
    BadFraming,
    /// The connection that this process tried to open was refused, or the handshake of an accepted
    /// connection failed, with this error number. `opened` was never called.
    ConnectFailed(i32),
    /// The peer sent too much or read too little; logged.
    LimitReached,
    /// Its listener was removed.
    ListenerRemoved,
    /// The shard is shutting down.
    Shutdown,
}

/// The state machine that a shard runs. Each method may use `io` freely; none may block.
pub trait Handler: Send + 'static {
    /// A message of another thread to this shard.
    type Message: Send + 'static;

    /// A connection is open: accepted, adopted, or opened with [`Io::connect`]; with TLS, once the
    /// handshake is complete.
    fn opened(&mut self, now: Now, conn: ConnId, info: &ConnInfo, io: &mut Io);

    /// One JSON text (an object or array, not yet parsed) has arrived. A long text is in pieces,
    /// because joining them takes time.
    fn frame(&mut self, now: Now, conn: ConnId, frame: Pieces, io: &mut Io);

    /// Whether a text that begins like this is a request from a peer that passes on texts of its
    /// own clients. Such a text may nest [`corvid_json::WRAPPING_LEVELS`] deeper and be
    /// [`corvid_json::WRAPPING_BYTES`] longer than others. If it is still too long, the connection
    /// stays: the rest of the text is dropped as it arrives, and [`Handler::overlong`] is called at
    /// its end. The default treats no text that way.
    #[must_use]
    fn is_passed_on(begun: &[u8]) -> bool {
        let _ = begun;
        false
    }

    /// A text of [`Handler::is_passed_on`] was longer than `bytes_max`. `begun` is its beginning,
    /// at most [`BEGINNING_BYTES`].
    fn overlong(&mut self, now: Now, conn: ConnId, begun: Pieces, bytes_max: usize, io: &mut Io) {
        let _ = (now, conn, begun, bytes_max, io);
    }

    /// No further text will be delivered: the peer has closed its sending side, or has sent
    /// malformed bytes or an oversized text. The default sends the queued output and closes.
    fn end_of_input(&mut self, now: Now, conn: ConnId, io: &mut Io) {
        let _ = now;
        io.close_after_flush(conn);
    }

    /// The connection was closed.
    fn closed(&mut self, now: Now, conn: ConnId, reason: CloseReason, io: &mut Io);

    /// All output that the kernel did not accept at first has been sent.
    fn drained(&mut self, now: Now, conn: ConnId, io: &mut Io);

    /// A message of another thread has arrived.
    fn message(&mut self, now: Now, message: Self::Message, io: &mut Io);

    /// The number of bytes of this connection's delivered texts that the handler still holds. They
    /// count against [`Limits::unfinished_bytes_max`].
    fn held_bytes(&self, conn: ConnId) -> usize {
        let _ = conn;
        0
    }

    /// The timer that was set with [`Io::set_timer`] for this connection has expired.
    fn timer(&mut self, now: Now, conn: ConnId, io: &mut Io);

    /// The time that [`Handler::next_timeout`] returned has been reached.
    fn timeout(&mut self, now: Now, io: &mut Io) {
        let _ = (now, io);
    }

    /// When [`Handler::timeout`] should be called, monotonic ms.
    fn next_timeout(&self) -> Option<u64> {
        None
    }

    /// This number of bytes has been read from the connection or written to it. A large transfer
    /// takes several wake-ups, each with a call of its own.
    fn transferred(&mut self, now: Now, conn: ConnId, bytes: usize) {
        let _ = (now, conn, bytes);
    }

    /// The output of this wake-up has been written. [`Io::is_drained`] returns for which
    /// connections the kernel accepted all of it.
    fn flushed(&mut self, now: Now, io: &mut Io) {
        let _ = (now, io);
    }

    /// All events of one wake-up were handled: the time to send batches to other threads. Output
    /// queued here is still written in this wake-up. Called again after replies that came at once.
    fn batch_end(&mut self, now: Now, io: &mut Io) {
        let _ = (now, io);
    }
}
