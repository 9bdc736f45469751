//! A TLS session over a TCP socket, for `ssl:` and `pssl:` in [`Stream`](crate::stream::Stream).
//!
//! Invariants, for callers that wait for edges of readiness:
//! - a read that fills its buffer only in part has emptied the socket and the session;
//! - plaintext that a write has accepted is sent, or [`Carrier::flush`] fails with "would block"
//!   until it is.
//!
//! A connection that bootstraps the CA file fails once the file is written.

use std::cell::RefCell;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use corvid_tls::{Fault, Session};
use mio::net::TcpStream;
use socket2::SockRef;

use super::{Credentials, PEER_LIMIT};
use crate::fork::Owner;
use crate::logging::{self, Module};
use crate::{errno, socket};

/// The number of ciphertext bytes read at a time: four records.
const READ_BYTES: usize = 64 * 1024;

thread_local! {
    /// Ciphertext on its way from a socket to a session. Bytes that the session does not accept at
    /// once are copied out.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// A TCP connection and its TLS session.
#[derive(Debug)]
pub struct Carrier {
    socket: TcpStream,
    session: Session,
    credentials: Arc<Credentials>,
    /// The peer's name, for the log.
    name: String,
    /// Whether the socket is still connecting.
    is_connecting: bool,
    is_open: bool,
    /// Ciphertext that the session has not accepted yet.
    inbound: Vec<u8>,
    /// The peer has closed its side of the socket.
    has_ended: bool,
    /// The error number with which the connection failed; data received before is delivered first.
    failure: Option<i32>,
    /// The fault that TLS found, in words.
    fault: Option<String>,
    owner: Owner,
}

/// The outcome of reading the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    /// A full buffer: there may be more.
    Much,
    /// Less than a buffer: the socket is empty.
    Little,
    Nothing,
    End,
}

impl Carrier {
    /// A connection that a listener accepted.
    pub(crate) fn accepted(
        socket: TcpStream,
        name: String,
        credentials: &Arc<Credentials>,
    ) -> io::Result<Carrier> {
        let session = Session::accept(&credentials.config()?).map_err(unusable)?;
        Ok(Carrier::new(socket, session, name, credentials, false))
    }

    /// A connection that is being opened to a host.
    pub(crate) fn connecting(
        socket: TcpStream,
        host: &str,
        name: String,
        credentials: &Arc<Credentials>,
    ) -> io::Result<Carrier> {
        let asked = credentials.server_name();
        let host = asked.as_deref().unwrap_or(host);
        let session = Session::connect(&credentials.config()?, Some(host)).map_err(unusable)?;
        Ok(Carrier::new(socket, session, name, credentials, true))
    }

    fn new(
        socket: TcpStream,
        session: Session,
        name: String,
        credentials: &Arc<Credentials>,
        is_connecting: bool,
    ) -> Carrier {
        Carrier {
            socket,
            session,
            credentials: Arc::clone(credentials),
            name,
            is_connecting,
            is_open: false,
            inbound: Vec::new(),
            has_ended: false,
            failure: None,
            fault: None,
            owner: Owner::this_process(),
        }
    }

    /// The fault that TLS found, in words; `None` if there is none, or if the socket failed.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(crate) fn socket_mut(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// The peer's identity, known once the connection is open.
    pub(crate) fn peer_name(&self) -> Option<String> {
        self.session.peer_name()
    }

    /// Whether the handshake is complete and the peer has accepted.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether progress needs a writable socket rather than a readable one.
    pub(crate) fn wants_writable(&self) -> bool {
        self.is_connecting || self.session.wants_write()
    }

    /// Records that the socket is connected, so that the handshake may begin.
    pub(crate) fn connected(&mut self) {
        self.is_connecting = false;
    }

    /// Continues the handshake. Returns whether it is complete.
    ///
    /// # Errors
    /// `EPROTO` for every failure; logged.
    pub(crate) fn shake_hands(&mut self) -> io::Result<bool> {
        while self.session.is_handshaking() {
            let sent = self.send();
            // A peer that rejects the handshake may close before it has read everything; its alert
            // can still be read.
            match self.receive() {
                Ok(Received::Much | Received::Little) => {}
                Ok(Received::Nothing) if sent.is_ok() => return Ok(false),
                Ok(Received::End) if sent.is_ok() => {
                    let operation = self.operation();
                    // In the words of OpenSSL 3. Probes of load balancers end like this, which
                    // needs no action.
                    logging::warn_limited(
                        &PEER_LIMIT,
                        Module::StreamSsl,
                        format_args!(
                            "{operation}: error:0A000126:SSL routines::unexpected eof while reading"
                        ),
                    );
                    self.fault =
                        Some("the peer closed the connection during the handshake".to_owned());
                    return Err(self.fail());
                }
                Ok(Received::Nothing | Received::End) => return Err(self.broken(&sent)),
                Err(error) if self.failure == Some(libc::EPROTO) => return Err(error),
                Err(error) => return Err(self.broken(&Err(error))),
            }
        }
        let sent = self.send();
        if self.session.is_bootstrap() {
            self.credentials.learn(self.session.peer_certificates());
            return Err(self.fail());
        }
        if sent.is_err() {
            return Err(self.broken(&sent));
        }
        if let Some(name) = self.session.requested_name() {
            logging::dbg(
                Module::StreamSsl,
                format_args!("connection indicated server name {name}"),
            );
        }
        self.is_open = true;
        Ok(true)
    }

    /// Handles a failure of the socket during the handshake.
    fn broken(&mut self, outcome: &io::Result<()>) -> io::Error {
        if let Err(error) = outcome {
            self.complain(&format!("system error ({})", errno::text(error)));
        }
        self.fail()
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        loop {
            filled += self.session.take(&mut buffer[filled..]);
            if filled == buffer.len() {
                return Ok(filled);
            }
            if self.failure.is_some() || self.is_finished() {
                break;
            }
            match self.receive() {
                Ok(Received::Much) => {}
                // Only a read that delivered plaintext may leave further input to the next edge.
                Ok(Received::Little) => {
                    filled += self.session.take(&mut buffer[filled..]);
                    if filled > 0 && self.inbound.is_empty() {
                        return Ok(filled);
                    }
                }
                Ok(Received::End) => {}
                Ok(Received::Nothing) if filled == 0 => {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(Received::Nothing) => return Ok(filled),
                Err(_) => {}
            }
        }
        match self.failure {
            Some(code) if filled == 0 => Err(errno::from_code(code)),
            _ => Ok(filled),
        }
    }

    /// Whether the input has ended.
    fn is_finished(&self) -> bool {
        self.session.is_closed() || (self.has_ended && self.inbound.is_empty())
    }

    pub(crate) fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush()?;
        let taken = self.session.give(slices);
        if taken == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.send()?;
        Ok(taken)
    }

    /// Sends accepted bytes that are still unsent.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.send()?;
        if self.session.wants_write() {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            Ok(())
        }
    }

    /// Sends ciphertext until the socket accepts no more.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.send(&mut Ciphertext(&self.socket)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if errno::is_again(&error) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if self.is_open {
                        let text = errno::text(&error);
                        let line = format_args!("SSL_write: system error ({text})");
                        logging::warn_limited(&PEER_LIMIT, Module::StreamSsl, line);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Gives the session the ciphertext that it has not accepted yet; if there is none, reads the
    /// socket.
    fn receive(&mut self) -> io::Result<Received> {
        if !self.inbound.is_empty() {
            let waiting = std::mem::take(&mut self.inbound);
            let fed = self.feed(&waiting)?;
            self.inbound = waiting;
            self.inbound.drain(..fed);
            return Ok(Received::Much);
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let count = loop {
                match self.socket.read(scratch) {
                    Ok(0) => {
                        self.has_ended = true;
                        return Ok(Received::End);
                    }
                    Ok(count) => break count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if errno::is_again(&error) => return Ok(Received::Nothing),
                    Err(error) => {
                        self.failure = Some(error.raw_os_error().unwrap_or(libc::EIO));
                        return Err(error);
                    }
                }
            };
            let fed = self.feed(&scratch[..count])?;
            self.inbound.extend_from_slice(&scratch[fed..count]);
            Ok(if count == scratch.len() {
                Received::Much
            } else {
                Received::Little
            })
        })
    }

    fn feed(&mut self, ciphertext: &[u8]) -> io::Result<usize> {
        let is_accepting = !self.session.is_client() && self.session.is_handshaking();
        match self.session.feed(ciphertext) {
            // The peer has announced its end: bytes after that are ignored.
            Ok(_) if self.session.is_closed() => Ok(ciphertext.len()),
            Ok(fed) => {
                // For example, the reply to a key update. The next write reports whether it can be
                // sent.
                if self.is_open && self.session.wants_write() {
                    let _ = self.send();
                }
                Ok(fed)
            }
            Err(fault) => {
                self.complain(&fault.to_string());
                self.fault = Some(fault.to_string());
                if fault == Fault::PlainJson && is_accepting {
                    let line =
                        format_args!("{}: received JSON-RPC data on SSL/TLS channel", self.name);
                    logging::warn_limited(&PEER_LIMIT, Module::StreamSsl, line);
                }
                // Sends the alert to the peer, which may already have closed.
                let _ = self.send();
                Err(self.fail())
            }
        }
    }

    fn complain(&self, what: &str) {
        let operation = self.operation();
        logging::warn_limited(
            &PEER_LIMIT,
            Module::StreamSsl,
            format_args!("{operation}: {what}"),
        );
    }

    /// The current step, as the reference names it.
    fn operation(&self) -> &'static str {
        match (self.is_open, self.session.is_client()) {
            (false, true) => "SSL_connect",
            (false, false) => "SSL_accept",
            (true, _) => "SSL_read",
        }
    }

    /// Marks the connection as failed.
    fn fail(&mut self) -> io::Error {
        let code = if self.is_open {
            libc::EIO
        } else {
            libc::EPROTO
        };
        self.failure = Some(code);
        errno::from_code(code)
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        // A forked child would otherwise end its parent's session.
        if self.is_open && self.failure.is_none() && self.owner.is_this_process() {
            self.session.close();
            // A peer that does not receive this sees the end of the socket.
            let _ = self.session.send(&mut Ciphertext(&self.socket));
        }
    }
}

/// The socket as the sink of a session.
struct Ciphertext<'a>(&'a TcpStream);

impl Write for Ciphertext<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        socket::send(&SockRef::from(self.0), bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        socket::send_vectored(&SockRef::from(self.0), slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Logs settings that exclude every protocol or cipher.
#[allow(clippy::needless_pass_by_value, reason = "taken by map_err")]
fn unusable(error: corvid_tls::Error) -> io::Error {
    logging::err_limited(&PEER_LIMIT, Module::StreamSsl, format_args!("{error}"));
    errno::from_code(libc::EPROTO)
}
