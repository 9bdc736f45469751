//! Clients with certificates and a role at a relay. The source, ours or the reference's, executes
//! nothing that the role does not allow, and the audit logs name the client.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use corvid_tests::binary::bin;
use corvid_tests::database_file;
use corvid_tests::peer;
use corvid_tests::server::Implementation::{self, Corvid};
use serde_json::{Value, json};

use super::node::{Node, await_contents, implementations, wait_for};
use crate::cluster_network::{make_identity, tls_options};

/// The file with the authorities of all certificates.
const AUTHORITIES: &str = "all";

fn schema() -> Value {
    json!({"name": "D", "version": "1.0.0", "tables": {
        "Chassis": {"isRoot": true, "columns": {"name": {"type": "string"}, "nb": {"type": "integer"}}},
        "RBAC_Role": {"isRoot": true, "columns": {"name": {"type": "string"},
            "permissions": {"type": {"key": "string", "value": {"type": "uuid", "refTable": "RBAC_Permission"},
                "min": 0, "max": "unlimited"}}}},
        "RBAC_Permission": {"isRoot": true, "columns": {
            "authorization": {"type": {"key": "string", "min": 0, "max": "unlimited"}},
            "insert_delete": {"type": "boolean"},
            "update": {"type": {"key": "string", "min": 0, "max": "unlimited"}}}}}})
}

/// Makes a database with one remote that has the role. Returns the arguments for it.
fn conf(folder: &Path, name: &str) -> Vec<String> {
    let schema = json!({"name": "Conf", "tables": {
        "Top": {"isRoot": true, "columns": {
            "remotes": {"type": {"key": {"type": "uuid", "refTable": "Remote"}, "min": 0, "max": "unlimited"}}}},
        "Remote": {"columns": {"target": {"type": "string"}, "role": {"type": "string"}}}}});
    let file = folder.join(format!("{name}-conf.db"));
    database_file::create(&file, &schema).expect("a file");
    vec![
        file.display().to_string(),
        "--remote=db:Conf,Top,remotes".to_owned(),
    ]
}

/// Opens the remote with the role. Returns its port.
fn open_remote(node: &Node) -> u16 {
    let rows = json!(["Conf",
        {"op": "insert", "table": "Remote", "uuid-name": "r", "row": {"target": "pssl:0:127.0.0.1", "role": "host"}},
        {"op": "insert", "table": "Top", "row": {"remotes": ["named-uuid", "r"]}}]);
    let reply = node.client().call("transact", &rows).expect("a reply");
    assert_eq!(reply["error"], Value::Null, "{reply}");
    let mut port = None;
    wait_for("it listens", &[node], || {
        port = node.process.port();
        port.is_some()
    });
    port.expect("a port")
}

fn tls(folder: &Path, name: &str) -> Vec<String> {
    let options = tls_options(folder, name, AUTHORITIES).into_iter();
    options
        .map(|option| option.into_string().expect("text"))
        .collect()
}

/// Makes certificates for all names, and a file with their authorities.
fn make_identities(folder: &Path, names: &[&str]) -> bool {
    let mut authorities = String::new();
    for name in names {
        if !make_identity(folder, name) {
            peer::say_skipped("openssl, which makes certificates, is not installed");
            return false;
        }
        let file = folder.join(format!("{name}-ca.pem"));
        authorities += &fs::read_to_string(file).expect("made");
    }
    fs::write(folder.join(format!("{AUTHORITIES}-ca.pem")), authorities).expect("written");
    true
}

const RULES: &str = r#"["D",
    {"op":"insert","table":"RBAC_Permission","uuid-name":"c","row":{"authorization":"name","insert_delete":true,"update":"nb"}},
    {"op":"insert","table":"RBAC_Role","row":{"name":"host","permissions":["map",[["Chassis",["named-uuid","c"]]]]}}]"#;

fn transact(node: &Node, params: &str) -> Value {
    let params = serde_json::from_str(params).expect("JSON");
    let reply = node.client().call("transact", &params).expect("a reply");
    assert_eq!(reply["error"], Value::Null, "{reply}");
    reply["result"].clone()
}

/// Starts a client with this certificate, which sends a transaction.
fn send(folder: &Path, name: &str, port: u16, operations: &str) -> Child {
    Command::new(bin("ovsdb-client"))
        .args([
            "--timeout=120",
            "transact",
            &format!("ssl:127.0.0.1:{port}"),
        ])
        .arg(format!("[\"D\",{operations}]"))
        .args(tls(folder, name))
        .stdout(Stdio::piped())
        .spawn()
        .expect("started")
}

fn result(client: Child) -> String {
    let output = client.wait_with_output().expect("ended");
    String::from_utf8(output.stdout)
        .expect("UTF-8")
        .trim()
        .to_owned()
}

fn pause(node: &Node, is_paused: bool) {
    let pid = node.process.pid();
    let signal = if is_paused { "-STOP" } else { "-CONT" };
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.expect("kill runs").success());
    wait_for("the signal arrives", &[node], || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        (state == Some('T')) == is_paused
    });
}

/// Waits until the relay has sent this many requests that its source has not answered.
fn await_sent(relay: &Node, count: usize) {
    let wanted = format!("relay-requests-sent:{count}");
    wait_for(&wanted, &[relay], || {
        let reply = relay.process.control("memory/show", &[]).expect("a reply");
        reply["result"]
            .as_str()
            .unwrap_or_default()
            .contains(&wanted)
    });
}

fn relay_of(folder: &Path, port: u16, more: &[String]) -> Node {
    let mut arguments = conf(folder, "relay");
    arguments.extend(tls(folder, "relay"));
    arguments.push(format!("relay:D:ssl:127.0.0.1:{port}"));
    arguments.extend_from_slice(more);
    let relay = Node::with_arguments(Corvid, &arguments);
    await_contents(&relay, "D");
    relay
}

fn a_role_is_judged_where_its_transaction_is_executed(source: Implementation) {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    if !make_identities(folder, &["source", "relay", "hv1"]) {
        return;
    }
    let mut options = tls(folder, "source");
    options.push("--remote=pssl:0:127.0.0.1".to_owned());
    let is_ours = source == Corvid;
    let source = Node::started(source, &schema(), &options);
    transact(&source, RULES);
    wait_for("it listens", &[&source], || source.process.port().is_some());
    let relay = relay_of(folder, source.process.port().expect("a port"), &[]);
    let port = open_remote(&relay);
    let client = |operations: &str| result(send(folder, "hv1", port, operations));
    let own = r#"{"op":"insert","table":"Chassis","row":{"name":"hv1","nb":1}},{"op":"update","table":"Chassis","where":[["name","==","hv1"]],"row":{"nb":2}},{"op":"comment","comment":"x"}"#;
    let text = client(own);
    assert!(
        text.starts_with(r#"[{"uuid":["uuid","#) && text.ends_with(r#"]},{"count":1},{}]"#),
        "{text}"
    );
    let foreign = own.replace("hv1", "hv2");
    assert!(client(&foreign).contains("permission error"));
    let unlisted =
        r#"{"op":"update","table":"Chassis","where":[["nb","==",99]],"row":{"name":"x"}}"#;
    assert!(
        client(unlisted).contains("permission error"),
        "no row matches"
    );

    // The row of another client is on its way to the source, and the relay does not have it yet.
    pause(&source, true);
    let mut other = relay.client();
    let insert = r#"{"id":1,"method":"transact","params":["D",{"op":"insert","table":"Chassis","row":{"name":"hv2","nb":7}}]}"#;
    other.send(insert.as_bytes()).expect("sent");
    await_sent(&relay, 1);
    let delete = send(
        folder,
        "hv1",
        port,
        r#"{"op":"delete","table":"Chassis","where":[["nb","==",7]]}"#,
    );
    await_sent(&relay, 2);
    pause(&source, false);
    let denied = r#"[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit row deletion from table \"Chassis\".","error":"permission error"}]"#;
    assert_eq!(result(delete), denied);
    other.receive(Duration::from_secs(60)).expect("an answer");
    let rows = transact(
        &source,
        r#"["D",{"op":"select","table":"Chassis","where":[],"columns":["name"]}]"#,
    );
    assert_eq!(rows[0]["rows"].as_array().expect("rows").len(), 2, "{rows}");

    // A role does not restrict reading. The relay asks over a TLS connection of its own.
    let params = json!(["D", {"read": "log"}]);
    let reply = relay.client().call("read_history", &params);
    let reply = reply.expect("a reply");
    match is_ours {
        true => assert!(reply["result"]["lines"][0].is_object(), "{reply}"),
        false => assert_eq!(reply["error"]["error"], "not supported", "{reply}"),
    }
}

#[test]
fn a_role_is_judged_where_its_transaction_is_executed_by_any_source() {
    for source in implementations() {
        a_role_is_judged_where_its_transaction_is_executed(source);
    }
}

/// Returns the records of an audit log with this outcome.
fn records(file: &Path, outcome: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|record: &Value| record["outcome"] == outcome)
        .collect()
}

#[test]
fn a_trusted_relay_speaks_for_its_clients_and_the_audit_logs_name_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    if !make_identities(folder, &["source", "relay", "hv1"]) {
        return;
    }
    for is_trusted in [false, true] {
        let audit = |name: &str| folder.join(format!("{name}-{is_trusted}.log"));
        let mut options = conf(folder, &format!("source-{is_trusted}"));
        options.extend(tls(folder, "source"));
        options.push(format!("--audit-log={}", audit("source").display()));
        options.push("--record-clients".to_owned());
        if is_trusted {
            options.push("--trusted-relays=other,relay".to_owned());
        }
        let source = Node::started(Corvid, &schema(), &options);
        transact(&source, RULES);
        let port = open_remote(&source);
        let relay_log = format!("--audit-log={}", audit("relay").display());
        fs::remove_file(folder.join("relay-conf.db")).ok();
        let relay = relay_of(folder, port, &[relay_log]);
        let port = open_remote(&relay);
        let insert = r#"{"op":"insert","table":"Chassis","row":{"name":"hv1"}}"#;
        let text = result(send(folder, "hv1", port, insert));
        assert_eq!(text.contains("permission error"), !is_trusted, "{text}");

        let outcome = |of: &str| match is_trusted {
            true => of.to_owned(),
            false => "denied".to_owned(),
        };
        let of_client = |name: &str, outcome: &str, member: &str| {
            let mut found = Value::Null;
            let file = audit(name);
            wait_for("the audit log names the client", &[&source, &relay], || {
                let records = records(&file, outcome).into_iter();
                let mut who = records.map(|record| record["who"].clone());
                found = who
                    .find(|who| who[member] == "hv1" || who[member]["client"] == "hv1")
                    .unwrap_or_default();
                found.is_object()
            });
            found
        };
        let who = of_client("relay", &outcome("relayed"), "client");
        assert_eq!(who["role"], "host", "{who}");
        if is_trusted {
            let who = of_client("source", "committed", "for");
            assert_eq!(
                (&who["client"], &who["for"]["role"]),
                (&json!("relay"), &json!("host")),
                "{who}"
            );
            let text = fs::read_to_string(source.dir.path().join("db.db")).expect("a file");
            let (_, line) = text.split_once("corvid: client=hv1 ").expect("a line");
            let line = line.split('"').next().unwrap_or_default();
            let is_named = line.starts_with("peer=ssl:127.0.0.1:")
                && line.contains(" role=host via=relay:relay@ssl:127.0.0.1:");
            assert!(is_named, "{line}");
        } else {
            let denied = records(&audit("source"), "denied");
            assert!(
                denied.iter().all(|record| record["who"]["for"].is_null()),
                "{denied:?}"
            );
        }
    }
}
