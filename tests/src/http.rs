//! One HTTP request over a socket, as a probe makes it: a GET, and all that comes back until the server closes.
//!
//! Called by the tests of the pages for watchers. It knows only as much of HTTP as they need.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// For example 200.
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    /// The text after the headers.
    pub body: String,
}

/// Asks the server on a Unix socket; `accept` is the header of that name.
///
/// # Errors
///
/// An error of the operating system, or a reply that is not HTTP.
pub fn get(socket: &Path, path: &str, accept: &str) -> io::Result<Answer> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(LIMIT))?;
    ask(stream, path, accept)
}

/// The same on a port of this machine.
///
/// # Errors
///
/// As [`get`].
pub fn get_from_port(port: u16, path: &str, accept: &str) -> io::Result<Answer> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    ask(stream, path, accept)
}

fn ask(mut stream: impl Read + Write, path: &str, accept: &str) -> io::Result<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let bad = || io::Error::new(io::ErrorKind::InvalidData, text.clone());
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(bad)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok(Answer {
        status: status.ok_or_else(bad)?,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}
