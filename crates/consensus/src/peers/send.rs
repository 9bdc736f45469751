//! Turns messages into bytes, within the limits of the backlog.

use bytes::Bytes;
use corvid_log::cluster::Sid;
use corvid_rpc::Level;
use corvid_rpc::wire_log::Direction;

use super::backlog::{Report, Verdict};
use super::long_messages::{LONG_BYTES, Next, WINDOW_BYTES, is_urgent};
use super::{ConnectionNumber, Peers, PeersOutput};
use crate::limits::DIGESTED_BYTES_PER_MS;
use crate::message::PeerMessage;
use crate::wire::{self, Envelope};

impl Peers {
    /// Sends a message to a server. Without a connection, or while too much is unsent, the message
    /// is lost.
    pub fn send(&mut self, now_ms: u64, to: Sid, message: &PeerMessage) {
        let Some(number) = self.used(to) else {
            return;
        };
        if is_big(message) && !self.admits_big(number) {
            return;
        }
        let envelope = self.envelope(Some(to));
        let text = wire::encode_shared(&envelope, message);
        if text.len() > self.settings.message_bytes_max {
            // The peer would reset the connection and be sent the same message over the next one.
            // The limits of parts ([`crate::limits`]) rule out such a message, so this is a bug.
            let (method, bytes) = (wire::method_name(message), text.len());
            let text = format!(
                "{method} of {bytes} bytes exceeds the limit for messages between members, not sent"
            );
            return self.log(Level::Error, text);
        }
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        // Messages that are not urgent keep their order.
        let is_long = text.len() > LONG_BYTES;
        if is_long || !(connection.outbound.is_empty() || is_urgent(message)) {
            connection.outbound.push(text);
            return self.send_queued(now_ms, number);
        }
        self.write(number, text.into_bytes());
    }

    /// Writes queued messages, and parts of them, until so much is unsent that an urgent message
    /// would have to wait.
    pub(super) fn send_queued(&mut self, now_ms: u64, number: ConnectionNumber) {
        while let Some((to, next)) = self.take_queued(number) {
            let text = match next {
                Next::Whole(text) => text,
                Next::Part(part, whole_bytes) => {
                    if let Some(bytes) = whole_bytes {
                        self.excuse_receiver(now_ms, number, bytes);
                    }
                    wire::encode_part(&self.envelope(to), &part, whole_bytes.is_some()).into()
                }
            };
            self.write(number, text);
        }
    }

    /// All of a long message has left: its receiver is silent while it reads, so delay the probe.
    fn excuse_receiver(&mut self, now_ms: u64, number: ConnectionNumber, bytes: u64) {
        if let Some(connection) = self.connections.get_mut(&number) {
            let until_ms = now_ms + bytes / DIGESTED_BYTES_PER_MS;
            connection.session.probe().excuse_until(until_ms);
        }
    }

    fn take_queued(&mut self, number: ConnectionNumber) -> Option<(Option<Sid>, Next)> {
        let connection = self.connections.get_mut(&number)?;
        let is_free = connection.backlog.bytes() < WINDOW_BYTES;
        let next = is_free.then(|| connection.outbound.pop()).flatten();
        let queued = connection.outbound.bytes();
        connection.backlog.set_queued(queued);
        Some((connection.peer, next?))
    }

    pub(super) fn send_hello(&mut self, number: ConnectionNumber, to: Option<Sid>) {
        let envelope = self.envelope(to);
        let text = wire::encode_hello(&envelope, &self.settings.address);
        self.write(number, text.into());
    }

    fn envelope(&self, to: Option<Sid>) -> Envelope {
        Envelope {
            cluster: self.settings.cid,
            to,
            from: self.settings.sid,
        }
    }

    /// Whether a big message may be sent. Logs the first refusal.
    fn admits_big(&mut self, number: ConnectionNumber) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else {
            return false;
        };
        match connection.backlog.admits_big() {
            Ok(()) => true,
            Err(is_first) => {
                if is_first {
                    let bytes = connection.backlog.bytes() + connection.outbound.bytes();
                    let name = &connection.name;
                    let text = format!(
                        "{name}: {bytes} bytes are unsent, sending no entries until the backlog shrinks"
                    );
                    self.log(Level::Info, text);
                }
                false
            }
        }
    }

    /// Writes one message.
    pub(super) fn write(&mut self, number: ConnectionNumber, bytes: Bytes) {
        self.show_message(number, Direction::Sent, &bytes);
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.backlog.push(bytes.len());
            self.outputs.push_back(PeersOutput::Write { number, bytes });
        }
    }

    /// Reacts to a backlog: logs it, or disconnects a peer that is too slow.
    pub(super) fn handle_backlog(&mut self, now_ms: u64, number: ConnectionNumber, report: Report) {
        let limits = self.limits;
        let Some(connection) = self.connections.get(&number) else {
            return;
        };
        let name = &connection.name;
        let Report {
            verdict,
            messages,
            bytes,
        } = report;
        match verdict {
            Verdict::Long => {
                let text = format!(
                    "excessive sending backlog, jsonrpc: {name}, num of msgs: {messages}, backlog: {bytes}."
                );
                self.log(Level::Info, text);
            }
            Verdict::TooMany => {
                let problem = format!(
                    "sending backlog exceeded maximum number of messages ({messages} > {}), disconnecting, jsonrpc: {name}.",
                    limits.messages_max
                );
                self.drop_connection(now_ms, number, problem);
            }
            Verdict::TooLarge => {
                let problem = format!(
                    "sending backlog exceeded maximum size ({bytes} > {} bytes), disconnecting, jsonrpc: {name}.",
                    limits.bytes_max
                );
                self.drop_connection(now_ms, number, problem);
            }
        }
    }

    /// Closes a connection with a log line in the reference's words, which does not begin with the
    /// connection's name.
    fn drop_connection(&mut self, now_ms: u64, number: ConnectionNumber, text: String) {
        self.log(Level::Warn, text);
        self.close(now_ms, number);
    }
}

/// Whether a message carries parts of the database.
fn is_big(message: &PeerMessage) -> bool {
    match message {
        PeerMessage::Append { entries, .. } => !entries.is_empty(),
        PeerMessage::SnapshotChunk { .. } => true,
        _ => false,
    }
}
