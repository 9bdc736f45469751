//! `ovsdb-server/backup` makes a copy of one moment while clients continue to write. Any server can
//! open the copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use corvid_tests::binary;
use corvid_tests::process::Process;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// The number of pairs of rows. The rows of a pair are inserted together, so a copy that contains
/// half a pair is not a copy of one moment.
const PAIRS: i64 = 2_000;

fn insert(pair: i64) -> Value {
    let row =
        |half: &str| json!({"op": "insert", "table": "T", "row": {"pair": pair, "half": half}});
    json!(["D", row("a"), row("b")])
}

fn start() -> Server {
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {
        "pair": {"type": "integer"}, "half": {"type": "string"},
        "note": {"type": "string", "ephemeral": true}}}}});
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    Server::start(Implementation::Corvid, &setup).expect("a server")
}

fn backup(server: &Server, file: &str) -> Value {
    let path = server.dir().join(file).display().to_string();
    let reply = server.control("ovsdb-server/backup", &["D".to_owned(), path]);
    reply.expect("a reply")
}

#[test]
fn a_backup_holds_one_moment_and_opens_anywhere() {
    let server = start();
    let mut client = server.connect().expect("a connection");
    for pair in 0..PAIRS {
        client.call("transact", &insert(pair)).expect("inserted");
    }
    let is_done = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let (is_done, mut client) = (is_done.clone(), server.connect().expect("a connection"));
        move || -> io::Result<()> {
            let mut pair = PAIRS;
            while !is_done.load(Ordering::Relaxed) {
                client.call("transact", &insert(pair))?;
                pair += 1;
            }
            Ok(())
        }
    });
    let reply = backup(&server, "copy.db");
    is_done.store(true, Ordering::Relaxed);
    writer.join().expect("no panic").expect("writes go on");
    assert_eq!(reply["error"], Value::Null, "{reply}");

    let programs = [
        Some(binary::bin("ovsdb-server")),
        binary::reference("ovsdb-server"),
    ];
    for program in programs.into_iter().flatten() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("D.db");
        std::fs::copy(server.dir().join("copy.db"), &file).expect("copied");
        let mut process = Process::new(&program, dir.path(), &[file.into()]);
        process.start().expect("the copy opens");
        let select =
            json!({"op": "select", "table": "T", "where": [], "columns": ["pair", "half"]});
        let reply = process
            .connect()
            .expect("a connection")
            .call("transact", &json!(["D", select]))
            .expect("a reply");
        let rows = reply["result"][0]["rows"].as_array().expect("rows");
        let mut pairs: Vec<i64> = rows
            .iter()
            .map(|row| row["pair"].as_i64().expect("a number"))
            .collect();
        pairs.sort_unstable();
        // Select leaves out equal rows, so each pair gives two rows, its halves.
        let torn = (0..)
            .zip(pairs.chunks(2))
            .find(|(pair, found)| *found != [*pair; 2]);
        assert_eq!(torn, None, "{}", program.display());
        assert!(i64::try_from(pairs.len()).expect("few") >= 2 * PAIRS);
    }
}

/// A daemon has left the directory to which a relative name seems to be relative.
#[test]
fn the_reply_names_the_file_of_a_relative_name() {
    let server = start();
    let arguments = ["D".to_owned(), "relative.db".to_owned()];
    let reply = server.control("ovsdb-server/backup", &arguments);
    let reply = reply.expect("a reply");
    let written = reply["result"].as_str().expect("a name").trim();
    assert!(
        written.starts_with('/') && written.ends_with("/relative.db"),
        "{reply}"
    );
    assert!(std::fs::metadata(written).is_ok(), "{reply}");
    let again = server.control("ovsdb-server/backup", &arguments);
    let again = again.expect("a reply");
    let error = again["error"].as_str().expect("an error");
    assert!(error.contains(written), "{error}");
    std::fs::remove_file(written).expect("ours");
}

#[test]
fn a_backup_refuses_existing_files_and_missing_folders() {
    let server = start();
    let taken = backup(&server, "D.db");
    let error = taken["error"].as_str().expect("an error");
    assert!(
        error.contains("D.db: create failed (File exists)"),
        "{error}"
    );
    let nowhere = backup(&server, "absent/copy.db");
    let error = nowhere["error"].as_str().expect("an error");
    assert!(
        error.contains("write failed (No such file or directory)"),
        "{error}"
    );
    let arguments = ["X".to_owned(), "copy.db".to_owned()];
    let unknown = server.control("ovsdb-server/backup", &arguments);
    let error = unknown.expect("a reply")["error"].clone();
    assert_eq!(
        error.as_str().map(str::trim),
        Some("no database by that name")
    );
}
