//! One client connection: sends prepared requests, at most so many at a time, and reads replies.
//!
//! Invariant: `sent - received` requests are in flight and never more than `depth`. Driven by readiness alone; it never
//! waits. Knows nothing of workloads.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::Instant;

use corvid_json::Framer;
use corvid_json::frame::Framed;
use memchr::memmem;

use crate::error::Error;
use crate::requests::{self, Requests};
use crate::stream::Stream;

/// What a connection does with what it receives.
#[derive(Debug)]
enum Role {
    /// Takes replies one by one.
    Writer {
        framer: Framer,
        /// The beginning of a reply that is not complete.
        partial: Vec<u8>,
        /// Whether it is not done before an update with the marker has come.
        awaits_marker: bool,
    },
    /// Looks for the marker only, so that watching costs the generator as little as reading does.
    Watcher {
        /// The last bytes of the earlier reads, in case the marker lies across two.
        tail: Vec<u8>,
        has_seen_marker: bool,
    },
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    role: Role,
    requests: Requests,
    depth: usize,
    sent: usize,
    received: usize,
    /// Bytes of the current request that the socket has taken.
    written: usize,
    /// Answers to probes of the server, still to be written.
    echoes: Vec<u8>,
    /// When the requests in flight were sent.
    times: VecDeque<Instant>,
    /// Whether the socket took less than it was given.
    is_blocked: bool,
}

impl Connection {
    /// A connection that will send `requests`.
    pub(crate) fn writer(stream: Stream, requests: Requests, depth: usize) -> Connection {
        let role = Role::Writer {
            framer: Framer::new(),
            partial: Vec::new(),
            awaits_marker: false,
        };
        Connection::new(stream, role, requests, depth)
    }

    /// Makes a watcher of a connection whose monitor request has been answered.
    pub(crate) fn watch(self) -> Connection {
        let role = Role::Watcher {
            tail: Vec::new(),
            has_seen_marker: false,
        };
        Connection::new(self.stream, role, Requests::default(), 0)
    }

    /// Gives it other requests; those it had are answered. What has come of an update so far is kept.
    pub(crate) fn assign(self, requests: Requests, depth: usize) -> Connection {
        let Connection { stream, role, .. } = self;
        match role {
            Role::Writer { .. } => Connection::new(stream, role, requests, depth),
            Role::Watcher { .. } => Connection::writer(stream, requests, depth),
        }
    }

    /// Lets a writer be done only when an update with the marker has come.
    pub(crate) fn awaiting_marker(mut self) -> Connection {
        if let Role::Writer { awaits_marker, .. } = &mut self.role {
            *awaits_marker = true;
        }
        self
    }

    fn new(stream: Stream, role: Role, requests: Requests, depth: usize) -> Connection {
        Connection {
            stream,
            role,
            requests,
            depth,
            sent: 0,
            received: 0,
            written: 0,
            echoes: Vec::new(),
            times: VecDeque::new(),
            is_blocked: false,
        }
    }

    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// Whether every request is answered, or the marker seen.
    pub(crate) fn is_done(&self) -> bool {
        match &self.role {
            Role::Writer { awaits_marker, .. } => {
                self.received == self.requests.len() && !awaits_marker
            }
            Role::Watcher {
                has_seen_marker, ..
            } => *has_seen_marker,
        }
    }

    /// Sends what may be sent.
    pub(crate) fn send(&mut self) -> Result<(), Error> {
        self.is_blocked = false;
        while !self.echoes.is_empty() && self.written == 0 {
            match self.stream.write(&self.echoes) {
                Ok(count) => drop(self.echoes.drain(..count)),
                Err(error) => return self.blocked(error),
            }
        }
        while self.sent < self.requests.len() && self.sent - self.received < self.depth {
            if self.written == 0 {
                self.times.push_back(Instant::now());
            }
            let text = self.requests.get(self.sent);
            match self.stream.write(&text[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) => {
                    if self.written == 0 {
                        self.times.pop_back();
                    }
                    return self.blocked(error);
                }
            }
            if self.written == text.len() {
                self.sent += 1;
                self.written = 0;
            }
        }
        Ok(())
    }

    fn blocked(&mut self, error: io::Error) -> Result<(), Error> {
        match error.kind() {
            io::ErrorKind::WouldBlock => {
                self.is_blocked = true;
                Ok(())
            }
            io::ErrorKind::Interrupted => self.send(),
            _ => Err(error.into()),
        }
    }

    /// Reads all there is. `replied` is given each reply and the time its request took, in nanoseconds.
    pub(crate) fn receive(
        &mut self,
        room: &mut [u8],
        replied: &mut impl FnMut(&[u8], u64),
    ) -> Result<(), Error> {
        loop {
            match self.stream.read(room) {
                Ok(0) => return Err(Error::Closed),
                Ok(count) => {
                    self.take(&room[..count], replied)?;
                    // A stream that gave less than there was room for has no more for now.
                    if count < room.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn take(&mut self, bytes: &[u8], replied: &mut impl FnMut(&[u8], u64)) -> Result<(), Error> {
        match &mut self.role {
            Role::Watcher {
                tail,
                has_seen_marker,
            } => {
                *has_seen_marker |= see_marker(tail, bytes);
                Ok(())
            }
            Role::Writer {
                framer,
                partial,
                awaits_marker,
            } => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    let (start, end) = match framer.advance(rest)? {
                        Framed::Complete { start, end } => (start, end),
                        Framed::Partial { start } => {
                            partial.extend_from_slice(&rest[start..]);
                            break;
                        }
                    };
                    let text = if partial.is_empty() {
                        &rest[start..end]
                    } else {
                        partial.extend_from_slice(&rest[start..end]);
                        partial.as_slice()
                    };
                    // A member of that name in a row would have its quotes escaped only inside a string.
                    if memmem::find(text, br#""method":"#).is_some() {
                        if memmem::find(text, br#""echo""#).is_some() {
                            self.echoes
                                .extend_from_slice(br#"{"id":"echo","result":[],"error":null}"#);
                        }
                        if *awaits_marker && memmem::find(text, requests::MARKER).is_some() {
                            *awaits_marker = false;
                        }
                    } else {
                        if requests::is_error(text) {
                            return Err(Error::Refused(String::from_utf8_lossy(text).into_owned()));
                        }
                        let took = self.times.pop_front().map(|sent| sent.elapsed().as_nanos());
                        self.received += 1;
                        replied(
                            text,
                            took.and_then(|took| u64::try_from(took).ok()).unwrap_or(0),
                        );
                    }
                    partial.clear();
                    rest = &rest[end..];
                }
                Ok(())
            }
        }
    }
}

/// Looks for the marker in `bytes` and across the border to what came before, of which `tail` keeps the end.
pub(crate) fn see_marker(tail: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let keep = requests::MARKER.len() - 1;
    if memmem::find(bytes, requests::MARKER).is_some() {
        return true;
    }
    tail.extend_from_slice(&bytes[..bytes.len().min(keep)]);
    let found = memmem::find(tail, requests::MARKER).is_some();
    if bytes.len() > keep {
        tail.clear();
        tail.extend_from_slice(&bytes[bytes.len() - keep..]);
    } else if tail.len() > keep {
        tail.drain(..tail.len() - keep);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_found_however_it_is_cut() {
        let stream = [b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", requests::MARKER, b"yyy"].concat();
        for size in 1..stream.len() {
            let mut tail = Vec::new();
            assert!(
                stream
                    .chunks(size)
                    .any(|chunk| see_marker(&mut tail, chunk)),
                "chunks of {size}"
            );
        }
        let mut tail = Vec::new();
        assert!(
            !b"the-last-ro the-last-ro w"
                .chunks(3)
                .any(|chunk| see_marker(&mut tail, chunk))
        );
    }
}
