//! The transaction history of standalone databases, and the setting that leaves it out. Without a
//! history, a client that reconnects gets all rows, as from the reference.

use std::fs;
use std::path::Path;
use std::time::Duration;

use corvid_tests::client::{Client, Received};
use corvid_tests::database_file;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use serde_json::{Value, json};

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

fn database(folder: &Path) {
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {"n": {"type": "integer"}}}}});
    database_file::create(&folder.join("D.db"), &schema).expect("a file");
}

/// Sends a monitor request that begins after transaction `last`. Returns whether that transaction
/// was found, the current id, and the number of rows.
fn since(client: &mut Client, name: &str, last: &str) -> (bool, String, usize) {
    let params = json!(["D", name, {"T": [{"columns": ["n"]}]}, last]);
    let reply = client.call("monitor_cond_since", &params).expect("a reply");
    let result = &reply["result"];
    let rows = result[2]["T"].as_object().map_or(0, serde_json::Map::len);
    (
        result[0].as_bool().expect("a flag"),
        result[1].as_str().expect("an id").to_owned(),
        rows,
    )
}

fn insert(client: &mut Client, n: i64) {
    let insert = json!(["D", {"op": "insert", "table": "T", "row": {"n": n}}]);
    let reply = client.call("transact", &insert).expect("a reply");
    assert!(reply["result"][0]["uuid"].is_array(), "{reply}");
}

/// Returns the id in the next notification.
fn told(client: &mut Client) -> String {
    let Received::Text(text) = client.receive(Duration::from_secs(60)).expect("received") else {
        panic!("nothing is told");
    };
    let message: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(message["method"], "update3");
    message["params"][1].as_str().expect("an id").to_owned()
}

/// Checks what clients see of a server with or without a history.
fn look(server: &Process, has_history: bool) {
    let mut writer = server.connect().expect("a connection");
    let mut client = server.connect().expect("a connection");
    insert(&mut writer, 1);
    let (is_found, first, rows) = since(&mut client, "a", ZERO);
    assert!(!is_found && rows > 0);
    insert(&mut writer, 2);
    let second = told(&mut client);
    insert(&mut writer, 3);
    let mut back = server.connect().expect("a connection");
    let (is_found, third, news) = since(&mut back, "b", &second);
    if has_history {
        assert!(first != ZERO && second != first && third != second);
        assert_eq!((is_found, news), (true, 1), "only what was missed");
    } else {
        assert_eq!([&first, &second, &third], [ZERO; 3]);
        assert_eq!((is_found, news), (false, rows + 2), "all rows");
    }
}

#[test]
fn history_can_be_left_out_by_an_option() {
    for (options, has_history) in [(&[][..], true), (&["--no-standalone-history"], false)] {
        let dir = tempfile::tempdir().expect("a directory");
        database(dir.path());
        let mut arguments = vec!["D.db".into()];
        arguments.extend(options.iter().map(Into::into));
        let program = Implementation::Corvid.server_binary().expect("built");
        let mut server = Process::new(&program, dir.path(), &arguments);
        server.start().expect("a server");
        look(&server, has_history);
    }
}

/// The setting in the file applies; without one, the option applies. A reload changes it for
/// databases that are being served.
#[test]
fn history_can_be_left_out_by_the_configuration_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    database(folder);
    let configure = |history: Value| {
        let mut config = json!({"remotes": {"punix:db.sock": null}, "databases": {"D.db": null}});
        if history != Value::Null {
            config["standalone-history"] = history;
        }
        fs::write(folder.join("config.json"), config.to_string()).expect("written");
    };
    configure(json!(false));
    let arguments = ["--config-file=config.json".into()];
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server = Process::without_remote(&program, folder, &arguments);
    server.start().expect("a server");
    look(&server, false);
    let reload = || {
        let reply = server.control("ovsdb-server/reload", &[]);
        reply.expect("a reply")["error"].clone()
    };
    for (history, has_history) in [
        (json!(true), true),
        (json!(false), false),
        (Value::Null, true),
    ] {
        configure(history);
        assert_eq!(reload(), Value::Null);
        look(&server, has_history);
    }
    // Transactions that were made before the history was dropped are not found afterwards.
    let mut client = server.connect().expect("a connection");
    let (_, last, _) = since(&mut client, "a", ZERO);
    assert_ne!(last, ZERO);
    configure(json!(false));
    assert_eq!(reload(), Value::Null);
    let (is_found, now, _) = since(&mut client, "b", &last);
    assert_eq!((is_found, now.as_str()), (false, ZERO));

    configure(json!("no"));
    assert_ne!(reload(), Value::Null);
    let log = server.log();
    assert!(
        log.contains("config: 'standalone-history' is not a boolean"),
        "{log}"
    );
}
