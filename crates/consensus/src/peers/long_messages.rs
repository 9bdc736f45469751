//! Long messages of one connection, cut into parts so that short ones can pass between them.
//!
//! ```text
//! sender:    long message ---> queue ---> part, part, last part   as fast as the socket takes them
//!            heartbeat, vote ------------------------> at once
//! receiver:  part, part, last part ---> the text, read as if it had arrived in one piece
//! ```
//!
//! An entry of one gigabyte is in transit for seconds. If heartbeats had to wait for it, its
//! receiver would take the leader for dead. Invariant: messages that are not urgent keep their
//! order, so while a long one is queued, later ones are queued after it.

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_json::Pieces;

use crate::message::PeerMessage;
use crate::wire::MessageText;

/// A message longer than this is sent in parts, bytes.
pub const LONG_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of one part.
pub const PART_BYTES: usize = 256 * 1024;
/// Further parts are written while fewer bytes than this are unsent on a connection. This bounds
/// the bytes ahead of a heartbeat.
pub(super) const WINDOW_BYTES: u64 = 1024 * 1024;

/// Whether a message may overtake others.
pub(super) fn is_urgent(message: &PeerMessage) -> bool {
    matches!(
        message,
        PeerMessage::Heartbeat { .. }
            | PeerMessage::HeartbeatReply { .. }
            | PeerMessage::Vote { .. }
            | PeerMessage::VoteReply { .. }
            | PeerMessage::AppendReply { .. }
    )
}

/// Queued messages of one connection, in order.
#[derive(Debug, Default)]
pub(super) struct OutboundQueue {
    texts: VecDeque<MessageText>,
    /// Bytes of the first message that have left in parts.
    begun_bytes: u64,
    bytes: u64,
}

/// The bytes to write next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A short message.
    Whole(Bytes),
    /// A part of a long message; the last part comes with the length of the whole, bytes.
    Part(Bytes, Option<u64>),
}

impl OutboundQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Bytes of queued messages that have not left.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn push(&mut self, text: MessageText) {
        self.bytes += text.len() as u64;
        self.texts.push_back(text);
    }

    pub(super) fn pop(&mut self) -> Option<Next> {
        assert!(
            (self.bytes == 0) == self.texts.is_empty(),
            "{} messages of {} bytes are queued",
            self.texts.len(),
            self.bytes
        );
        let first = self.texts.front_mut()?;
        if self.begun_bytes == 0 && first.len() <= LONG_BYTES {
            self.bytes -= first.len() as u64;
            let text = self.texts.pop_front()?;
            return Some(Next::Whole(text.into_bytes()));
        }
        let part = first.take(PART_BYTES);
        self.bytes -= part.len() as u64;
        self.begun_bytes += part.len() as u64;
        let is_last = first.is_empty();
        let whole_bytes = is_last.then(|| std::mem::take(&mut self.begun_bytes));
        if is_last {
            self.texts.pop_front();
        }
        Some(Next::Part(part, whole_bytes))
    }
}

/// The parts of a message that has begun to arrive.
#[derive(Debug, Default)]
pub(super) struct InboundParts(Pieces);

impl InboundParts {
    /// Number of bytes so far.
    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Adds a part. Returns the message with the last one.
    pub(super) fn add(&mut self, part: &[u8], is_last: bool) -> Option<Bytes> {
        self.0.extend(part);
        is_last.then(|| std::mem::take(&mut self.0).into_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_leave_in_order_and_long_ones_in_parts() {
        let text = |length: usize, byte: u8| Bytes::from(vec![byte; length]);
        let messages = [
            text(LONG_BYTES + 1, b'a'),
            text(10, b'b'),
            text(LONG_BYTES, b'c'),
            text(3 * LONG_BYTES, b'd'),
        ];
        let mut queue = OutboundQueue::default();
        messages
            .iter()
            .for_each(|text| queue.push(text.clone().into()));
        let mut parts = InboundParts::default();
        let mut arrived = Vec::new();
        while let Some(next) = queue.pop() {
            match next {
                Next::Whole(text) => {
                    assert_eq!(parts.bytes(), 0, "no message comes between parts");
                    arrived.push(text);
                }
                Next::Part(part, whole_bytes) => {
                    assert!(part.len() <= PART_BYTES);
                    let text = parts.add(&part, whole_bytes.is_some());
                    let length = text.as_ref().map(|text| text.len() as u64);
                    assert_eq!(whole_bytes, length);
                    arrived.extend(text);
                }
            }
        }
        assert!(queue.is_empty() && queue.bytes() == 0);
        assert!(arrived == messages);
    }
}
