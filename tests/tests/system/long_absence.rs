//! Clients that come back with a transaction that is older than the server's transaction history:
//! `monitor_cond_since` finds it in the files, and sends the difference. If anything stands against
//! that, the client gets the contents.

#![allow(clippy::unwrap_used, reason = "a failing case may end the program")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::cluster::Cluster;
use corvid_tests::numbered_rows::{DATABASE, schema};
use corvid_tests::one_file;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The id of no transaction.
const ZERO: &str = "00000000-0000-0000-0000-000000000000";

struct Served {
    process: Process,
    file: PathBuf,
    folder: TempDir,
}

impl Served {
    fn start(options: &[&str]) -> Served {
        let (process, file, folder) = one_file::start(&schema(), options).unwrap();
        Served {
            process,
            file,
            folder,
        }
    }

    fn client(&self) -> Client {
        self.process.connect().unwrap()
    }

    fn restart(&mut self) {
        self.process.stop().unwrap();
        self.process.start().unwrap();
    }

    fn compact(&self) {
        let arguments = [DATABASE.to_owned()];
        let reply = self.process.control("ovsdb-server/compact", &arguments);
        let reply = reply.unwrap();
        assert!(reply["error"].is_null(), "{reply}");
    }

    /// Waits until the first file that a compaction replaced is compressed. Returns its path.
    fn segment(&self) -> PathBuf {
        let folder = self.file.with_extension("db.history");
        let segment = folder.join("0000000001.db.zst");
        let deadline = Instant::now() + LIMIT;
        while !segment.exists() || folder.join("0000000001.db").exists() {
            assert!(Instant::now() < deadline, "{}", self.process.log());
            std::thread::sleep(Duration::from_millis(2));
        }
        segment
    }
}

fn result(client: &mut Client, method: &str, params: &Value) -> Value {
    let reply = client.call(method, params).unwrap();
    assert!(reply["error"].is_null(), "{method} {params}: {reply}");
    reply["result"].clone()
}

fn transact(client: &mut Client, operations: &[Value]) -> Value {
    let mut params = vec![json!(DATABASE)];
    params.extend_from_slice(operations);
    let results = result(client, "transact", &Value::Array(params));
    let has_error = |result: &Value| !result["error"].is_null();
    assert!(
        !results.as_array().unwrap().iter().any(has_error),
        "{results}"
    );
    results
}

fn insert(n: i64) -> Value {
    json!({"op": "insert", "table": "T", "row": {"n": n, "text": format!("row {n}")}})
}

fn update(n: i64, row: &Value) -> Value {
    json!({"op": "update", "table": "T", "where": [["n", "==", n]], "row": row})
}

fn delete(n: i64) -> Value {
    json!({"op": "delete", "table": "T", "where": [["n", "==", n]]})
}

/// Rows with a number under 500 are in view.
fn monitor(last: &str, columns: &[&str]) -> Value {
    let request = json!({"columns": columns, "where": [["n", "<", 500]]});
    json!([DATABASE, "m", {"T": [request]}, last])
}

/// The result of `monitor_cond_since`: whether the transaction was found, the last one, the rows.
struct Since {
    is_found: bool,
    last: String,
    rows: Map<String, Value>,
}

fn since_columns(client: &mut Client, last: &str, columns: &[&str]) -> Since {
    let reply = result(client, "monitor_cond_since", &monitor(last, columns));
    Since {
        is_found: reply[0].as_bool().unwrap(),
        last: reply[1].as_str().unwrap().to_owned(),
        rows: reply[2]["T"].as_object().cloned().unwrap_or_default(),
    }
}

fn since(client: &mut Client, last: &str) -> Since {
    since_columns(client, last, &["n", "text"])
}

/// The rows of a client, by UUID.
type Replica = BTreeMap<String, Map<String, Value>>;

fn apply(replica: &mut Replica, rows: &Map<String, Value>) {
    for (uuid, change) in rows {
        let (event, row) = change.as_object().unwrap().iter().next().unwrap();
        match event.as_str() {
            "initial" | "insert" => {
                let mut whole = json!({"n": 0, "text": ""}).as_object().unwrap().clone();
                whole.extend(row.as_object().unwrap().clone());
                assert!(replica.insert(uuid.clone(), whole).is_none(), "{change}");
            }
            "modify" => {
                let row = row.as_object().unwrap().clone();
                replica.get_mut(uuid).unwrap().extend(row);
            }
            "delete" => assert!(replica.remove(uuid).is_some(), "{uuid}"),
            other => panic!("{other}"),
        }
    }
}

/// Makes 200 rows, and a client that monitors them and leaves. Returns its rows and last
/// transaction.
fn leave(client: &mut Client) -> (Replica, String) {
    let rows: Vec<Value> = (0..200).chain([800]).map(insert).collect();
    transact(client, &rows);
    let first = since(client, ZERO);
    assert!(!first.is_found);
    let mut replica = Replica::new();
    apply(&mut replica, &first.rows);
    assert_eq!(replica.len(), 200);
    result(client, "monitor_cancel", &json!(["m"]));
    (replica, first.last)
}

/// Changes of every kind, and more commits than the transaction history has.
fn change(client: &mut Client) {
    transact(client, &[insert(400), insert(600)]);
    transact(client, &[update(1, &json!({"text": "other"}))]);
    transact(client, &[update(2, &json!({"n": 700}))]);
    transact(client, &[update(800, &json!({"n": 300}))]);
    transact(client, &[delete(3)]);
    transact(client, &[insert(444)]);
    transact(client, &[update(5, &json!({"text": "for a while"}))]);
    transact(client, &[update(5, &json!({"text": "row 5"})), delete(444)]);
    for round in 0..150 {
        transact(
            client,
            &[update(7, &json!({"text": format!("round {round}")}))],
        );
    }
}

/// The events of an answer, sorted.
fn events(rows: &Map<String, Value>) -> Vec<String> {
    let event = |change: &Value| change.as_object().unwrap().keys().next().unwrap().clone();
    let mut events: Vec<String> = rows.values().map(event).collect();
    events.sort();
    events
}

/// Checks the answer to a client that has missed [`change`].
fn assert_difference(client: &mut Client, mut replica: Replica, last: &str) {
    let back = since(client, last);
    assert!(back.is_found);
    // 400 and 300 come, 2 and 3 go, 1 and 7 differ; 5 is as it was.
    assert_eq!(
        events(&back.rows),
        ["delete", "delete", "insert", "insert", "modify", "modify"],
        "{:?}",
        back.rows
    );
    apply(&mut replica, &back.rows);
    assert_contents(client, &replica, &back.last);
}

/// Checks that the replica has what is in view, and that updates go on after it.
fn assert_contents(client: &mut Client, replica: &Replica, last: &str) {
    let select = json!({"op": "select", "table": "T", "where": [["n", "<", 500]],
        "columns": ["_uuid", "n", "text"]});
    let results = transact(client, &[select]);
    let mut rows = Replica::new();
    for row in results[0]["rows"].as_array().unwrap() {
        let mut row = row.as_object().unwrap().clone();
        let uuid = row.remove("_uuid").unwrap();
        rows.insert(uuid[1].as_str().unwrap().to_owned(), row);
    }
    assert_eq!(*replica, rows);
    result(client, "monitor_cancel", &json!(["m"]));
    let again = since(client, last);
    assert!(again.is_found && again.rows.is_empty(), "{:?}", again.rows);
    result(client, "monitor_cancel", &json!(["m"]));
}

#[test]
fn a_client_that_was_away_for_long_gets_the_difference() {
    let served = Served::start(&[]);
    let mut client = served.client();
    let (replica, last) = leave(&mut client);
    change(&mut client);
    assert_difference(&mut client, replica.clone(), &last);
    // Those that come at once get the same.
    let mut clients: Vec<Client> = (0..20).map(|_| served.client()).collect();
    let request = json!({"id": 1, "method": "monitor_cond_since",
        "params": monitor(&last, &["n", "text"])});
    let echo = json!({"id": 2, "method": "echo", "params": []});
    let select = json!({"id": 3, "method": "transact", "params": [DATABASE]});
    for client in &mut clients {
        client
            .send(format!("{request}{echo}{select}").as_bytes())
            .unwrap();
    }
    for client in &mut clients {
        let mut answers = Vec::new();
        while answers.len() < 3 {
            let Received::Text(text) = client.receive(LIMIT).unwrap() else {
                panic!("nothing comes");
            };
            let reply: Value = serde_json::from_slice(&text).unwrap();
            answers.push(reply);
        }
        // A later request of the database waits for the answer.
        let at = |id: i64| {
            answers
                .iter()
                .position(|answer| answer["id"] == id)
                .unwrap()
        };
        assert!(at(1) < at(3));
        let rows = &answers[at(1)]["result"];
        assert_eq!(rows[0], true);
        assert_eq!(events(rows[2]["T"].as_object().unwrap()).len(), 6);
    }
}

#[test]
fn the_difference_spans_restarts_and_compactions() {
    let mut served = Served::start(&["--keep-history=1G"]);
    let mut client = served.client();
    let (replica, last) = leave(&mut client);
    // A record tells the ids from here on, and the one before it.
    transact(&mut client, &[update(9, &json!({"text": "first run"}))]);
    let later = since(&mut client, &last);
    assert!(later.is_found && later.rows.len() == 1);
    result(&mut client, "monitor_cancel", &json!(["m"]));
    served.restart();
    client = served.client();
    let back = since(&mut client, &later.last);
    assert!(back.is_found && back.rows.is_empty());
    assert_eq!(back.last, later.last);
    result(&mut client, "monitor_cancel", &json!(["m"]));
    let back = since(&mut client, &last);
    assert!(back.is_found);
    assert_eq!(back.rows, later.rows);
    result(&mut client, "monitor_cancel", &json!(["m"]));
    transact(&mut client, &[update(9, &json!({"text": "row 9"}))]);
    change(&mut client);
    assert_difference(&mut client, replica.clone(), &last);
    served.restart();
    client = served.client();
    assert_difference(&mut client, replica.clone(), &last);
    transact(&mut client, &[update(9, &json!({"text": "third run"}))]);
    served.compact();
    served.segment();
    transact(&mut client, &[update(9, &json!({"text": "row 9"}))]);
    assert_difference(&mut client, replica.clone(), &last);
    served.restart();
    client = served.client();
    assert_difference(&mut client, replica.clone(), &last);

    // A damaged segment costs the difference, and nothing else.
    let segment = served.segment();
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    for byte in &mut bytes[middle..middle + 8] {
        *byte ^= 0xff;
    }
    std::fs::write(&segment, bytes).unwrap();
    served.restart();
    client = served.client();
    let back = since(&mut client, &last);
    assert!(!back.is_found);
    let mut fresh = Replica::new();
    apply(&mut fresh, &back.rows);
    assert_contents(&mut client, &fresh, &back.last);
}

/// The last lines of the comments in the file, as far as they are ours.
fn own_lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let records = text.lines().filter(|line| line.starts_with('{'));
    let comments = records.filter_map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["_comment"].as_str().map(str::to_owned)
    });
    let last_lines = comments.map(|text| text.lines().last().unwrap_or_default().to_owned());
    last_lines
        .filter(|line| line.starts_with("corvid: "))
        .collect()
}

/// A record that names its commit does not end the numbers of the run before: the next one does.
#[test]
fn commits_of_a_run_without_numbers_do_not_take_those_of_the_run_before() {
    let mut served = Served::start(&[]);
    let mut client = served.client();
    let (_, last) = leave(&mut client);
    transact(&mut client, &[insert(1000)]);
    let seeds = own_lines(&served.file);
    assert_eq!(seeds.len(), 1, "{seeds:?}");
    assert!(seeds[0].contains(&format!(" ids={last}")), "{seeds:?}");
    served.process.stop().unwrap();
    let options = [served.file.clone().into(), "--no-standalone-history".into()];
    let program = Implementation::Corvid.server_binary().unwrap();
    served.process = Process::new(&program, served.folder.path(), &options);
    served.process.start().unwrap();
    client = served.client();
    let id = "00000001-0000-4a00-9c66-2f0d8e5b7a11";
    let once = json!([id, null, [DATABASE, insert(1001)]]);
    result(&mut client, "transact_once", &once);
    transact(&mut client, &[insert(1002)]);
    transact(&mut client, &[insert(1003)]);
    let lines = own_lines(&served.file);
    let [_, named, end] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert!(named.contains(" results="), "{named}");
    assert_eq!(end, "corvid: txn=none");
}

#[test]
fn what_files_do_not_have_or_is_too_much_is_answered_with_the_contents() {
    let served = Served::start(&[]);
    let mut client = served.client();
    result(&mut client, "set_db_change_aware", &json!([true]));
    let (_, last) = leave(&mut client);
    change(&mut client);
    let unknown = "6731fef6-0000-4a00-9c66-2f0d8e5b7a11";
    for (id, columns) in [
        (unknown, &["n", "text"][..]),
        // Versions of rows are not stored.
        (&last, &["n", "_version"]),
    ] {
        let back = since_columns(&mut client, id, columns);
        assert!(!back.is_found, "{columns:?}");
        assert_eq!(back.rows.len(), 200);
        result(&mut client, "monitor_cancel", &json!(["m"]));
    }
    // More rows differ than there are.
    let all = json!({"op": "delete", "table": "T", "where": [["n", ">=", 10]]});
    transact(&mut client, &[all]);
    let back = since(&mut client, &last);
    assert!(!back.is_found);
    assert_eq!(back.rows.len(), 8);
    result(&mut client, "monitor_cancel", &json!(["m"]));
    let mut new = schema();
    new["version"] = json!("2.0.0");
    new["tables"]["T"]["columns"]["more"] = json!({"type": "string"});
    result(&mut client, "convert", &json!([DATABASE, new]));
    let back = since(&mut client, &last);
    assert!(!back.is_found);
    assert_eq!(back.rows.len(), 8);
}

#[test]
fn a_member_of_a_cluster_finds_ids_that_another_has_sent() {
    let mut cluster = Cluster::of(3, &schema()).unwrap();
    cluster.start().unwrap();
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).unwrap();
    let mut client = cluster.connect(leader).unwrap();
    let (replica, last) = leave(&mut client);
    change(&mut client);
    let follower = (leader + 1) % 3;
    let mut other = cluster.connect(follower).unwrap();
    // It has applied everything once it has executed a transaction.
    transact(&mut other, &[update(9, &json!({"text": "row 9"}))]);
    assert_difference(&mut other, replica.clone(), &last);
    assert_difference(&mut client, replica.clone(), &last);
    cluster.member(follower).stop().unwrap();
    cluster.member(follower).start().unwrap();
    let mut other = cluster.connect(follower).unwrap();
    result(&mut other, "set_db_change_aware", &json!([true]));
    let deadline = Instant::now() + LIMIT;
    loop {
        let reply = other
            .call("transact", &json!([DATABASE, update(9, &json!({"n": 9}))]))
            .unwrap();
        if reply["error"].is_null() {
            break;
        }
        assert!(Instant::now() < deadline, "{reply}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_difference(&mut other, replica, &last);
}
