//! A raw JSON-RPC connection, which sends arbitrary bytes and receives whole texts.
//!
//! Invariant: texts are returned in the order of arrival, and none is dropped except by
//! [`Client::call`], which says so. Used by the script runner and by tests that must see exact
//! bytes. It does not know about OVSDB.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::framing::Splitter;

/// How long a write may wait for a server that does not read. After this time the test fails, so it
/// does not wait forever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);

/// The next event on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A complete JSON text, byte for byte.
    Text(Vec<u8>),
    /// The server closed the connection.
    Closed,
    /// Nothing arrived before the time limit.
    Nothing,
}

/// A connection to the Unix socket of a server.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    splitter: Splitter,
}

impl Client {
    /// Connects to the Unix socket at `path`.
    ///
    /// # Errors
    ///
    /// An error of the operating system, such as "connection refused".
    pub fn connect(path: &Path) -> io::Result<Client> {
        let stream = UnixStream::connect(path)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Client {
            stream,
            splitter: Splitter::default(),
        })
    }

    /// Connects, and tries again until `limit` has passed. This is for sockets that a server is
    /// about to create.
    ///
    /// # Errors
    ///
    /// The last error of the operating system when the limit has passed.
    pub fn connect_within(path: &Path, limit: Duration) -> io::Result<Client> {
        let deadline = Instant::now() + limit;
        loop {
            match Client::connect(path) {
                Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
                outcome => return outcome,
            }
        }
    }

    /// Sends the bytes without changing them.
    ///
    /// # Errors
    ///
    /// An error of the operating system, such as "broken pipe" if the server has closed the
    /// connection.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Closes only the sending side. The server sees an end of file, and may still answer.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn shut(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Returns the next text, for which it waits for at most `limit`.
    ///
    /// # Errors
    ///
    /// An error of the operating system. A reset connection is not an error; it counts as closed.
    pub fn receive(&mut self, limit: Duration) -> io::Result<Received> {
        let deadline = Instant::now() + limit;
        let mut piece = [0; 65536];
        loop {
            if let Some(text) = self.splitter.next_text() {
                return Ok(Received::Text(text));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Received::Nothing);
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(Received::Closed),
                Ok(n) => self.splitter.push(&piece[..n]),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        return Ok(Received::Nothing);
                    }
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                        return Ok(Received::Closed);
                    }
                    _ => return Err(error),
                },
            }
        }
    }

    /// Sends one request and returns the message that answers it. Drops the notifications that come
    /// before.
    ///
    /// This is for tests that only need the reply. The returned value is the whole message,
    /// `{"id":…,"result":…,"error":…}`.
    ///
    /// # Errors
    ///
    /// If sending or receiving fails, the connection is closed, nothing arrives for 30 s, or the
    /// reply is not JSON.
    pub fn call(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        let request = json!({"id": "call", "method": method, "params": params});
        self.send(request.to_string().as_bytes())?;
        loop {
            match self.receive(Duration::from_secs(30))? {
                Received::Text(bytes) => {
                    let message: Value = serde_json::from_slice(&bytes)?;
                    if message.get("id").and_then(Value::as_str) == Some("call") {
                        return Ok(message);
                    }
                }
                Received::Closed => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "connection closed",
                    ));
                }
                Received::Nothing => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "no reply"));
                }
            }
        }
    }
}
