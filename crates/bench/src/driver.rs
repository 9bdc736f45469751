//! The load generator: one thread that serves all connections when they are ready.
//!
//! It must be cheap, because it shares two cores with the server under test. A request costs one
//! read, one write and a share of an `epoll_wait`.

use std::io;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::{Events, Interest, Poll, Token};

use crate::connection::Connection;
use crate::error::Error;
use crate::stream::{Address, REPLY_TIMEOUT_S, Stream};

/// The maximum number of bytes of one read.
const READ_BYTES: usize = 256 * 1024;
/// The largest latency that can be recorded, in ns. Longer ones are recorded as this one.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// All connections to one server.
pub(crate) struct Driver {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    room: Box<[u8]>,
}

/// Returns an empty histogram for latencies in nanoseconds, with a precision of three digits.
pub(crate) fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("the bounds are constants")
}

impl Driver {
    pub(crate) fn new() -> Result<Driver, Error> {
        Ok(Driver {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            connections: Vec::new(),
            room: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    /// Connects to `address`. [`Driver::add`] must follow.
    pub(crate) fn connect(&mut self, address: &Address) -> Result<Stream, Error> {
        let mut stream = address.connect()?;
        let token = Token(self.connections.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll
            .registry()
            .register(&mut stream, token, interest)?;
        Ok(stream)
    }

    /// Adds the connection that was opened by the last call of [`Driver::connect`], and returns its
    /// number.
    pub(crate) fn add(&mut self, connection: Connection) -> usize {
        self.connections.push(connection);
        self.connections.len() - 1
    }

    /// Returns the number of connections.
    pub(crate) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Replaces the role of a connection.
    pub(crate) fn change(
        &mut self,
        number: usize,
        change: impl FnOnce(Connection) -> Connection,
    ) -> Result<(), Error> {
        let connection = self.connections.remove(number);
        let mut connection = change(connection);
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll
            .registry()
            .reregister(connection.stream(), Token(number), interest)?;
        self.connections.insert(number, connection);
        Ok(())
    }

    /// Serves all connections until those for which `awaited` returns true are done. `replied` gets
    /// the number of the connection, the reply and its latency in ns. `tick` is called from time to
    /// time with the number of replies so far.
    pub(crate) fn run(
        &mut self,
        awaited: impl Fn(usize) -> bool,
        mut replied: impl FnMut(usize, &[u8], u64),
        mut tick: impl FnMut(u64),
    ) -> Result<(), Error> {
        let mut left = 0;
        for (number, connection) in self.connections.iter_mut().enumerate() {
            if !connection.is_done() {
                connection.send()?;
                left += usize::from(awaited(number));
            }
        }
        let (mut replies, mut ticked) = (0, Instant::now());
        while left > 0 {
            let timeout = Some(Duration::from_secs(REPLY_TIMEOUT_S));
            match self.poll.poll(&mut self.events, timeout) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            if self.events.is_empty() {
                return Err(Error::Silent(REPLY_TIMEOUT_S));
            }
            for event in &self.events {
                let Token(number) = event.token();
                let Some(connection) = self.connections.get_mut(number) else {
                    continue;
                };
                let was_done = connection.is_done();
                if event.is_readable() {
                    connection.receive(&mut self.room, &mut |reply, nanoseconds| {
                        replies += 1;
                        replied(number, reply, nanoseconds);
                    })?;
                }
                connection.send()?;
                if connection.is_done() && !was_done && awaited(number) {
                    left -= 1;
                }
            }
            if ticked.elapsed() > Duration::from_millis(100) {
                tick(replies);
                ticked = Instant::now();
            }
        }
        Ok(())
    }
}
