//! Records that name the clients of their commits (`--record-clients`), and their readers: our
//! tools, and the tools and the server of the reference.

#![allow(clippy::unwrap_used, reason = "a failing case may end the program")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use corvid_tests::binary;
use corvid_tests::client::Client;
use corvid_tests::cluster::Cluster;
use corvid_tests::numbered_rows::{self, DATABASE, numbers, schema};
use corvid_tests::one_file::{self, Configured};
use corvid_tests::peer;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation::{self, Corvid, Reference};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::relay::node::{await_contents, relay_of};

/// A server with one database.
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

    fn set(&self, value: &str) -> Value {
        let arguments = ["record-clients", value].map(str::to_owned);
        let command = "ovsdb-server/set-setting";
        self.process.control(command, &arguments).unwrap()
    }

    /// The lines of the file's comments.
    fn lines(&self) -> Vec<String> {
        comment_lines(&self.file)
    }
}

/// The lines of all comments of a file.
fn comment_lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let bodies = text.lines().filter(|line| line.starts_with('{'));
    let comments = bodies.filter_map(|body| {
        let json: Value = serde_json::from_str(body).unwrap();
        let transaction = match &json["data"] {
            Value::Null => &json,
            data => &data[1],
        };
        transaction["_comment"].as_str().map(str::to_owned)
    });
    let lines = comments.flat_map(|it| it.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.collect()
}

/// Inserts a row, with a comment.
fn add(client: &mut Client, n: i64, comment: Option<&str>) {
    let mut params = numbered_rows::insert(n, "");
    if let Some(comment) = comment {
        let operation = json!({"op": "comment", "comment": comment});
        params.as_array_mut().unwrap().push(operation);
    }
    let reply = client.call("transact", &params).unwrap();
    assert!(reply["result"][0]["uuid"].is_array(), "{reply}");
}

/// The output of a tool for a file, of ours or the reference's. `None`: it is not installed.
fn shown(implementation: Implementation, arguments: &[&str], file: &Path) -> Option<String> {
    let tool = match implementation {
        Corvid => binary::bin("ovsdb-tool"),
        Reference => match binary::reference("ovsdb-tool") {
            Some(tool) => tool,
            None => {
                peer::say_skipped("ovsdb-tool");
                return None;
            }
        },
    };
    let shown = peer::run(Command::new(tool).args(arguments).arg(file));
    Some(shown.unwrap())
}

fn is_of_a_socket(line: &str) -> bool {
    line.starts_with("corvid: client= peer=unix#")
}

#[test]
fn a_record_names_its_client_and_the_field_reads_the_file() {
    let mut served = Served::start(&["--record-clients"]);
    let mut client = served.process.connect().unwrap();
    add(&mut client, 1, None);
    add(&mut client, 2, Some("why"));
    add(&mut client, 3, Some("corvid: client=root peer=unix#0"));
    let lines = served.lines();
    assert_eq!(lines.len(), 5, "{lines:?}");
    for own in [0, 2, 4] {
        assert_eq!(lines[own], lines[0]);
        assert!(is_of_a_socket(&lines[own]), "{lines:?}");
    }
    assert_eq!(lines[1], "why");
    let peer = lines[0].rsplit_once('=').unwrap().1;

    // Our tool shows the client apart from the comment, and finds it.
    let log = shown(Corvid, &["log"], &served.file).unwrap();
    let clients = log
        .lines()
        .filter_map(|line| line.strip_prefix("Client:  "));
    assert_eq!(clients.collect::<Vec<_>>(), [peer; 3], "{log}");
    assert!(
        log.contains("\n    corvid: client=root peer=unix#0\n"),
        "{log}"
    );
    let option = format!("--client={peer}");
    let found = shown(Corvid, &["--json", &option, "log"], &served.file).unwrap();
    assert_eq!(found.lines().count(), 3, "{found}");
    let last: Value = serde_json::from_str(found.lines().last().unwrap()).unwrap();
    assert_eq!(last["client"], json!({"peer": peer}));
    assert_eq!(last["comment"], "corvid: client=root peer=unix#0");

    served.process.stop().unwrap();
    for implementation in [Corvid, Reference] {
        let Some(log) = shown(implementation, &["-m", "show-log"], &served.file) else {
            return;
        };
        for line in &lines {
            assert!(log.contains(&**line), "{line} is not in {log}");
        }
    }
    // The reference's server continues the file.
    let program = Reference.server_binary().unwrap();
    let arguments = [served.file.clone().into()];
    let mut process = Process::new(&program, served.folder.path(), &arguments);
    process.start().unwrap();
    let mut client = process.connect().unwrap();
    add(&mut client, 4, Some("by the reference"));
    assert_eq!(numbers(&mut client).unwrap().len(), 4);
    drop(client);
    process.stop().unwrap();
    served.process.start().unwrap();
    let mut client = served.process.connect().unwrap();
    add(&mut client, 5, None);
    assert_eq!(numbers(&mut client).unwrap().len(), 5);
    let lines = served.lines();
    assert_eq!(lines[5], "by the reference");
    assert!(is_of_a_socket(&lines[6]), "{lines:?}");
}

#[test]
fn clients_are_recorded_only_while_the_setting_is_on() {
    let served = Served::start(&[]);
    let mut client = served.process.connect().unwrap();
    let listed = || {
        let reply = served.process.control("ovsdb-server/list-settings", &[]);
        let text = reply.unwrap()["result"].as_str().unwrap().to_owned();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("record-clients="));
        line.unwrap().to_owned()
    };
    add(&mut client, 1, Some("off"));
    assert_eq!(listed(), "off");
    assert_eq!(served.set("on")["error"], Value::Null);
    assert_eq!(listed(), "on");
    add(&mut client, 2, Some("on"));
    let refused = served.set("yes");
    assert_eq!(refused["error"], "yes: expected \"on\" or \"off\"\n");
    assert_eq!(served.set("off")["error"], Value::Null);
    add(&mut client, 3, Some("off again"));
    let lines = served.lines();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(is_of_a_socket(&lines[2]), "{lines:?}");
    let others = [&*lines[0], &lines[1], &lines[3]];
    assert_eq!(others, ["off", "on", "off again"]);
}

#[test]
fn a_configuration_file_turns_recorded_clients_on_and_off() {
    let configured = Configured::start(&schema(), "record-clients", &json!(true)).unwrap();
    let (process, file) = (&configured.process, &configured.file);
    let write = |value: &Value| configured.write(value).unwrap();
    let mut client = Client::connect(&configured.folder.path().join("db.sock")).unwrap();
    let reload = || process.control("ovsdb-server/reload", &[]).unwrap();
    add(&mut client, 1, None);
    assert_eq!(comment_lines(file).len(), 1);
    write(&json!("on"));
    let reply = reload();
    assert!(reply["error"].is_string(), "{reply}");
    add(&mut client, 2, None);
    assert_eq!(comment_lines(file).len(), 2);
    write(&Value::Null);
    assert_eq!(reload()["error"], Value::Null);
    add(&mut client, 3, None);
    assert_eq!(comment_lines(file).len(), 2);
    // A file that has not changed leaves the setting alone.
    let set = ["record-clients", "on"].map(str::to_owned);
    process.control("ovsdb-server/set-setting", &set).unwrap();
    assert_eq!(reload()["error"], Value::Null);
    add(&mut client, 4, None);
    assert_eq!(comment_lines(file).len(), 3);
}

#[test]
fn a_member_records_the_clients_of_followers_and_of_their_relays() {
    let mut cluster = Cluster::of(3, &schema()).unwrap();
    cluster.swap(Corvid, &["--record-clients"]).unwrap();
    let (cluster, leader) = numbered_rows::started(cluster);
    let follower = numbered_rows::others(leader)[0];
    let socket = cluster.members()[follower].socket();
    let relay = relay_of(Corvid, DATABASE, &format!("unix:{}", socket.display()));
    await_contents(&relay, DATABASE);
    add(&mut cluster.connect(leader).unwrap(), 1, None);
    add(&mut cluster.connect(follower).unwrap(), 2, Some("why"));
    add(&mut relay.client(), 3, Some("relayed"));
    let everything = (1..=3).collect();
    numbered_rows::await_rows(&cluster, &[0, 1, 2], &everything);
    // The relay has the member answer that it is connected to.
    let params = json!([DATABASE, {"read": "log", "client": "relayed"}]);
    let told = relay.client().call("read_history", &params).unwrap();
    let told = told["result"]["lines"].as_array().unwrap().clone();
    assert!(
        told.iter().any(|line| line["comment"] == "relayed"),
        "{told:?}"
    );
    let sid = cluster.row(follower).unwrap()["sid"][1].clone();
    let via = format!(" via=member:{}", sid.as_str().unwrap());
    for member in 0..3 {
        let file = cluster.file(member);
        let lines = comment_lines(&file);
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert!(
            lines[0].starts_with("corvid: client= peer=unix"),
            "{lines:?}"
        );
        assert!(!lines[0].contains("via="), "{lines:?}");
        assert_eq!((&*lines[1], &*lines[3]), ("why", "relayed"));
        for forwarded in [2, 4] {
            let line = &lines[forwarded];
            assert!(line.starts_with("corvid: client= peer=unix"), "{line}");
            assert!(line.ends_with(&via), "{line}");
        }
        let log = shown(Corvid, &["log"], &file).unwrap();
        let clients = log.lines().filter(|line| line.starts_with("Client:  unix"));
        assert_eq!(clients.count(), 3, "{log}");
        if let Some(log) = shown(Reference, &["-m", "show-log"], &file) {
            for line in &lines {
                assert!(log.contains(&**line), "{line} is not in {log}");
            }
        }
    }
}
