//! The relays of a database as a tree: its source, the relays of the source, theirs.
//!
//! A relay tells its sources; nobody tells a source which of its sessions are relays. So relays are
//! found among the databases of this console, and among the sessions: those of another
//! `ovsdb-server` on the same machine, and those whose certificate `--trusted-relays` names.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use askama::Template;
use corvid::json::Value;
use corvid::rpc::remote::RemoteList;
use corvid_net::clock;
use corvid_tools::session::Session;
use corvid_tools::status::document;
use corvid_tools::status::source::Source;

use super::list::{grouped, text};
use super::sessions::program;
use crate::database::{Database, SourceAnswer, State};
use crate::pages::grid::{bytes, duration};
use crate::status::{self, Status, StatusSource, listens_at, samples};
use crate::web::App;

/// The number of nodes of a tree.
const NODES_MAX: usize = 200;

/// The number of sources above one another.
const DEPTH_MAX: usize = 8;

/// The number of sources of a relay that are asked.
const SOURCES_MAX: usize = 8;

/// How long an answer of a source is shown.
const FRESH: Duration = Duration::from_secs(10);

/// How long a source may take to answer.
const ANSWER_MS: u64 = 2000;

/// A server of the tree.
#[derive(Default, Template)]
#[template(path = "server_node.html")]
pub(super) struct Node {
    name: String,
    /// The page of this console about it.
    href: String,
    /// More of its name: its model, its address.
    more: String,
    is_this: bool,
    state: String,
    class: &'static str,
    /// The changes that it has not applied yet, the requests that wait.
    lag: String,
    children: Vec<Node>,
}

/// A server whose status is known.
struct Known {
    /// The name in this console; empty: it was found.
    name: String,
    /// The addresses at which clients reach it, as far as they are known.
    remotes: Vec<String>,
    document: Arc<Value>,
    is_old: bool,
    is_this: bool,
}

impl Known {
    fn database(&self, name: &str) -> Option<&Value> {
        status::of_database(&self.document, name)
    }

    /// The sources, if it is a relay of the database.
    fn sources(&self, name: &str) -> Vec<String> {
        let list = self.database(name).and_then(|it| text(it, "relay.source"));
        RemoteList::parse(list.unwrap_or_default()).remotes
    }

    /// Whether an address leads to it.
    fn is_at(&self, address: &str) -> bool {
        let is_equal = self.remotes.iter().any(|remote| remote == address);
        is_equal || listens_at(&self.document, address)
    }

    fn process(&self) -> (Option<i64>, Option<i64>) {
        let number = |path| document::number(&self.document, path);
        (number("server.pid"), number("server.started_ms"))
    }
}

/// The tree around a database; `None` if it neither is a relay nor has any.
pub(super) fn tree(
    app: &App,
    database: &Database,
    name: &str,
    main: &Status,
    all: &[Arc<Status>],
) -> Option<Node> {
    let mut known = vec![Known {
        name: database.source.name.clone(),
        remotes: RemoteList::parse(&database.source.remotes).remotes,
        document: main.document.clone(),
        is_old: false,
        is_this: true,
    }];
    known.extend(of_console(app, database, name));
    let mut root = 0;
    let mut source = None;
    for _ in 0..DEPTH_MAX {
        let sources = known[root].sources(name);
        if sources.is_empty() {
            break;
        }
        let is_source = |one: &Known| sources.iter().any(|address| one.is_at(address));
        if let Some(above) = known.iter().position(is_source) {
            if above == root {
                break;
            }
            root = above;
            continue;
        }
        match beside(database, &sources, main).filter(|found| found.database(name).is_some()) {
            Some(found) => {
                known.push(found);
                root = known.len() - 1;
            }
            None => {
                source = Some(asked(database, name, &sources));
                break;
            }
        }
    }
    let mut seen = BTreeSet::new();
    let mut left = NODES_MAX;
    let node = grown(&known, root, name, all, &mut seen, &mut left);
    let tree = match source {
        Some(source) => Node {
            children: vec![node],
            ..source
        },
        None => node,
    };
    (!tree.children.is_empty() || !known[0].sources(name).is_empty()).then_some(tree)
}

/// The other databases of this console that have the same name and tell a status.
fn of_console(app: &App, database: &Database, name: &str) -> Vec<Known> {
    let others = app.databases.iter();
    let others = others.filter(|other| other.source.name != database.source.name);
    others
        .filter_map(|other| {
            let State::Open(open) = other.state() else {
                return None;
            };
            if open.schema.name.as_str() != name {
                return None;
            }
            let samples = other.samples.lock().unwrap_or_else(PoisonError::into_inner);
            let brief = samples.brief()?;
            Some(Known {
                name: other.source.name.clone(),
                remotes: RemoteList::parse(&other.source.remotes).remotes,
                document: brief.document.clone(),
                is_old: Instant::now() > brief.until,
                is_this: false,
            })
        })
        .collect()
}

/// The source at a socket of this machine, if the relay is on this machine too: a socket that a
/// server of another machine names is not ours.
fn beside(database: &Database, sources: &[String], main: &Status) -> Option<Known> {
    if !matches!(main.source, Source::Control(_)) {
        return None;
    }
    let key = sources.join(",");
    let place = {
        let mut above = database
            .above
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Sources change seldom; those of earlier times are forgotten together.
        if above.len() >= DEPTH_MAX && !above.contains_key(&key) {
            above.clear();
        }
        let place = above.entry(key);
        place
            .or_insert_with(|| Arc::new(StatusSource::beside(sources)))
            .clone()
    };
    place.main().map(|found| Known {
        name: String::new(),
        remotes: sources.to_vec(),
        document: Arc::new(samples::brief(&found.document)),
        is_old: false,
        is_this: false,
    })
}

/// The source as every client sees it.
fn asked(database: &Database, name: &str, sources: &[String]) -> Node {
    let addresses = sources.join(",");
    let mut last = database
        .sources
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let known = last.as_ref();
    if let Some(answer) = known.filter(|it| it.addresses == addresses && it.at.elapsed() < FRESH) {
        return source_node(answer);
    }
    let ask = |address: &str| {
        let deadline_ms = clock::mono_ms() + ANSWER_MS;
        let mut session =
            Session::open_until(address, &database.credentials, Some(deadline_ms)).ok()?;
        let operation = br#"{"op":"select","table":"Database","where":[],"columns":["name","model","connected"]}"#;
        let operation = Value::parse(operation).ok()?;
        let params = Value::Array(vec![Value::string("_Server"), operation]);
        let reply = session.call("transact", &params).ok()?;
        let rows = reply.as_array()?.first()?.get("rows")?.as_array()?;
        let row = rows.iter().find(|row| text(row, "name") == Some(name));
        row.cloned()
    };
    let rows: Vec<Value> = thread::scope(|scope| {
        let asked = sources.iter().take(SOURCES_MAX);
        let askers: Vec<_> = asked
            .map(|address| scope.spawn(move || ask(address)))
            .collect();
        let rows = askers.into_iter().filter_map(|asker| asker.join().ok()?);
        rows.collect()
    });
    let is_connected = |row: &Value| document::flag(row, "connected") == Some(true);
    let answer = SourceAnswer {
        at: Instant::now(),
        addresses,
        model: rows
            .iter()
            .find_map(|row| text(row, "model"))
            .unwrap_or_default()
            .to_owned(),
        state: match rows.is_empty() {
            true => "not reached",
            false if rows.iter().any(is_connected) => "connected",
            false => "not connected",
        },
    };
    source_node(last.insert(answer))
}

fn source_node(answer: &SourceAnswer) -> Node {
    Node {
        name: answer.addresses.clone(),
        more: answer.model.clone(),
        class: if answer.state == "connected" {
            ""
        } else {
            "trouble"
        },
        state: answer.state.to_owned(),
        ..Node::default()
    }
}

/// The node of a server with those below it.
fn grown(
    known: &[Known],
    at: usize,
    name: &str,
    all: &[Arc<Status>],
    seen: &mut BTreeSet<usize>,
    left: &mut usize,
) -> Node {
    seen.insert(at);
    *left = left.saturating_sub(1);
    let server = &known[at];
    let mut node = node(server, name);
    let mut processes = BTreeSet::new();
    for (below, other) in known.iter().enumerate() {
        let sources = other.sources(name);
        let is_below = sources.iter().any(|address| {
            // A relay of a cluster may have any member as its source.
            let members = all.iter().filter(|_| server.is_this);
            server.is_at(address) || members.clone().any(|it| listens_at(&it.document, address))
        });
        if is_below && !seen.contains(&below) && *left > 0 {
            processes.insert(other.process().0);
            node.children
                .push(grown(known, below, name, all, seen, left));
        }
    }
    // Sessions are in the whole status, which is that of the page's own server.
    let sessions = match server.is_this {
        true => document::list(&server.document, "sessions").unwrap_or_default(),
        false => &[],
    };
    for session in sessions
        .iter()
        .filter(|session| is_relay(session, &server.document))
    {
        let is_shown =
            document::number(session, "pid").is_some_and(|pid| processes.contains(&Some(pid)));
        if !is_shown && *left > 0 {
            *left -= 1;
            node.children.push(of_session(session));
        }
    }
    node
}

/// Whether a session is that of a relay, as far as it can be told.
fn is_relay(session: &Value, status: &Value) -> bool {
    let trusted = status
        .get("settings")
        .and_then(|settings| settings.get("trusted-relays"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let client = text(session, "client").filter(|client| !client.is_empty());
    let is_trusted =
        client.is_some_and(|client| trusted.split(',').any(|name| name.trim() == client));
    is_trusted || text(session, "program") == Some("ovsdb-server")
}

fn node(server: &Known, name: &str) -> Node {
    let database = server.database(name);
    let number = |path: &str| database.and_then(|it| document::number(it, path));
    let model = database
        .and_then(|it| text(it, "model"))
        .unwrap_or_default();
    let mut lag = Vec::new();
    if let Some(count) = number("relay.unapplied_bytes") {
        lag.push(match count {
            0 => "up to date".to_owned(),
            count => format!("{} not applied", bytes(count)),
        });
    }
    if let Some(count) = number("relay.waiting_requests").filter(|count| *count > 0) {
        lag.push(format!("{} requests wait", grouped(count)));
    }
    let relay = database.and_then(|it| text(it, "relay.state"));
    let is_ready = document::flag(&server.document, "server.ready");
    let (state, is_well) = match relay {
        _ if server.is_old => ("not reached".to_owned(), false),
        Some(state) => {
            let since = number("relay.state_age_ms").unwrap_or(0);
            let since = duration(since.saturating_mul(1000));
            (format!("{state} for {since}"), state == "connected")
        }
        None => match is_ready {
            Some(false) => ("not ready".to_owned(), false),
            _ => ("ready".to_owned(), true),
        },
    };
    if relay.is_some_and(|state| state != "connected") {
        lag.retain(|words| words != "up to date");
    }
    let name = match server.name.as_str() {
        "" => server.remotes.first().cloned().unwrap_or_default(),
        name => name.to_owned(),
    };
    Node {
        href: match server.name.as_str() {
            "" => String::new(),
            name => format!("/db/{name}/servers"),
        },
        name,
        more: model.to_owned(),
        is_this: server.is_this,
        state,
        class: if is_well { "" } else { "trouble" },
        lag: lag.join(", "),
        children: Vec::new(),
    }
}

fn of_session(session: &Value) -> Node {
    let backlog = document::number(session, "backlog_bytes");
    Node {
        name: program(session).unwrap_or_default(),
        more: text(session, "peer").unwrap_or_default().to_owned(),
        state: match document::number(session, "age_ms") {
            Some(age_ms) => format!("connected for {}", duration(age_ms.saturating_mul(1000))),
            None => "connected".to_owned(),
        },
        lag: match backlog {
            Some(0) => "has read everything".to_owned(),
            Some(unread) => format!("{} unread", bytes(unread)),
            None => String::new(),
        },
        ..Node::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str, remote: &str, document: &str, is_this: bool) -> Known {
        Known {
            name: name.to_owned(),
            remotes: vec![remote.to_owned()],
            document: Arc::new(Value::parse(document.as_bytes()).expect("JSON")),
            is_old: false,
            is_this,
        }
    }

    fn relay(source: &str, pid: i64) -> String {
        format!(
            r#"{{"server":{{"pid":{pid},"remotes":[]}},"databases":[{{"name":"D","model":"relay",
                "relay":{{"source":"{source}","state":"connected","state_age_ms":5000,"unapplied_bytes":0}}}}]}}"#
        )
    }

    #[test]
    fn relays_and_sessions_of_relays_hang_below_their_source() {
        let source = r#"{"server":{"pid":1,"remotes":["punix:/top"],"ready":true},
            "databases":[{"name":"D","model":"standalone"}],"settings":{"trusted-relays":"far, near,"},
            "sessions":[{"program":"ovsdb-server","pid":2,"peer":"unix#1"},{"program":"ovsdb-server","pid":9,"peer":"unix#2","backlog_bytes":0},
                {"client":"near","peer":"ssl:192.0.2.7:1"},{"program":"ovn-northd","pid":5,"client":""}]}"#;
        let all = [
            known("top", "tcp:x:1", source, true),
            known("mid", "unix:/mid", &relay("unix:/top", 2), false),
            known("low", "tcp:y:1", &relay("unix:/mid", 3), false),
        ];
        let mut left = NODES_MAX;
        let tree = grown(&all, 0, "D", &[], &mut BTreeSet::new(), &mut left);
        let names: Vec<&str> = tree
            .children
            .iter()
            .map(|node| node.name.as_str())
            .collect();
        assert_eq!(names, ["mid", "ovsdb-server (9)", "near"]);
        assert_eq!(tree.children[0].children[0].name, "low");
        assert_eq!(tree.children[0].children[0].state, "connected for 5.0 s");
        assert_eq!(tree.children[0].lag, "up to date");
        assert_eq!(tree.children[1].lag, "has read everything");
    }

    #[test]
    fn relays_in_a_circle_end() {
        let all = [
            known("a", "unix:/a", &relay("unix:/b", 1), true),
            known("b", "unix:/b", &relay("unix:/a", 2), false),
        ];
        let tree = grown(&all, 0, "D", &[], &mut BTreeSet::new(), &mut 10);
        assert_eq!(tree.children.len(), 1);
        assert!(tree.children[0].children.is_empty());
    }
}
