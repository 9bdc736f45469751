//! A connected (or connecting) non-blocking byte stream: TCP, TLS over TCP, or Unix.
//!
//! Callers read, write, flush, and ask whether the connection is open. A TLS connection is open
//! once the handshake is complete. It may buffer bytes that it has accepted, so a caller that waits
//! until all output is sent calls [`Write::flush`].

use std::io::{self, IoSlice, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use mio::net::{TcpStream, UnixStream};
use socket2::{SockRef, Socket};

use crate::coverage::events;
use crate::logging::{self, Module};
use crate::target::{Active, Host, Peer};
use crate::tls::{Carrier, Credentials};
use crate::unix_path::UnixAddress;
use crate::{resolve, socket};

/// A non-blocking byte stream.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// TLS over TCP.
    Tls(Box<Carrier>),
}

/// Whether a host name may be looked up while the caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolve {
    /// Block until the name is resolved: for tools.
    Now,
    /// Fail until the name is resolved: for daemons.
    Later,
}

impl Stream {
    /// Begins to connect. The caller then waits until the stream is writable, and calls
    /// [`Stream::connect_result`].
    ///
    /// # Errors
    /// The peer cannot be reached, or its name is not known (yet). `ssl:` fails with
    /// `Protocol not available` while key, certificate or CA is missing, and always without
    /// credentials.
    pub fn connect(
        target: &Active,
        dscp: u8,
        resolve: Resolve,
        credentials: Option<&Arc<Credentials>>,
    ) -> io::Result<Stream> {
        events::STREAM_OPEN.bump();
        match target {
            Active::Tcp(peer) => Ok(Stream::from_tcp(connect_tcp(peer, dscp, resolve)?)),
            Active::Ssl(peer) => {
                let credentials = credentials.ok_or_else(no_protocol)?;
                let host = match &peer.host {
                    Host::Ip(ip) => ip.to_string(),
                    Host::Name(name) => name.clone(),
                };
                let name = format!("ssl:{host}:{}", peer.port);
                // Missing settings are reported before the peer is contacted.
                credentials.check()?;
                let socket = TcpStream::from_std(connect_tcp(peer, dscp, resolve)?.into());
                let carrier = Carrier::connecting(socket, &host, name, credentials)?;
                Ok(Stream::Tls(Box::new(carrier)))
            }
            Active::Unix(path) => {
                let socket = socket::unix()?;
                in_progress(socket.connect(UnixAddress::new(path)?.as_sock_addr()))?;
                Ok(Stream::from_unix(socket))
            }
        }
    }

    /// The outcome of connecting, once the stream is ready as [`Stream::wants_writable`] says;
    /// `None` while connecting is in progress.
    ///
    /// # Errors
    /// The connection could not be made. `EPROTO`: one side rejected the other's certificate or
    /// protocol; logged.
    pub fn connect_result(&mut self) -> io::Result<Option<()>> {
        if let Some(error) = self.socket().take_error()? {
            return Err(error);
        }
        match self.socket().peer_addr() {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => return Ok(None),
            Err(error) => return Err(error),
        }
        match self {
            Stream::Tls(carrier) => {
                carrier.connected();
                Ok(carrier.shake_hands()?.then_some(()))
            }
            Stream::Tcp(_) | Stream::Unix(_) => Ok(Some(())),
        }
    }

    /// Whether an accepted connection needs a handshake before it is open.
    #[must_use]
    pub fn needs_handshake(&self) -> bool {
        matches!(self, Stream::Tls(carrier) if !carrier.is_open())
    }

    /// Whether a connection that is not open yet waits for the socket to become writable rather
    /// than readable.
    #[must_use]
    pub fn wants_writable(&self) -> bool {
        match self {
            Stream::Tls(carrier) => carrier.wants_writable(),
            Stream::Tcp(_) | Stream::Unix(_) => true,
        }
    }

    /// The first commonName in the peer's certificate, once the connection is open.
    #[must_use]
    pub fn peer_identity(&self) -> Option<String> {
        match self {
            Stream::Tls(carrier) => carrier.peer_name(),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        }
    }

    /// Why TLS failed the connection, in words; `None` if the failure has another reason.
    #[must_use]
    pub fn tls_fault(&self) -> Option<&str> {
        match self {
            Stream::Tls(carrier) => carrier.fault(),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        }
    }

    /// Wraps a connected TCP socket, which must be non-blocking.
    pub(crate) fn from_tcp(socket: Socket) -> Stream {
        Stream::Tcp(TcpStream::from_std(socket.into()))
    }

    /// Wraps a connected TCP socket, which must be non-blocking, in TLS; `name` is the peer's name
    /// in the log.
    pub(crate) fn from_tls(
        socket: Socket,
        name: &str,
        credentials: &Arc<Credentials>,
    ) -> io::Result<Stream> {
        let socket = TcpStream::from_std(socket.into());
        let carrier = Carrier::accepted(socket, name.to_owned(), credentials)?;
        Ok(Stream::Tls(Box::new(carrier)))
    }

    /// Wraps a Unix stream socket, which must be non-blocking.
    pub(crate) fn from_unix(socket: Socket) -> Stream {
        Stream::Unix(UnixStream::from_std(socket.into()))
    }

    /// Whether the peer is reached over a network, where silence may mean that it has failed.
    #[must_use]
    pub fn is_network(&self) -> bool {
        !matches!(self, Stream::Unix(_))
    }

    /// The peer's network address; `None`: it has none, or is disconnected.
    #[must_use]
    pub fn peer_ip(&self) -> Option<IpAddr> {
        let peer = self.socket().peer_addr().ok()?;
        Some(peer.as_socket()?.ip())
    }

    /// The process at the other end; `None`: the peer is not a process of this machine, or not a
    /// visible one.
    #[must_use]
    pub fn peer_pid(&self) -> Option<u32> {
        match self {
            Stream::Unix(stream) => socket::peer_pid(&SockRef::from(stream)),
            Stream::Tcp(_) | Stream::Tls(_) => None,
        }
    }

    /// The source to register with a poll.
    pub fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
            Stream::Tls(carrier) => carrier.socket_mut(),
        }
    }

    fn socket(&self) -> SockRef<'_> {
        match self {
            Stream::Tcp(stream) => SockRef::from(stream),
            Stream::Unix(stream) => SockRef::from(stream),
            Stream::Tls(carrier) => SockRef::from(carrier.socket()),
        }
    }
}

/// EINPROGRESS is not an error. A full backlog of a Unix listener (EAGAIN) is an error, because no
/// event reports when the backlog has room again.
fn in_progress(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other,
    }
}

fn no_protocol() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOPROTOOPT)
}

fn connect_tcp(peer: &Peer, dscp: u8, resolve: Resolve) -> io::Result<Socket> {
    let address = socket::address(peer_ip(peer, resolve)?, peer.port, peer.scope);
    let socket = socket::tcp(&address, dscp)?;
    socket.set_tcp_nodelay(true)?;
    in_progress(socket.connect(&address.into()))?;
    Ok(socket)
}

fn peer_ip(peer: &Peer, resolve: Resolve) -> io::Result<std::net::IpAddr> {
    let name = match &peer.host {
        Host::Ip(ip) => return Ok(*ip),
        Host::Name(name) => name,
    };
    let found = match resolve {
        Resolve::Now => resolve::now(name),
        Resolve::Later => resolve::later(name),
    };
    found.ok_or_else(|| {
        logging::dbg(Module::SocketUtil, format_args!("{name}: not resolved"));
        io::Error::from_raw_os_error(libc::EAFNOSUPPORT)
    })
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tls(carrier) => carrier.read(buffer),
        }
    }
}

impl Write for Stream {
    /// Uses `send`, which avoids the kernel's layers for files: a sixth less time than `write` for
    /// a short reply.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => socket::send(&self.socket(), bytes),
            Stream::Tls(carrier) => carrier.write_vectored(&[IoSlice::new(bytes)]),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => socket::send_vectored(&self.socket(), slices),
            Stream::Tls(carrier) => carrier.write_vectored(slices),
        }
    }

    /// Fails with "would block" while accepted bytes are unsent.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
            Stream::Tls(carrier) => carrier.flush(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(carrier) => carrier.socket().as_fd(),
        }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
            Stream::Tls(carrier) => carrier.socket().as_raw_fd(),
        }
    }
}
