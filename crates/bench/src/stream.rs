//! The addresses of servers and connections to them. An address is the Unix socket of a server that
//! the benchmark starts, or any address that the user gives.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net;
use std::os::unix;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use corvid_json::{Assembler, Value};
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use crate::error::Error;

/// The time limit for a reply, in seconds. A server that loses a request, as the reference
/// sometimes does when its cluster changes leaders, fails the workload instead of stopping the
/// benchmark.
pub(crate) const REPLY_TIMEOUT_S: u64 = 120;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Unix(PathBuf),
    /// The host and the port.
    Tcp(String),
}

impl FromStr for Address {
    type Err = String;

    /// Reads `unix:PATH` or `tcp:HOST:PORT`.
    fn from_str(text: &str) -> Result<Address, String> {
        match text.split_once(':') {
            Some(("unix", path)) => Ok(Address::Unix(path.into())),
            Some(("tcp", host)) => Ok(Address::Tcp(host.to_owned())),
            _ => Err(format!("expected unix:PATH or tcp:HOST:PORT, not {text}")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(host) => write!(f, "tcp:{host}"),
        }
    }
}

impl Address {
    /// Opens a non-blocking connection, which can be registered with a poll.
    pub(crate) fn connect(&self) -> io::Result<Stream> {
        // Connecting blocks, so that a full backlog is not an error.
        match self {
            Address::Unix(path) => {
                let stream = unix::net::UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(UnixStream::from_std(stream)))
            }
            Address::Tcp(host) => {
                let stream = net::TcpStream::connect(host)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Ok(Stream::Tcp(TcpStream::from_std(stream)))
            }
        }
    }

    /// Opens a blocking connection. Its reads end with [`Error::Silent`] after [`REPLY_TIMEOUT_S`].
    pub(crate) fn open(&self) -> io::Result<Box<dyn ReadWrite>> {
        self.open_with(Duration::from_secs(REPLY_TIMEOUT_S))
    }

    fn open_with(&self, timeout: Duration) -> io::Result<Box<dyn ReadWrite>> {
        match self {
            Address::Unix(path) => {
                let stream = unix::net::UnixStream::connect(path)?;
                stream.set_read_timeout(Some(timeout))?;
                Ok(Box::new(stream))
            }
            Address::Tcp(host) => {
                let stream = net::TcpStream::connect(host)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(timeout))?;
                Ok(Box::new(stream))
            }
        }
    }

    /// Sends one request, whose parameters are strings, on a new connection, and waits for the
    /// reply.
    pub(crate) fn call(&self, method: &str, params: &[&str]) -> Result<Value, Error> {
        let params = params.iter().map(|param| Value::string(*param));
        let params = Value::Array(params.collect()).to_bytes();
        let params = String::from_utf8_lossy(&params);
        self.request(&format!(
            r#"{{"method":"{method}","params":{params},"id":0}}"#
        ))
    }

    /// Sends one request on a new connection, and waits for the reply.
    pub(crate) fn request(&self, request: &str) -> Result<Value, Error> {
        exchange(&mut *self.open()?, request)
    }
}

fn exchange(stream: &mut dyn ReadWrite, request: &str) -> Result<Value, Error> {
    stream.write_all(request.as_bytes())?;
    Ok(Value::parse(&receive(stream, &mut Assembler::default())?)?)
}

/// Waits for the next message.
pub(crate) fn receive(
    stream: &mut dyn ReadWrite,
    assembler: &mut Assembler,
) -> Result<Vec<u8>, Error> {
    let mut room = vec![0; 64 * 1024];
    loop {
        let count = match stream.read(&mut room) {
            // Linux reports an expired read timeout as `WouldBlock`.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(Error::Silent(REPLY_TIMEOUT_S));
            }
            outcome => outcome?,
        };
        if count == 0 {
            return Err(Error::Closed);
        }
        if let Some(text) = assembler.texts(&room[..count]).next() {
            return Ok(text?.into_owned());
        }
    }
}

/// A blocking connection.
pub(crate) trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

/// A non-blocking connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Read for Stream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(room),
            Stream::Tcp(stream) => stream.read(room),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write_vectored(parts),
            Stream::Tcp(stream) => stream.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Stream {
    fn register(&mut self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.register(to, token, interest),
            Stream::Tcp(stream) => stream.register(to, token, interest),
        }
    }

    fn reregister(&mut self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.reregister(to, token, interest),
            Stream::Tcp(stream) => stream.reregister(to, token, interest),
        }
    }

    fn deregister(&mut self, from: &Registry) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.deregister(from),
            Stream::Tcp(stream) => stream.deregister(from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_never_answers_fails_the_request() {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap().to_string());
        let mut stream = address.open_with(Duration::from_millis(10)).unwrap();
        let outcome = exchange(&mut *stream, r#"{"method":"echo","params":[],"id":0}"#);
        assert!(matches!(outcome, Err(Error::Silent(_))), "{outcome:?}");
    }
}
