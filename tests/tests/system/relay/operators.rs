//! Relays as operators use them: arguments, control commands, the configuration file, TLS and logs.

use std::fs;
use std::path::Path;

use corvid_tests::database_file;
use corvid_tests::numbered_rows::{self, DATABASE, numbers, numbers_of, schema, schema_of};
use corvid_tests::peer;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation::Corvid;
use serde_json::{Value, json};

use super::node::{Node, await_contents, receive, relay_of, row, wait_for};
use crate::cluster_network::{make_identity, tls_options};

/// Returns a remote at which no server listens.
fn nowhere(folder: &Path) -> String {
    format!("unix:{}", folder.join("nowhere.sock").display())
}

#[test]
fn a_relay_without_contents_is_listed_and_not_available() {
    let folder = tempfile::tempdir().expect("a directory");
    let remote = nowhere(folder.path());
    let relay = relay_of(Corvid, DATABASE, &remote);
    assert_eq!(relay.control("list-dbs"), "D\n_Server\n");
    let reply = relay.client().call("list_dbs", &json!([]));
    assert_eq!(reply.expect("a reply")["result"], json!(["D", "_Server"]));
    assert_eq!(relay.control("get-db-storage-status D"), "status: ok\n");
    let row = row(&relay, DATABASE);
    let empty = json!(["set", []]);
    let expected = json!({"name": "D", "model": "relay", "connected": false, "leader": false,
        "schema": empty, "cid": empty, "sid": empty, "index": empty});
    assert_eq!(row, expected);
    let reply = relay.client().call("get_schema", &json!(["D"]));
    let error = reply.expect("a reply")["error"].clone();
    assert_eq!(error["error"], "database not available", "{error}");
    assert_eq!(relay.control("compact D"), "");
    assert_eq!(relay.control("remove-db D"), "");
    assert_eq!(relay.control("list-dbs"), "_Server\n");
    assert_eq!(
        relay.control("get-db-storage-status D"),
        "Failed to find the database.\n"
    );
}

#[test]
fn relays_are_added_and_removed_beside_databases_of_other_models() {
    let source = Node::started(Corvid, &schema(), &[]);
    numbered_rows::add(&mut source.client(), 1).expect("inserted");
    let server = Node::with_arguments(Corvid, &["--no-dbs".to_owned()]);
    let file = server.dir.path().join("E.db");
    database_file::create(&file, &schema_of("E")).expect("a file");
    assert_eq!(server.control(&format!("add-db {}", file.display())), "");
    let add = format!("add-db relay:D:{}", source.remote());
    let mut unaware = server.client();
    assert!(unaware.call("echo", &json!([])).is_ok());
    assert_eq!(server.control(&add), "");
    await_contents(&server, DATABASE);
    assert!(receive(&mut unaware).is_none(), "it is closed");
    assert_eq!(server.control("list-dbs"), "D\nE\n_Server\n");
    numbered_rows::add(&mut server.client(), 2).expect("inserted");
    numbered_rows::add_to(&mut server.client(), "E", 1).expect("inserted");
    assert_eq!(numbers(&mut source.client()).expect("rows"), [1, 2].into());

    // If the name is already used, nothing changes.
    for (argument, name) in [
        (add.clone(), "D"),
        (format!("add-db relay:E:{}", source.remote()), "E"),
    ] {
        let refused = server.control(&argument);
        let expected = format!("ovsdb error: {name}: duplicate database name\n");
        assert_eq!(refused, expected);
    }
    let refused = server.control(&format!("add-db relay:_Server:{}", source.remote()));
    assert_eq!(
        refused,
        "ovsdb error: _Server: names beginning with \"_\" are reserved\n"
    );
    assert_eq!(server.control("list-dbs"), "D\nE\n_Server\n");
    assert_eq!(numbers(&mut server.client()).expect("rows"), [1, 2].into());
    let e = numbers_of(&mut server.client(), "E").expect("rows");
    assert_eq!(e, [1].into());

    for _ in 0..3 {
        assert_eq!(server.control("remove-db D"), "");
        assert_eq!(server.control("list-dbs"), "E\n_Server\n");
        assert_eq!(row(&server, DATABASE), Value::Null);
        assert_eq!(server.control(&add), "");
        await_contents(&server, DATABASE);
        assert_eq!(numbers(&mut server.client()).expect("rows"), [1, 2].into());
    }
    assert_eq!(server.control("get-db-storage-status D"), "status: ok\n");
    assert_eq!(server.control("compact D"), "");
    assert_eq!(server.control("compact"), "");
    let log = server.process.log();
    for text in [
        "disconnecting (adding D database)",
        "disconnecting (removing D database by user request)",
        "disconnecting (database D connected to storage)",
        "|reconnect|INFO|unix:",
        ": connecting...",
        ": connected",
    ] {
        let may_be_absent = text.contains("storage") || text.contains("removing");
        assert!(log.contains(text) || may_be_absent, "{text}: {log}");
    }
}

#[test]
fn the_interval_of_probes_is_set_by_command() {
    let folder = tempfile::tempdir().expect("a directory");
    let relay = relay_of(Corvid, DATABASE, &nowhere(folder.path()));
    let set = |text: &str| relay.control(&format!("set-relay-source-probe-interval {text}"));
    for good in ["0", "1", "5000", "2147483647"] {
        assert_eq!(set(good), "");
    }
    for bad in ["x", "1.5", "2147483648", "10 000"] {
        let refused = set(bad);
        let is_refused = refused.starts_with("Invalid probe interval, integer value expected")
            || refused.contains("takes at most 1 arguments");
        assert!(is_refused, "{bad}: {refused}");
    }
}

fn configure(folder: &Path, config: &Value) {
    fs::write(folder.join("config.json"), config.to_string()).expect("written");
}

fn control(server: &Process, command: &str, arguments: &[&str]) -> String {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let reply = server.control(command, &arguments).expect("a reply");
    let said = match &reply["error"] {
        Value::Null => &reply["result"],
        error => error,
    };
    said.as_str().unwrap_or_default().trim_end().to_owned()
}

#[test]
fn a_configuration_file_names_relays_and_their_sources() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    let source = Node::started(Corvid, &schema(), &[]);
    numbered_rows::add(&mut source.client(), 1).expect("inserted");
    let other = Node::started(Corvid, &schema(), &[]);
    numbered_rows::add(&mut other.client(), 7).expect("inserted");
    database_file::create(&folder.join("E.db"), &schema_of("E")).expect("a file");
    let with = |relay: Value| {
        configure(
            folder,
            &json!({"remotes": {"punix:db.sock": null}, "databases": {"E.db": null, "D": relay}}),
        );
    };
    let options = json!({"inactivity-probe": 0, "max-backoff": 1000, "dscp": 10});
    let relay_of = |remote: String| json!({"service-model": "relay", "source": {remote: options}});
    with(relay_of(source.remote()));
    let program = Corvid.server_binary().expect("built");
    let arguments = ["--config-file=config.json".into()];
    let mut server = Process::without_remote(&program, folder, &arguments);
    server.start().expect("a server");
    assert_eq!(
        control(&server, "ovsdb-server/list-dbs", &[]),
        "D\nE\n_Server"
    );
    let holds = |expected: i64| {
        let rows = numbers(&mut server.connect().expect("a connection"));
        rows.is_ok_and(|rows| rows == [expected].into())
    };
    wait_for("the relay has rows", &[&source], || holds(1));
    for (command, arguments) in [
        ("ovsdb-server/add-db", ["relay:F:unix:x"]),
        ("ovsdb-server/set-relay-source-probe-interval", ["1000"]),
        ("ovsdb-server/remove-db", ["D"]),
    ] {
        let refused = control(&server, command, &arguments);
        assert!(refused.starts_with("Update the "), "{refused}");
    }
    // With another source, the contents become those of that source.
    with(relay_of(other.remote()));
    assert_eq!(control(&server, "ovsdb-server/reload", &[]), "");
    wait_for("the relay follows the other source", &[&other], || holds(7));
    numbered_rows::add(&mut server.connect().expect("a connection"), 8).expect("inserted");
    assert_eq!(numbers(&mut other.client()).expect("rows"), [7, 8].into());
    // The same source is given without options.
    with(json!({"service-model": "relay", "source": {other.remote(): null}}));
    assert_eq!(control(&server, "ovsdb-server/reload", &[]), "");
    // With another service model, the relay is removed. The entry then names a file that does not
    // exist.
    with(json!({"service-model": "standalone"}));
    let failed = "Configuration failed.  See the log file for details.";
    assert_eq!(control(&server, "ovsdb-server/reload", &[]), failed);
    assert_eq!(control(&server, "ovsdb-server/list-dbs", &[]), "E\n_Server");
    with(relay_of(source.remote()));
    assert_eq!(control(&server, "ovsdb-server/reload", &[]), "");
    wait_for("the relay has rows", &[&source], || holds(1));
    server.stop().expect("an orderly end");
}

#[test]
fn a_source_is_reached_by_tls() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    if !make_identity(folder, "source") || !make_identity(folder, "relay") {
        return peer::say_skipped("openssl, which makes certificates, is not installed");
    }
    let of = |name: &str, authority: &str| {
        let options = tls_options(folder, name, authority);
        let options = options.into_iter();
        options
            .map(|option| option.into_string().expect("text"))
            .collect::<Vec<String>>()
    };
    let mut options = of("source", "relay");
    options.push("--remote=pssl:0:127.0.0.1".to_owned());
    let source = Node::started(Corvid, &schema(), &options);
    numbered_rows::add(&mut source.client(), 1).expect("inserted");
    let port = source.process.port().expect("a port");
    let mut arguments = of("relay", "source");
    arguments.push(format!("relay:D:ssl:127.0.0.1:{port}"));
    let relay = Node::with_arguments(Corvid, &arguments);
    await_contents(&relay, DATABASE);
    numbered_rows::add(&mut relay.client(), 2).expect("inserted");
    assert_eq!(numbers(&mut relay.client()).expect("rows"), [1, 2].into());
    // A relay that does not trust the source gets no contents.
    let mut arguments = of("relay", "relay");
    arguments.push(format!("relay:D:ssl:127.0.0.1:{port}"));
    let stranger = Node::with_arguments(Corvid, &arguments);
    wait_for("the failure is logged", &[&stranger], || {
        let log = stranger.process.log();
        log.contains("connection attempt failed") || log.contains("connection dropped")
    });
    assert_eq!(row(&stranger, DATABASE)["connected"], false);
}
