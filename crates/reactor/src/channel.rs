//! One stream of a poll loop: its handshake, what the kernel may have for it, and its unsent output.
//!
//! Shards and the members of clusters have one for each connection. Readiness is edge-triggered, so
//! a channel remembers an edge until a read has emptied the socket. Reading and writing are
//! independent here: whether unsent output stops the reading is the loop's rule. It knows no text
//! and no message.

use std::io::{self, Read};

use corvid_net::stream::Stream;
use mio::event::Event;

use crate::output::{Output, Progress};

/// The outcome of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// So many bytes.
    Bytes(usize),
    /// Nothing more for now.
    Nothing,
    /// The peer has closed the connection.
    End,
}

/// See the module.
#[derive(Debug)]
pub struct Channel<S> {
    /// The stream.
    pub stream: Stream,
    /// Whether connecting, and the handshake of TLS, are done.
    pub is_open: bool,
    /// The kernel may have input: an edge was reported, and no read has emptied the socket since.
    pub may_read: bool,
    /// The peer has closed its sending side: input must be read to its end, because no further edge comes.
    pub is_read_closed: bool,
    /// The peer has closed both sides, so nobody will read what is sent. A Unix socket tells this at once, TCP when something was sent.
    pub is_hung_up: bool,
    /// Unsent output.
    pub output: Output<S>,
}

/// Whether the kernel may take output after this event.
#[must_use]
pub fn may_write(event: &Event) -> bool {
    event.is_writable() || event.is_write_closed() || event.is_error()
}

impl<S: AsRef<[u8]>> Channel<S> {
    /// A stream; `is_open` says whether its handshake is complete.
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

    /// Records what an event says of the input. Returns whether there may be some.
    pub fn record(&mut self, event: &Event) -> bool {
        self.is_read_closed |= event.is_read_closed() || event.is_error();
        self.is_hung_up |= event.is_read_closed() && event.is_write_closed();
        let may_read = event.is_readable() || event.is_read_closed() || event.is_error();
        self.may_read |= may_read;
        may_read
    }

    /// Goes on with the handshake. True when it is complete.
    ///
    /// # Errors
    /// Connecting or the handshake has failed.
    pub fn finish_opening(&mut self) -> io::Result<bool> {
        self.is_open = self.stream.connect_result()?.is_some();
        // Bytes that came right after the handshake were read with it, so no further edge reports them.
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

    /// As [`Output::write_to`] this stream. Returns how many bytes have left, and how far the write
    /// got.
    ///
    /// # Errors
    /// The connection has failed.
    pub fn write(&mut self, limit: &mut usize) -> io::Result<(usize, Progress)> {
        let before = self.output.bytes();
        let progress = self.output.write_to(&mut self.stream, limit)?;
        Ok((before - self.output.bytes(), progress))
    }
}
