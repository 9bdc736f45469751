//! The status that a server of Corvid publishes (docs/reference/status.md): from its page
//! `/status.json`, or from its control socket, which is found by itself for a local server. Of a
//! server of the reference, its control socket tells a part.
//!
//! A cluster has a slot for each member. A slot is read at most once in [`FRESH`], whatever the
//! number of viewers, and one that does not answer is left alone for [`RETRY`]. Reading blocks, so
//! it is done on threads for blocking work. [`samples`] keeps the last hour.

pub(crate) mod samples;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corvid::json::Value;
use corvid::rpc::remote::RemoteList;
use corvid_net::dirs;
use corvid_tools::status::source::Source as Told;
use corvid_tools::status::{address, document};
use tokio::runtime::Handle;

use crate::settings::sources::Source;

/// How long a status is shown before it is read again.
const FRESH: Duration = Duration::from_secs(2);

/// How long a slot that has not answered is left alone.
const RETRY: Duration = Duration::from_secs(10);

/// The number of slots of a database.
const SLOTS_MAX: usize = 16;

/// The number of control sockets of a folder that are tried.
const SOCKETS_MAX: usize = 64;

/// Where the statuses of a database's servers are.
pub(crate) struct StatusSource {
    slots: Vec<Slot>,
    /// The slot of the server that the console is connected to, as far as that is known.
    preferred: AtomicUsize,
}

struct Slot {
    location: Location,
    last: Mutex<Last>,
}

enum Location {
    /// A page or a control socket that the command line names.
    Given(Told),
    /// The control socket of the server that listens at this socket.
    Beside(PathBuf),
}

/// The last reading of a slot.
#[derive(Default)]
struct Last {
    at: Option<Instant>,
    status: Option<Arc<Status>>,
    /// The control socket that was found.
    found: Option<Told>,
}

/// A status, and where it came from.
#[derive(Debug)]
pub(crate) struct Status {
    /// The document.
    pub(crate) document: Arc<Value>,
    /// The place where it is told.
    pub(crate) source: Told,
}

impl Status {
    /// Whether it is the document of a server of Corvid, not a part made of texts.
    pub(crate) fn is_own(&self) -> bool {
        document::number(&self.document, "version") == Some(1)
    }

    /// The page of metrics, if the status came from a page.
    pub(crate) fn metrics(&self) -> Option<String> {
        match &self.source {
            Told::Pages(address) if address.starts_with("http://") => {
                Some(format!("{address}/metrics"))
            }
            _ => None,
        }
    }

    /// The part that describes a database.
    pub(crate) fn of_database(&self, name: &str) -> Option<&Value> {
        of_database(&self.document, name)
    }
}

impl StatusSource {
    pub(crate) fn new(source: &Source) -> StatusSource {
        let mut locations: Vec<Location> = match source.status.as_deref() {
            Some(text) => text.split(',').map(given).collect(),
            None => {
                let list = RemoteList::parse(&source.remotes);
                let sockets = list.remotes.iter();
                let sockets = sockets.filter_map(|remote| remote.strip_prefix("unix:"));
                sockets
                    .map(|path| Location::Beside(dirs::absolute_under(&dirs::run(), path)))
                    .collect()
            }
        };
        locations.truncate(SLOTS_MAX);
        StatusSource::at(locations)
    }

    /// The server that listens at one of these sockets of this machine.
    pub(crate) fn beside(addresses: &[String]) -> StatusSource {
        let sockets = addresses.iter().take(SLOTS_MAX);
        let sockets = sockets.filter_map(|address| address.strip_prefix("unix:"));
        let socket = |path| Location::Beside(dirs::absolute_under(&dirs::run(), path));
        StatusSource::at(sockets.map(socket).collect())
    }

    fn at(locations: Vec<Location>) -> StatusSource {
        let slot = |location| Slot {
            location,
            last: Mutex::default(),
        };
        StatusSource {
            slots: locations.into_iter().map(slot).collect(),
            preferred: AtomicUsize::new(0),
        }
    }

    /// The status of the server that the console is connected to, or of another one of the
    /// database; `None` if none publishes any.
    pub(crate) fn read(&self) -> Option<Arc<Value>> {
        let status = self.main().filter(|status| status.is_own());
        status.map(|status| status.document.clone())
    }

    /// As [`StatusSource::read`], also the part that the reference tells.
    pub(crate) fn main(&self) -> Option<Arc<Status>> {
        let preferred = self.preferred.load(Ordering::Relaxed);
        let first = self.slots.get(preferred).and_then(Slot::read);
        let others = || self.slots.iter().enumerate();
        first.or_else(|| {
            let mut others = others().filter(|(at, _)| *at != preferred);
            others.find_map(|(_, slot)| slot.read())
        })
    }

    /// The statuses of all servers of the database that publish one, read at the same time.
    pub(crate) fn all(&self) -> Vec<Arc<Status>> {
        let runtime = Handle::try_current().ok();
        thread::scope(|scope| {
            let read = |slot: &Slot| {
                let _within = runtime.as_ref().map(Handle::enter);
                slot.read()
            };
            let readers: Vec<_> = (self.slots.iter())
                .map(|slot| scope.spawn(move || read(slot)))
                .collect();
            let statuses = readers.into_iter().filter_map(|reader| reader.join().ok()?);
            statuses.collect()
        })
    }

    /// Prefers the slot of the server at this address.
    pub(crate) fn prefer(&self, remote: &str) {
        let find = || self.slots.iter().position(|slot| slot.is_of(remote));
        let mut found = find();
        // A page tells which server it is of only once it is read.
        if found.is_none() && self.slots.len() > 1 && self.slots.iter().any(Slot::is_unread) {
            self.all();
            found = find();
        }
        if let Some(found) = found {
            self.preferred.store(found, Ordering::Relaxed);
        }
    }
}

fn given(text: &str) -> Location {
    let path = text.strip_prefix("unix:").unwrap_or(text);
    Location::Given(match text.starts_with("http://") {
        true => Told::pages(text),
        false => Told::Control(dirs::absolute_under(&dirs::run(), path)),
    })
}

impl Slot {
    fn read(&self) -> Option<Arc<Status>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = if last.status.is_some() { FRESH } else { RETRY };
        if last.at.is_some_and(|at| at.elapsed() < pause) {
            return last.status.clone();
        }
        let status = match &self.location {
            Location::Given(told) => read(told),
            // Finding the socket asks many others, so it is remembered.
            Location::Beside(socket) => {
                let known = last.found.as_ref().and_then(read);
                known.or_else(|| beside(socket))
            }
        };
        last.found = status.as_ref().map(|status| status.source.clone());
        last.status = status.map(Arc::new);
        last.at = Some(Instant::now());
        last.status.clone()
    }

    fn is_unread(&self) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.at.is_none()
    }

    /// Whether it is the slot of the server at this address, by the last reading.
    fn is_of(&self, remote: &str) -> bool {
        match &self.location {
            Location::Beside(socket) => {
                let path = remote.strip_prefix("unix:");
                path.is_some_and(|path| dirs::absolute_under(&dirs::run(), path) == *socket)
            }
            Location::Given(told) => {
                let page = match told {
                    Told::Pages(page) => page.strip_prefix("http://"),
                    Told::Control(_) => None,
                };
                let host = page.and_then(|page| page.rsplit_once(':'));
                let is_same_host = |(host, _): (&str, &str)| address::host(remote) == Some(host);
                if host.is_some_and(is_same_host) && !address::is_loopback(remote) {
                    return true;
                }
                let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                let status = last.status.as_ref();
                status.is_some_and(|status| listens_at(&status.document, remote))
            }
        }
    }
}

/// Whether the server of a status listens at an address of this machine.
pub(crate) fn listens_at(status: &Value, address: &str) -> bool {
    let remotes = document::list(status, "server.remotes").unwrap_or_default();
    let mut remotes = remotes.iter().filter_map(Value::as_str);
    remotes.any(|remote| address::is_remote_of(remote, address))
}

fn read(told: &Told) -> Option<Status> {
    let status = told.read().ok()?;
    let version = document::number(&status.document, "version");
    // A later version has members with other meanings.
    version.is_none_or(|version| version == 1).then(|| Status {
        document: Arc::new(status.document),
        source: told.clone(),
    })
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

/// The status of the server that listens at a socket: from the control socket of the same process
/// in the same folder or in the run directory.
fn beside(socket: &Path) -> Option<Status> {
    let pid = peer_pid(socket)?;
    let folder = socket.parent().map(Path::to_owned);
    folder
        .into_iter()
        .chain([dirs::run()])
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with("ctl"))
        .take(SOCKETS_MAX)
        .filter(|path| peer_pid(path) == Some(pid))
        .find_map(|path| read(&Told::Control(path)))
}

/// The process that listens at a socket.
fn peer_pid(socket: &Path) -> Option<i32> {
    // Outside of the runtime the stream could not be made.
    Handle::try_current().ok()?;
    let stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
    stream.set_nonblocking(true).ok()?;
    tokio::net::UnixStream::from_std(stream)
        .ok()?
        .peer_cred()
        .ok()?
        .pid()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(status: Option<&str>, remotes: &str) -> StatusSource {
        StatusSource::new(&Source {
            name: "nb".to_owned(),
            remotes: remotes.to_owned(),
            database: None,
            status: status.map(str::to_owned),
        })
    }

    #[test]
    fn the_status_of_the_connected_server_is_preferred() {
        let local = source(None, "unix:/a.sock,tcp:192.0.2.1:6641,unix:/b.sock");
        assert_eq!(local.slots.len(), 2);
        let chosen = |source: &StatusSource, remote: &str| {
            source.prefer(remote);
            source.preferred.load(Ordering::Relaxed)
        };
        assert_eq!(chosen(&local, "unix:/b.sock"), 1);
        // A server without a slot changes nothing.
        assert_eq!(chosen(&local, "tcp:192.0.2.1:6641"), 1);
        let pages = "http://192.0.2.1:9641/status.json,http://192.0.2.2:9641";
        let pages = source(Some(pages), "tcp:192.0.2.1:6641,tcp:192.0.2.2:6641");
        assert_eq!(chosen(&pages, "tcp:192.0.2.2:6641"), 1);
        assert_eq!(chosen(&pages, "tcp:192.0.2.1:6641"), 0);
    }

    /// The address of a page with the status of a server that listens at a port.
    fn page(port: u16) -> String {
        use std::io::{BufRead, BufReader, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let status = format!(
            r#"{{"version":1,"server":{{"remotes":["ptcp:{port}:127.0.0.1"]}},"databases":[]}}"#
        );
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let _ = lines.map_while(Result::ok).find(String::is_empty);
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
                let length = status.len();
                let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{status}");
            }
        });
        address
    }

    #[test]
    fn the_first_reading_is_of_the_connected_member() {
        let pages = [6641, 6642, 6643].map(page).join(",");
        let remotes = "tcp:127.0.0.1:6641,tcp:127.0.0.1:6642,tcp:127.0.0.1:6643";
        let source = source(Some(&pages), remotes);
        source.prefer("tcp:127.0.0.1:6643");
        let status = source.main().unwrap();
        assert!(listens_at(&status.document, "tcp:127.0.0.1:6643"));
    }

    #[test]
    fn pages_have_metrics_and_control_sockets_have_none() {
        let status = |text: &str| {
            let Location::Given(source) = given(text) else {
                panic!("not given");
            };
            Status {
                document: Arc::new(Value::Null),
                source,
            }
        };
        let page = status("http://192.0.2.1:9641/status.json").metrics();
        assert_eq!(page.as_deref(), Some("http://192.0.2.1:9641/metrics"));
        assert_eq!(status("/run/x.ctl").metrics(), None);
    }
}
