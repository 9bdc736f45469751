//! A server whose files take long to open. Everything else continues in the meantime, commands
//! about the same file keep their order, an exit does not wait for a file, and a service manager
//! does not mistake a long start for a hang.
//!
//! The disk is made slow by a library that delays reads of `slow.db` for as long as a file named
//! `hold` exists. So no test depends on the speed of the machine.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::daemon::Daemon;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use corvid_tests::{database_file, http, troubled_disk};
use serde_json::{Value, json};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn schema(name: &str) -> Value {
    let targets = json!({"type": {"key": "string", "min": 0, "max": "unlimited"}});
    json!({"name": name, "tables": {"T": {"isRoot": true, "columns": {"targets": targets}}}})
}

/// Makes a folder with the database `D` in `D.db` and `S` in `slow.db`.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, file) in [("D", "D.db"), ("S", "slow.db")] {
        database_file::create(&dir.path().join(file), &schema(name)).expect("a file");
    }
    dir
}

/// Makes a server on a disk that delays reads of `slow.db`. The server is not started.
fn on_slow_disk(folder: &Path, options: &[&str]) -> Process {
    fs::write(folder.join("hold"), "").expect("written");
    let program = Implementation::Corvid.server_binary().expect("built");
    let options: Vec<_> = options.iter().map(Into::into).collect();
    Process::without_remote(&program, folder, &options)
        .with_variable("LD_PRELOAD", troubled_disk::library(folder))
        .with_variable(troubled_disk::FILE, "slow.db")
        .with_variable(troubled_disk::WHILE, folder.join("hold"))
        .with_variable(troubled_disk::READ_HOLDS, "1")
        .with_variable(troubled_disk::TRACE, folder.join("trace"))
}

fn release(folder: &Path) {
    fs::remove_file(folder.join("hold")).expect("removed");
}

/// Waits until the server reads the slow file.
fn until_held(folder: &Path) {
    until("a read of the slow file", || {
        let trace = fs::read_to_string(folder.join("trace")).unwrap_or_default();
        trace.lines().any(|line| line.ends_with(" read"))
    });
}

/// A control command that has been sent.
struct PendingRequest(Client);

impl PendingRequest {
    fn new(server: &Process, command: &str, arguments: &[&str]) -> PendingRequest {
        let mut client = Client::connect(&server.control_socket()).expect("connected");
        let request = json!({"id": 0, "method": command, "params": arguments});
        client.send(request.to_string().as_bytes()).expect("sent");
        PendingRequest(client)
    }

    fn reply(mut self) -> Value {
        match self.0.receive(LIMIT).expect("a connection") {
            Received::Text(text) => serde_json::from_slice(&text).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    fn error(self) -> String {
        let reply = self.reply();
        let error = reply["error"].as_str().unwrap_or_default();
        error.trim_end().to_owned()
    }
}

/// Returns the reply to a command that is not delayed.
fn told(server: &Process, command: &str, arguments: &[&str]) -> Value {
    PendingRequest::new(server, command, arguments).reply()
}

fn databases(server: &Process) -> String {
    let reply = told(server, "ovsdb-server/list-dbs", &[]);
    reply["result"].as_str().expect("a list").to_owned()
}

/// Opens the socket of the service manager.
fn manager(folder: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(folder.join("notify.sock")).expect("a socket");
    socket.set_read_timeout(Some(LIMIT)).expect("set");
    socket
}

fn next_told(manager: &UnixDatagram) -> String {
    let mut datagram = [0; 4096];
    let length = manager.recv(&mut datagram).expect("a datagram");
    String::from_utf8_lossy(&datagram[..length]).into_owned()
}

const ADD: &str = "ovsdb-server/add-db";

/// Starts a server on `D.db` and asks it to serve the slow file. Returns when the server is reading
/// that file.
fn adding(
    folder: &Path,
    options: &[&str],
    prepare: impl FnOnce(Process) -> Process,
) -> (Process, PendingRequest) {
    let options: Vec<&str> = options
        .iter()
        .chain(&["--remote=punix:db.sock", "D.db"])
        .copied()
        .collect();
    let mut server = prepare(on_slow_disk(folder, &options));
    server.start().expect("a server");
    let asked = PendingRequest::new(&server, ADD, &["slow.db"]);
    until_held(folder);
    (server, asked)
}

#[test]
fn commands_are_answered_while_a_file_is_opened() {
    let dir = folder();
    let folder = dir.path();
    let (mut server, adding) = adding(folder, &[], |server| server);
    // The commands do not know the new database yet.
    assert_eq!(databases(&server), "D\n_Server\n");
    let removed = PendingRequest::new(&server, "ovsdb-server/remove-db", &["S"]);
    assert_eq!(removed.error(), "Failed to find the database.");
    // The same file by another name is only examined when the first command is done.
    std::os::unix::fs::symlink("slow.db", folder.join("link.db")).expect("a link");
    let again = PendingRequest::new(&server, ADD, &["link.db"]);
    // Another file is not delayed.
    database_file::create(&folder.join("E.db"), &schema("E")).expect("a file");
    assert_eq!(told(&server, ADD, &["E.db"])["error"], Value::Null);
    assert_eq!(databases(&server), "D\nE\n_Server\n");

    release(folder);
    assert_eq!(adding.reply()["error"], Value::Null);
    assert_eq!(again.error(), "ovsdb error: link.db: already open");
    assert_eq!(databases(&server), "D\nE\nS\n_Server\n");
    let insert = json!(["S", {"op": "insert", "table": "T", "row": {}}]);
    let mut client = server.connect().expect("a connection");
    let reply = client.call("transact", &insert).expect("a reply");
    assert!(reply["result"][0]["uuid"].is_array(), "{reply}");
    server.stop().expect("a clean end");
}

/// A client that gets the reply to its commit can connect to the remote that the commit has added.
#[test]
fn a_commit_that_adds_a_remote_waits_for_no_file() {
    let dir = folder();
    let folder = dir.path();
    let (mut server, adding) = adding(folder, &["--remote=db:D,T,targets"], |server| server);
    let second = folder.join("second.sock");
    let row = json!({"targets": format!("punix:{}", second.display())});
    let insert = json!(["D", {"op": "insert", "table": "T", "row": row}]);
    let mut client = server.connect().expect("a connection");
    let reply = client.call("transact", &insert).expect("a reply");
    assert!(reply["result"][0]["uuid"].is_array(), "{reply}");
    Client::connect(&second).expect("the new remote");
    release(folder);
    assert_eq!(adding.reply()["error"], Value::Null);
    server.stop().expect("a clean end");
}

#[test]
fn managers_and_probes_get_signs_of_life_while_a_file_is_opened() {
    let dir = folder();
    let folder = dir.path();
    let manager = manager(folder);
    let pages = format!("--metrics-listen=unix:{}", folder.join("http").display());
    let (mut server, adding) = adding(folder, &[&pages], |server| {
        server
            .with_variable("NOTIFY_SOCKET", folder.join("notify.sock"))
            .with_variable("WATCHDOG_USEC", "300000")
    });
    // Messages that were sent before are read first.
    manager.set_nonblocking(true).expect("set");
    while manager.recv(&mut [0; 4096]).is_ok() {}
    manager.set_nonblocking(false).expect("set");
    for _ in 0..3 {
        assert_eq!(next_told(&manager).trim_end(), "WATCHDOG=1");
    }
    let page = http::get(&folder.join("http"), "/livez", "*/*").expect("a page");
    assert_eq!(page.status, 200);
    release(folder);
    assert_eq!(adding.reply()["error"], Value::Null);
    server.stop().expect("a clean end");
}

/// If two files have the same schema name, the one that is loaded first is served, and the other
/// file is closed again.
#[test]
fn files_that_are_replaced_or_unusable_are_logged_and_closed() {
    let dir = folder();
    let folder = dir.path();
    fs::copy(folder.join("slow.db"), folder.join("copy.db")).expect("copied");
    let (mut server, slow) = adding(folder, &[], |server| server);
    assert_eq!(told(&server, ADD, &["copy.db"])["error"], Value::Null);
    release(folder);
    assert_eq!(slow.error(), "ovsdb error: S: duplicate database name");
    let removed = told(&server, "ovsdb-server/remove-db", &["S"]);
    assert_eq!(removed["error"], Value::Null);
    assert_eq!(told(&server, ADD, &["slow.db"])["error"], Value::Null);
    assert_eq!(databases(&server), "D\nS\n_Server\n");

    // The second command for a file gets its own reply when the first one has failed.
    let removed = told(&server, "ovsdb-server/remove-db", &["S"]);
    assert_eq!(removed["error"], Value::Null);
    fs::write(folder.join("slow.db"), "nothing\n").expect("written");
    fs::remove_file(folder.join("trace")).expect("removed");
    fs::write(folder.join("hold"), "").expect("written");
    let first = PendingRequest::new(&server, ADD, &["slow.db"]);
    until_held(folder);
    let second = PendingRequest::new(&server, ADD, &["slow.db"]);
    assert_eq!(databases(&server), "D\n_Server\n");
    release(folder);
    let error = first.error();
    assert!(error.contains("slow.db: "), "{error}");
    assert_eq!(second.error(), error);
    server.stop().expect("a clean end");
}

#[test]
fn an_exit_does_not_wait_for_a_file() {
    let dir = folder();
    let folder = dir.path();
    let (mut server, adding) = adding(folder, &[], |server| server);
    let waiting = PendingRequest::new(&server, ADD, &["slow.db"]);
    assert_eq!(databases(&server), "D\n_Server\n");
    server.stop().expect("a clean end");
    for asked in [adding, waiting] {
        assert_eq!(asked.error(), "slow.db: not opened: the server is exiting");
    }
}

/// The signal comes while the first files are being loaded.
#[test]
fn a_start_that_takes_long_can_be_ended() {
    let dir = folder();
    let folder = dir.path();
    let mut server = on_slow_disk(folder, &["--remote=punix:db.sock", "slow.db"]);
    server.launch().expect("a process");
    until_held(folder);
    Daemon::signal(server.pid(), "TERM").expect("sent");
    until("the end", || server.has_ended());
    let line = "terminating with signal 15 (Terminated)";
    assert!(server.log().contains(line), "{}", server.log());
}

#[test]
fn a_reload_blocks_nothing_and_the_next_one_comes_after_it() {
    let dir = folder();
    let folder = dir.path();
    let serve = |databases: Value| {
        let config = json!({"remotes": {"punix:db.sock": null}, "databases": databases});
        fs::write(folder.join("config.json"), config.to_string()).expect("written");
    };
    serve(json!({"D.db": {}}));
    let manager = manager(folder);
    let mut server = on_slow_disk(folder, &["--config-file=config.json"])
        .with_variable("NOTIFY_SOCKET", folder.join("notify.sock"));
    server.start().expect("a server");
    serve(json!({"D.db": {}, "slow.db": {"service-model": "standalone"}}));
    let reload = "ovsdb-server/reload";
    let first = PendingRequest::new(&server, reload, &[]);
    until_held(folder);
    assert_eq!(databases(&server), "D\n_Server\n");
    // The service manager does not mistake this for a hang.
    while next_told(&manager).trim_end() != "EXTEND_TIMEOUT_USEC=60000000" {}
    // The configuration file still decides which databases are served.
    let refused = PendingRequest::new(&server, ADD, &["E.db"]).error();
    let path = folder.join("config.json");
    assert_eq!(
        refused,
        format!("Update the {} and use {reload} instead", path.display())
    );
    // The next reload reads the file as it is when the first reload is done.
    database_file::create(&folder.join("E.db"), &schema("E")).expect("a file");
    serve(json!({"E.db": {}, "slow.db": {}}));
    let second = PendingRequest::new(&server, reload, &[]);
    Daemon::signal(server.pid(), "HUP").expect("sent");
    assert_eq!(databases(&server), "D\n_Server\n");
    release(folder);
    for asked in [first, second] {
        assert_eq!(asked.reply()["error"], Value::Null);
    }
    assert_eq!(databases(&server), "E\nS\n_Server\n");
    let loading = "|ovsdb_server|INFO|loading configuration from";
    until("the reload by signal", || {
        server.log().matches(loading).count() == 4
    });
    server.stop().expect("a clean end");
}

/// The disk returns 256 bytes in 5 ms. A start that would take minutes makes progress all the time,
/// and reports it.
#[test]
fn a_manager_gets_progress_of_a_long_start() {
    let dir = folder();
    let folder = dir.path();
    let manager = manager(folder);
    // At this speed, reading the file takes longer than the test.
    let text = "x".repeat(1000);
    for number in 0..5000 {
        let uuid = format!("00000000-0000-4000-8000-{number:012}");
        let record = json!({"_date": 0, "T": {uuid: {"targets": text}}});
        database_file::append(&folder.join("slow.db"), &record).expect("appended");
    }
    let mut server = on_slow_disk(folder, &["--remote=punix:db.sock", "slow.db"])
        .with_variable(troubled_disk::READ_HOLDS, "0")
        .with_variable(troubled_disk::READ_US, "5000")
        .with_variable(troubled_disk::READ_BYTES, "256")
        .with_variable("NOTIFY_SOCKET", folder.join("notify.sock"))
        .with_variable("WATCHDOG_USEC", "300000");
    server.launch().expect("a process");
    let (mut signs, mut extensions) = (0, 0);
    while signs < 3 || extensions < 1 {
        match next_told(&manager).trim_end() {
            "WATCHDOG=1" => signs += 1,
            "EXTEND_TIMEOUT_USEC=60000000" => extensions += 1,
            other => panic!("{other}"),
        }
    }
    release(folder);
    while !next_told(&manager).contains("READY=1") {}
    let mut client = server.connect().expect("a connection");
    let select = json!(["S", {"op": "select", "table": "T", "where": [], "columns": ["_uuid"]}]);
    let reply = client.call("transact", &select).expect("a reply");
    let rows = reply["result"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 5000);
    server.stop().expect("a clean end");
}
