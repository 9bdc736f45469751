//! One client connection. It sends prepared requests, limits the number of requests in flight, and
//! reads replies.
//!
//! Invariant: `sent - received` requests are in flight, at most `depth`. Readiness events drive the
//! connection; it never blocks. It does not depend on workloads.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::Instant;

use corvid_json::Assembler;
use memchr::memmem;

use crate::error::Error;
use crate::requests::{self, Requests};
use crate::stream::Stream;

/// How a connection handles received bytes.
#[derive(Debug)]
enum Role {
    /// Counts replies.
    Writer {
        assembler: Assembler,
        /// Whether the connection is done only when it has received an update with the marker.
        awaits_marker: bool,
    },
    /// Only searches for the marker, so that a watcher costs the generator little more than
    /// reading.
    Watcher {
        /// The last bytes of earlier reads, because the marker may be split across two reads.
        tail: Vec<u8>,
        has_seen_marker: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    role: Role,
    requests: Requests,
    depth: usize,
    sent: usize,
    received: usize,
    /// The number of bytes of the current request that have been written.
    written: usize,
    /// Replies to inactivity probes of the server that have not been written yet.
    echoes: Vec<u8>,
    /// The times at which the requests in flight were sent.
    times: VecDeque<Instant>,
    /// Whether the socket's buffer is full.
    is_blocked: bool,
}

impl Connection {
    /// Makes a connection that will send `requests`.
    pub(crate) fn writer(stream: Stream, requests: Requests, depth: usize) -> Connection {
        let role = Role::Writer {
            assembler: Assembler::default(),
            awaits_marker: false,
        };
        Connection::new(stream, role, requests, depth)
    }

    /// Turns a connection whose monitor request has been answered into a watcher.
    pub(crate) fn watch(self) -> Connection {
        let role = Role::Watcher {
            tail: Vec::new(),
            has_seen_marker: false,
        };
        Connection::new(self.stream, role, Requests::default(), 0)
    }

    /// Replaces the requests. All earlier ones must have been answered. The received part of an
    /// update is kept.
    pub(crate) fn assign(self, requests: Requests, depth: usize) -> Connection {
        let Connection { stream, role, .. } = self;
        match role {
            Role::Writer { .. } => Connection::new(stream, role, requests, depth),
            Role::Watcher { .. } => Connection::writer(stream, requests, depth),
        }
    }

    /// Makes a writer that is done only when it has received an update with the marker.
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

    /// Whether every request is answered, or a watcher has received the marker.
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

    /// Sends requests until `depth` are in flight or the socket's buffer is full.
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

    /// Reads all available bytes. `replied` gets each reply and the latency of its request in
    /// nanoseconds.
    pub(crate) fn receive(
        &mut self,
        room: &mut [u8],
        replied: &mut impl FnMut(&[u8], u64),
    ) -> Result<(), Error> {
        loop {
            match self.stream.read(room) {
                Ok(0) => return Err(Error::Closed),
                Ok(count) => {
                    self.process(&room[..count], replied)?;
                    // A read that did not fill the buffer has emptied the stream.
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

    fn process(&mut self, bytes: &[u8], replied: &mut impl FnMut(&[u8], u64)) -> Result<(), Error> {
        match &mut self.role {
            Role::Watcher {
                tail,
                has_seen_marker,
            } => {
                *has_seen_marker |= see_marker(tail, bytes);
                Ok(())
            }
            Role::Writer {
                assembler,
                awaits_marker,
            } => {
                for text in assembler.texts(bytes) {
                    let text = &*text?;
                    // Inside a string the quotes would be escaped, so this text can only be a
                    // member.
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
                }
                Ok(())
            }
        }
    }
}

/// Searches for the marker in `bytes`, and across the boundary to the earlier bytes, whose end is
/// in `tail`.
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
    fn marker_is_found_when_split_anywhere() {
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
