//! A request of one client must not stop a server for others. A request that the source or another
//! member would reject gets an error, and all other clients can still write.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use corvid_tests::binary;
use corvid_tests::client::{Client, Received};
use corvid_tests::cluster::Cluster;
use corvid_tests::numbered_rows::{self, DATABASE, schema};
use corvid_tests::peer;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation::Corvid;
use serde_json::{Value, json};

use crate::active_backup::node::Node;
use crate::cluster_network::{make_identity, tls_options};
use crate::relay::node::{await_contents, relay_of};

/// The time limit for a reply on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The maximum depth of a message from a client.
const DEPTH_MAX: usize = 1000;

/// Returns a transaction with a deep value, so that the request has this depth.
fn deep_request(depth: usize) -> Vec<u8> {
    let levels = depth - 4;
    let (open, close) = ("[".repeat(levels), "]".repeat(levels));
    let operation = format!(r#"{{"op":"insert","table":"T","row":{{"text":{open}{close}}}}}"#);
    let params = format!(r#"["{DATABASE}",{operation}]"#);
    format!(r#"{{"id":"deep","method":"transact","params":{params}}}"#).into_bytes()
}

fn answer(client: &mut Client) -> Value {
    match client.receive(LIMIT).expect("a connection") {
        Received::Text(text) => serde_json::from_slice(&text).expect("JSON"),
        other => panic!("no answer: {other:?}"),
    }
}

/// Checks that requests of the maximum depth are answered with an error, and that others are
/// served.
fn check_depth(name: &str, connect: &dyn Fn() -> Client, first: u64) {
    let mut deep = connect();
    for depth in DEPTH_MAX - 10..=DEPTH_MAX {
        deep.send(&deep_request(depth)).expect("sent");
        let answer = answer(&mut deep);
        let error = &answer["result"][0]["error"];
        assert_eq!(error, "syntax error", "{name}, depth {depth}: {answer}");
    }
    numbered_rows::add(&mut connect(), first).expect("others write");
    deep.send(&deep_request(DEPTH_MAX + 1)).expect("sent");
    assert_eq!(deep.receive(LIMIT).expect("a socket"), Received::Closed);
    numbered_rows::add(&mut connect(), first + 1).expect("others write");
}

fn remotes(cluster: &Cluster) -> String {
    let sockets = cluster.members().iter().map(Process::socket);
    let remotes: Vec<String> = sockets
        .map(|socket| format!("unix:{}", socket.display()))
        .collect();
    remotes.join(",")
}

#[test]
fn the_deepest_requests_are_answered_by_every_kind_of_server() {
    let (cluster, _) = numbered_rows::three();
    for member in 0..3 {
        let connect = || cluster.connect(member).expect("connected");
        check_depth("a member", &connect, 10 * member as u64);
    }
    let relay = relay_of(Corvid, DATABASE, &remotes(&cluster));
    await_contents(&relay, DATABASE);
    check_depth("a relay of a cluster", &|| relay.client(), 30);
    let below = relay_of(Corvid, DATABASE, &relay.remote());
    await_contents(&below, DATABASE);
    check_depth("a relay of a relay", &|| below.client(), 40);
    let source = Node::started(Corvid, &schema(), &[]);
    check_depth("a standalone server", &|| source.client(), 50);
    let relay = relay_of(Corvid, DATABASE, &source.remote());
    await_contents(&relay, DATABASE);
    check_depth("a relay", &|| relay.client(), 60);
}

#[test]
fn a_request_that_is_too_long_for_the_source_is_answered_and_stops_nobody() {
    let limit = ["--max-message-size=1M".to_owned()];
    let source = Node::started(Corvid, &schema(), &limit);
    let relay = relay_of(Corvid, DATABASE, &source.remote());
    await_contents(&relay, DATABASE);
    let below = relay_of(Corvid, DATABASE, &relay.remote());
    await_contents(&below, DATABASE);
    for (number, node) in [&relay, &below].into_iter().enumerate() {
        let mut client = node.client();
        for bytes in [2 << 20, 3 << 20] {
            let params = numbered_rows::insert(0, &"x".repeat(bytes));
            let answer = client.call("transact", &params).expect("an answer");
            let error = &answer["error"];
            assert_eq!(error["error"], "resources exhausted", "{answer}");
            let details = error["details"].as_str().unwrap_or_default();
            assert!(details.contains("1048576 bytes"), "{answer}");
        }
        // This is as long as a message of a client of the source may be.
        let envelope =
            json!({"id": "call", "method": "transact", "params": numbered_rows::insert(7, "")});
        let text = "x".repeat((1 << 20) - envelope.to_string().len());
        numbered_rows::add_with(&mut client, 7, &text).expect("as long as at the source");
        numbered_rows::add(&mut node.client(), 10 + number as u64).expect("others write");
    }
    let log = relay.process.log();
    assert!(!log.contains("connection closed by peer"), "{log}");
}

#[test]
fn an_entry_that_members_do_not_take_is_refused_and_leadership_stays() {
    let (cluster, leader) = numbered_rows::three();
    let term = |member: usize| -> String {
        let status = cluster.status(member).expect("a status");
        let term = status.lines().find(|line| line.starts_with("Term:"));
        term.expect("a term").to_owned()
    };
    let mut writer = cluster.connect(leader).expect("connected");
    for n in 0..112 {
        numbered_rows::add(&mut writer, n).expect("inserted");
    }
    let before = term(leader);
    for member in 0..3 {
        let text = "x".repeat(10 << 20);
        let update =
            json!([DATABASE, {"op": "update", "table": "T", "where": [], "row": {"text": text}}]);
        let mut client = cluster.connect(member).expect("connected");
        let answer = client.call("transact", &update).expect("an answer");
        let error = &answer["result"][1];
        assert_eq!(error["error"], "resources exhausted", "{answer}");
        let honest = &mut cluster.connect(member).expect("connected");
        numbered_rows::add(honest, 1000 + member as u64).expect("others write");
    }
    assert_eq!(term(leader), before);
    for member in 0..3 {
        let bytes = cluster.file(member).metadata().expect("a file").len();
        assert!(bytes < 10 << 20, "{bytes} bytes in the file of {member}");
    }
}

/// Makes a certificate with a name of this length. Returns false if there is no program for this.
fn make_named(folder: &Path, bytes: usize) -> bool {
    // Names have at most 64 characters unless the table of attributes says otherwise.
    let config = format!(
        "openssl_conf = init\n[init]\nstbl_section = names\n[names]\ncommonName = min:1, max:100000\n\
         [req]\ndistinguished_name = subject\nprompt = no\n[subject]\nCN = {}\n",
        "n".repeat(bytes)
    );
    fs::write(folder.join("long.cnf"), config).expect("written");
    let made = Command::new("openssl")
        .args("req -x509 -config long.cnf -newkey rsa:2048 -nodes -days 2".split(' '))
        .args("-keyout long-key.pem -out long-cert.pem".split(' '))
        .current_dir(folder)
        .output();
    matches!(made, Ok(output) if output.status.success())
}

/// Checks that a client whose name servers do not pass on gets a reply, and that others can still
/// write.
fn check_long_name(what: &str, folder: &Path, process: &Process, honest: &mut Client, first: u64) {
    let port = process.port().expect("it listens");
    let params = numbered_rows::insert(first, "");
    let client = Command::new(binary::bin("ovsdb-client"))
        .arg("--timeout=120")
        .args(tls_options(folder, "long", "all"))
        .args([
            "transact",
            &format!("ssl:127.0.0.1:{port}"),
            &params.to_string(),
        ])
        .output()
        .expect("a client");
    // The transaction must be answered, whether it is executed or rejected.
    let answer = String::from_utf8_lossy(&client.stdout);
    let is_done = answer.contains("uuid");
    let is_refused = String::from_utf8_lossy(&client.stderr).contains("resources exhausted")
        || answer.contains("resources exhausted");
    assert!(is_done || is_refused, "{what}: {client:?}");
    numbered_rows::add(honest, first + 1).expect("others write");
}

#[test]
fn a_client_whose_name_is_too_long_to_be_passed_on_stops_nobody() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    if !make_identity(folder, "server") || !make_named(folder, 5000) {
        return peer::say_skipped("openssl, which makes certificates, is not installed");
    }
    let authorities = ["server-ca.pem", "long-cert.pem"].map(|file| {
        let file = folder.join(file);
        fs::read_to_string(file).expect("made")
    });
    fs::write(folder.join("all-ca.pem"), authorities.concat()).expect("written");
    let mut options = tls_options(folder, "server", "all");
    options.push("--remote=pssl:0:127.0.0.1".into());
    let cluster = Cluster::over("tcp", "127.0.0.1", 3, &options, &schema()).expect("made");
    let (cluster, _) = numbered_rows::started(cluster);
    for (member, process) in cluster.members().iter().enumerate() {
        let mut honest = cluster.connect(member).expect("connected");
        check_long_name("a member", folder, process, &mut honest, 10 * member as u64);
    }
    let mut arguments: Vec<String> = options
        .iter()
        .map(|option| option.to_str().expect("text").to_owned())
        .collect();
    arguments.push(format!("relay:{DATABASE}:{}", remotes(&cluster)));
    let relay = Node::with_arguments(Corvid, &arguments);
    await_contents(&relay, DATABASE);
    check_long_name("a relay", folder, &relay.process, &mut relay.client(), 30);
}
