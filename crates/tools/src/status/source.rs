//! Sources of a status: the control socket of a server on this machine, and the pages of
//! `--metrics-listen`.
//!
//! Each question has a time limit, so a server that hangs delays nobody for long.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corvid_json::Value;
use corvid_net::target::Active;
use corvid_net::{clock, errno};
use corvid_rpc::message::write_request;
use corvid_shell::blocking::Connection;
use corvid_shell::signals;

use super::reference;

/// Limit on the time of a question.
pub const LIMIT: Duration = Duration::from_secs(3);
/// Limit on the size of an answer, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// A member that this program adds to a database whose file it sees: its length, which the status
/// of a cluster's member lacks.
pub const LOCAL_FILE_BYTES: &str = "local_file_bytes";
/// The read buffer of a page, bytes.
const READ_BYTES: usize = 64 << 10;

/// A place where a server tells its status.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A control socket.
    Control(PathBuf),
    /// The address of the pages: `http://HOST:PORT` or `unix:PATH`.
    Pages(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Control(path) => write!(f, "control socket {}", path.display()),
            Source::Pages(address) => f.write_str(address),
        }
    }
}

/// A status document, and how it was read.
#[derive(Clone, Debug)]
pub struct Status {
    /// The document.
    pub document: Value,
    /// Where it came from.
    pub source: Source,
    /// This machine's time in the middle of the question, ms since 1970.
    pub read_ms: i64,
    /// How long the question took.
    pub took_ms: u64,
}

impl Source {
    /// The source that an argument of `--metrics` names. An address without `http://` gets it.
    #[must_use]
    pub fn pages(text: &str) -> Source {
        let text = text.strip_suffix("/status.json").unwrap_or(text);
        let text = text.trim_end_matches('/');
        let is_whole = text.starts_with("http://") || text.starts_with("unix:");
        Source::Pages(match is_whole {
            true => text.to_owned(),
            false => format!("http://{text}"),
        })
    }

    /// The control socket, for commands that are to be pasted.
    #[must_use]
    pub fn control(&self) -> Option<&Path> {
        match self {
            Source::Control(path) => Some(path),
            Source::Pages(_) => None,
        }
    }

    /// Reads the status.
    ///
    /// # Errors
    /// Nobody answers in time, or the answer is not a status.
    pub fn read(&self) -> Result<Status, String> {
        let (began_ms, began) = (clock::wall_ms(), clock::mono_ms());
        let document = match self {
            Source::Control(path) => Control::open(path)
                .and_then(|mut control| control.document())
                .map_err(|error| errno::text(&error))?,
            Source::Pages(_) => {
                let body = self.page("/status.json")?;
                Value::parse_text(&body).map_err(|error| error.to_string())?
            }
        };
        if document.as_object().is_none() || document.get("databases").is_none() {
            return Err("the answer is not a status".to_owned());
        }
        let took_ms = clock::mono_ms().saturating_sub(began);
        let half = i64::try_from(took_ms / 2).unwrap_or(0);
        Ok(Status {
            document,
            source: self.clone(),
            read_ms: began_ms.saturating_add(half),
            took_ms,
        })
    }

    /// The body of a page; only pages have some.
    ///
    /// # Errors
    /// Nobody answers in time, or the answer is an error.
    pub fn page(&self, path: &str) -> Result<Vec<u8>, String> {
        let Source::Pages(address) = self else {
            return Err("a control socket has no pages".to_owned());
        };
        let answer = get(address, path).map_err(|error| errno::text(&error))?;
        match answer {
            (200, body) => Ok(body),
            (status, _) => Err(format!("HTTP status {status}")),
        }
    }
}

/// A connection to a control socket, with a time limit for all that is asked over it.
pub struct Control {
    connection: Connection,
    deadline_ms: u64,
    next_id: u64,
}

impl Control {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn open(path: &Path) -> io::Result<Control> {
        Control::open_for(path, LIMIT)
    }

    /// As [`Control::open`], with another time limit.
    ///
    /// # Errors
    /// As for [`Control::open`].
    pub fn open_for(path: &Path, limit: Duration) -> io::Result<Control> {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let deadline_ms = clock::mono_ms().saturating_add(limit_ms);
        let connection = Connection::connect(&Active::Unix(path.to_owned()), Some(deadline_ms))?;
        Ok(Control {
            connection: connection.limited_to(ANSWER_BYTES_MAX),
            deadline_ms,
            next_id: 0,
        })
    }

    /// The text that a command answers; or the text of its error.
    ///
    /// # Errors
    /// The connection broke, or the time has passed.
    pub fn call(&mut self, command: &str, args: &[&str]) -> io::Result<Result<String, String>> {
        let params = Value::Array(args.iter().map(Value::string).collect());
        let id = self.next_id.to_string();
        self.next_id += 1;
        // The request is text of this program and names of databases, whose quotes are escaped.
        let mut request = Vec::new();
        write_request(&mut request, command, &params.to_bytes(), id.as_bytes());
        self.connection.send(&request, Some(self.deadline_ms))?;
        let frame = self
            .connection
            .receive(Some(self.deadline_ms))?
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let reply = Value::parse(&frame).map_err(|_| wrong())?;
        let text = |name: &str| reply.get(name).and_then(Value::as_str).map(str::to_owned);
        match (text("result"), text("error")) {
            (Some(result), _) => Ok(Ok(result)),
            (None, Some(error)) => Ok(Err(error)),
            (None, None) => Err(wrong()),
        }
    }

    /// The status of the server: its own document, or what the texts of the reference tell.
    fn document(&mut self) -> io::Result<Value> {
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        if let Ok(text) = self.call("ovsdb-server/status", &["--json"])? {
            let mut document = Value::parse_text(text.as_bytes()).map_err(|_| wrong())?;
            add_lengths(&mut document);
            return Ok(document);
        }
        let version = self.call("version", &[])?.unwrap_or_default();
        let memory = self.call("memory/show", &[])?.unwrap_or_default();
        let mut databases = Vec::new();
        if let Ok(names) = self.call("ovsdb-server/list-dbs", &[])? {
            for name in names.lines() {
                let status = self.call("cluster/status", &[name])?.ok();
                databases.push(reference::database(name, status.as_deref()));
            }
        }
        let mut document = reference::document(&version, &memory, databases).ok_or_else(wrong)?;
        if let (Ok(remotes), Value::Object(members)) =
            (self.call("ovsdb-server/list-remotes", &[])?, &mut document)
            && let Some(Value::Object(server)) = members.get_mut("server".as_bytes())
        {
            let remotes = remotes.lines().map(Value::string).collect();
            server.insert("remotes".into(), Value::Array(remotes));
        }
        Ok(document)
    }
}

/// Adds the lengths of files that are on this machine and that the status does not tell.
fn add_lengths(document: &mut Value) {
    let Value::Object(members) = document else {
        return;
    };
    let Some(Value::Array(databases)) = members.get_mut("databases".as_bytes()) else {
        return;
    };
    for database in databases {
        let is_told = database.get("storage").is_some();
        let file = database.get("file").and_then(Value::as_str);
        let length = file
            .filter(|_| !is_told)
            .and_then(|file| Some(std::fs::metadata(file).ok()?.len()));
        if let (Some(length), Value::Object(members)) = (length, database) {
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            members.insert(LOCAL_FILE_BYTES.into(), Value::Integer(length));
        }
    }
}

/// Gets a page: its status and its body.
fn get(address: &str, path: &str) -> io::Result<(u16, Vec<u8>)> {
    if let Some(socket) = address.strip_prefix("unix:") {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        return exchange(stream, "localhost", path);
    }
    let authority = address.strip_prefix("http://").unwrap_or(address);
    // Pages behind a proxy may be in a folder.
    let (authority, folder) = match authority.find('/') {
        Some(at) => authority.split_at(at),
        None => (authority, ""),
    };
    let path = &format!("{folder}{path}");
    let mut last = io::Error::from(io::ErrorKind::InvalidInput);
    for target in authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&target, LIMIT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(LIMIT))?;
                stream.set_write_timeout(Some(LIMIT))?;
                return exchange(stream, authority, path);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// One request of HTTP/1.0, whose answer ends with the connection.
fn exchange(mut stream: impl Read + Write, host: &str, path: &str) -> io::Result<(u16, Vec<u8>)> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: */*\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let deadline_ms = clock::mono_ms() + u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX);
    let mut answer = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return parse(&answer),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => signals::run(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
        if answer.len() > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if clock::mono_ms() > deadline_ms {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// The status and the body of an answer.
fn parse(answer: &[u8]) -> io::Result<(u16, Vec<u8>)> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    let end = answer
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .ok_or_else(wrong)?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.ok_or_else(wrong)?, answer[end + 4..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_an_address() {
        let pages = |text: &str| Source::pages(text).to_string();
        assert_eq!(pages("192.0.2.1:9641"), "http://192.0.2.1:9641");
        assert_eq!(pages("http://h:1/"), "http://h:1");
        assert_eq!(pages("http://h:1/status.json"), "http://h:1");
        assert_eq!(pages("http://h:1/nb/status.json"), "http://h:1/nb");
        assert_eq!(pages("unix:/run/x.sock"), "unix:/run/x.sock");
    }

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let answer = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}\r\n\r\n";
        assert_eq!(parse(answer).unwrap(), (200, b"{}\r\n\r\n".to_vec()));
        assert!(parse(b"").is_err());
        assert!(parse(b"HTTP/1.1\r\n\r\n").is_err());
    }
}
