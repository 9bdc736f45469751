//! A blocking connection for tools: connect, send a text, wait for a text.
//!
//! Every wait ends at its deadline, and a fatal signal (including the alarm of `--timeout`) ends
//! the program. The socket underneath is non-blocking, so a deadline also holds during each single
//! read and write.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use corvid_json::Assembler;
use corvid_json::frame::foreign_protocol;

use corvid_net::listener::Listener;
use corvid_net::socket::DSCP_DEFAULT;
use corvid_net::stream::{Resolve, Stream};
use corvid_net::target::{Active, Target};
use corvid_net::tls::Credentials;
use corvid_net::{clock, errno, interrupt};

/// The number of bytes read at a time.
const READ_BYTES: usize = 64 * 1024;

/// A connected stream of JSON texts.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    name: String,
    assembler: Assembler,
    buffer: Box<[u8]>,
    /// The bytes of `buffer` that the assembler has not taken yet.
    unscanned: Range<usize>,
    /// The protocol that the stream seems to speak instead of JSON.
    foreign_protocol: Option<&'static str>,
    /// Nothing has been received yet.
    is_fresh: bool,
    /// The number of bytes that may still be received; `None` without a limit.
    bytes_left: Option<usize>,
    /// More has arrived.
    is_exhausted: bool,
}

impl Connection {
    /// As [`Connection::open_with`], without TLS.
    ///
    /// # Errors
    /// As for [`Connection::open_with`].
    pub fn open(target: &str, deadline_ms: Option<u64>) -> io::Result<Connection> {
        Connection::open_with(target, deadline_ms, None)
    }

    /// Connects to an active target, or waits for one connection on a passive one. `deadline_ms` is
    /// monotonic; `None` waits forever. The credentials are for TLS.
    ///
    /// # Errors
    /// The target is malformed or cannot be reached, or a handshake fails; `TimedOut` at the
    /// deadline.
    pub fn open_with(
        target: &str,
        deadline_ms: Option<u64>,
        credentials: Option<&Arc<Credentials>>,
    ) -> io::Result<Connection> {
        Connection::open_or_await(target, deadline_ms, credentials, || {})
    }

    /// As [`Connection::open_with`]; `listening` is called once a passive target listens, before it
    /// accepts.
    ///
    /// # Errors
    /// As for [`Connection::open_with`].
    pub fn open_or_await(
        target: &str,
        deadline_ms: Option<u64>,
        credentials: Option<&Arc<Credentials>>,
        listening: impl FnOnce(),
    ) -> io::Result<Connection> {
        match Target::parse(target) {
            Ok(Target::Active(active)) => {
                let stream = Stream::connect(&active, DSCP_DEFAULT, Resolve::Now, credentials)?;
                let mut connection = Connection::over(stream, String::new(), deadline_ms)?;
                target.clone_into(&mut connection.name);
                Ok(connection)
            }
            Ok(Target::Passive(passive)) => {
                let listener =
                    Listener::open(&passive, DSCP_DEFAULT, credentials).map_err(|failure| {
                        failure.log();
                        failure.error
                    })?;
                listening();
                loop {
                    if let Some((stream, name)) = listener.accept()? {
                        return Connection::over(stream, name, deadline_ms);
                    }
                    wait(listener.as_raw_fd(), libc::POLLIN, deadline_ms)?;
                }
            }
            Err(error) => Err(errno::from_code(error.errno())),
        }
    }

    /// Connects to an active target, without TLS.
    ///
    /// # Errors
    /// The target cannot be reached; `TimedOut` at the deadline.
    pub fn connect(target: &Active, deadline_ms: Option<u64>) -> io::Result<Connection> {
        let stream = Stream::connect(target, DSCP_DEFAULT, Resolve::Now, None)?;
        Connection::over(stream, String::new(), deadline_ms)
    }

    /// Waits until a stream is open.
    fn over(mut stream: Stream, name: String, deadline_ms: Option<u64>) -> io::Result<Connection> {
        while stream.connect_result()?.is_none() {
            let events = if stream.wants_writable() {
                libc::POLLOUT
            } else {
                libc::POLLIN
            };
            wait(stream.as_raw_fd(), events, deadline_ms)?;
        }
        Ok(Connection {
            stream,
            name,
            assembler: Assembler::default(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            unscanned: 0..0,
            foreign_protocol: None,
            is_fresh: true,
            bytes_left: None,
            is_exhausted: false,
        })
    }

    /// The same connection, which fails after it has received this number of bytes.
    #[must_use]
    pub fn limited_to(self, bytes: usize) -> Connection {
        Connection {
            bytes_left: Some(bytes),
            ..self
        }
    }

    /// The name in log lines: the target as given, or the peer that connected.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name in the peer's certificate, with TLS.
    #[must_use]
    pub fn peer_identity(&self) -> Option<String> {
        self.stream.peer_identity()
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// The connection is broken; `TimedOut` at the deadline, by which some bytes may have been
    /// sent.
    pub fn send(&mut self, mut bytes: &[u8], deadline_ms: Option<u64>) -> io::Result<()> {
        loop {
            let written = if bytes.is_empty() {
                self.stream.flush().map(|()| None)
            } else {
                self.stream.write(bytes).map(Some)
            };
            match written {
                Ok(None) => return Ok(()),
                Ok(Some(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(Some(count)) => bytes = &bytes[count..],
                Err(error) if errno::is_again(&error) => {
                    wait(self.stream.as_raw_fd(), libc::POLLOUT, deadline_ms)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next JSON text; `None` at the end of the stream.
    ///
    /// # Errors
    /// The connection is broken or cancelled; `InvalidData` if the stream is not JSON;
    /// `FileTooLarge` at the limit; `TimedOut` at the deadline, after which the caller may wait
    /// again.
    pub fn receive(&mut self, deadline_ms: Option<u64>) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(frame) = self.cut()? {
                return Ok(Some(frame));
            }
            // A long text arrives without a wait, which would notice the cancellation.
            interrupt::check()?;
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return Ok(None),
                Ok(received) => {
                    self.unscanned = 0..received;
                    if std::mem::take(&mut self.is_fresh) {
                        self.foreign_protocol = foreign_protocol(&self.buffer[..received]);
                    }
                    if let Some(left) = &mut self.bytes_left {
                        self.is_exhausted = received > *left;
                        if self.is_exhausted {
                            return Err(io::ErrorKind::FileTooLarge.into());
                        }
                        *left -= received;
                    }
                }
                Err(error) if errno::is_again(&error) => {
                    wait(self.stream.as_raw_fd(), libc::POLLIN, deadline_ms)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// After `InvalidData`: the protocol that the peer seems to speak instead of JSON.
    #[must_use]
    pub fn foreign_protocol(&self) -> Option<&'static str> {
        self.foreign_protocol
    }

    /// Whether more bytes have arrived than the connection's limit.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Whether unread bytes are buffered.
    #[must_use]
    pub fn has_unscanned(&self) -> bool {
        !self.unscanned.is_empty()
    }

    /// The descriptor, for programs that also wait for other descriptors.
    #[must_use]
    pub fn fd(&self) -> std::os::fd::RawFd {
        self.stream.as_raw_fd()
    }

    fn cut(&mut self) -> io::Result<Option<Vec<u8>>> {
        if !self.has_unscanned() {
            return Ok(None);
        }
        let mut rest = &self.buffer[self.unscanned.clone()];
        let text = self
            .assembler
            .next(&mut rest)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?
            .map(Cow::into_owned);
        self.unscanned.start = self.unscanned.end - rest.len();
        Ok(text)
    }
}

/// Waits until a descriptor is ready.
fn wait(fd: std::os::fd::RawFd, events: i16, deadline_ms: Option<u64>) -> io::Result<()> {
    let timeout = deadline_ms
        .map(|deadline| Duration::from_millis(deadline.saturating_sub(clock::mono_ms())));
    match corvid_net::poll::wait(Some((fd, events)), timeout)? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_sent_and_received_and_waits_end_at_deadlines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s").display().to_string();
        let passive = format!("punix:{path}");
        let server = std::thread::spawn(move || {
            let mut connection = Connection::open(&passive, None).unwrap();
            let text = connection.receive(None).unwrap().unwrap();
            connection.send(b" [1][2,", None).unwrap();
            connection.send(&text, None).unwrap();
            connection.send(b"] ", None).unwrap();
            assert_eq!(connection.receive(None).unwrap(), None);
        });
        let deadline = clock::mono_ms() + 20_000;
        let mut client = loop {
            match Connection::open(&format!("unix:{path}"), None) {
                Ok(client) => break client,
                Err(error) => assert!(clock::mono_ms() < deadline, "{error}"),
            }
            std::thread::yield_now();
        };
        let soon = Some(clock::mono_ms() + 5);
        assert_eq!(
            client.receive(soon).unwrap_err().kind(),
            io::ErrorKind::TimedOut
        );
        client.send(b"{\"a\":0}", None).unwrap();
        assert_eq!(client.receive(Some(deadline)).unwrap().unwrap(), b"[1]");
        assert_eq!(
            client.receive(Some(deadline)).unwrap().unwrap(),
            b"[2,{\"a\":0}]"
        );
        drop(client);
        server.join().unwrap();
    }

    #[test]
    fn unknown_schemes_fail_as_a_session_would() {
        let error = Connection::open("bogus:1", None).unwrap_err();
        assert_eq!(
            errno::text(&error),
            "Address family not supported by protocol"
        );
    }
}
