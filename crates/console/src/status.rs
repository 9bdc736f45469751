//! The status that a server of Corvid publishes (docs/reference/status.md): from its page
//! `/status.json`, or from its control socket, which is found by itself for a local server.
//!
//! Read at most once in [`FRESH`], whatever the number of viewers. Reading it blocks, so it is done
//! on threads for blocking work.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use corvid::json::Value;
use corvid::rpc::remote::RemoteList;
use corvid_net::{clock, dirs};
use corvid_tools::session::Session;

use crate::settings::Source;

/// How long a status is shown before it is read again.
const FRESH: Duration = Duration::from_secs(2);

/// How long a server may take to tell its status.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The longest status that is read.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Where the status of a database's server is.
pub(crate) struct StatusSource {
    location: Location,
    last: Mutex<Option<(Instant, Option<Arc<Value>>)>>,
}

enum Location {
    /// A page: host with port, and path.
    Page(String, String),
    /// A control socket.
    Control(PathBuf),
    /// The control socket of the server that listens at one of these sockets.
    Beside(Vec<PathBuf>),
}

impl StatusSource {
    pub(crate) fn new(source: &Source) -> StatusSource {
        let location = match source.status.as_deref() {
            Some(text) => match text.strip_prefix("http://") {
                Some(url) => {
                    let (host, path) = url.split_once('/').unwrap_or((url, "status.json"));
                    Location::Page(host.to_owned(), format!("/{path}"))
                }
                None => Location::Control(text.strip_prefix("unix:").unwrap_or(text).into()),
            },
            None => {
                let list = RemoteList::parse(&source.remotes);
                let sockets = list.remotes.iter();
                let sockets = sockets.filter_map(|remote| remote.strip_prefix("unix:"));
                Location::Beside(sockets.map(PathBuf::from).collect())
            }
        };
        StatusSource {
            location,
            last: Mutex::new(None),
        }
    }

    /// The status; `None` if the server publishes none.
    pub(crate) fn read(&self) -> Option<Arc<Value>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, status)) = &*last
            && at.elapsed() < FRESH
        {
            return status.clone();
        }
        let status = match &self.location {
            Location::Page(host, path) => page(host, path).ok(),
            Location::Control(path) => control(path),
            Location::Beside(sockets) => sockets.iter().find_map(|socket| beside(socket)),
        };
        let status = status
            .filter(|status| status.get("version").and_then(Value::as_integer) == Some(1))
            .map(Arc::new);
        *last = Some((Instant::now(), status.clone()));
        status
    }
}

/// The part of a status that describes a database.
pub(crate) fn of_database<'s>(status: &'s Value, database: &str) -> Option<&'s Value> {
    let databases = status.get("databases")?.as_array()?;
    databases
        .iter()
        .find(|one| one.get("name").and_then(Value::as_str) == Some(database))
}

/// The number of rows of a table, according to the status of its database.
pub(crate) fn rows(of_database: &Value, table: &str) -> Option<u64> {
    let tables = of_database.get("tables")?.as_array()?;
    let table = tables
        .iter()
        .find(|one| one.get("name").and_then(Value::as_str) == Some(table))?;
    u64::try_from(table.get("rows")?.as_integer()?).ok()
}

fn page(host: &str, path: &str) -> io::Result<Value> {
    let address = host
        .to_socket_addrs()?
        .next()
        .ok_or(io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut reply = Vec::new();
    stream.take(BYTES_MAX).read_to_end(&mut reply)?;
    let end = b"\r\n\r\n";
    let body = reply
        .windows(end.len())
        .position(|window| window == end)
        .ok_or(io::ErrorKind::InvalidData)?;
    Value::parse(&reply[body + end.len()..]).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn control(path: &Path) -> Option<Value> {
    let deadline_ms = clock::mono_ms() + u64::try_from(TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    let socket = format!("unix:{}", path.display());
    let mut session = Session::open_until(&socket, &Arc::default(), Some(deadline_ms)).ok()?;
    let params = Value::Array(vec![Value::string("--json")]);
    let reply = session.call("ovsdb-server/status", &params).ok()?;
    match reply.as_str() {
        Some(text) => Value::parse(text.trim().as_bytes()).ok(),
        None => Some(reply),
    }
}

/// The status of the server that listens at a socket: from the control socket of the same process
/// in the same folder or in the run directory.
fn beside(socket: &Path) -> Option<Value> {
    let pid = peer_pid(socket)?;
    let folder = socket.parent().map(Path::to_owned);
    folder
        .into_iter()
        .chain([dirs::run()])
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with("ctl"))
        .filter(|path| peer_pid(path) == Some(pid))
        .find_map(|path| control(&path))
}

/// The process that listens at a socket.
fn peer_pid(socket: &Path) -> Option<i32> {
    let stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
    stream.set_nonblocking(true).ok()?;
    tokio::net::UnixStream::from_std(stream)
        .ok()?
        .peer_cred()
        .ok()?
        .pid()
}
