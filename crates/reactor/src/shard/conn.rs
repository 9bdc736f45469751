//! One connection of a shard: its channel, and the texts that have arrived.
//!
//! Holds the state; `run` holds the rules of the loop.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use corvid_json::frame::{foreign_protocol, unfinishable};
use corvid_json::{Assembler, DEPTH_MAX, Framer, PEER_DEPTH_MAX, Pieces, Reader, WRAPPING_BYTES};

use super::accept::ConnGuard;
use super::limits::Charge;
use super::timers::Timer;
use super::unfinished::Turn;
use super::{BEGINNING_BYTES, CloseReason, ConnId, ConnInfo};
use crate::channel::{Channel, Received};
use crate::output::Progress;
use crate::segment::Segment;
use corvid_net::stream::Stream;

/// An incomplete text is checked for faults up to this length, bytes.
const PARTIAL_CHECKED_BYTES_MAX: usize = 64 * 1024;

/// How the input of a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InputEnd {
    EndOfFile,
    Failed(i32),
    BadFraming {
        text: String,
        /// The protocol that the stream seems to speak instead of JSON.
        protocol: Option<&'static str>,
    },
    TooLong,
}

/// When a connection that takes no more input closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    /// Once all output is sent, however long the peer takes.
    Written,
    /// Once all output is sent or the peer accepts no more of it.
    WrittenOrBlocked,
}

/// A text that has arrived.
#[derive(Debug)]
pub(super) enum Frame {
    Whole(Pieces),
    /// The beginning of an oversized text.
    Overlong(Pieces),
}

impl Frame {
    fn len(&self) -> usize {
        let (Frame::Whole(pieces) | Frame::Overlong(pieces)) = self;
        pieces.len()
    }
}

/// The function [`Handler::is_passed_on`](super::Handler::is_passed_on).
pub(super) type IsPassedOn = fn(&[u8]) -> bool;

pub(super) struct Conn {
    pub(super) id: ConnId,
    pub(super) info: ConnInfo,
    pub(super) channel: Channel<Segment>,
    /// The handler wants no texts for now.
    pub(super) is_paused: bool,
    /// A write left bytes unsent: nothing is read until they are sent.
    pub(super) is_blocked: bool,
    /// When the connection, which takes no more input, closes; `None`: it stays open.
    pub(super) finish: Option<Finish>,
    /// The reason, if the connection is to be closed at the end of this wake-up.
    pub(super) closing: Option<CloseReason>,
    /// Whether the connection is queued to be served.
    pub(super) is_scheduled: bool,
    /// Whether the connection is queued for writing.
    pub(super) is_dirty: bool,
    /// Whether the poll also reports writability.
    pub(super) wants_writable: bool,
    /// When bytes were last received (or unsent output shrank), monotonic ms.
    pub(super) received_ms: u64,
    /// Bytes of the text protocol received since the connection was opened.
    pub(super) received_bytes: u64,
    /// Bytes sent since then.
    pub(super) sent_bytes: u64,
    pub(super) timer: Timer,
    /// Counts this connection until dropped.
    pub(super) guard: Option<ConnGuard>,
    /// Texts that are complete but not delivered.
    pub(super) frames: VecDeque<Frame>,
    pub(super) input_end: Option<InputEnd>,
    /// The end of input was reported to the handler, which may close later.
    pub(super) is_end_reported: bool,
    assembler: Assembler,
    /// The incomplete text is oversized: only its beginning is kept.
    is_overlong: bool,
    /// The charge for the incomplete text, and for earlier texts until they are handled.
    charge: Charge,
    /// The peer is trusted: its bytes are not charged.
    is_trusted: bool,
    /// The length of the incomplete text when it was last checked.
    checked: usize,
}

impl Conn {
    pub(super) fn new(
        id: ConnId,
        info: ConnInfo,
        stream: Stream,
        is_open: bool,
        now_ms: u64,
        charge: Charge,
    ) -> Conn {
        Conn {
            id,
            info,
            channel: Channel::new(stream, is_open),
            is_paused: false,
            is_blocked: false,
            finish: None,
            closing: None,
            is_scheduled: false,
            is_dirty: false,
            wants_writable: false,
            received_ms: now_ms,
            received_bytes: 0,
            sent_bytes: 0,
            timer: Timer::default(),
            guard: None,
            frames: VecDeque::new(),
            input_end: None,
            is_end_reported: false,
            assembler: Assembler::new(Framer::with_depth_max(PEER_DEPTH_MAX)),
            is_overlong: false,
            charge,
            is_trusted: false,
            checked: 0,
        }
    }

    /// Whether texts may be delivered now.
    pub(super) fn is_reading(&self) -> bool {
        self.channel.is_open
            && !self.is_paused
            && !self.is_blocked
            && self.finish.is_none()
            && self.closing.is_none()
    }

    /// Reads once and cuts texts. Returns the number of bytes received; zero means that there is no
    /// more input for now.
    pub(super) fn read(&mut self, scratch: &mut [u8], is_passed_on: IsPassedOn) -> usize {
        let received = match self.channel.read(scratch) {
            Ok(Received::Bytes(received)) => received,
            Ok(Received::Nothing) => 0,
            Ok(Received::End) => {
                self.input_end = Some(InputEnd::EndOfFile);
                0
            }
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(libc::EIO);
                self.input_end = Some(InputEnd::Failed(code));
                0
            }
        };
        let is_first = self.received_bytes == 0;
        self.received_bytes += received as u64;
        self.charge.arrive(received);
        if let Err(mut end) = self.cut(&scratch[..received], is_passed_on) {
            if let InputEnd::BadFraming { protocol, .. } = &mut end
                && is_first
            {
                *protocol = foreign_protocol(&scratch[..received]);
            }
            self.input_end = Some(end);
        }
        received
    }

    /// Removes the limits on texts. Must be called before anything is received.
    pub(super) fn trust(&mut self) {
        self.is_trusted = true;
        self.charge = Charge::new(&Arc::default(), self.charge.owner());
    }

    /// Whether [`Conn::update_charge`] might lower the charge.
    pub(super) fn is_charged(&self) -> bool {
        self.charge.bytes() > 0
    }

    /// Charges the incomplete text, the undelivered texts, and the bytes of earlier texts that the
    /// handler still holds. Returns true if the charge has grown.
    pub(super) fn update_charge(&mut self, now_ms: u64, held_bytes: usize) -> bool {
        if self.closing.is_some() {
            return false;
        }
        let before = self.charge.bytes();
        let waiting: usize = self.frames.iter().map(Frame::len).sum();
        let begun_bytes = self.assembler.begun().len();
        let is_clients_turn = begun_bytes > 0 && !self.is_paused && !self.is_blocked;
        let turn = match is_clients_turn {
            true => Turn::Client,
            false => Turn::Server,
        };
        let bytes = begun_bytes + waiting + held_bytes;
        self.charge.set(now_ms, bytes, turn);
        !self.is_trusted && self.charge.bytes() > before
    }

    /// Charges what has been read so far in this turn. The handler holds the earlier texts, so
    /// their charge is not lowered here. Returns true if the charge has grown.
    pub(super) fn charge_partial(&mut self, now_ms: u64) -> bool {
        let before = self.charge.bytes();
        let begun_bytes = self.assembler.begun().len();
        if begun_bytes > before {
            self.charge.set(now_ms, begun_bytes, Turn::Client);
        }
        !self.is_trusted && self.charge.bytes() > before
    }

    /// Frees the incomplete text of a connection that is being closed.
    pub(super) fn drop_unfinished(&mut self) {
        self.assembler.take();
        self.charge.set(self.received_ms, 0, Turn::Server);
    }

    fn cut(&mut self, mut input: &[u8], is_passed_on: IsPassedOn) -> Result<(), InputEnd> {
        while !input.is_empty() {
            let part = self.assembler.part(&mut input);
            let part = part.map_err(|error| bad_framing(&error))?;
            self.add(part.bytes, is_passed_on)?;
            self.check_depth(is_passed_on)?;
            if !part.is_last {
                return self.check_partial();
            }
            let text = self.assembler.take();
            self.checked = 0;
            let is_overlong = std::mem::take(&mut self.is_overlong);
            self.frames.push_back(match is_overlong {
                true => Frame::Overlong(text),
                false => Frame::Whole(text),
            });
        }
        Ok(())
    }

    /// Adds the next part of a text.
    fn add(&mut self, part: &[u8], is_passed_on: IsPassedOn) -> Result<(), InputEnd> {
        if self.is_overlong {
            return Ok(());
        }
        let bytes = self.assembler.begun().len() + part.len();
        if !self.charge.forbids(bytes) {
            self.assembler.keep(part);
            return Ok(());
        }
        let mut begun = self.beginning().to_vec();
        let missing = BEGINNING_BYTES - begun.len();
        begun.extend_from_slice(&part[..part.len().min(missing)]);
        if !is_passed_on(&begun) {
            return Err(InputEnd::TooLong);
        }
        if self.charge.forbids(bytes - WRAPPING_BYTES.min(bytes)) {
            // The peer would send the text again over its next connection, so the connection stays.
            // The bytes kept so far are freed now, and nothing more of the text is kept.
            self.is_overlong = true;
            self.assembler.take();
            self.assembler.keep(&begun);
        } else {
            self.assembler.keep(part);
        }
        Ok(())
    }

    /// The beginning of the incomplete text, at most [`BEGINNING_BYTES`].
    fn beginning(&self) -> &[u8] {
        let first = self.assembler.begun().first();
        &first[..first.len().min(BEGINNING_BYTES)]
    }

    /// Rejects a text that nests deeper than a client's may.
    fn check_depth(&self, is_passed_on: IsPassedOn) -> Result<(), InputEnd> {
        if !self.assembler.is_deep() || is_passed_on(self.beginning()) {
            return Ok(());
        }
        // Reports the fault that a shallower framer would have found, in its words.
        let text = self.assembler.begun().clone().into_bytes();
        match Reader::new(&text).skip() {
            Err(error) => Err(bad_framing(&error)),
            Ok(_) => Ok(()),
        }
    }

    /// Finds bad bytes before their text ends, which may be never. Checks again only after the text
    /// has grown by a thousandth, which keeps the cost below that of the reads. Long texts are
    /// checked when they are complete.
    fn check_partial(&mut self) -> Result<(), InputEnd> {
        let length = self.assembler.begun().len();
        if length > PARTIAL_CHECKED_BYTES_MAX || length < self.checked + self.checked / 1024 {
            return Ok(());
        }
        self.checked = length;
        let depth_max = match self.assembler.is_deep() {
            true => PEER_DEPTH_MAX,
            false => DEPTH_MAX,
        };
        let begun = self.assembler.begun().first();
        match unfinishable(begun, depth_max) {
            Some(error) => Err(bad_framing(&error)),
            None => Ok(()),
        }
    }

    /// Writes queued output. A write counts as activity of the peer only if earlier output was
    /// unsent.
    pub(super) fn write(&mut self, now_ms: u64, limit: &mut usize) -> io::Result<Progress> {
        let (sent, progress) = self.channel.write(limit)?;
        self.sent_bytes += sent as u64;
        if self.is_blocked && (sent > 0 || progress == Progress::Drained) {
            self.received_ms = now_ms;
        }
        Ok(progress)
    }
}

fn bad_framing(error: &corvid_json::Error) -> InputEnd {
    InputEnd::BadFraming {
        text: error.to_string(),
        protocol: None,
    }
}
