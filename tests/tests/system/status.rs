//! The status of a server as JSON: every member is on its page in the documentation and the other
//! way round, the control command and the page over HTTP agree, and the values follow what happens.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::client::Client;
use corvid_tests::cluster::Cluster;
use corvid_tests::http;
use corvid_tests::numbered_rows::{self, DATABASE, schema};
use corvid_tests::one_file;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use serde_json::{Value, json};

use crate::relay::node::relay_of;

/// The time limit for a condition to become true on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The page.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/status.md");

/// Members that the servers of this test do not show: a snapshot on its way, a silent thread.
const RARE: [&str; 3] = [
    "databases[].cluster.servers[].snapshot.bytes",
    "databases[].cluster.servers[].snapshot.sent_bytes",
    "unanswered[]",
];

/// The page with the members of a session.
const SESSIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../docs/operate/configuration.md"
);

/// A part whose own page lists its members.
const ELSEWHERE: &str = "settings";

fn status(server: &Process) -> Value {
    let arguments = ["--json".to_owned()];
    let reply = server.control("ovsdb-server/status", &arguments);
    let reply = reply.expect("a reply");
    let text = reply["result"].as_str().expect("a text");
    serde_json::from_str(text).expect("a document")
}

fn database<'a>(status: &'a Value, name: &str) -> &'a Value {
    let databases = status["databases"].as_array().expect("a list");
    let mut found = databases.iter().filter(|database| database["name"] == name);
    found.next().expect("the database")
}

/// Adds the paths of all members that are neither objects nor lists.
fn add_paths(value: &Value, path: &str, paths: &mut BTreeSet<String>) {
    match value {
        _ if path == ELSEWHERE => {
            paths.insert(path.to_owned());
        }
        Value::Object(members) => {
            for (name, member) in members {
                let separator = if path.is_empty() { "" } else { "." };
                add_paths(member, &format!("{path}{separator}{name}"), paths);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                add_paths(element, &format!("{path}[]"), paths);
            }
        }
        // A part that is not known has no members.
        Value::Null
            if RARE
                .iter()
                .any(|rare| rare.starts_with(&format!("{path}."))) => {}
        _ => {
            paths.insert(path.to_owned());
        }
    }
}

/// The names in the first columns of a page's tables.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells.flat_map(|cell| cell.split(',').map(|name| name.trim().trim_matches('`')))
}

/// The paths in the page's table, and those of the table of sessions.
fn documented() -> BTreeSet<String> {
    let text = fs::read_to_string(PAGE).expect("the page");
    let mut paths: BTreeSet<String> = names(&text).map(str::to_owned).collect();
    assert!(paths.remove("sessions[]"));
    let text = fs::read_to_string(SESSIONS).expect("the page");
    let section = text.split("\n## Sessions\n").nth(1).expect("the section");
    let section = section.split("\n## ").next().expect("a section");
    paths.extend(names(section).map(|name| format!("sessions[].{name}")));
    paths
}

#[test]
fn the_status_has_what_its_page_describes() {
    let mut seen = BTreeSet::from(RARE.map(str::to_owned));
    let (source, _, _folder) = one_file::start(&schema(), &[]).expect("a server");
    let mut session = source.connect().expect("a connection");
    numbered_rows::add(&mut session, 1).expect("inserted");
    let of_source = status(&source);
    assert_eq!(of_source["unanswered"], json!([]));
    assert_eq!(of_source["server"]["ready"], true);
    let served = database(&of_source, DATABASE);
    assert_eq!(
        (&served["model"], &served["has_contents"]),
        (&json!("standalone"), &json!(true))
    );
    let tables = served["tables"].as_array().expect("tables");
    let rows: Vec<&Value> = tables.iter().map(|table| &table["rows"]).collect();
    assert!(rows.contains(&&json!(1)), "{served}");
    assert_eq!(of_source["sessions"].as_array().map(Vec::len), Some(1));
    add_paths(&of_source, "", &mut seen);
    let clients = keep_busy(&source);
    let of_busy = status(&source);
    add_paths(&of_busy, "", &mut seen);
    check_busy(&of_busy);
    drop(clients);

    let mut cluster = Cluster::of(3, &schema()).expect("made");
    cluster.start().expect("started");
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).expect("a leader");
    let of_leader = status(&cluster.members()[leader]);
    let shown = &database(&of_leader, DATABASE)["cluster"];
    assert_eq!(
        (&shown["role"], &shown["leader"]),
        (&json!("leader"), &shown["server_id"])
    );
    assert_eq!(shown["servers"].as_array().map(Vec::len), Some(3));
    // Without the pages, nothing is published; the status is still right.
    assert_eq!(of_leader["server"]["faults"], json!([]));
    add_paths(&of_leader, "", &mut seen);
    let mut control = Client::connect(&cluster.members()[leader].control_socket()).expect("open");
    let format = json!(["--format", "json"]);
    control.call("set-options", &format).expect("a reply");
    let reply = control.call("cluster/status", &json!([DATABASE]));
    let reply = reply.expect("a reply");
    assert_eq!(
        reply["result"]["cluster_id"], shown["cluster_id"],
        "{reply}"
    );

    let lost = relay_of(Implementation::Corvid, DATABASE, "unix:/nowhere/at/all");
    let of_lost = status(&lost.process);
    assert_eq!(database(&of_lost, DATABASE)["has_contents"], false);
    assert_eq!(database(&of_lost, DATABASE)["relay"]["state"], "connecting");
    assert_eq!(
        of_lost["server"]["faults"][0]["check"],
        format!("relay:{DATABASE}")
    );
    add_paths(&of_lost, "", &mut seen);

    let sync = format!("--sync-from=unix:{}", source.socket().display());
    let (backup, _, _other) = one_file::start(&schema(), &[&sync]).expect("a server");
    let of_backup = status(&backup);
    let shown = database(&of_backup, DATABASE);
    assert_eq!(shown["model"], "backup");
    add_paths(&of_backup, "", &mut seen);

    let documented = documented();
    let undocumented: Vec<_> = seen.difference(&documented).collect();
    assert_eq!(undocumented, [""; 0], "members that {PAGE} lacks");
    let unseen: Vec<_> = documented.difference(&seen).collect();
    assert_eq!(unseen, [""; 0], "members that no server shows");
}

/// Has a server do what its status lists: a lock in dispute, a slow transaction, and a reading of
/// the history that waits for its client. All of it lasts as long as the returned clients.
fn keep_busy(server: &Process) -> [Client; 2] {
    let mut clients = [(); 2].map(|()| server.connect().expect("a connection"));
    for client in &mut clients {
        client.call("lock", &json!(["L"])).expect("a reply");
    }
    let threshold = ["slow-transaction-ms", "1"].map(str::to_owned);
    let reply = server.control("ovsdb-server/set-setting", &threshold);
    assert_eq!(reply.expect("a reply")["error"], Value::Null);
    let [client, _] = &mut clients;
    let mut many = vec![json!(DATABASE)];
    let row = |n: i64| json!({"op": "insert", "table": "T", "row": {"n": n}});
    many.extend((100..5100).map(row));
    many.push(json!({"op": "comment", "comment": "many rows"}));
    client.call("transact", &json!(many)).expect("a reply");
    // More than a page of history.
    for n in 5100..5300 {
        numbered_rows::add_with(client, n, &"x".repeat(3000)).expect("inserted");
    }
    let request = json!([DATABASE, {"read": "log"}]);
    let page = client.call("read_history", &request).expect("a reply");
    assert!(!page["result"]["next"].is_null(), "{page}");
    clients
}

fn check_busy(status: &Value) {
    let sessions = status["sessions"].as_array().expect("sessions");
    let holder = sessions.iter().find(|session| session["locks"] == 1);
    let holder = holder.expect("the owner");
    assert_eq!(holder["pid"], std::process::id());
    let own = fs::read_to_string("/proc/self/comm").expect("a name");
    assert_eq!(holder["program"], own.trim_end());
    assert_eq!(holder["cost"]["last_request"], "read_history");
    let lock = &status["locks"][0];
    assert_eq!(
        (&lock["name"], &lock["owner"]),
        (&json!("L"), &holder["peer"])
    );
    assert_eq!(lock["waiting"].as_array().map(Vec::len), Some(1));
    let slow = database(status, DATABASE)["slow_transactions"].as_array();
    let slow = slow.expect("a list");
    let many = slow.iter().find(|slow| slow["comment"] == "many rows");
    let many = many.expect("the slow transaction");
    assert_eq!(many["operations"], "1 comment, 5000 insert");
    assert_eq!(many["client"], holder["peer"]);
    let job = &status["jobs"][0];
    assert_eq!(
        (&job["database"], &job["kind"], &job["unit"]),
        (&json!(DATABASE), &json!("history_reading"), &json!("bytes"))
    );
    let (done, total) = (job["done"].as_u64(), job["total"].as_u64());
    assert!(done.is_some() && done < total, "{job}");
}

#[test]
fn the_page_shows_what_the_command_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("pages.sock");
    let option = format!("--metrics-listen=unix:{}", socket.display());
    let (server, _, _own) = one_file::start(&schema(), &[&option]).expect("a server");
    let page = |path: &str| http::get(Path::new(&socket), path, "*/*").expect("an answer");
    let mut session = server.connect().expect("a connection");
    for n in 1..=3 {
        numbered_rows::add(&mut session, n).expect("inserted");
        // A document that is not made in time is shown at the next visit.
        let deadline = Instant::now() + LIMIT;
        let shown = loop {
            let answer = page("/status.json");
            let status: Value = serde_json::from_str(&answer.body).unwrap_or_default();
            let is_served = status["databases"].is_array();
            if is_served && database(&status, DATABASE)["transactions"]["committed"] == n {
                break status;
            }
            assert!(Instant::now() < deadline, "{}", answer.body);
            thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(shown["version"], 1);
        let told = status(&server);
        for member in ["pid", "remotes", "ready", "program"] {
            assert_eq!(shown["server"][member], told["server"][member]);
        }
        assert_eq!(shown["settings"], told["settings"]);
        assert_eq!(
            database(&shown, DATABASE)["tables"],
            database(&told, DATABASE)["tables"]
        );
    }
    assert!(page("/").body.contains("/status.json\n"));
    // The short form names what the long one has.
    let reply = server.control("ovsdb-server/status", &[]).expect("a reply");
    let text = reply["result"].as_str().expect("a text");
    assert!(
        text.contains(&format!("\n{DATABASE}: standalone, 3 rows in ")),
        "{text}"
    );
    let reply = server.control("ovsdb-server/status", &["--xml".to_owned()]);
    assert_eq!(
        reply.expect("a reply")["error"],
        "the only argument is --json\n"
    );
}
