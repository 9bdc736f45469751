//! One connection to another member.
//!
//! Reading and writing are independent. Unsent output never stops reading; otherwise two members
//! that send each other much would deadlock. [`corvid_consensus::Peers`] bounds the output and
//! splits the input into messages.

use std::io;

use bytes::Bytes;
use corvid_consensus::ConnectionNumber;
use corvid_net::stream::Stream;
use corvid_reactor::channel::{self, Channel};
use corvid_reactor::output::Progress;
use mio::event::Event;

/// A connection to another member.
pub(super) struct Link {
    /// The number by which [`corvid_consensus::Peers`] knows the connection. An accepted connection
    /// gets one once it is open.
    pub(super) number: Option<ConnectionNumber>,
    /// The name of an accepted connection, for the log.
    pub(super) name: String,
    pub(super) channel: Channel<Bytes>,
    /// When the unfinished handshake of an accepted connection times out, monotonic ms.
    /// [`corvid_consensus::Peers`] times out dialled connections.
    pub(super) handshake_until_ms: Option<u64>,
    /// How far the last write got. Even with an empty output queue, a stream that is not drained
    /// may hold bytes.
    progress: Progress,
}

impl Link {
    /// A connection that this server opens.
    pub(super) fn dialled(number: ConnectionNumber, stream: Stream) -> Link {
        Link::new(Some(number), String::new(), Channel::new(stream, false))
    }

    /// A connection that another server has opened.
    pub(super) fn accepted(name: String, stream: Stream, handshake_until_ms: u64) -> Link {
        let is_open = !stream.needs_handshake();
        let mut link = Link::new(None, name, Channel::new(stream, is_open));
        link.handshake_until_ms = (!is_open).then_some(handshake_until_ms);
        link
    }

    fn new(number: Option<ConnectionNumber>, name: String, channel: Channel<Bytes>) -> Link {
        Link {
            number,
            name,
            channel,
            handshake_until_ms: None,
            progress: Progress::Drained,
        }
    }

    /// Records an event of an open connection.
    pub(super) fn record(&mut self, event: &Event) {
        self.channel.record(event);
        if channel::may_write(event) && self.progress == Progress::Blocked {
            self.progress = Progress::Paused;
        }
    }

    /// Whether there is output that the kernel may accept.
    pub(super) fn may_write(&self) -> bool {
        self.channel.is_open
            && match self.progress {
                Progress::Drained => !self.channel.output.is_empty(),
                Progress::Paused => true,
                Progress::Blocked => false,
            }
    }

    /// Writes until everything is sent or the kernel accepts no more. Returns the number of queued
    /// bytes that have left.
    ///
    /// # Errors
    /// The connection has failed.
    pub(super) fn write(&mut self) -> io::Result<usize> {
        let (written, progress) = self.channel.write(&mut { usize::MAX })?;
        self.progress = progress;
        Ok(written)
    }
}
