//! The row of a member in `_Server`, and clients that act on it immediately. The scripts of Open
//! vSwitch wait until a server is connected and then read its schema, some clients want the leader,
//! and clients that move between members compare `index`.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use corvid_tests::binary;
use corvid_tests::client::{Client, Received};
use corvid_tests::cluster::{Cluster, LIMIT};
use corvid_tests::numbered_rows::{DATABASE, add, insert, others, schema, three};
use corvid_tests::server::Implementation;
use serde_json::{Value, json};

/// The number of commits of one session.
const COMMITS: usize = 50;
/// The number of servers that join.
const JOINERS: usize = 5;
/// The number of starts of a cluster of one member.
const STARTS: usize = 10;
/// The numbers of tables and of columns of a schema whose conversion takes a moment.
const TABLES: usize = 40;

/// Threads that keep the processors busy, so that the threads of a server have to wait for each
/// other.
struct Spinners(Arc<AtomicBool>, Vec<thread::JoinHandle<()>>);

impl Spinners {
    fn start(count: usize) -> Spinners {
        let is_over = Arc::new(AtomicBool::new(false));
        let spin = |is_over: Arc<AtomicBool>| {
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..count).map(|_| thread::spawn(spin(is_over.clone())));
        Spinners(is_over.clone(), threads.collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        for thread in self.1.drain(..) {
            let _ = thread.join();
        }
    }
}

fn ovsdb_client(cluster: &Cluster, member: usize, arguments: &[&str]) -> Output {
    let socket = cluster.members()[member].socket();
    let mut command = Command::new(binary::bin("ovsdb-client"));
    command.args(["-t", "60", arguments[0]]);
    command.arg(format!("unix:{}", socket.display()));
    command.args(&arguments[1..]).output().expect("started")
}

/// Returns the number in the `index` column of rows of `_Server`.
fn index_in(rows: &Value) -> Option<i64> {
    let rows = rows["Database"].as_object()?;
    rows.values().find_map(|row| {
        let kinds = ["initial", "insert", "modify"];
        kinds.iter().find_map(|kind| row[kind]["index"].as_i64())
    })
}

fn next_message(client: &mut Client) -> Value {
    match client.receive(LIMIT).expect("received") {
        Received::Text(text) => serde_json::from_slice(&text).expect("JSON"),
        other => panic!("{other:?} in place of a message"),
    }
}

#[test]
fn the_index_of_a_commit_comes_before_its_reply_and_nobody_reads_an_older_one() {
    let (mut cluster, leader) = three();
    for member in [leader, others(leader)[0]] {
        let mut client = cluster.connect(member).expect("a connection");
        let mut reader = cluster.connect(member).expect("a connection");
        let monitor = json!({"Database": [{"columns": ["name", "index"]}]});
        let monitor = json!(["_Server", "m", monitor]);
        let initial = client.call("monitor_cond", &monitor).expect("rows");
        let mut shown = index_in(&initial["result"]).expect("an index");
        for n in 0..COMMITS {
            let request = json!({"id": n, "method": "transact", "params": insert(n, "")});
            client.send(request.to_string().as_bytes()).expect("sent");
            let before = shown;
            loop {
                let message = next_message(&mut client);
                if message["method"] == json!("update2") {
                    let index = index_in(&message["params"][1]).expect("an index");
                    assert!(index > shown, "{index} after {shown}");
                    shown = index;
                } else {
                    assert_eq!(message["id"], json!(n), "{message}");
                    break;
                }
            }
            assert!(shown > before, "commit {n} at {member}: no index");
            let select = json!(["_Server", {"op": "select", "table": "Database",
                "where": [["name", "==", DATABASE]], "columns": ["index"]}]);
            let reply = reader.call("transact", &select).expect("a reply");
            let read = reply["result"][0]["rows"][0]["index"].as_i64();
            assert!(read >= Some(shown), "{read:?} after {shown} at {member}");
        }
    }
    cluster.member(leader).stop().expect("stopped");
}

/// Returns a schema with the given version and with columns whose conversion takes a moment.
fn wide_schema(version: usize) -> Value {
    let mut schema = schema();
    schema["version"] = json!(format!("1.0.{version}"));
    let columns: serde_json::Map<String, Value> = (0..TABLES)
        .map(|n| (format!("c{n}"), json!({"type": "string"})))
        .collect();
    for n in 0..TABLES {
        schema["tables"][format!("U{n}")] = json!({"isRoot": true, "columns": columns});
    }
    schema
}

#[test]
fn a_script_that_waits_for_a_joiner_reads_the_newest_schema() {
    let mut cluster =
        Cluster::joined(Implementation::Corvid, 1, &wide_schema(0)).expect("a cluster");
    let mut client = cluster.connect(0).expect("a connection");
    let aware = client.call("set_db_change_aware", &json!([true]));
    aware.expect("a reply");
    let newest = 12;
    for version in 1..=newest {
        let params = json!([DATABASE, wide_schema(version)]);
        let reply = client.call("convert", &params).expect("a reply");
        assert_eq!(reply["result"], json!({}), "{reply}");
    }
    let spinners = Spinners::start(6);
    for _ in 0..JOINERS {
        let number = cluster.add_joining().expect("made");
        cluster.member(number).start().expect("started");
        // `ovs-lib` does the same. It ignores failures, and takes an empty version for an old one.
        let wait = ovsdb_client(&cluster, number, &["wait", DATABASE, "connected"]);
        assert!(wait.status.success(), "{wait:?}\n{}", cluster.said());
        let read = ovsdb_client(&cluster, number, &["get-schema-version", DATABASE]);
        let version = String::from_utf8_lossy(&read.stdout).trim().to_owned();
        assert_eq!(version, format!("1.0.{newest}"), "{read:?}");
    }
    drop(spinners);
}

#[test]
fn a_cluster_of_one_that_says_that_it_is_connected_leads() {
    let mut cluster = Cluster::created(&schema()).expect("made");
    for start in 0..STARTS {
        cluster.start().expect("started");
        let mut client = cluster.connect(0).expect("a connection");
        let wait = json!(["_Server", {"op": "wait", "table": "Database",
            "where": [["name", "==", DATABASE]], "columns": ["connected"], "until": "==",
            "rows": [{"connected": true}]},
            {"op": "select", "table": "Database", "where": [["name", "==", DATABASE]]}]);
        let reply = client.call("transact", &wait).expect("a reply");
        assert_eq!(
            reply["result"][1]["rows"][0]["leader"],
            json!(true),
            "start {start}: {reply}"
        );
        add(&mut client, i64::try_from(start).expect("small")).expect("inserted");
        cluster.member(0).kill();
    }
}
