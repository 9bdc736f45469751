//! One connection to another member: its stream and its unsent bytes.
//!
//! Reading and writing are independent: unsent output never stops the reading, or two members that send each other much would wait for each
//! other for ever. [`corvid_consensus::Peers`] bounds the output and cuts the input into messages.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};

use bytes::{Buf, Bytes};
use corvid_consensus::ConnectionNumber;
use corvid_net::stream::Stream;

/// Pieces per vectored write.
const SLICES_MAX: usize = 64;

/// The outcome of one read.
pub(super) enum Received {
    /// So many bytes.
    Bytes(usize),
    /// Nothing more for now.
    Nothing,
    /// The peer has closed the connection.
    End,
}

/// A connection.
pub(super) struct Link {
    /// Its number, by which [`corvid_consensus::Peers`] knows it; an accepted connection has one once it is open.
    pub(super) number: Option<ConnectionNumber>,
    /// The name of an accepted connection for the log.
    pub(super) name: String,
    /// Its stream.
    pub(super) stream: Stream,
    /// Whether connecting, and the handshake of TLS, are done.
    pub(super) is_open: bool,
    /// The kernel may have input.
    pub(super) may_read: bool,
    /// The peer has ended its side, so the input is read to its end.
    pub(super) is_read_closed: bool,
    /// When the unfinished handshake of an accepted connection is given up, monotonic ms. [`corvid_consensus::Peers`] limits dialled ones.
    pub(super) handshake_until_ms: Option<u64>,
    output: VecDeque<Bytes>,
    /// The kernel has refused output, and reports when it takes more.
    is_blocked: bool,
    /// The stream may hold bytes of its own that are not sent.
    is_unflushed: bool,
}

impl Link {
    /// A connection that this server opens.
    pub(super) fn dialled(number: ConnectionNumber, stream: Stream) -> Link {
        Link::new(Some(number), String::new(), stream, false)
    }

    /// A connection that another server has opened.
    pub(super) fn accepted(name: String, stream: Stream, handshake_until_ms: u64) -> Link {
        let is_open = !stream.needs_handshake();
        let mut link = Link::new(None, name, stream, is_open);
        link.handshake_until_ms = (!is_open).then_some(handshake_until_ms);
        link
    }

    fn new(number: Option<ConnectionNumber>, name: String, stream: Stream, is_open: bool) -> Link {
        Link {
            number,
            name,
            stream,
            is_open,
            may_read: is_open,
            is_read_closed: false,
            handshake_until_ms: None,
            output: VecDeque::new(),
            is_blocked: false,
            is_unflushed: false,
        }
    }

    /// Queues bytes.
    pub(super) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.output.push_back(bytes);
        }
    }

    /// The kernel takes output again.
    pub(super) fn unblock(&mut self) {
        self.is_blocked = false;
    }

    /// Whether there is output that the kernel may take.
    pub(super) fn may_write(&self) -> bool {
        self.is_open && !self.is_blocked && (!self.output.is_empty() || self.is_unflushed)
    }

    /// Reads once.
    ///
    /// # Errors
    /// The connection has failed.
    pub(super) fn read(&mut self, room: &mut [u8]) -> io::Result<Received> {
        loop {
            match self.stream.read(room) {
                Ok(0) => return Ok(Received::End),
                Ok(count) => {
                    // A short read has emptied the socket: the next edge reports further input.
                    self.may_read = count == room.len() || self.is_read_closed;
                    return Ok(Received::Bytes(count));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.may_read = false;
                    return Ok(Received::Nothing);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes until everything is sent or the kernel takes no more. Returns how many of the queued bytes have left.
    ///
    /// # Errors
    /// The connection has failed.
    pub(super) fn write(&mut self) -> io::Result<usize> {
        let mut total = 0;
        while !self.output.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&self.output) {
                *slice = IoSlice::new(piece);
                count += 1;
            }
            let outcome = match &slices[..count] {
                // Cheaper, see `Stream`.
                [piece] => self.stream.write(piece),
                pieces => self.stream.write_vectored(pieces),
            };
            match outcome {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.consume(written);
                    self.is_unflushed = true;
                    total += written;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return Ok(total);
                }
                Err(error) => return Err(error),
            }
        }
        match self.stream.flush() {
            Ok(()) => self.is_unflushed = false,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_blocked = true,
            Err(error) => return Err(error),
        }
        Ok(total)
    }

    fn consume(&mut self, mut written: usize) {
        while let Some(first) = self.output.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.output.pop_front();
        }
    }
}
