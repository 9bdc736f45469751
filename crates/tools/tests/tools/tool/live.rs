//! Clusters of the reference's server on files that our tool created. The server must serve them,
//! and both tools must print the same about the resulting files. Skipped if the reference is not
//! installed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::tool::reference::{REFERENCE, compare};
use crate::tool::sandbox::{SCHEMA, Sandbox, with_database};

const SERVER: &str = "/usr/sbin/ovsdb-server";
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server of one database; dropping it kills the server. `a` serves `a.db`, listens for clients
/// at `a.sock`, and for other members at the address in its file, `unix:a.raft`.
struct Node {
    name: &'static str,
    directory: PathBuf,
    child: Child,
}

impl Node {
    fn start(sandbox: &Sandbox, name: &'static str) -> Node {
        let directory = sandbox.path("");
        let log = std::fs::File::create(directory.join(format!("{name}.log"))).expect("a file");
        let child = Command::new(SERVER)
            .args([
                "-vsyslog:off".to_owned(),
                format!("--remote=punix:{name}.sock"),
                format!(
                    "--unixctl={}",
                    directory.join(format!("{name}.ctl")).display()
                ),
                format!("{name}.db"),
            ])
            .current_dir(&directory)
            .env("OVS_RUNDIR", &directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("a server");
        Node {
            name,
            directory,
            child,
        }
    }

    fn once(self, what: &str) -> Node {
        self.wait_for_status(what);
        self
    }

    fn wait_for_status(&self, what: &str) {
        self.wait_until(what, || {
            self.control(&["cluster/status", "Demo"])
                .is_some_and(|status| status.contains(what))
        });
    }

    fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !is_so() {
            if Instant::now() > deadline {
                let log =
                    std::fs::read_to_string(self.directory.join(format!("{}.log", self.name)));
                panic!("{}: no {what} after {TIMEOUT:?}: {log:?}", self.name);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a control command; `None` if it fails.
    fn control(&self, words: &[&str]) -> Option<String> {
        let socket = self.directory.join(format!("{}.ctl", self.name));
        let output = Command::new("ovs-appctl")
            .arg("-t")
            .arg(socket)
            .args(words)
            .output()
            .expect("ovs-appctl");
        (output.status.success()).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn transact(&self, operations: &str) -> String {
        let output = Command::new("ovsdb-client")
            .args(["--no-leader-only", "-t30", "transact"])
            .arg(format!(
                "unix:{}",
                self.directory.join(format!("{}.sock", self.name)).display()
            ))
            .arg(format!("[\"Demo\",{operations}]"))
            .current_dir(&self.directory)
            .output()
            .expect("ovsdb-client");
        assert!(output.status.success(), "{operations}: {output:?}");
        let result = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!result.contains("error"), "{operations}: {result}");
        result
    }

    fn insert(&self, name: &str) {
        self.transact(&format!(
            r#"{{"op":"insert","table":"T","row":{{"name":"{name}","set":["set",["{name}","z"]]}}}},{{"op":"comment","comment":"about {name}"}}"#
        ));
    }

    /// Ends the server by its control command.
    fn exit(mut self) {
        self.control(&["exit"]).expect("an answer");
        self.child.wait().expect("an end");
    }

    /// Kills the server.
    fn kill(mut self) {
        self.child.kill().expect("a process");
        self.child.wait().expect("an end");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_installed() -> bool {
    let is_there = Path::new(REFERENCE).exists() && Path::new(SERVER).exists();
    if !is_there {
        eprintln!("the reference is not installed: nothing to compare with");
    }
    is_there
}

/// Runs every reading command on these files of a cluster with both tools. The outputs must be
/// equal.
fn compare_reading_commands(sandbox: &Sandbox, names: &[&str]) {
    let files: Vec<(&str, Vec<u8>)> = names
        .iter()
        .map(|name| (*name, std::fs::read(sandbox.path(name)).expect("a file")))
        .chain([("demo.schema", SCHEMA.as_bytes().to_vec())])
        .collect();
    let mut commands: Vec<Vec<&str>> = vec![[&["check-cluster"], names].concat()];
    for name in names {
        for command in [
            "db-name",
            "db-cid",
            "db-sid",
            "db-local-address",
            "db-version",
            "check-cluster",
        ] {
            commands.push(vec![command, name]);
        }
        commands.push(vec!["show-log", name]);
        commands.push(vec!["-m", "show-log", name]);
        commands.push(vec!["-mm", "show-log", name]);
        let rescued: &'static str = match *name {
            "a.db" => "a.standalone",
            "b.db" => "b.standalone",
            _ => "c.standalone",
        };
        commands.push(vec!["cluster-to-standalone", rescued, name]);
        commands.push(vec!["-mm", "show-log", rescued]);
        commands.push(vec!["needs-conversion", rescued, "demo.schema"]);
    }
    let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
    compare(&files, &commands);
}

#[test]
fn cluster_of_one_is_served_by_the_reference() {
    if !is_installed() {
        return;
    }
    let sandbox = with_database();
    sandbox.ok(&["transact", "a.db", r#"["Demo",{"op":"insert","table":"T","row":{"name":"kept","n":5,"u":["uuid","00000000-0000-4000-8000-000000000007"]},"uuid":"00000000-0000-4000-8000-000000000001"}]"#]);
    std::fs::rename(sandbox.path("a.db"), sandbox.path("old.db")).expect("a file");
    let made = sandbox.run(&[
        "--election-timer=300",
        "create-cluster",
        "a.db",
        "old.db",
        "unix:a.raft",
    ]);
    assert_eq!(made.status, Some(0), "{made:?}");

    let node = Node::start(&sandbox, "a").once("Leader: self");
    let status = node.control(&["cluster/status", "Demo"]).expect("a status");
    assert!(status.contains("Election timer: 300\n"), "{status}");
    let cid = sandbox.ok(&["db-cid", "a.db"]);
    assert!(status.contains(cid.trim_end()), "{status}");
    let rows = node
        .transact(r#"{"op":"select","table":"T","where":[],"columns":["_uuid","name","n","eph"]}"#);
    assert!(
        rows.contains(r#""_uuid":["uuid","00000000-0000-4000-8000-000000000001"]"#)
            && rows.contains(r#""name":"kept""#)
            && rows.contains(r#""eph":0"#),
        "{rows}"
    );
    node.insert("one");
    node.control(&["cluster/change-election-timer", "Demo", "600"]);
    node.insert("two");
    node.kill();
    compare_reading_commands(&sandbox, &["a.db"]);

    let node = Node::start(&sandbox, "a").once("Leader: self");
    node.insert("three");
    node.control(&["ovsdb-server/compact", "Demo"])
        .expect("a compaction");
    node.insert("four");
    node.transact(r#"{"op":"delete","table":"T","where":[["name","==","one"]]},{"op":"update","table":"T","where":[["name","==","two"]],"row":{"name":"2","set":["set",["q"]]}}"#);
    node.exit();
    compare_reading_commands(&sandbox, &["a.db"]);
    let rows = sandbox.ok(&["cluster-to-standalone", "s.db", "a.db"]);
    assert_eq!(rows, "");
    let names = sandbox.ok(&[
        "query",
        "s.db",
        r#"["Demo",{"op":"select","table":"T","where":[],"columns":["name"]}]"#,
    ]);
    for name in ["kept", "2", "three", "four"] {
        assert!(
            names.contains(&format!("{{\"name\":\"{name}\"}}")),
            "{names}"
        );
    }
    assert!(!names.contains("\"one\""));
    let reference = sandbox.run_tool(Path::new(REFERENCE), &["query", "s.db", SELECT_COUNT], None);
    assert_eq!(
        reference.stdout,
        sandbox.ok(&["query", "s.db", SELECT_COUNT])
    );
}

const SELECT_COUNT: &str = r#"["Demo",{"op":"select","table":"T","where":[["name","==","kept"]],"columns":["_uuid","name","n","u"]}]"#;

#[test]
fn cluster_of_three_survives_elections_snapshots_and_a_departure() {
    if !is_installed() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("demo.schema", SCHEMA.as_bytes());
    let made = sandbox.run(&["create-cluster", "a.db", "demo.schema", "unix:a.raft"]);
    assert_eq!(made.status, Some(0), "{made:?}");
    let cid = format!("--cid={}", sandbox.ok(&["db-cid", "a.db"]).trim_end());
    sandbox.ok(&[
        &cid,
        "join-cluster",
        "b.db",
        "Demo",
        "unix:b.raft",
        "unix:a.raft",
    ]);
    sandbox.ok(&[
        "join-cluster",
        "c.db",
        "Demo",
        "unix:c.raft",
        "unix:nobody.raft",
        "unix:a.raft",
    ]);
    compare_joining(&sandbox);

    let a = Node::start(&sandbox, "a").once("Leader: self");
    a.insert("alone");
    let b = Node::start(&sandbox, "b").once("Status: cluster member");
    let c = Node::start(&sandbox, "c").once("Status: cluster member");
    a.insert("together");
    b.insert("forwarded");
    compare_reading_commands(&sandbox, &["a.db", "b.db", "c.db"]);

    a.kill();
    b.wait_until("new leader", || {
        [&b, &c].iter().any(|node| {
            let status = node.control(&["cluster/status", "Demo"]);
            status.is_some_and(|status| status.contains("Leader: self"))
        })
    });
    b.insert("without a");
    c.insert("without a, again");
    compare_reading_commands(&sandbox, &["a.db", "b.db", "c.db"]);

    let a = Node::start(&sandbox, "a").once("Status: cluster member");
    a.wait_until("a leader", || {
        let status = a.control(&["cluster/status", "Demo"]).unwrap_or_default();
        status.contains("Leader: ") && !status.contains("Leader: unknown")
    });
    c.control(&["ovsdb-server/compact", "Demo"])
        .expect("a compaction");
    a.insert("after the snapshot");
    c.control(&["cluster/leave", "Demo"]).expect("an answer");
    c.wait_until("departure", || sandbox.read("c.db").contains("\"left\""));
    a.insert("without c");
    b.insert("the end");
    b.exit();
    a.kill();
    c.kill();
    compare_reading_commands(&sandbox, &["a.db", "b.db", "c.db"]);
    compare_reading_commands(&sandbox, &["c.db"]);

    // The files show the events that the test caused.
    let log = |name: &str| sandbox.ok(&["-mm", "show-log", name]);
    let (a, b, c) = (log("a.db"), log("b.db"), log("c.db"));
    assert!(
        c.contains(" note: \"left\"\n") && !c.contains(" prev_index: 1\n"),
        "{c}"
    );
    for (log, facts) in [
        (
            &a,
            &[
                " prev_index: 1\n",
                " vote: ",
                " leader: ",
                " commit_index: ",
                " servers: ",
                " term: 2\n",
            ][..],
        ),
        (
            &b,
            &[
                " vote: ",
                " leader: ",
                " servers: ",
                "\"about the end\"\n",
                "    name=\"without a, again\"\n",
            ],
        ),
    ] {
        for fact in facts {
            assert!(log.contains(fact), "{fact} in {log}");
        }
    }
}

fn compare_joining(sandbox: &Sandbox) {
    let bytes = |name: &str| std::fs::read(sandbox.path(name)).expect("a file");
    compare(
        &[
            ("a.db", bytes("a.db")),
            ("b.db", bytes("b.db")),
            ("c.db", bytes("c.db")),
        ],
        &[
            &["show-log", "b.db"],
            &["show-log", "c.db"],
            &["check-cluster", "a.db", "b.db", "c.db"],
            &["db-cid", "b.db"],
            &["db-cid", "c.db"],
            &["db-sid", "c.db"],
            &["db-is-clustered", "c.db"],
        ],
    );
}
