//! The history of a served database (`read_history`, `select_at`): the same answers as
//! `ovsdb-tool` gives for the file, pages while the file is compacted, limits, members of a
//! cluster, and errors.

#![allow(clippy::unwrap_used, reason = "a failing case may end the program")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::cluster::Cluster;
use corvid_tests::numbered_rows::{self, DATABASE, insert, schema};
use corvid_tests::one_file;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation::Corvid;
use corvid_tests::{binary, limited, troubled_disk};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

struct Served {
    process: Process,
    file: PathBuf,
    _folder: TempDir,
}

impl Served {
    fn start(options: &[&str]) -> Served {
        let (process, file, folder) = one_file::start(&schema(), options).unwrap();
        Served {
            process,
            file,
            _folder: folder,
        }
    }

    fn client(&self) -> Client {
        self.process.connect().unwrap()
    }

    fn compact(&self) {
        let reply = self
            .process
            .control("ovsdb-server/compact", &[DATABASE.to_owned()]);
        let reply = reply.unwrap();
        assert!(reply["error"].is_null(), "{reply}");
    }
}

/// The result of a method; panics if there is an error.
fn result(client: &mut Client, method: &str, params: &Value) -> Value {
    let reply = client.call(method, params).unwrap();
    assert!(reply["error"].is_null(), "{method} {params}: {reply}");
    reply["result"].clone()
}

fn page(client: &mut Client, request: &Value) -> Value {
    result(client, "read_history", &json!([DATABASE, request]))
}

/// All lines of a reading, and the number of its pages.
fn lines(client: &mut Client, request: &Value) -> (Vec<Value>, usize) {
    let (mut lines, mut pages, mut done) = (Vec::new(), 0, 0.0);
    let mut request = request.clone();
    loop {
        let page = page(client, &request);
        lines.extend(page["lines"].as_array().unwrap().iter().cloned());
        pages += 1;
        let now_done = page["done"].as_f64().unwrap();
        assert!((done..=1.0).contains(&now_done), "{done} then {now_done}");
        done = now_done;
        if page["next"].is_null() {
            assert_eq!(done, 1.0);
            return (lines, pages);
        }
        request = json!({"next": page["next"]});
    }
}

/// The commits of a whole history.
fn commits(client: &mut Client) -> Vec<Value> {
    let (mut lines, _) = lines(client, &json!({"read": "log"}));
    lines.retain(|line| line["event"] == "commit");
    lines
}

/// The lines that our tool prints for a file, with names of files as the server gives them.
fn tool(file: &Path, options: &[&str], arguments: &[&str]) -> Vec<Value> {
    let mut command = Command::new(binary::bin("ovsdb-tool"));
    let (name, rest) = arguments.split_first().unwrap();
    command
        .args(options)
        .arg("--")
        .arg(name)
        .arg(file)
        .args(rest);
    let output = limited::output(&mut command).unwrap();
    assert!(output.status.success(), "{output:?}");
    let folder = format!("{}/", file.parent().unwrap().display());
    let text = String::from_utf8(output.stdout)
        .unwrap()
        .replace(&folder, "");
    let line = |line: &str| serde_json::from_str(line).unwrap();
    text.lines().map(line).collect()
}

fn rows_at(client: &mut Client, at: &str) -> usize {
    let select = json!({"op": "select", "table": "T", "where": []});
    let found = result(client, "select_at", &json!([DATABASE, at, select]));
    found[0]["rows"].as_array().unwrap().len()
}

/// The error of a request, and its details.
fn error(client: &mut Client, method: &str, params: &Value) -> (String, String) {
    let reply = client.call(method, params).unwrap();
    let text = |name| reply["error"][name].as_str().map(str::to_owned);
    let (Some(error), Some(details)) = (text("error"), text("details")) else {
        panic!("{method} {params}: {reply}");
    };
    (error, details)
}

#[test]
fn a_server_answers_as_the_tool_does_for_its_file() {
    let served = Served::start(&["--keep-history=1G"]);
    let mut client = served.client();
    for n in 0..20 {
        if n == 10 {
            served.compact();
            // The segment replaces the plain file.
            let deadline = Instant::now() + LIMIT;
            let folder = served.file.with_extension("db.history");
            while !folder.join("0000000001.db.zst").exists()
                || folder.join("0000000001.db").exists()
            {
                assert!(Instant::now() < deadline, "{}", served.process.log());
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let mut transaction = insert(n, "text");
        let comment = json!({"op": "comment", "comment": format!("client {}", n % 3)});
        transaction.as_array_mut().unwrap().push(comment);
        result(&mut client, "transact", &transaction);
    }
    let update = json!({"op": "update", "table": "T", "where": [["n", "<", 5]], "row": {"n": 100}});
    result(&mut client, "transact", &json!([DATABASE, update]));
    let file = &served.file;

    let (files, _) = lines(&mut client, &json!({"read": "files"}));
    assert_eq!(files, tool(file, &["--json"], &["history"]));
    assert_eq!(files.len(), 2);

    let (log, _) = lines(&mut client, &json!({"read": "log"}));
    assert_eq!(log, tool(file, &["--json"], &["log"]));
    assert_eq!(log.len(), 21);
    let row = log[3]["changes"][0]["row"].as_str().unwrap();
    let beginning = &row[..10];
    for (request, options) in [
        (
            json!({"row": beginning}),
            vec![format!("--row={beginning}")],
        ),
        (
            json!({"table": "T", "column": "n", "client": "client 1"}),
            ["--table=T", "--column=n", "--client=client 1"]
                .map(str::to_owned)
                .to_vec(),
        ),
        (
            json!({"since": "HEAD~8", "until": "HEAD~2"}),
            ["--since=HEAD~8", "--until=HEAD~2"]
                .map(str::to_owned)
                .to_vec(),
        ),
        (
            json!({"newest": 3}),
            ["-n", "3"].map(str::to_owned).to_vec(),
        ),
        (
            json!({"since": "2001-01-01T00:00:00Z"}),
            vec!["--since=2001-01-01T00:00:00Z".to_owned()],
        ),
    ] {
        let mut request = request;
        request["read"] = json!("log");
        let mut all = vec!["--json"];
        all.extend(options.iter().map(String::as_str));
        let (found, _) = lines(&mut client, &request);
        assert_eq!(found, tool(file, &all, &["log"]), "{request}");
        assert!(!found.is_empty(), "{request}");
    }

    let (diff, _) = lines(
        &mut client,
        &json!({"read": "diff", "from": "HEAD~15", "to": "HEAD"}),
    );
    assert_eq!(diff, tool(file, &["--json"], &["diff", "HEAD~15", "HEAD"]));
    assert_eq!(diff.len(), 19, "14 new rows and 5 changed ones");
    assert_eq!(rows_at(&mut client, "HEAD"), 20);
    assert_eq!(rows_at(&mut client, "HEAD~15"), 6);
    let id = log[4]["id"].as_str().unwrap();
    assert_eq!(rows_at(&mut client, id), 5);

    // Reading has changed nothing.
    assert_eq!(lines(&mut client, &json!({"read": "log"})).0.len(), 21);
}

#[test]
fn a_reading_shows_what_was_there_when_it_began_although_the_file_is_compacted() {
    let served = Served::start(&["--keep-history=1G"]);
    let mut writer = served.client();
    let text = "x".repeat(4000);
    for n in 0..400 {
        numbered_rows::add_with(&mut writer, n, &text).unwrap();
    }
    let mut readers: Vec<(Client, Value, Vec<Value>)> = (0..3)
        .map(|_| {
            let mut client = served.client();
            let first = page(&mut client, &json!({"read": "log"}));
            (
                client,
                first["next"].clone(),
                first["lines"].as_array().unwrap().clone(),
            )
        })
        .collect();
    // One of them does not ask for its pages, and costs nobody anything.
    for n in 400..420 {
        served.compact();
        numbered_rows::add_with(&mut writer, n, &text).unwrap();
        for (client, next, found) in &mut readers[1..] {
            if next.is_null() {
                continue;
            }
            let page = page(client, &json!({"next": next}));
            let size = page["lines"].to_string().len();
            assert!(size < 300_000, "a page of {size} bytes");
            found.extend(page["lines"].as_array().unwrap().iter().cloned());
            *next = page["next"].clone();
        }
    }
    for (_, next, found) in &readers[1..] {
        assert!(next.is_null());
        let numbers = found
            .iter()
            .map(|line| &line["changes"][0]["columns"]["n"]["new"]);
        // A row with the default has no such column.
        let numbers: Vec<i64> = numbers.map(|n| n.as_i64().unwrap_or(0)).collect();
        assert_eq!(numbers, (0..400).collect::<Vec<_>>());
    }
    let (all, pages) = lines(&mut writer, &json!({"read": "log"}));
    assert_eq!((all.len(), pages > 5), (420, true));
    assert_eq!(rows_at(&mut writer, "HEAD~20"), 400);
}

#[test]
fn pages_are_asked_for_by_their_session_and_readings_are_few() {
    let served = Served::start(&[]);
    let mut writer = served.client();
    let text = "x".repeat(100_000);
    for n in 0..10 {
        numbered_rows::add_with(&mut writer, n, &text).unwrap();
    }
    let log = json!({"read": "log"});
    let mut readers: Vec<(Client, Value)> = (0..4)
        .map(|_| {
            let mut client = served.client();
            let next = page(&mut client, &log)["next"].clone();
            assert!(next.is_i64());
            (client, next)
        })
        .collect();
    // Another session cannot take the page.
    let stolen = json!([DATABASE, {"next": readers[0].1}]);
    assert_eq!(
        error(&mut writer, "read_history", &stolen).0,
        "invalid parameters"
    );
    // The fifth reading waits. Its session is alive, and selections do not wait for readings.
    let mut fifth = served.client();
    let request = json!({"id": "fifth", "method": "read_history", "params": [DATABASE, log]});
    fifth.send(request.to_string().as_bytes()).unwrap();
    assert!(fifth.call("echo", &json!([])).is_ok());
    assert_eq!(rows_at(&mut writer, "HEAD"), 10);
    assert_eq!(
        fifth.receive(Duration::from_millis(200)).unwrap(),
        Received::Nothing
    );
    // One that waits may be canceled.
    let mut canceled = served.client();
    let request = json!({"id": "c", "method": "read_history", "params": [DATABASE, log]});
    let cancel = json!({"id": null, "method": "cancel", "params": ["c"]});
    canceled
        .send(format!("{request}{cancel}").as_bytes())
        .unwrap();
    let Received::Text(text) = canceled.receive(LIMIT).unwrap() else {
        panic!("nothing comes");
    };
    assert!(String::from_utf8_lossy(&text).contains("\"error\":\"canceled\""));
    // It begins when one is stopped, and the sixth when a session ends.
    let (first, next) = &mut readers[0];
    let stop = json!([DATABASE, {"stop": next}]);
    assert_eq!(result(first, "read_history", &stop), json!({}));
    let Received::Text(text) = fifth.receive(LIMIT).unwrap() else {
        panic!("nothing comes");
    };
    assert!(String::from_utf8_lossy(&text).contains("\"lines\":[{"));
    assert_eq!(error(first, "read_history", &stop).0, "invalid parameters");
    drop(readers.pop());
    assert!(page(&mut writer, &log)["next"].is_i64());
}

#[test]
fn readings_during_commits_and_compactions_have_all_that_was_promised_and_no_gap() {
    let served = Served::start(&["--keep-history=1G"]);
    let promised = AtomicI64::new(0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = served.client();
            for n in 0.. {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                // Every tenth commit is durable, so that syncs are among them.
                let mut transaction = insert(n, "text");
                let commit = json!({"op": "commit", "durable": true});
                if n % 10 == 0 {
                    transaction.as_array_mut().unwrap().push(commit);
                }
                result(&mut writer, "transact", &transaction);
                promised.store(n + 1, Ordering::SeqCst);
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                served.compact();
            }
        });
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = served.client();
                    let deadline = Instant::now() + Duration::from_secs(4);
                    let mut rounds = 0;
                    while Instant::now() < deadline {
                        let least = promised.load(Ordering::SeqCst);
                        let (log, _) = lines(&mut client, &json!({"read": "log"}));
                        let number = |line: &Value| {
                            assert_eq!(line["event"], "commit", "{line}");
                            let columns = &line["changes"][0]["columns"];
                            columns["n"]["new"].as_i64().unwrap_or(0)
                        };
                        let numbers: Vec<i64> = log.iter().map(number).collect();
                        let count = numbers.len() as i64;
                        assert_eq!(numbers, (0..count).collect::<Vec<_>>());
                        assert!(count >= least, "{count} of {least} promised ones");
                        let rows = rows_at(&mut client, "HEAD");
                        assert!(rows as i64 >= count, "{rows} rows after {count}");
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        let rounds: Vec<usize> = readers
            .into_iter()
            .map(|reader| reader.join().unwrap_or(0))
            .collect();
        is_over.store(true, Ordering::SeqCst);
        assert!(rounds.iter().all(|rounds| *rounds > 0), "{rounds:?}");
    });
    assert!(promised.load(Ordering::SeqCst) > 10);
}

#[test]
fn a_conversion_in_the_middle_shows_the_schema_of_the_time() {
    let served = Served::start(&["--keep-history=1G"]);
    let mut client = served.client();
    result(&mut client, "set_db_change_aware", &json!([true]));
    numbered_rows::add(&mut client, 1).unwrap();
    let mut new = schema();
    new["version"] = json!("2.0.0");
    new["tables"]["T"]["columns"]["more"] = json!({"type": "string"});
    result(&mut client, "convert", &json!([DATABASE, new]));
    numbered_rows::add(&mut client, 2).unwrap();
    let mut schema_at = |at: &str| {
        let (lines, _) = lines(&mut client, &json!({"read": "schema", "at": at}));
        (
            lines[0]["version"].clone(),
            lines[0]["tables"]["T"]["columns"]["more"].is_object(),
        )
    };
    assert_eq!(schema_at("HEAD"), (json!("2.0.0"), true));
    assert_eq!(schema_at("HEAD~2"), (json!("1.0.0"), false));
    let (log, _) = lines(&mut client, &json!({"read": "log"}));
    let events: Vec<&str> = log
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["commit", "schema", "commit"]);
    let more = json!({"op": "select", "table": "T", "where": [], "columns": ["more"]});
    let before = result(&mut client, "select_at", &json!([DATABASE, "HEAD~2", more]));
    let details = before[0]["details"].as_str().unwrap();
    assert!(details.contains("more is not a valid column"), "{before}");
    let page = page(
        &mut client,
        &json!({"read": "diff", "from": "HEAD~2", "to": "HEAD"}),
    );
    assert!(
        page["warnings"][0].as_str().unwrap().contains("table T"),
        "{page}"
    );
}

#[test]
fn bad_requests_are_refused_and_the_session_goes_on() {
    let served = Served::start(&[]);
    let mut client = served.client();
    numbered_rows::add(&mut client, 1).unwrap();
    let read = |request: Value| ("read_history", json!([DATABASE, request]));
    let select = json!({"op": "select", "table": "T", "where": []});
    for ((method, params), expected, details) in [
        (("read_history", json!([])), "syntax error", "<db-name>"),
        (("select_at", json!([DATABASE])), "syntax error", "<moment>"),
        (
            ("read_history", json!(["E", {"read": "files"}])),
            "unknown database",
            "E",
        ),
        (
            ("select_at", json!(["_Server", "HEAD"])),
            "not supported",
            "no file",
        ),
        (
            read(json!({"read": "all"})),
            "syntax error",
            "files, log, diff or schema",
        ),
        (
            read(json!({"read": "log", "what": 1})),
            "syntax error",
            "unexpected member",
        ),
        (
            read(json!({"read": "log", "table": "X"})),
            "invalid parameters",
            "no table X",
        ),
        (
            read(json!({"read": "log", "since": "soon"})),
            "invalid parameters",
            "a moment is",
        ),
        (
            read(json!({"read": "log", "until": "HEAD~9"})),
            "invalid parameters",
            "before the history",
        ),
        (
            read(json!({"read": "diff", "from": "12345678", "to": "HEAD"})),
            "invalid parameters",
            "no such commit",
        ),
        (
            read(json!({"read": "schema", "at": "2100-01-01"})),
            "invalid parameters",
            "future",
        ),
        (
            read(json!({"next": 5})),
            "invalid parameters",
            "no reading 5",
        ),
        (
            ("select_at", json!([DATABASE, "2001-01-01", select])),
            "invalid parameters",
            "before the history",
        ),
        (
            (
                "select_at",
                json!([DATABASE, "HEAD", {"op": "delete", "table": "T", "where": []}]),
            ),
            "not allowed",
            "delete",
        ),
    ] {
        let (error, text) = error(&mut client, method, &params);
        assert_eq!(error, expected, "{params}: {text}");
        assert!(text.contains(details), "{params}: {text}");
    }
    let wrong = json!({"op": "select", "table": "X", "where": []});
    let results = result(&mut client, "select_at", &json!([DATABASE, "HEAD", wrong]));
    assert_eq!(
        results[0]["error"], "syntax error",
        "as transact answers: {results}"
    );
    assert_eq!(rows_at(&mut client, "HEAD"), 1);
}

#[test]
fn a_damaged_segment_is_named_and_the_database_is_served() {
    let served = Served::start(&["--keep-history=1G"]);
    let mut client = served.client();
    for n in 0..5 {
        numbered_rows::add(&mut client, n).unwrap();
    }
    let folder = served.file.with_extension("db.history");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("0000000001.db.zst"), "not a segment").unwrap();
    let (code, text) = error(
        &mut client,
        "read_history",
        &json!([DATABASE, {"read": "log"}]),
    );
    assert_eq!(code, "I/O error", "{text}");
    assert!(text.contains("a.db.history/0000000001.db.zst: "), "{text}");
    let folder = served.file.parent().unwrap().display().to_string();
    assert!(!text.contains(&folder), "clients learn no folder: {text}");
    assert_eq!(numbered_rows::numbers(&mut client).unwrap().len(), 5);
}

#[test]
fn members_tell_what_is_committed() {
    let mut cluster = Cluster::of(3, &schema()).unwrap();
    cluster.swap(Corvid, &["--keep-history=1G"]).unwrap();
    let (cluster, leader) = numbered_rows::started(cluster);
    let mut writer = cluster.connect(leader).unwrap();
    for n in 0..10 {
        numbered_rows::add(&mut writer, n).unwrap();
        if n == 5 {
            for member in 0..3 {
                cluster
                    .control(member, "ovsdb-server/compact", &[DATABASE])
                    .unwrap();
            }
        }
    }
    let mut logs = Vec::new();
    for member in 0..3 {
        let mut client = cluster.connect(member).unwrap();
        let mut found = Vec::new();
        let wait = cluster.wait_until("all commits are in the history", || {
            found = lines(&mut client, &json!({"read": "log"})).0;
            found
                .iter()
                .filter(|line| line["event"] == "commit")
                .count()
                == 10
        });
        wait.unwrap_or_else(|error| panic!("{error} {found:#?}\n{}", cluster.said()));
        assert!(
            found.iter().all(|line| line["confirmed"].is_null()),
            "{found:?}"
        );
        assert_eq!(rows_at(&mut client, "HEAD~3"), 7);
        let id = found.last().unwrap()["id"].as_str().unwrap();
        assert_eq!(
            rows_at(&mut client, id),
            10,
            "a transaction id of the cluster"
        );
        let schema = lines(&mut client, &json!({"read": "schema", "at": "HEAD~8"})).0;
        assert_eq!(schema[0]["name"], DATABASE);
        let ids: Vec<Value> = found.iter().map(|line| line["id"].clone()).collect();
        logs.push(ids);
    }
    assert!(logs.iter().all(|ids| *ids == logs[0]), "{logs:?}");
}

/// Commits that are answered are in the history of the member that answered, also where the disk
/// of that member is slow and the others have stored the commit long before.
#[test]
fn a_member_shows_each_commit_as_soon_as_it_has_answered_it() {
    let mut cluster = Cluster::of(3, &schema()).unwrap();
    cluster.swap(Corvid, &[]).unwrap();
    let (mut cluster, leader) = numbered_rows::started(cluster);
    let file = cluster.file(leader);
    let folder = file.parent().unwrap();
    let (library, during) = (troubled_disk::library(folder), folder.join("trouble"));
    let slow = cluster.member(leader);
    slow.kill();
    slow.set_variable("LD_PRELOAD", library);
    slow.set_variable(troubled_disk::FILE, &file);
    slow.set_variable(troubled_disk::WHILE, &during);
    slow.set_variable(troubled_disk::SYNC_US, "100000");
    slow.set_variable(troubled_disk::WRITE_US, "100000");
    slow.start().unwrap();
    cluster.move_leadership(leader).unwrap();
    std::fs::write(&during, "").unwrap();
    let mut number = 0;
    for member in [leader, (leader + 1) % 3] {
        let mut writer = cluster.connect(member).unwrap();
        let mut reader = cluster.connect(member).unwrap();
        for _ in 0..10 {
            number += 1;
            numbered_rows::add(&mut writer, number).unwrap();
            assert_eq!(commits(&mut reader).len(), number as usize);
            assert_eq!(rows_at(&mut reader, "HEAD"), number as usize);
        }
    }
}

#[test]
fn a_member_without_a_majority_shows_no_entry_that_may_be_lost() {
    let mut cluster = Cluster::of(3, &schema()).unwrap();
    cluster.swap(Corvid, &[]).unwrap();
    let (mut cluster, leader) = numbered_rows::started(cluster);
    let mut writer = cluster.connect(leader).unwrap();
    numbered_rows::add(&mut writer, 1).unwrap();
    let mut reader = cluster.connect(leader).unwrap();
    cluster
        .wait_until("the commit is in the history", || {
            commits(&mut reader).len() == 1
        })
        .unwrap();
    for member in numbered_rows::others(leader) {
        cluster.member(member).kill();
    }
    // The leader appends it to its file, and nobody confirms it.
    let before = std::fs::metadata(cluster.file(leader)).unwrap().len();
    let request = json!({"id": 1, "method": "transact", "params": insert(2, "lost")});
    writer.send(request.to_string().as_bytes()).unwrap();
    let file = cluster.file(leader);
    let deadline = Instant::now() + LIMIT;
    while !std::fs::read_to_string(&file).unwrap().contains("lost") {
        assert!(Instant::now() < deadline, "still {before} bytes");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(commits(&mut reader).len(), 1);
    assert_eq!(rows_at(&mut reader, "HEAD"), 1);
    // The tool reads the same file and says what is not certain.
    let told = tool(&file, &["--json"], &["log"]);
    assert_eq!(told.last().unwrap()["confirmed"], false, "{told:?}");
}
