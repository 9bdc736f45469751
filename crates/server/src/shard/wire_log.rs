//! Logs the messages of sessions, and of the connections of backups to their sources, as
//! `jsonrpc|DBG`. Each function costs one atomic load while that level is off.

use corvid_json::Pieces;
use corvid_net::logging::{self, Level, Module};
use corvid_reactor::shard::{ConnId, Io};
use corvid_rpc::wire_log::{Direction, LoggedMessage};
use corvid_service::message::Piece;

/// Logs a message that has arrived.
#[inline]
pub(crate) fn received(io: &Io, conn: ConnId, frame: &Pieces) {
    if is_on() {
        let message = LoggedMessage::cut(Direction::Received, frame.first(), frame.len());
        log(io, conn, &message);
    }
}

/// Logs a message that is about to be sent.
#[inline]
pub(crate) fn sent(io: &Io, conn: ConnId, piece: &Piece) {
    if is_on() {
        match piece {
            Piece::Message(text) => sent_text(io, conn, text),
            Piece::Long(frame) | Piece::Update(frame) => {
                let body = frame.body.pieces().iter().map(|piece| &piece[..]);
                let pieces = std::iter::once(&frame.head[..]).chain(body);
                let pieces = pieces.chain(std::iter::once(frame.tail));
                log(io, conn, &LoggedMessage::of_pieces(Direction::Sent, pieces));
            }
        }
    }
}

/// Logs a message in one piece that is about to be sent.
#[inline]
pub(crate) fn sent_text(io: &Io, conn: ConnId, text: &[u8]) {
    if is_on() {
        log(io, conn, &LoggedMessage::new(Direction::Sent, text));
    }
}

#[inline]
fn is_on() -> bool {
    logging::is_shown(Module::Jsonrpc, Level::Debug)
}

#[cold]
fn log(io: &Io, conn: ConnId, message: &LoggedMessage<'_>) {
    let name = io.info(conn).map_or("", |info| &*info.name);
    logging::dbg(Module::Jsonrpc, format_args!("{name}: {message}"));
}
