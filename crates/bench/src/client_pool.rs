//! Many clients on one thread, which send requests and count received messages.
//!
//! The pool must be cheap, because it shares two cores with the server under test. It only scans
//! received bytes for the ends of messages, and looks at the beginning of each message. Short
//! replies are passed on as a whole. Workloads with monitoring clients drive the pool; it does not
//! depend on tables.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use corvid_json::Assembler;
use memchr::memmem;
use mio::{Events, Interest, Poll, Token};

use crate::connection::see_marker;
use crate::error::Error;
use crate::requests;
use crate::stream::{Address, REPLY_TIMEOUT_S, Stream};

/// The maximum number of bytes of one read.
const READ_BYTES: usize = 256 * 1024;
/// Replies up to this size are passed on as a whole. Of a longer reply, only this much is passed
/// on.
const WHOLE_BYTES: usize = 128 * 1024;
/// The number of bytes that suffice to tell a reply from a notification and contain a transaction
/// id.
const HEAD_BYTES: usize = 256;
/// The reply to an inactivity probe of the server.
const ECHO: &[u8] = br#"{"id":"echo","result":[],"error":null}"#;

/// A message that a client has received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) client: usize,
    pub(crate) kind: Kind,
    /// The whole text if it is short, otherwise its beginning.
    pub(crate) text: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A reply to a request.
    Reply,
    /// An update, or a notification that a monitor has ended.
    Notification,
    /// The marker, see [`ClientPool::expect_marker`]. Reported once for each client.
    Marker,
}

/// The action that the pool takes next.
#[derive(Debug)]
pub(crate) enum Action {
    Wait,
    /// Sends this text from the client that received the message.
    Send(Arc<[u8]>),
    /// Ends [`ClientPool::run`]: the last awaited message has arrived.
    Stop,
}

/// Clients of one server.
pub(crate) struct ClientPool {
    poll: Poll,
    events: Events,
    clients: Vec<Client>,
    room: Box<[u8]>,
    is_marker_expected: bool,
}

impl ClientPool {
    pub(crate) fn new() -> Result<ClientPool, Error> {
        Ok(ClientPool {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            clients: Vec::new(),
            room: vec![0; READ_BYTES].into_boxed_slice(),
            is_marker_expected: false,
        })
    }

    /// Adds a client and returns its number, counted from 0.
    pub(crate) fn connect(&mut self, address: &Address) -> Result<usize, Error> {
        let mut stream = address.connect()?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        let token = Token(self.clients.len());
        self.poll
            .registry()
            .register(&mut stream, token, interest)?;
        self.clients.push(Client::new(stream));
        Ok(token.0)
    }

    /// Adds several clients and returns their numbers.
    pub(crate) fn connect_many(
        &mut self,
        address: &Address,
        count: usize,
    ) -> Result<Range<usize>, Error> {
        let first = self.clients.len();
        for _ in 0..count {
            self.connect(address)?;
        }
        Ok(first..self.clients.len())
    }

    /// Returns the number of clients.
    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }

    /// Returns the number of bytes that all clients together have received.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.clients.iter().map(|client| client.received).sum()
    }

    /// Searches for the marker in all messages from now on. Must be called before the marker is
    /// sent.
    pub(crate) fn expect_marker(&mut self) {
        self.is_marker_expected = true;
    }

    /// Sends `text` from client `client`.
    pub(crate) fn send(&mut self, client: usize, text: Arc<[u8]>) -> Result<(), Error> {
        let client = &mut self.clients[client];
        client.outgoing.push_back(text);
        client.write()
    }

    /// Sends requests from one client, each after the reply to the previous one. Messages to other
    /// clients are ignored.
    pub(crate) fn call(
        &mut self,
        client: usize,
        texts: impl IntoIterator<Item = Arc<[u8]>>,
        mut replied: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        let mut texts = texts.into_iter();
        let Some(first) = texts.next() else {
            return Ok(());
        };
        self.send(client, first)?;
        self.run(|arrival| {
            if arrival.client != client || arrival.kind != Kind::Reply {
                return Action::Wait;
            }
            replied(arrival.text);
            texts.next().map_or(Action::Stop, Action::Send)
        })
    }

    /// Sends one request from each client at once, and waits until all of them are answered.
    pub(crate) fn call_all(
        &mut self,
        clients: Range<usize>,
        mut request: impl FnMut(usize) -> Arc<[u8]>,
        mut replied: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        for client in clients.clone() {
            self.send(client, request(client))?;
        }
        let mut left = clients.len();
        self.run(|arrival| {
            if arrival.kind == Kind::Reply && clients.contains(&arrival.client) {
                replied(arrival.client, arrival.text);
                left -= 1;
            }
            if left == 0 {
                Action::Stop
            } else {
                Action::Wait
            }
        })
    }

    /// Serves all clients. `arrived` is called for each message, until it returns [`Action::Stop`].
    pub(crate) fn run(
        &mut self,
        mut arrived: impl FnMut(Arrival<'_>) -> Action,
    ) -> Result<(), Error> {
        let is_marker_expected = self.is_marker_expected;
        let mut has_stopped = false;
        while !has_stopped {
            let timeout = Duration::from_secs(REPLY_TIMEOUT_S);
            match self.poll.poll(&mut self.events, Some(timeout)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            }
            if self.events.is_empty() {
                return Err(Error::Silent(REPLY_TIMEOUT_S));
            }
            for event in &self.events {
                let Token(number) = event.token();
                let Some(client) = self.clients.get_mut(number) else {
                    continue;
                };
                if event.is_readable() {
                    has_stopped |=
                        client.receive(number, is_marker_expected, &mut self.room, &mut arrived)?;
                }
                client.write()?;
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Client {
    stream: Stream,
    assembler: Assembler,
    /// The beginning of the incomplete message. The assembler only finds the ends of messages,
    /// because it would keep long messages as a whole.
    message: Vec<u8>,
    outgoing: VecDeque<Arc<[u8]>>,
    /// The number of bytes of the first of these texts that have been written.
    written: usize,
    received: u64,
    /// The last bytes of earlier reads, because the marker may be split across two reads.
    tail: Vec<u8>,
    has_seen_marker: bool,
}

impl Client {
    fn new(stream: Stream) -> Client {
        Client {
            stream,
            assembler: Assembler::default(),
            message: Vec::new(),
            outgoing: VecDeque::new(),
            written: 0,
            received: 0,
            tail: Vec::new(),
            has_seen_marker: false,
        }
    }

    /// Writes until the socket's buffer is full.
    fn write(&mut self) -> Result<(), Error> {
        while let Some(text) = self.outgoing.front() {
            match self.stream.write(&text[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            if self.written == text.len() {
                self.written = 0;
                self.outgoing.pop_front();
            }
        }
        Ok(())
    }

    /// Reads all available bytes. Returns true if `arrived` has returned [`Action::Stop`].
    fn receive(
        &mut self,
        number: usize,
        is_marker_expected: bool,
        room: &mut [u8],
        arrived: &mut impl FnMut(Arrival<'_>) -> Action,
    ) -> Result<bool, Error> {
        let mut has_stopped = false;
        loop {
            let count = match self.stream.read(room) {
                Ok(0) => return Err(Error::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(has_stopped),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.received += count as u64;
            has_stopped |= self.process(number, &room[..count], arrived)?;
            if is_marker_expected
                && !self.has_seen_marker
                && see_marker(&mut self.tail, &room[..count])
            {
                self.has_seen_marker = true;
                let text = requests::MARKER;
                has_stopped |= self.act(number, Kind::Marker, text, arrived);
            }
            // A read that did not fill the buffer has emptied the stream.
            if count < room.len() {
                return Ok(has_stopped);
            }
        }
    }

    fn process(
        &mut self,
        number: usize,
        bytes: &[u8],
        arrived: &mut impl FnMut(Arrival<'_>) -> Action,
    ) -> Result<bool, Error> {
        let mut has_stopped = false;
        let mut rest = bytes;
        while !rest.is_empty() {
            let part = self.assembler.part(&mut rest)?;
            if !part.is_last {
                keep(&mut self.message, part.bytes);
                break;
            }
            let mut message = std::mem::take(&mut self.message);
            let text = if message.is_empty() {
                part.bytes
            } else {
                keep(&mut message, part.bytes);
                message.as_slice()
            };
            match kind(text) {
                Kind::Notification if memmem::find(head(text), br#""echo""#).is_some() => {
                    self.outgoing.push_back(ECHO.into());
                }
                kind => {
                    if kind == Kind::Reply && text.len() < WHOLE_BYTES && requests::is_error(text) {
                        return Err(Error::Refused(String::from_utf8_lossy(text).into_owned()));
                    }
                    has_stopped |= self.act(number, kind, text, arrived);
                }
            }
            message.clear();
            self.message = message;
        }
        Ok(has_stopped)
    }

    /// Reports a message and executes the action that `arrived` returns. Returns true if it is
    /// [`Action::Stop`].
    fn act(
        &mut self,
        client: usize,
        kind: Kind,
        text: &[u8],
        arrived: &mut impl FnMut(Arrival<'_>) -> Action,
    ) -> bool {
        match arrived(Arrival { client, kind, text }) {
            Action::Wait => false,
            Action::Send(text) => {
                self.outgoing.push_back(text);
                false
            }
            Action::Stop => true,
        }
    }
}

/// Appends `bytes` to a message, up to the size that is kept.
fn keep(message: &mut Vec<u8>, bytes: &[u8]) {
    let begun = bytes.len().min(HEAD_BYTES.saturating_sub(message.len()));
    let (beginning, rest) = bytes.split_at(begun);
    message.extend_from_slice(beginning);
    if !rest.is_empty() && kind(message) == Kind::Reply {
        let room = WHOLE_BYTES.saturating_sub(message.len());
        message.extend_from_slice(&rest[..rest.len().min(room)]);
    }
}

fn head(text: &[u8]) -> &[u8] {
    &text[..text.len().min(HEAD_BYTES)]
}

/// Returns the kind of a message, which its beginning shows. Servers write the members of a message
/// in different orders, so the first of the known members decides.
fn kind(text: &[u8]) -> Kind {
    let at = |member: &[u8]| memmem::find(head(text), member).unwrap_or(usize::MAX);
    let notification = at(br#""method":"#).min(at(br#""params":"#));
    if notification < at(br#""result":"#) {
        Kind::Notification
    } else {
        Kind::Reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_is_that_of_the_first_known_member() {
        for text in [
            r#"{"id":null,"method":"update3","params":["m",{"result":1}]}"#,
            r#"{"params":["m",{"T":{}}],"method":"update","id":null}"#,
        ] {
            assert_eq!(kind(text.as_bytes()), Kind::Notification, "{text}");
        }
        for text in [
            r#"{"id":1,"result":[{"method":"x"}],"error":null}"#,
            r#"{"error":{"error":"x"},"id":1,"result":null}"#,
        ] {
            assert_eq!(kind(text.as_bytes()), Kind::Reply, "{text}");
        }
    }

    #[test]
    fn only_the_beginning_of_a_long_message_is_kept() {
        let long = vec![b' '; 2 * WHOLE_BYTES];
        let mut reply = br#"{"id":1,"result":[""#.to_vec();
        keep(&mut reply, &long);
        keep(&mut reply, &long);
        assert_eq!(reply.len(), WHOLE_BYTES);
        let mut update = br#"{"id":null,"method":"update3","params":[""#.to_vec();
        update.resize(HEAD_BYTES, b' ');
        keep(&mut update, &long);
        assert_eq!(update.len(), HEAD_BYTES);
    }
}
