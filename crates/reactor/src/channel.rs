//! One stream of a poll loop: its handshake, its readiness, and its unsent output.
//!
//! Shards and cluster members have one for each connection. Readiness is edge-triggered, so a
//! channel remembers an edge until a read has emptied the socket. Reading and writing are
//! independent here: the loop decides whether unsent output stops reading. A channel knows neither
//! texts nor messages.

use std::io::{self, Read};

use corvid_net::stream::Stream;
use mio::event::Event;

use crate::output::{Output, Progress};

/// The outcome of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// This many bytes.
    Bytes(usize),
    /// No more input for now.
    Nothing,
    /// The peer has closed the connection.
    End,
}

/// A stream, its readiness and its unsent output.
#[derive(Debug)]
pub struct Channel<S> {
    /// The stream.
    pub stream: Stream,
    /// Whether connecting and the TLS handshake are complete.
    pub is_open: bool,
    /// The kernel may have input: an edge was reported, and no read has emptied the socket since.
    pub may_read: bool,
    /// The peer has closed its sending side. Input must be read to its end, because no further edge
    /// comes.
    pub is_read_closed: bool,
    /// The peer has closed both sides, so nobody will read what is sent. A Unix socket reports this
    /// at once, TCP only after something was sent.
    pub is_hung_up: bool,
    /// Unsent output.
    pub output: Output<S>,
}

/// Whether the kernel may accept output after this event.
#[must_use]
pub fn may_write(event: &Event) -> bool {
    event.is_writable() || event.is_write_closed() || event.is_error()
}

impl<S: AsRef<[u8]>> Channel<S> {
    /// A channel for a stream; `is_open` says whether its handshake is complete.
    #[must_use]
    pub fn new(stream: Stream, is_open: bool) -> Channel<S> {
        Channel {
            stream,
            is_open,
            may_read: is_open,
            is_read_closed: false,
            is_hung_up: false,
            output: Output::default(),
        }
    }

    /// Records what an event says about input. Returns whether there may be some.
    pub fn record(&mut self, event: &Event) -> bool {
        self.is_read_closed |= event.is_read_closed() || event.is_error();
        self.is_hung_up |= event.is_read_closed() && event.is_write_closed();
        let may_read = event.is_readable() || event.is_read_closed() || event.is_error();
        self.may_read |= may_read;
        may_read
    }

    /// Continues the handshake. Returns whether it is complete.
    ///
    /// # Errors
    /// Connecting or the handshake has failed.
    pub fn finish_opening(&mut self) -> io::Result<bool> {
        self.is_open = self.stream.connect_result()?.is_some();
        // Bytes that arrived right after the handshake were read together with it, so no further
        // edge reports them.
        self.may_read |= self.is_open;
        Ok(self.is_open)
    }

    /// Reads once.
    ///
    /// # Errors
    /// The connection has failed.
    pub fn read(&mut self, room: &mut [u8]) -> io::Result<Received> {
        self.may_read = false;
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
                    return Ok(Received::Nothing);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes queued output, as [`Output::write_to`] does. Returns how many bytes have left, and
    /// how far the write got.
    ///
    /// # Errors
    /// The connection has failed.
    pub fn write(&mut self, limit: &mut usize) -> io::Result<(usize, Progress)> {
        let before = self.output.bytes();
        let progress = self.output.write_to(&mut self.stream, limit)?;
        Ok((before - self.output.bytes(), progress))
    }
}
