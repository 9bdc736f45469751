//! Servers that replicate each other, their contents, and writers with ledgers.

use std::ffi::OsString;
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::ledger::{Answer, DATABASE, Ledger};
use corvid_tests::process::Process;
use corvid_tests::server::Implementation::{self, Corvid, Reference};
use corvid_tests::{database_file, peer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The time limit for any event on a busy machine.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A server in its own directory, which is removed after the process has ended.
pub(crate) struct Node {
    pub(crate) process: Process,
    pub(crate) dir: TempDir,
}

impl Node {
    /// Makes a server of an empty database. The server is not started.
    pub(crate) fn new(implementation: Implementation, schema: &Value, options: &[String]) -> Node {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("db.db");
        database_file::create(&file, schema).expect("a file");
        let mut arguments = vec![file.into_os_string()];
        arguments.extend(options.iter().map(Into::into));
        Node::in_directory(implementation, dir, &arguments)
    }

    fn in_directory(implementation: Implementation, dir: TempDir, arguments: &[OsString]) -> Node {
        let program = implementation.server_binary().expect("built");
        let process = Process::new(&program, dir.path(), arguments);
        Node { process, dir }
    }

    /// Starts a server with these arguments besides its remote.
    pub(crate) fn with_arguments(implementation: Implementation, arguments: &[String]) -> Node {
        let dir = tempfile::tempdir().expect("a directory");
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        let mut node = Node::in_directory(implementation, dir, &arguments);
        node.process.start().expect("a server");
        node
    }

    pub(crate) fn started(
        implementation: Implementation,
        schema: &Value,
        options: &[String],
    ) -> Node {
        let mut node = Node::new(implementation, schema, options);
        node.process.start().expect("a server");
        node
    }

    /// Starts a backup of `active`.
    pub(crate) fn backup(implementation: Implementation, schema: &Value, active: &Node) -> Node {
        let mut options = vec![format!("--sync-from={}", active.remote())];
        if implementation == Corvid {
            // The contents of a source are longer than this limit, but they are not a message of a
            // client.
            options.push("--max-message-size=1M".to_owned());
        }
        Node::started(implementation, schema, &options)
    }

    pub(crate) fn remote(&self) -> String {
        format!("unix:{}", self.process.socket().display())
    }

    pub(crate) fn client(&self) -> Client {
        self.process.connect().expect("a connection")
    }

    /// Runs a control command. Returns its result or its error.
    pub(crate) fn control(&self, line: &str) -> String {
        let mut words = line.split(' ').map(str::to_owned);
        let command = format!("ovsdb-server/{}", words.next().unwrap_or_default());
        let reply = self.process.control(&command, &words.collect::<Vec<_>>());
        let reply = reply.expect("a reply");
        let said = match &reply["error"] {
            Value::Null => &reply["result"],
            error => error,
        };
        said.as_str().unwrap_or_default().to_owned()
    }

    /// Makes this server a backup of `active`.
    pub(crate) fn follow(&self, active: &Node) {
        let set = format!("set-active-ovsdb-server {}", active.remote());
        assert_eq!(self.control(&set), "");
        assert_eq!(self.control("connect-active-ovsdb-server"), "");
    }

    pub(crate) fn transact(&self, operation: &Value) -> Value {
        let reply = self
            .client()
            .call("transact", &json!([DATABASE, operation]));
        reply.expect("a reply")["result"][0].clone()
    }

    /// Returns every row of every table, sorted. Identities and ephemeral columns are included,
    /// versions are not.
    pub(crate) fn rows(&self, schema: &Value) -> Vec<String> {
        let tables = schema["tables"].as_object().expect("tables");
        let mut params = vec![json!(DATABASE)];
        for (table, described) in tables {
            let columns = described["columns"].as_object().expect("columns");
            let mut names: Vec<&str> = columns.keys().map(String::as_str).collect();
            names.push("_uuid");
            params.push(json!({"op": "select", "table": table, "where": [], "columns": names}));
        }
        let reply = self.client().call("transact", &Value::Array(params));
        let reply = reply.expect("a reply");
        let results = reply["result"].as_array().expect("results");
        let mut rows = Vec::new();
        for (table, result) in tables.keys().zip(results) {
            let found = result["rows"].as_array().expect("rows");
            rows.extend(found.iter().map(|row| format!("{table} {row}")));
        }
        rows.sort();
        rows
    }
}

/// Waits until a condition is true.
pub(crate) fn wait_for(what: &str, nodes: &[&Node], mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIME_LIMIT;
    while !is_so() {
        let logs = || nodes.iter().map(|node| node.process.log() + "\n");
        assert!(
            Instant::now() < deadline,
            "{what}:\n{}",
            logs().collect::<String>()
        );
        thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn wait_until_equal(schema: &Value, active: &Node, backup: &Node) {
    wait_for("the copy equals its source", &[active, backup], || {
        backup.rows(schema) == active.rows(schema)
    });
}

/// Returns the pairs of source and backup that can be tested on this machine.
pub(crate) fn pairings() -> Vec<(Implementation, Implementation)> {
    if Reference.server_binary().is_ok() {
        let both = [Corvid, Reference];
        let pairs = both.into_iter();
        return pairs
            .flat_map(|active| both.map(|backup| (active, backup)))
            .collect();
    }
    peer::say_skipped("backups of the reference, and by it: it is not installed");
    vec![(Corvid, Corvid)]
}

/// Writes some transactions of `ledger`, each of which must succeed.
pub(crate) fn write(node: &Node, ledger: &mut Ledger, count: usize) {
    let mut client = node.client();
    for _ in 0..count {
        let request = ledger.request(ledger.count() % 3 == 2);
        client.send(request.as_bytes()).expect("sent");
        let reply = receive(&mut client).expect("a reply");
        assert_eq!(ledger.apply_reply(&reply), Ok(Answer::Acknowledged));
    }
}

pub(crate) fn receive(client: &mut Client) -> Option<Value> {
    match client.receive(TIME_LIMIT).expect("something") {
        Received::Text(text) => Some(serde_json::from_slice(&text).expect("JSON")),
        Received::Closed | Received::Nothing => None,
    }
}

/// Inserts the row of a writer, with a value in its ephemeral column.
pub(crate) fn begin(node: &Node, ledger: &Ledger, writer: i64) {
    let inserted = node.transact(&ledger.beginning());
    assert!(inserted["uuid"].is_array(), "{inserted}");
    let mood = json!({"op": "update", "table": "Tally", "where": [["writer", "==", writer]], "row": {"mood": 7}});
    assert_eq!(node.transact(&mood)["count"], 1);
}
