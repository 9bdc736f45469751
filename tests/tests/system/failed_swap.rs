//! If a new file cannot be put in place, the old file stays in use, and the failed compaction does
//! not delay the next one.

use std::fs;

use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

fn insert(client: &mut corvid_tests::client::Client, number: i64) {
    let row = json!({"op": "insert", "table": "T", "row": {"n": number}});
    let reply = client.call("transact", &json!(["D", row]));
    let reply = reply.expect("a reply");
    assert_eq!(reply["error"], Value::Null, "{reply}");
}

#[test]
fn a_compaction_after_one_that_could_not_be_swapped_in_succeeds() {
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {"n": {"type": "integer"}}}}});
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let mut client = server.connect().expect("a connection");
    insert(&mut client, 1);
    let compact = || {
        let reply = server.control("ovsdb-server/compact", &[]);
        reply.expect("a reply in time")
    };
    // Renaming to the name of a directory fails.
    let (file, aside) = (server.dir().join("D.db"), server.dir().join("aside.db"));
    fs::rename(&file, &aside).expect("a rename");
    fs::create_dir(&file).expect("a directory");
    for number in 2..4 {
        let reply = compact();
        let error = reply["error"].as_str().unwrap_or_default();
        assert!(error.contains("replacement failed"), "{reply}");
        insert(&mut client, number);
    }
    fs::remove_dir(&file).expect("no directory");
    fs::rename(&aside, &file).expect("a rename");
    let reply = compact();
    assert_eq!(reply["error"], Value::Null, "{reply}");
    insert(&mut client, 4);
    let text = fs::read_to_string(&file).expect("the file");
    assert_eq!(text.matches("OVSDB JSON").count(), 3, "{text}");
    assert!(text.contains("compacting database online"), "{text}");
}
