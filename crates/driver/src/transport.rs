//! One connection at a time: carries out the outputs of a [session](corvid_session) and reports
//! events.
//!
//! The clients of this crate use it. So does the server's relay, which runs a session without a
//! replica. It never blocks, except for name resolution if the owner asks for that
//! ([`Resolve::Now`]). Invariant: no event of a closed connection is reported. The queue of unsent
//! output has no limit of its own: it holds the application's outstanding requests.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use corvid_net::errno;
use corvid_net::fork::Owner;
use corvid_net::listener::Listener;
use corvid_net::socket::DSCP_DEFAULT;
use corvid_net::stream::{Resolve, Stream};
use corvid_net::target::{Active, Host, Passive, Target};
use corvid_net::tls::Credentials;
use corvid_rpc::log_event::End;
use corvid_session::Output;

use crate::failure::Reason;

/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;

/// Short pieces of output are joined up to this length.
const JOINED_BYTES_MAX: usize = 64 * 1024;

/// An event of the connection: an [`Input`](corvid_session::Input) for the session.
#[derive(Debug)]
pub enum TransportEvent {
    /// The listener is open.
    Listening,
    /// The connection is established.
    Connected,
    /// This many bytes are at the beginning of [`Transport::bytes`]; 0 if a read would have
    /// blocked.
    Received(usize),
    /// Output that had to wait has been sent, at least in part.
    Sent,
    /// The peer or an error ended the connection, the attempt or the listener.
    Ended(End),
}

/// A connection, an attempt, a listener, or none of them.
#[derive(Debug)]
pub struct Transport {
    state: State,
    output: VecDeque<Vec<u8>>,
    /// How many bytes of the first element of `output` have been sent.
    sent: usize,
    /// Some output could not be sent at once.
    has_waited: bool,
    /// The layer below (TLS) may hold back output.
    is_unflushed: bool,
    /// Reading, or writing, would have blocked earlier in this round.
    is_read_blocked: bool,
    is_write_blocked: bool,
    buffer: Box<[u8]>,
    /// Why the last connection or attempt ended, if the owner did not end it.
    reason: Option<Reason>,
    credentials: Option<Arc<Credentials>>,
    resolve: Resolve,
    dscp: u8,
    /// The process that connected first. `None` until then, when any process may.
    owner: Option<Owner>,
}

#[derive(Debug)]
enum State {
    Idle,
    /// Ended, but not reported yet.
    Ended(End),
    Listening {
        listener: Listener,
        is_told: bool,
    },
    Connecting(Stream),
    Open(Stream),
}

/// The readiness that a transport waits for.
#[derive(Debug, Clone, Copy)]
pub struct Interest<'a> {
    /// The descriptor; `None` if there is nothing to wait for.
    pub fd: Option<BorrowedFd<'a>>,
    /// Wait until the descriptor is readable.
    pub readable: bool,
    /// Wait until the descriptor is writable.
    pub writable: bool,
    /// An event is already available: do not wait.
    pub is_due: bool,
}

impl Transport {
    /// Creates a transport without a connection.
    #[must_use]
    pub fn new(resolve: Resolve) -> Transport {
        Transport {
            state: State::Idle,
            output: VecDeque::new(),
            sent: 0,
            has_waited: false,
            is_unflushed: false,
            is_read_blocked: false,
            is_write_blocked: false,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            reason: None,
            credentials: None,
            resolve,
            dscp: DSCP_DEFAULT,
            owner: None,
        }
    }

    /// Sets whether name resolution blocks the owner.
    pub(crate) fn set_resolve(&mut self, resolve: Resolve) {
        self.resolve = resolve;
    }

    /// Sets the differentiated services code point for IP connections, from the next connection on.
    pub fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }

    /// Sets the credentials for `ssl:` and `pssl:`, from the next connection on.
    pub fn set_credentials(&mut self, credentials: Option<Arc<Credentials>>) {
        self.credentials = credentials;
    }

    /// Whether this process was forked from the one that connected. The connection is the parent's
    /// then, so this process may not carry out anything.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.owner.is_some_and(|owner| !owner.is_this_process())
    }

    /// Why the last connection or attempt ended, if the owner did not end it.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        self.reason.as_ref()
    }

    /// Records why the connection or the attempt failed. `stream` is the connection as far as it
    /// was established.
    fn failed(&mut self, error: &io::Error, stream: Option<&Stream>) -> End {
        let text = errno::text(error);
        self.reason = Some(match stream.and_then(Stream::tls_fault) {
            Some(fault) => Reason::Tls(fault.to_owned()),
            None => Reason::Connection {
                kind: error.kind(),
                text: text.clone(),
            },
        });
        End::Failed(text)
    }

    /// The bytes of the last [`TransportEvent::Received`], whose count is `count`.
    #[must_use]
    pub fn bytes(&self, count: usize) -> &[u8] {
        &self.buffer[..count]
    }

    /// Carries out an output of the session. Output for a connection that has ended is discarded.
    ///
    /// # Panics
    /// If the transport is foreign ([`Transport::is_foreign`]): one more byte would corrupt the
    /// parent's connection.
    pub fn carry_out(&mut self, output: Output) {
        assert!(
            !self.is_foreign(),
            "a forked process uses its parent's connection"
        );
        match output {
            Output::Connect { remote } => {
                self.close();
                self.owner.get_or_insert_with(Owner::this_process);
                self.state = match self.open(&remote) {
                    Ok(state) => state,
                    Err(error) => {
                        let end = self.failed(&error, None);
                        self.reason = reason_to_open(&remote, &error).or(self.reason.take());
                        State::Ended(end)
                    }
                };
            }
            Output::Disconnect => self.close(),
            Output::Send(bytes) if matches!(self.state, State::Open(_)) => self.queue(bytes),
            // The connection has ended; the session will be told.
            Output::Send(_) => {}
        }
    }

    /// Queues output. Short pieces are joined, so that one write sends many requests.
    fn queue(&mut self, bytes: Vec<u8>) {
        match self.output.back_mut() {
            Some(last) if last.len() + bytes.len() <= JOINED_BYTES_MAX => {
                last.extend_from_slice(&bytes);
            }
            _ => self.output.push_back(bytes),
        }
    }

    fn open(&self, remote: &str) -> io::Result<State> {
        let credentials = self.credentials.as_ref();
        match Target::parse(remote).map_err(|error| errno::from_code(error.errno()))? {
            Target::Active(active) => {
                let stream = Stream::connect(&active, self.dscp, self.resolve, credentials)?;
                Ok(State::Connecting(stream))
            }
            Target::Passive(passive) => {
                let listener = Listener::open(&passive, self.dscp, credentials)
                    .map_err(|failure| failure.error)?;
                Ok(State::Listening {
                    listener,
                    is_told: false,
                })
            }
        }
    }

    fn close(&mut self) {
        self.state = State::Idle;
        self.output.clear();
        // Output for the old connection must not reach the next one.
        (self.sent, self.has_waited, self.is_unflushed) = (0, false, false);
        self.begin_round();
    }

    /// Begins a round: the descriptor may be ready again.
    pub fn begin_round(&mut self) {
        (self.is_read_blocked, self.is_write_blocked) = (false, false);
    }

    /// The next event that is available without waiting. In each round, one read that would block
    /// is reported.
    pub fn step(&mut self, wants_input: bool) -> Option<TransportEvent> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => None,
            State::Ended(end) => Some(TransportEvent::Ended(end)),
            State::Listening { listener, is_told } => Some(self.listen(listener, is_told)?),
            State::Connecting(mut stream) => match stream.connect_result() {
                Ok(Some(())) => {
                    self.state = State::Open(stream);
                    Some(TransportEvent::Connected)
                }
                Ok(None) => {
                    self.state = State::Connecting(stream);
                    None
                }
                Err(error) => Some(TransportEvent::Ended(self.failed(&error, Some(&stream)))),
            },
            State::Open(mut stream) => {
                let happened = self.exchange(&mut stream, wants_input);
                if matches!(happened, Some(TransportEvent::Ended(_))) {
                    drop(stream);
                    self.close();
                } else {
                    self.state = State::Open(stream);
                }
                happened
            }
        }
    }

    /// Writes what can be written without waiting. The next [`Transport::step`] reports a failure,
    /// and output that has waited for the peer.
    pub fn flush(&mut self) {
        if self.has_waited || self.is_foreign() {
            return;
        }
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Open(mut stream) => {
                // A broken connection stays broken.
                let _ = self.write(&mut stream);
                self.state = State::Open(stream);
            }
            other => self.state = other,
        }
    }

    fn listen(&mut self, listener: Listener, is_told: bool) -> Option<TransportEvent> {
        let accepted = if is_told { listener.accept() } else { Ok(None) };
        match accepted {
            Ok(Some((stream, _))) if stream.needs_handshake() => {
                self.state = State::Connecting(stream);
                None
            }
            Ok(Some((stream, _))) => {
                self.state = State::Open(stream);
                Some(TransportEvent::Connected)
            }
            Ok(None) => {
                self.state = State::Listening {
                    listener,
                    is_told: true,
                };
                (!is_told).then_some(TransportEvent::Listening)
            }
            Err(error) => Some(TransportEvent::Ended(self.failed(&error, None))),
        }
    }

    fn exchange(&mut self, stream: &mut Stream, wants_input: bool) -> Option<TransportEvent> {
        // Writing comes first, so that a peer that keeps sending cannot hold up the requests.
        match self.write(stream) {
            Ok(true) => return Some(TransportEvent::Sent),
            Ok(false) => {}
            Err(error) => return Some(TransportEvent::Ended(self.failed(&error, Some(stream)))),
        }
        if self.is_read_blocked || !wants_input {
            return None;
        }
        loop {
            return Some(match stream.read(&mut self.buffer) {
                Ok(0) => {
                    self.reason = Some(Reason::Closed);
                    TransportEvent::Ended(End::Closed)
                }
                Ok(count) => TransportEvent::Received(count),
                Err(error) if errno::is_again(&error) => {
                    self.is_read_blocked = true;
                    TransportEvent::Received(0)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => TransportEvent::Ended(self.failed(&error, Some(stream))),
            });
        }
    }

    /// Sends what it can. Returns whether output that had to wait was sent. Output that is sent at
    /// once went into local buffers and proves nothing about the peer.
    fn write(&mut self, stream: &mut Stream) -> io::Result<bool> {
        while !self.is_write_blocked {
            let outcome = match self.output.front() {
                Some(bytes) => stream.write(&bytes[self.sent..]),
                // TLS may hold records in its buffer although every byte was accepted.
                None if self.is_unflushed => stream.flush().map(|()| 0),
                None => return Ok(false),
            };
            match outcome {
                Ok(0) if self.output.is_empty() => self.is_unflushed = false,
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.sent += count;
                    self.is_unflushed = true;
                    if self
                        .output
                        .front()
                        .is_some_and(|bytes| bytes.len() == self.sent)
                    {
                        self.output.pop_front();
                        self.sent = 0;
                    }
                    // Waiting output is sent once the peer has made room, which shows that it is
                    // alive.
                    let is_news = self.has_waited;
                    self.has_waited &= !self.output.is_empty();
                    if is_news {
                        return Ok(true);
                    }
                }
                Err(error) if errno::is_again(&error) => {
                    self.is_write_blocked = true;
                    self.has_waited = !self.output.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// The readiness to wait for before the next [`Transport::step`].
    #[must_use]
    pub fn interest(&self, wants_input: bool) -> Interest<'_> {
        let (fd, readable, writable) = match &self.state {
            State::Idle | State::Ended(_) => (None, false, false),
            State::Listening { listener, .. } => (Some(listener.as_fd()), true, false),
            State::Connecting(stream) => {
                let writable = stream.wants_writable();
                (Some(stream.as_fd()), !writable, writable)
            }
            State::Open(stream) => {
                let writable = !self.output.is_empty() || self.is_unflushed;
                (Some(stream.as_fd()), wants_input, writable)
            }
        };
        Interest {
            fd: fd.filter(|_| readable || writable),
            readable,
            writable,
            is_due: match &self.state {
                State::Ended(_) => true,
                State::Listening { is_told, .. } => !is_told,
                _ => false,
            },
        }
    }
}

/// Why an attempt failed at once, where the system error does not say.
fn reason_to_open(remote: &str, error: &io::Error) -> Option<Reason> {
    match Target::parse(remote).ok()? {
        Target::Active(Active::Tcp(peer) | Active::Ssl(peer))
            if matches!(peer.host, Host::Name(_)) && errno::is_unresolved(error) =>
        {
            Some(Reason::HostUnknown)
        }
        Target::Active(Active::Ssl(_)) | Target::Passive(Passive::Ssl(_))
            if errno::is_tls_unusable(error) =>
        {
            let text = "the private key, certificate or CA certificate cannot be used";
            Some(Reason::Tls(text.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_that_fail_at_once_have_reasons() {
        let target = "tcp:no.such.host.invalid:6640";
        let code = Target::parse("nonsense").expect_err("no scheme").errno();
        let unresolved = errno::from_code(code);
        let reason = reason_to_open(target, &unresolved);
        assert_eq!(reason, Some(Reason::HostUnknown));
        let reason = reason_to_open("tcp:127.0.0.1:6640", &unresolved);
        assert_eq!(reason, None, "an address needs no look-up");
        let mut transport = Transport::new(Resolve::Later);
        transport.carry_out(Output::Connect {
            remote: "ssl:127.0.0.1:6640".to_owned(),
        });
        assert!(matches!(transport.reason(), Some(Reason::Tls(_))));
        assert!(matches!(
            transport.step(true),
            Some(TransportEvent::Ended(End::Failed(_)))
        ));
    }
}
