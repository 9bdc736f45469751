//! The servers that belong together: members of clusters, relays and their sources, each as its
//! clients and its own status show it.
//!
//! [`find`] asks the given addresses, then follows what they tell: the members of a cluster, the
//! source of a relay. A server is known by what its `_Server` database says to every client, also
//! the reference's; its status ([`Source`]) adds what only the server itself knows. Unknown
//! values are `None`. The commands `servers`, `doctor` and `bundle` judge and print.

pub(crate) mod remotes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corvid_json::Value;
use corvid_net::tls::Credentials;
use corvid_net::{clock, dirs};
use corvid_rpc::remote::{RemoteList, Scheme};
use corvid_tools::status::reference::object;
use corvid_tools::status::source::{LIMIT, Source, Status};
use corvid_tools::status::{address, document};

use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::server::{self, Server};
use crate::servers_file::Servers;
use crate::settings::Settings;

use remotes::RemoteRow;

/// Limit on the number of servers that are asked.
const SERVERS_MAX: usize = 64;
/// Limit on the number of control sockets in a folder that are tried.
const SOCKETS_MAX: usize = 32;
/// Limit on the answer of a `_Server` database, bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A database as the `_Server` database shows it to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Its name.
    pub name: String,
    /// `standalone`, `clustered` or `relay`.
    pub model: Option<String>,
    /// Whether the server is connected to the cluster or to the source.
    pub connected: Option<bool>,
    /// Whether the server leads the cluster.
    pub leader: Option<bool>,
    /// The id of the cluster.
    pub cid: Option<String>,
    /// The id of the server.
    pub sid: Option<String>,
    /// The last log entry that it has applied.
    pub index: Option<i64>,
}

/// How a server was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The command line or the configuration names it.
    Given,
    /// It is a member of a cluster: its database, its id, and its address for other members.
    Member {
        /// The name of the database.
        database: String,
        /// The server id.
        sid: String,
        /// The address for members.
        address: String,
    },
    /// A relay has it as its source.
    Source,
}

/// The facts about a server.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// The address of clients; of a member that no client reaches, its address for members.
    pub address: String,
    /// How it was found.
    pub origin: Origin,
    /// Its databases, without its own one.
    pub seen: Vec<Seen>,
    /// Why no client reaches it.
    pub failure: Option<String>,
    /// Its status.
    pub status: Option<Status>,
    /// Remotes that rows of its databases configure; of members only the first one is asked.
    pub remotes: Vec<RemoteRow>,
}

impl Look {
    /// The status document.
    #[must_use]
    pub(crate) fn document(&self) -> Option<&Value> {
        self.status.as_ref().map(|status| &status.document)
    }

    /// The status of a database.
    #[must_use]
    pub(crate) fn database(&self, name: &str) -> Option<&Value> {
        document::database(self.document()?, name)
    }

    /// The names of its databases, by what clients and its status see.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.seen.iter().map(|seen| seen.name.clone()).collect();
        let told = self.document().into_iter().flat_map(document::databases);
        names.extend(told.map(|(name, _)| name.to_owned()));
        if let Origin::Member { database, .. } = &self.origin {
            names.push(database.clone());
        }
        names.sort();
        names.dedup();
        names
    }

    /// The id of the server in the cluster of a database.
    #[must_use]
    pub(crate) fn sid(&self, name: &str) -> Option<&str> {
        let seen = self.seen.iter().find(|seen| seen.name == name);
        let told = || document::text(self.database(name)?, "cluster.server_id");
        match &self.origin {
            Origin::Member { database, sid, .. } if database == name => Some(sid),
            _ => seen.and_then(|seen| seen.sid.as_deref()).or_else(told),
        }
    }
}

/// The servers that were found, the given ones first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    /// The servers.
    pub looks: Vec<Look>,
    /// Faults of sources that the command line names.
    pub notes: Vec<String>,
    /// Keys and certificates with which the servers were asked.
    pub credentials: Arc<Credentials>,
}

/// The servers and sources that are to be asked.
struct Question {
    addresses: Vec<String>,
    credentials: Arc<Credentials>,
    /// Sources that the command line or the configuration names.
    sources: Vec<Source>,
}

impl Question {
    /// The servers of the arguments, else those of the settings, and the named sources.
    fn of(
        invocation: &Invocation,
        servers: &[String],
        settings: &Settings,
    ) -> Result<Question, Failure> {
        let mut all = vec![settings.clone()];
        if !servers.is_empty() {
            let known = Servers::load()?;
            let named = |word: &String| settings.with_server(word, &known);
            all = servers.iter().map(named).collect::<Result<_, _>>()?;
        }
        let mut addresses = Vec::new();
        for settings in &all {
            for remote in server::list(&server::address(settings))?.remotes {
                if !addresses.contains(&remote) {
                    addresses.push(remote);
                }
            }
        }
        let listed = |option: &str| -> Result<Vec<String>, Failure> {
            let Some(value) = invocation.value(option) else {
                return Ok(Vec::new());
            };
            if value.split(',').any(|word| word.trim().is_empty()) {
                let message = format!("{option}={value}: an address is empty");
                return Err(Failure::usage(message));
            }
            Ok(value.split(',').map(str::to_owned).collect())
        };
        let controls = listed("--ctl")?.into_iter();
        let mut sources: Vec<Source> = controls
            .map(|path| Source::Control(dirs::absolute_under(&dirs::run(), &path)))
            .collect();
        sources.extend(listed("--metrics")?.iter().map(|text| Source::pages(text)));
        let pages = all.iter().flat_map(|settings| &settings.metrics);
        sources.extend(pages.map(|text| Source::pages(text)));
        Ok(Question {
            addresses,
            credentials: all[0].credentials.clone(),
            sources,
        })
    }
}

/// Asks these servers, or those of the settings if there are none, and those that they tell about.
///
/// # Errors
/// A name of a server is unknown.
pub(crate) fn find(
    invocation: &Invocation,
    servers: &[String],
    settings: &Settings,
) -> Result<Fleet, Failure> {
    look_for(invocation, servers, settings, true)
}

/// As [`find`], without the servers that the given ones tell about.
///
/// # Errors
/// As for [`find`].
pub(crate) fn find_given(
    invocation: &Invocation,
    servers: &[String],
    settings: &Settings,
) -> Result<Fleet, Failure> {
    look_for(invocation, servers, settings, false)
}

fn look_for(
    invocation: &Invocation,
    servers: &[String],
    settings: &Settings,
    is_followed: bool,
) -> Result<Fleet, Failure> {
    let question = Question::of(invocation, servers, settings)?;
    let mut fleet = Fleet {
        credentials: question.credentials.clone(),
        ..Fleet::default()
    };
    let mut waiting: Vec<(String, Origin)> = question
        .addresses
        .iter()
        .map(|address| (address.clone(), Origin::Given))
        .collect();
    let mut statuses = Vec::new();
    for source in &question.sources {
        match source.read() {
            Ok(status) => statuses.push(status),
            Err(reason) => fleet.notes.push(format!("{source}: {reason}")),
        }
    }
    let mut local = LocalSockets::default();
    let mut asked = BTreeSet::new();
    while !waiting.is_empty() && fleet.looks.len() < SERVERS_MAX {
        for (address, origin) in std::mem::take(&mut waiting) {
            let look = ask(&address, origin, &question.credentials);
            fleet.looks.push(look);
        }
        assign(&mut fleet.looks, &mut statuses);
        for look in fleet.looks.iter_mut().filter(|it| it.status.is_none()) {
            look.status = local.status_of(look);
        }
        if is_followed {
            add_remotes(&mut fleet.looks, &mut asked, &question.credentials);
            ask_guessed_pages(&mut fleet.looks);
            waiting = unasked(&fleet.looks);
        }
    }
    for status in statuses {
        let source = status.source;
        let note = format!("{source}: belongs to none of these servers");
        fleet.notes.push(note);
    }
    Ok(fleet)
}

/// Asks a server as every client can.
fn ask(address: &str, origin: Origin, credentials: &Arc<Credentials>) -> Look {
    let mut look = Look {
        address: address.to_owned(),
        origin,
        seen: Vec::new(),
        failure: None,
        status: None,
        remotes: Vec::new(),
    };
    if let Origin::Member { sid, address, .. } = &look.origin
        && look.address == *address
    {
        look.failure = Some(format!(
            "the address for clients of member {} is not known",
            &sid[..sid.len().min(4)]
        ));
        return look;
    }
    if Scheme::split(address).is_some_and(|(scheme, _)| scheme.is_passive()) {
        look.failure = Some("a server at a passive address cannot be asked".to_owned());
        return look;
    }
    match seen(address, credentials) {
        Ok(databases) => look.seen = databases,
        Err(failure) => look.failure = Some(failure.to_string()),
    }
    // The address of a member was guessed.
    if let Origin::Member {
        database,
        sid,
        address,
    } = &look.origin
    {
        let is_same = |seen: &Seen| {
            let known = seen.sid.as_deref().unwrap_or_default();
            seen.name == *database && !known.is_empty() && known.starts_with(sid.as_str())
        };
        if !look.seen.iter().any(is_same) {
            let guess = std::mem::replace(&mut look.address, address.clone());
            look.seen.clear();
            let reason = match look.failure.take() {
                Some(reason) => format!("{guess}: {reason}"),
                None => format!("{guess} is another server"),
            };
            look.failure = Some(format!("its address for clients is not known ({reason})"));
        }
    }
    look
}

/// The databases that `_Server` shows; their names alone if there is no such database.
fn seen(address: &str, credentials: &Arc<Credentials>) -> Result<Vec<Seen>, Failure> {
    let deadline_ms = clock::mono_ms() + u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX);
    let mut server = Server::connect_briefly(
        address,
        "_Server",
        credentials,
        ANSWER_BYTES_MAX,
        deadline_ms,
    )?;
    let columns = [
        "name",
        "model",
        "connected",
        "leader",
        "cid",
        "sid",
        "index",
    ];
    let select = object([
        ("op", Value::string("select")),
        ("table", Value::string("Database")),
        ("where", Value::Array(Vec::new())),
        ("columns", Value::Array(columns.map(Value::string).to_vec())),
    ]);
    let rows = server.execute(vec![select]).ok().and_then(|mut results| {
        let rows = results.pop()?.get("rows")?.as_array()?.to_vec();
        Some(rows)
    });
    let mut databases: Vec<Seen> = match rows {
        Some(rows) => rows.iter().map(row).collect(),
        None => {
            let names = server.databases_by(deadline_ms)?.into_iter();
            let of = |name| Seen {
                name,
                ..Seen::default()
            };
            names.map(of).collect()
        }
    };
    databases.retain(|seen| !seen.name.starts_with('_'));
    databases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(databases)
}

/// A row of the table `Database`.
fn row(row: &Value) -> Seen {
    let text = |name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
    let id = |name: &str| {
        let pair = row.get(name)?.as_array()?;
        let is_uuid = pair.first().and_then(Value::as_str) == Some("uuid");
        let id = pair.get(1)?.as_str()?;
        is_uuid.then(|| id.to_owned())
    };
    Seen {
        name: text("name").unwrap_or_default(),
        model: text("model"),
        connected: row.get("connected").and_then(Value::as_bool),
        leader: row.get("leader").and_then(Value::as_bool),
        cid: id("cid"),
        sid: id("sid"),
        index: row.get("index").and_then(Value::as_integer),
    }
}

/// Gives each status to the server that it describes. Those that describe none stay.
fn assign(looks: &mut [Look], statuses: &mut Vec<Status>) {
    // Sure ones first, so that a guess takes nothing away from them.
    for wanted in [Fit::Sure, Fit::Possible] {
        statuses.retain(|status| {
            let fits =
                |look: &&mut Look| look.status.is_none() && fit(&status.document, look) == wanted;
            let mut found = looks.iter_mut().filter(fits);
            // If several servers look the same, the order of the arguments decides.
            match found.next() {
                Some(look) => look.status = Some(status.clone()),
                None => return true,
            }
            false
        });
    }
}

/// Whether a status can be that of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It cannot.
    No,
    /// Nothing speaks against it.
    Possible,
    /// The ids or the addresses are the same.
    Sure,
}

fn fit(status: &Value, look: &Look) -> Fit {
    let mut fit = Fit::Possible;
    for name in look.names() {
        let Some(database) = document::database(status, &name) else {
            return Fit::No;
        };
        let told = document::text(database, "cluster.server_id");
        match (look.sid(&name), told) {
            (Some(a), Some(b)) if a.starts_with(b) || b.starts_with(a) => fit = Fit::Sure,
            (Some(_), _) => return Fit::No,
            // A member that joins shows clients no id yet.
            (None, _) => {}
        }
        let seen = look.seen.iter().find(|seen| seen.name == name);
        let is_relay = |model: Option<&str>| model.map(|model| model == "relay");
        let seen = is_relay(seen.and_then(|seen| seen.model.as_deref()));
        let told = is_relay(document::text(database, "model"));
        if let (Some(seen), Some(told)) = (seen, told)
            && seen != told
        {
            return Fit::No;
        }
    }
    let remotes = document::list(status, "server.remotes").unwrap_or_default();
    let mut remotes = remotes.iter().filter_map(Value::as_str);
    if remotes.any(|remote| address::is_remote_of(remote, &look.address)) {
        return Fit::Sure;
    }
    fit
}

/// Adds the remotes that rows configure, once for each database: members have the same rows.
fn add_remotes(
    looks: &mut [Look],
    asked: &mut BTreeSet<(String, String)>,
    credentials: &Arc<Credentials>,
) {
    for look in looks.iter_mut().filter(|look| look.failure.is_none()) {
        for seen in &look.seen {
            let is_relay = seen.model.as_deref() == Some("relay");
            // Databases that are in no cluster are each server's own.
            let owner = seen.cid.as_ref().unwrap_or(&look.address);
            if !is_relay && asked.insert((seen.name.clone(), owner.clone())) {
                let rows = remotes::remotes(&look.address, &seen.name, credentials);
                look.remotes.extend(rows.unwrap_or_default());
            }
        }
    }
}

/// Reads the statuses of members from pages at the port of those of another one, if they prove to
/// be theirs.
fn ask_guessed_pages(looks: &mut [Look]) {
    let ports: BTreeSet<String> = looks.iter().filter_map(pages_port).collect();
    for look in looks.iter_mut() {
        if look.status.is_some() || look.failure.is_some() {
            continue;
        }
        let Some(host) = address::host(&look.address) else {
            continue;
        };
        let mut found = ports
            .iter()
            .filter_map(|port| Source::pages(&format!("{host}:{port}")).read().ok());
        look.status = found.find(|status| fit(&status.document, look) == Fit::Sure);
    }
}

/// The port of the pages of a server whose status is known.
fn pages_port(look: &Look) -> Option<String> {
    let status = look.status.as_ref()?;
    let setting = || {
        let settings = status.document.get("settings")?;
        settings.get("metrics-listen")?.as_str()
    };
    let address = match &status.source {
        Source::Pages(address) => address.strip_prefix("http://"),
        Source::Control(_) => setting(),
    }?;
    let (_, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok().map(|port| port.to_string())
}

/// The statuses of control sockets in folders of this machine, each read once.
#[derive(Default)]
struct LocalSockets {
    read: BTreeMap<PathBuf, Option<Status>>,
}

impl LocalSockets {
    /// The status of a server of this machine, from a control socket in the folder of its socket,
    /// or in the run directory.
    fn status_of(&mut self, look: &Look) -> Option<Status> {
        let mut folders = Vec::new();
        match look.address.strip_prefix("unix:") {
            Some(path) => {
                let path = dirs::absolute_under(&dirs::run(), path);
                folders.extend(path.parent().map(Path::to_owned));
            }
            None if !address::is_loopback(&look.address) => return None,
            None => {}
        }
        folders.push(dirs::run());
        folders.dedup();
        let mut possible = Vec::new();
        for path in folders.iter().flat_map(|folder| sockets(folder)) {
            let read = || Source::Control(path.clone()).read().ok();
            let status = self.read.entry(path.clone()).or_insert_with(read);
            let Some(status) = status else { continue };
            match fit(&status.document, look) {
                Fit::Sure => return Some(status.clone()),
                Fit::Possible => possible.push(status.clone()),
                Fit::No => {}
            }
        }
        // A remote that a row of a database configures is not in the status.
        let is_near = look.address.starts_with("unix:") && look.failure.is_none();
        match (possible.pop(), possible.is_empty()) {
            (Some(only), true) if is_near => Some(only),
            _ => None,
        }
    }
}

/// The control sockets in a folder.
fn sockets(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ctl"))
        .collect();
    found.sort();
    found.truncate(SOCKETS_MAX);
    found
}

/// The remotes of a server: those of its command line, and those that rows of a database configure.
fn remotes_of<'l>(
    looks: &'l [Look],
    look: &'l Look,
    name: &'l str,
) -> impl Iterator<Item = &'l str> {
    let told = look
        .document()
        .and_then(|it| document::list(it, "server.remotes"));
    let told = told.unwrap_or_default().iter().filter_map(Value::as_str);
    let rows = looks.iter().flat_map(|look| &look.remotes);
    let rows = rows.filter(move |row| row.database == name);
    told.chain(rows.map(|row| row.target.as_str()))
}

/// The servers that the known ones tell about.
fn unasked(looks: &[Look]) -> Vec<(String, Origin)> {
    let mut found: Vec<(String, Origin)> = Vec::new();
    for look in looks {
        for (name, database) in look.document().into_iter().flat_map(document::databases) {
            for server in document::list(database, "cluster.servers").unwrap_or_default() {
                let sid = document::text(server, "server_id").unwrap_or_default();
                let is_known = |it: &Look| {
                    let known = it.sid(name).unwrap_or_default();
                    !known.is_empty() && (known.starts_with(sid) || sid.starts_with(known))
                };
                let is_waiting = |(_, origin): &(String, Origin)| match origin {
                    Origin::Member {
                        database, sid: of, ..
                    } => database == name && of == sid,
                    _ => false,
                };
                let is_self = document::flag(server, "self") == Some(true);
                if sid.is_empty()
                    || is_self
                    || looks.iter().any(is_known)
                    || found.iter().any(is_waiting)
                {
                    continue;
                }
                let address = document::text(server, "address").unwrap_or_default();
                let mut remotes = remotes_of(looks, look, name);
                let guess = address::of_clients(address, &look.address).or_else(|| {
                    remotes.find_map(|remote| address::of_clients_by_remote(address, remote))
                });
                let origin = Origin::Member {
                    database: name.to_owned(),
                    sid: sid.to_owned(),
                    address: address.to_owned(),
                };
                found.push((guess.unwrap_or_else(|| address.to_owned()), origin));
            }
            let sources = document::text(database, "relay.source").unwrap_or_default();
            for remote in RemoteList::parse(sources).remotes {
                let is_known = looks.iter().any(|look| look.address == remote)
                    || found.iter().any(|(address, _)| *address == remote);
                // A socket of another machine, or one that the server has no reason to name.
                let is_elsewhere = remote.starts_with("unix:")
                    && look
                        .status
                        .as_ref()
                        .and_then(|it| it.source.control())
                        .is_none();
                if !is_known && !is_elsewhere {
                    found.push((remote, Origin::Source));
                }
            }
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found.truncate(SERVERS_MAX.saturating_sub(looks.len()));
    found
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A server with this address, these rows of `_Server`, and this status.
    pub(crate) fn look(address: &str, seen: &[Seen], status: Option<&str>) -> Look {
        let status = status.map(|text| Status {
            document: Value::parse_text(text.as_bytes()).unwrap(),
            source: Source::Control(PathBuf::from("/run/x.ctl")),
            read_ms: 1_000_000,
            took_ms: 0,
        });
        Look {
            address: address.to_owned(),
            origin: Origin::Given,
            seen: seen.to_vec(),
            failure: None,
            status,
            remotes: Vec::new(),
        }
    }

    /// A member of the cluster of `Lab`.
    pub(crate) fn member(sid: &str, leads: bool, index: i64) -> Seen {
        Seen {
            name: "Lab".to_owned(),
            model: Some("clustered".to_owned()),
            connected: Some(true),
            leader: Some(leads),
            cid: Some("c0".to_owned()),
            sid: Some(sid.to_owned()),
            index: Some(index),
        }
    }

    fn status(sid: &str, servers: &str) -> String {
        format!(
            r#"{{"server":{{"remotes":[]}},"databases":[{{"name":"Lab","model":"clustered","cluster":{{"server_id":"{sid}","servers":[{servers}]}}}}]}}"#
        )
    }

    #[test]
    fn a_status_belongs_to_the_member_with_its_id() {
        let mut looks = [
            look("tcp:192.0.2.1:1", &[member("aaaa", true, 5)], None),
            look("tcp:192.0.2.2:1", &[member("bbbb", false, 5)], None),
        ];
        let of = |sid: &str| look("", &[], Some(&status(sid, ""))).status.unwrap();
        let mut statuses = vec![of("bbbb"), of("cccc")];
        assign(&mut looks, &mut statuses);
        assert!(looks[0].status.is_none());
        assert!(looks[1].status.is_some());
        assert_eq!(statuses.len(), 1);
    }

    #[test]
    fn a_status_belongs_to_the_server_with_its_remote() {
        let lab = Seen {
            name: "Lab".to_owned(),
            model: Some("standalone".to_owned()),
            ..Seen::default()
        };
        let text = r#"{"server":{"remotes":["punix:/b"]},"databases":[{"name":"Lab","model":"standalone"}]}"#;
        let mut looks = [
            look("unix:/a", std::slice::from_ref(&lab), None),
            look("unix:/b", &[lab], None),
        ];
        let mut statuses = vec![look("", &[], Some(text)).status.unwrap()];
        assign(&mut looks, &mut statuses);
        assert!(looks[0].status.is_none() && looks[1].status.is_some());
    }

    #[test]
    fn members_and_sources_are_followed_once() {
        let servers = r#"{"server_id":"aaaa","address":"tcp:192.0.2.1:6644","self":true},
            {"server_id":"bbbb","address":"tcp:192.0.2.2:6644","self":false}"#;
        let first = look(
            "tcp:192.0.2.1:6641",
            &[member("aaaa", true, 5)],
            Some(&status("aaaa", servers)),
        );
        let found = unasked(std::slice::from_ref(&first));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "tcp:192.0.2.2:6641");
        // By a socket of the machine, a row tells the port.
        let mut local = first.clone();
        local.address = "unix:/db.sock".to_owned();
        assert_eq!(
            unasked(std::slice::from_ref(&local))[0].0,
            "tcp:192.0.2.2:6644"
        );
        local.remotes.push(RemoteRow {
            database: "Lab".to_owned(),
            table: "Connection",
            uuid: "u".to_owned(),
            target: "pssl:6641".to_owned(),
            probe_ms: None,
        });
        assert_eq!(unasked(&[local])[0].0, "ssl:192.0.2.2:6641");
        let second = look("tcp:192.0.2.2:6641", &[member("bbbb", false, 5)], None);
        assert_eq!(unasked(&[first, second]), []);
        let relay = r#"{"databases":[{"name":"Lab","model":"relay","relay":{"source":"tcp:a:1,tcp:b:1"}}]}"#;
        let relay = look("unix:/r", &[], Some(relay));
        let found = unasked(&[relay, look("tcp:b:1", &[], None)]);
        assert_eq!(found, [("tcp:a:1".to_owned(), Origin::Source)]);
        // A server of another machine cannot have sockets of this one asked.
        let relay =
            r#"{"databases":[{"name":"Lab","model":"relay","relay":{"source":"unix:/s"}}]}"#;
        let mut relay = look("unix:/r", &[], Some(relay));
        assert_eq!(unasked(std::slice::from_ref(&relay)).len(), 1);
        if let Some(status) = &mut relay.status {
            status.source = Source::pages("http://192.0.2.1:1");
        }
        assert_eq!(unasked(&[relay]), []);
    }

    #[test]
    fn pages_of_members_have_the_same_port() {
        let port = |listen: &str| {
            let text = format!(r#"{{"databases":[],"settings":{{"metrics-listen":"{listen}"}}}}"#);
            pages_port(&look("tcp:192.0.2.1:1", &[], Some(&text)))
        };
        assert_eq!(port("192.0.2.1:9641").as_deref(), Some("9641"));
        assert_eq!(port("[::]:9641").as_deref(), Some("9641"));
        for listen in ["none", "unix:/run/p", "A=:1,B=unix:/x"] {
            assert_eq!(port(listen), None, "{listen}");
        }
    }

    #[test]
    fn rows_of_servers_may_lack_values() {
        let json = br#"{"name":"Lab","model":"clustered","connected":true,"leader":false,
            "cid":["uuid","c"],"sid":["set",[]],"index":["set",[]]}"#;
        let seen = row(&Value::parse_text(json).unwrap());
        assert_eq!(seen.cid.as_deref(), Some("c"));
        assert_eq!((seen.sid, seen.index), (None, None));
        assert_eq!(row(&Value::Null), Seen::default());
    }
}
