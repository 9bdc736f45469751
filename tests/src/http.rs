//! One HTTP request over a socket, as a probe sends it: a GET. The reply is everything that arrives
//! until the server closes the connection.
//!
//! Called by the tests of the health and metrics pages. It only implements as much of HTTP as they
//! need.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The time limit for a reply on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code, for example 200.
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    /// The text after the headers.
    pub body: String,
}

/// Sends a request to the server on a Unix socket. `accept` is the value of the header `Accept`.
///
/// # Errors
///
/// If the operating system reports an error, or if the reply is not HTTP.
pub fn get(socket: &Path, path: &str, accept: &str) -> io::Result<Answer> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(LIMIT))?;
    ask(stream, path, accept)
}

/// Like [`get`], but on a TCP port of this machine.
///
/// # Errors
///
/// The errors of [`get`].
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
