//! The history of a database that relays serve: the answers of the source, through one relay and
//! through two, and what happens when a client or a source goes in the middle.

use std::path::Path;
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::process::Process;
use serde_json::{Value, json};

use crate::client_history::{Served, comment, insert, live, relay_of, run, transact};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A source, its relay, and a relay of that.
struct Tree {
    served: Served,
    relays: [Process; 2],
    folders: [tempfile::TempDir; 2],
}

fn remote(server: &Process) -> String {
    format!("unix:{}", server.socket().display())
}

impl Tree {
    fn start() -> Tree {
        let served = Served::start();
        let folders = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
        let first = relay_of(folders[0].path(), &served.remote());
        let second = relay_of(folders[1].path(), &remote(&first));
        Tree {
            served,
            relays: [first, second],
            folders,
        }
    }

    fn far(&self) -> Client {
        self.relays[1].connect().expect("connected")
    }

    /// Writes commits of which a page holds two.
    fn fill(&self) {
        let mut writer = self.served.server.connect().expect("connected");
        let text = "x".repeat(100_000);
        for n in 0..10 {
            transact(&mut writer, &[insert(&json!({"n": n, "name": text}))]);
        }
    }
}

fn ask(client: &mut Client, request: &Value) -> Value {
    let reply = client.call("read_history", &json!(["D", request]));
    reply.expect("a reply")
}

fn begin(client: &mut Client) -> Value {
    let reply = ask(client, &json!({"read": "log"}));
    let next = reply["result"]["next"].clone();
    assert!(next.is_i64(), "{reply}");
    next
}

fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn relays_tell_what_the_tool_reads_in_the_files_of_their_source() {
    let tree = Tree::start();
    let uuid = live(&tree.served);
    let row = format!("--row={uuid}");
    for (options, command, rest) in [
        (&[][..], "history", &[][..]),
        (&["--json"], "history", &[]),
        (&[row.as_str()], "log", &[]),
        (&["--json", "--column=set"], "log", &[]),
        (&["--since=HEAD~3", "--until=HEAD~1"], "log", &[]),
        (&["-n", "3"], "log", &[]),
        (&["--json"], "diff", &["HEAD~6", "HEAD~2"]),
        (&["--at=HEAD~4"], "dump", &[]),
    ] {
        let tool = tree
            .served
            .tool(&[options, &["--", command, "a.db"], rest].concat());
        assert_eq!((tool.status, tool.errors.as_str()), (Some(0), ""));
        for (relay, folder) in tree.relays.iter().zip(&tree.folders) {
            let remote = remote(relay);
            let words = [options, &["--", command, &remote, "D"], rest].concat();
            let client = run(folder.path(), "ovsdb-client", &words);
            assert_eq!(client, tool, "{words:?}: {}", relay.log());
        }
    }
    // A client finds its own commits in the history that it reads through relays.
    let mut client = tree.far();
    transact(
        &mut client,
        &[insert(&json!({"n": 77})), comment("far away")],
    );
    let far = remote(&tree.relays[1]);
    let words = ["-n1", "log", &far, "D"];
    let told = run(tree.folders[1].path(), "ovsdb-client", &words);
    assert!(told.out.contains("far away"), "{told:?}");
    let revert = ["revert", &far, "D", "HEAD"];
    let done = run(tree.folders[1].path(), "ovsdb-client", &revert);
    assert_eq!(done.status, Some(0), "{done:?}");
    let select = json!({"op": "select", "table": "T", "where": [["n", "==", 77]]});
    assert_eq!(transact(&mut client, &[select])[0]["rows"], json!([]));
}

#[test]
fn errors_of_the_source_reach_the_clients_of_its_relays() {
    let tree = Tree::start();
    let mut client = tree.far();
    for (method, params, tag, details) in [
        (
            "read_history",
            json!(["D", {"read": "log", "table": "Z"}]),
            "invalid parameters",
            "Z",
        ),
        (
            "select_at",
            json!(["D", "HEAD~99"]),
            "invalid parameters",
            "HEAD~99",
        ),
        (
            "read_history",
            json!(["D", {"next": 9}]),
            "invalid parameters",
            "no reading 9",
        ),
        (
            "read_history",
            json!(["_Server", {"read": "files"}]),
            "not supported",
            "no file",
        ),
    ] {
        let reply = client.call(method, &params).expect("a reply");
        let error = &reply["error"];
        assert_eq!(error["error"], tag, "{reply}");
        assert!(
            error["details"]
                .as_str()
                .is_some_and(|it| it.contains(details)),
            "{reply}"
        );
    }
}

#[test]
fn a_reading_through_relays_holds_up_no_write_and_ends_with_its_client() {
    let tree = Tree::start();
    tree.fill();
    let mut readers: Vec<(Client, Value)> = (0..4)
        .map(|_| {
            let mut client = tree.far();
            let next = begin(&mut client);
            (client, next)
        })
        .collect();
    // They stand still, as readings of the source itself would: writes pass, another reading waits.
    transact(&mut tree.far(), &[insert(&json!({"n": 50}))]);
    let mut direct = tree.served.server.connect().expect("connected");
    let request = json!({"id": "d", "method": "read_history", "params": ["D", {"read": "log"}]});
    direct.send(request.to_string().as_bytes()).expect("sent");
    let nothing = direct.receive(Duration::from_millis(200)).expect("open");
    assert_eq!(nothing, Received::Nothing);
    // All of it arrives in the order of the source.
    let (client, next) = &mut readers[0];
    let (mut lines, mut request) = (0, json!({"next": next}));
    loop {
        let reply = ask(client, &request);
        let page = &reply["result"];
        lines += page["lines"].as_array().expect("lines").len();
        match page["next"].as_i64() {
            Some(next) => request = json!({"next": next}),
            None => break,
        }
    }
    assert!(lines > 5, "{lines}");
    // The end of that one made room at the source.
    assert!(matches!(
        direct.receive(LIMIT).expect("open"),
        Received::Text(_)
    ));
    // A client that goes leaves its place at every server, and so does one that cancels.
    let (mut canceled, next) = readers.pop().expect("four");
    readers.clear();
    let request = json!({"id": "c", "method": "read_history", "params": ["D", {"next": next}]});
    let cancel = json!({"id": null, "method": "cancel", "params": ["c"]});
    canceled
        .send(format!("{request}{cancel}").as_bytes())
        .expect("sent");
    assert!(matches!(
        canceled.receive(LIMIT).expect("open"),
        Received::Text(_)
    ));
    drop(canceled);
    let sessions = || {
        let listed = tree
            .served
            .server
            .control("ovsdb-server/list-sessions", &[]);
        let listed = listed.expect("answered").to_string();
        listed.matches("read_history").count()
    };
    await_that("only the direct reading is left", || sessions() <= 1);
    for _ in 0..3 {
        readers.push((tree.far(), Value::Null));
        begin(&mut readers.last_mut().expect("pushed").0);
    }
}

/// The relay's database stays served, and the client may begin again.
#[test]
fn a_source_that_goes_in_the_middle_ends_the_reading_with_an_error() {
    let mut tree = Tree::start();
    tree.fill();
    let mut client = tree.far();
    let aware = client.call("set_db_change_aware", &json!([true]));
    aware.expect("a reply");
    let next = begin(&mut client);
    tree.served.server.kill();
    let reply = ask(&mut client, &json!({"next": next}));
    assert_eq!(reply["error"]["error"], "database not available", "{reply}");
    let details = reply["error"]["details"].as_str().expect("details");
    assert!(details.contains("the relay's source"), "{reply}");
    let reply = ask(&mut client, &json!({"next": next}));
    assert_eq!(reply["error"]["error"], "invalid parameters", "{reply}");
    await_that("the relay knows", || {
        let reply = ask(&mut client, &json!({"read": "log"}));
        reply["error"]["details"]
            .as_str()
            .is_some_and(|it| it.contains("not connected"))
    });
    tree.served.server.start().expect("started again");
    await_that("it is read again", || {
        let reply = ask(&mut client, &json!({"read": "log"}));
        reply["result"]["next"].is_i64()
    });
    let served = Path::new(tree.served.folder.path());
    assert!(served.join("a.db").exists());
}
