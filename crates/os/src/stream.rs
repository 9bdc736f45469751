//! A connected (or connecting) byte stream: TCP or Unix, without blocking.
//!
//! TLS will be a further variant: callers only read, write, flush and ask whether the connection stands.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use mio::net::{TcpStream, UnixStream};
use socket2::{SockRef, Socket};

use crate::target::{Active, Host, Peer};
use crate::unix_path::UnixAddress;
use crate::vlog::{self, Module};
use crate::{resolve, socket};

/// A non-blocking byte stream.
#[derive(Debug)]
pub enum Stream {
    /// over TCP
    Tcp(TcpStream),
    /// over a Unix socket
    Unix(UnixStream),
}

/// Whether a host name may be looked up while the caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolve {
    /// wait for the answer: tools
    Now,
    /// fail until the answer is there: daemons
    Later,
}

impl Stream {
    /// Begins to connect. Wait until the stream is writable, then call [`Stream::connect_result`].
    ///
    /// # Errors
    /// The peer cannot be reached or its name is not known (yet); `ssl:` fails with `Protocol not available`.
    pub fn connect(target: &Active, dscp: u8, resolve: Resolve) -> io::Result<Stream> {
        match target {
            Active::Tcp(peer) => {
                let address = socket::address(peer_ip(peer, resolve)?, peer.port, peer.scope);
                let socket = socket::tcp(&address, dscp)?;
                socket.set_tcp_nodelay(true)?;
                in_progress(socket.connect(&address.into()))?;
                Ok(Stream::from_tcp(socket))
            }
            Active::Unix(path) => {
                let socket = socket::unix()?;
                in_progress(socket.connect(UnixAddress::new(path)?.as_sock_addr()))?;
                Ok(Stream::from_unix(socket))
            }
            Active::Ssl(_) => Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT)),
        }
    }

    /// The outcome of connecting, once the stream is writable: `None` while it is still under way.
    ///
    /// # Errors
    /// The connection could not be made.
    pub fn connect_result(&self) -> io::Result<Option<()>> {
        if let Some(error) = self.socket().take_error()? {
            return Err(error);
        }
        match self.socket().peer_addr() {
            Ok(_) => Ok(Some(())),
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Wraps a connected TCP socket, which must be non-blocking.
    pub(crate) fn from_tcp(socket: Socket) -> Stream {
        Stream::Tcp(TcpStream::from_std(socket.into()))
    }

    /// Wraps a Unix stream socket, which must be non-blocking.
    pub(crate) fn from_unix(socket: Socket) -> Stream {
        Stream::Unix(UnixStream::from_std(socket.into()))
    }

    /// Whether the peer is reached over a network, where silence may mean that it is gone.
    #[must_use]
    pub fn is_network(&self) -> bool {
        matches!(self, Stream::Tcp(_))
    }

    /// The source to register with a poll.
    pub(crate) fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
        }
    }

    fn socket(&self) -> SockRef<'_> {
        match self {
            Stream::Tcp(stream) => SockRef::from(stream),
            Stream::Unix(stream) => SockRef::from(stream),
        }
    }
}

/// A connection under way is not an error. A full backlog of a Unix listener (EAGAIN) is: nothing would announce its end.
fn in_progress(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other,
    }
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
        vlog::dbg(Module::SocketUtil, format_args!("{name}: not resolved"));
        io::Error::from_raw_os_error(libc::EAFNOSUPPORT)
    })
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    /// By `send`, which passes the layers for files by in the kernel: a sixth less time than `write` for a short answer.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => SockRef::from(&*stream).send(bytes),
            Stream::Unix(stream) => SockRef::from(&*stream).send(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(slices),
            Stream::Unix(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
    }
}
