//! Active-backup replication between real servers, ours and the reference's in every pairing: copies equal their source, roles change under
//! load, commands answer alike.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `CORVID_BACKUP_SEED` | the seed of a run that is to be repeated |

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::http;
use corvid_tests::ledger::{self, Answer, Contents, DATABASE, Ledger};
use corvid_tests::process::Process;
use corvid_tests::random::{self, Random};
use corvid_tests::server::Implementation::{self, Corvid, Reference};
use corvid_tests::{database_file, peer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server in a directory of its own, which goes after the process.
struct Node {
    process: Process,
    dir: TempDir,
}

impl Node {
    /// A server of an empty database, not started.
    fn new(implementation: Implementation, schema: &Value, options: &[String]) -> Node {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("db.db");
        database_file::create(&file, schema).expect("a file");
        let mut arguments = vec![file.into_os_string()];
        arguments.extend(options.iter().map(Into::into));
        let program = implementation.server_binary().expect("built");
        let process = Process::new(&program, dir.path(), &arguments);
        Node { process, dir }
    }

    fn started(implementation: Implementation, schema: &Value, options: &[String]) -> Node {
        let mut node = Node::new(implementation, schema, options);
        node.process.start().expect("a server");
        node
    }

    /// A backup of `active`.
    fn backup(implementation: Implementation, schema: &Value, active: &Node) -> Node {
        let mut options = vec![format!("--sync-from={}", active.remote())];
        if implementation == Corvid {
            // The contents of a source are longer, and no message of a client.
            options.push("--max-message=1M".to_owned());
        }
        Node::started(implementation, schema, &options)
    }

    fn remote(&self) -> String {
        format!("unix:{}", self.process.socket().display())
    }

    fn client(&self) -> Client {
        self.process.connect().expect("a connection")
    }

    /// Result, or error, of a control command.
    fn control(&self, line: &str) -> String {
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

    /// Makes it a backup of `active`.
    fn follow(&self, active: &Node) {
        let set = format!("set-active-ovsdb-server {}", active.remote());
        assert_eq!(self.control(&set), "");
        assert_eq!(self.control("connect-active-ovsdb-server"), "");
    }

    fn transact(&self, operation: &Value) -> Value {
        let reply = self
            .client()
            .call("transact", &json!([DATABASE, operation]));
        reply.expect("a reply")["result"][0].clone()
    }

    /// Every row of every table, identities and ephemeral columns included, versions left out; sorted.
    fn rows(&self, schema: &Value) -> Vec<String> {
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

/// Waits until something is the case.
fn wait_for(what: &str, nodes: &[&Node], mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
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

fn wait_until_equal(schema: &Value, active: &Node, backup: &Node) {
    wait_for("the copy equals its source", &[active, backup], || {
        backup.rows(schema) == active.rows(schema)
    });
}

/// Who can be whose backup here.
fn pairings() -> Vec<(Implementation, Implementation)> {
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

/// Writes some transactions of `ledger`; each must succeed.
fn write(node: &Node, ledger: &mut Ledger, count: usize) {
    let mut client = node.client();
    for _ in 0..count {
        let request = ledger.request(ledger.count() % 3 == 2);
        client.send(request.as_bytes()).expect("sent");
        let reply = receive(&mut client).expect("a reply");
        assert_eq!(ledger.settle(&reply), Ok(Answer::Acknowledged));
    }
}

fn receive(client: &mut Client) -> Option<Value> {
    match client.receive(PATIENCE).expect("something") {
        Received::Text(text) => Some(serde_json::from_slice(&text).expect("JSON")),
        Received::Closed | Received::Nothing => None,
    }
}

/// Makes the row of a writer, with something in its ephemeral column.
fn begin(node: &Node, ledger: &Ledger, writer: i64) {
    let inserted = node.transact(&ledger.beginning());
    assert!(inserted["uuid"].is_array(), "{inserted}");
    let mood = json!({"op": "update", "table": "Tally", "where": [["writer", "==", writer]], "row": {"mood": 7}});
    assert_eq!(node.transact(&mood)["count"], 1);
}

#[test]
fn copies_equal_their_source_in_every_pairing() {
    let schema = ledger::schema(1);
    for (of, by) in pairings() {
        let mut active = Node::started(of, &schema, &[]);
        let mut ledger = Ledger::new(1, false, 500);
        begin(&active, &ledger, 1);
        ledger::fill(&mut active.client(), 3_000, 1_500).expect("filled");
        write(&active, &mut ledger, 20);
        let mut backup = Node::backup(by, &schema, &active);
        wait_until_equal(&schema, &active, &backup);
        let refused = backup.transact(&ledger.beginning());
        assert_eq!(refused["error"], "not allowed", "{of:?} {by:?}");
        assert_eq!(
            refused["details"],
            "insert operation not allowed when database server is in read only mode"
        );
        write(&active, &mut ledger, 40);
        wait_until_equal(&schema, &active, &backup);
        assert!(
            backup
                .rows(&schema)
                .iter()
                .any(|row| row.contains("\"mood\":7")),
            "ephemeral columns are copied"
        );
        // What happens while the connection is lost is found afterwards, and what was lost with the process is lost here too.
        active.process.kill();
        active.process.start().expect("a server");
        write(&active, &mut ledger, 20);
        wait_until_equal(&schema, &active, &backup);
        let contents = Contents::read(&mut backup.client()).expect("contents");
        assert_eq!(
            ledger.check(&contents),
            Vec::<String>::new(),
            "{of:?} {by:?}"
        );
        // The copy is in the file.
        backup.process.kill();
        active.process.kill();
        backup.process.start().expect("a server");
        let contents = Contents::read(&mut backup.client()).expect("contents");
        assert_eq!(
            ledger.check(&contents),
            Vec::<String>::new(),
            "{of:?} {by:?}"
        );
    }
}

#[test]
fn clients_of_a_backup_are_told_of_each_commit_as_a_whole() {
    let schema = ledger::schema(1);
    let active = Node::started(Corvid, &schema, &[]);
    let mut ledger = Ledger::new(1, false, 200);
    begin(&active, &ledger, 1);
    write(&active, &mut ledger, 5);
    let mut backup = Node::backup(Corvid, &schema, &active);
    wait_until_equal(&schema, &active, &backup);
    let mut client = backup.client();
    let tables =
        json!({"Entry": {"columns": ["serial"]}, "Total": {"columns": ["serial", "parts"]}});
    let reply = client.call("monitor", &json!([DATABASE, "m", tables]));
    let mut replica = reply.expect("a reply")["result"].clone();
    write(&active, &mut ledger, 30);
    // Everything again, which changes nothing and so is not told.
    assert_eq!(backup.control("connect-active-ovsdb-server"), "");
    write(&active, &mut ledger, 30);
    let entries = |replica: &Value, table: &str| -> Vec<Value> {
        let rows = replica[table].as_object();
        let rows = rows.into_iter().flatten();
        rows.map(|(_, row)| row["new"].clone()).collect()
    };
    let last = ledger.count();
    let is_last = |row: &Value| row["serial"] == last;
    while !entries(&replica, "Total").iter().any(is_last) {
        let update = receive(&mut client).expect("an update");
        for (table, rows) in update["params"][1].as_object().expect("tables") {
            for (uuid, row) in rows.as_object().expect("rows") {
                if row.get("new").is_some() {
                    replica[table][uuid] = json!({"new": row["new"]});
                } else if let Some(rows) = replica[table].as_object_mut() {
                    rows.remove(uuid);
                }
            }
        }
        let totals = entries(&replica, "Total");
        let parts: i64 = totals.iter().filter_map(|row| row["parts"].as_i64()).sum();
        let found = entries(&replica, "Entry").len();
        assert_eq!(i64::try_from(found), Ok(parts), "a part of a commit");
    }
    backup.process.stop().expect("an orderly end");
}

/// Writes until it is told to stop or is refused; the ledger says what was acknowledged.
fn load(mut client: Client, mut ledger: Ledger, is_over: &AtomicBool) -> Ledger {
    while !is_over.load(Ordering::Relaxed) {
        while ledger.in_flight() < 8 {
            let request = ledger.request(ledger.count() % 3 == 2);
            client.send(request.as_bytes()).expect("sent");
        }
        let reply = receive(&mut client).expect("a reply");
        if ledger.settle(&reply) != Ok(Answer::Acknowledged) {
            break;
        }
    }
    while ledger.in_flight() > 0 {
        let reply = receive(&mut client).expect("a reply");
        let _ = ledger.settle(&reply).expect("an answer in order");
    }
    ledger
}

#[test]
fn roles_change_under_load_and_what_the_new_active_acknowledged_stays() {
    let seed = random::seed("CORVID_BACKUP_SEED");
    let mut random = Random::new(seed);
    let schema = ledger::schema(1);
    let kinds = if Reference.server_binary().is_ok() {
        vec![[Corvid, Corvid], [Corvid, Reference]]
    } else {
        vec![[Corvid, Corvid]]
    };
    for [one, other] in kinds {
        let mut active = Node::started(one, &schema, &[]);
        ledger::fill(&mut active.client(), 3_000, 100).expect("filled");
        let mut backup = Node::backup(other, &schema, &active);
        let over = AtomicBool::new(false);
        let mut kept: Vec<Ledger> = Vec::new();
        for round in 0..4 {
            wait_until_equal(&schema, &active, &backup);
            let old = Ledger::new(100 + round, false, 300);
            begin(&active, &old, 100 + round);
            let (old_client, is_over) = (active.client(), &over);
            let pause = Duration::from_millis(20 + random.below(60));
            let new = Ledger::new(round, round % 2 == 0, 300);
            let written = thread::scope(|scope| {
                scope.spawn(move || load(old_client, old, is_over));
                thread::sleep(pause);
                assert_eq!(backup.control("disconnect-active-ovsdb-server"), "");
                begin(&backup, &new, round);
                let client = backup.client();
                let writer = scope.spawn(move || load(client, new, is_over));
                thread::sleep(pause);
                active.follow(&backup);
                thread::sleep(pause);
                over.store(true, Ordering::Relaxed);
                writer.join().expect("a writer")
            });
            over.store(false, Ordering::Relaxed);
            assert!(written.count() > 0, "seed {seed}: nothing was written");
            kept.push(written);
            std::mem::swap(&mut active, &mut backup);
            wait_until_equal(&schema, &active, &backup);
            for node in [&active, &backup] {
                let contents = Contents::read(&mut node.client()).expect("contents");
                for ledger in &kept {
                    let faults = ledger.check(&contents);
                    assert_eq!(faults, Vec::<String>::new(), "seed {seed} round {round}");
                }
            }
        }
    }
}

#[test]
fn commands_answer_as_the_reference_does() {
    let schema = ledger::schema(1);
    let ours = told(Corvid, &schema);
    for line in ["state: backup", "exclude: Ledger:Filler", "state: active"] {
        assert!(
            ours.iter().any(|told| told.contains(line)),
            "{line}: {ours:?}"
        );
    }
    if Reference.server_binary().is_ok() {
        assert_eq!(ours, told(Reference, &schema));
    } else {
        peer::say_skipped("commands of replication beside the reference: it is not installed");
    }
}

/// What a server answers, lines of the status sorted: they are in the order of newer releases, but for the state (63).
fn told(implementation: Implementation, schema: &Value) -> Vec<String> {
    let active = Node::started(Corvid, schema, &[]);
    let node = Node::started(implementation, schema, &[]);
    let mut told = Vec::new();
    let mut ask = |line: &str| {
        let answer = node.control(&line.replace("ACTIVE", &active.remote()));
        let answer = answer.replace(&active.remote(), "ACTIVE");
        let mut lines: Vec<&str> = answer.lines().filter(|line| !line.is_empty()).collect();
        lines.sort_unstable();
        told.push(format!("{line}: {}", lines.join("|")));
    };
    for line in [
        "sync-status",
        "get-active-ovsdb-server",
        "get-sync-exclude-tables",
        "connect-active-ovsdb-server",
        "connect-active-ovsdb-server x",
        "disconnect-active-ovsdb-server",
        "disconnect-active-ovsdb-server x",
        "set-active-ovsdb-server",
        "set-active-ovsdb-server a b",
        "get-active-ovsdb-server x",
        "sync-status x",
        "set-active-ovsdb-server-probe-interval",
        "set-active-ovsdb-server-probe-interval soon",
        "set-active-ovsdb-server-probe-interval 0x7",
        "set-active-ovsdb-server-probe-interval 99999999999",
        "set-active-ovsdb-server-probe-interval +5000",
        "set-active-ovsdb-server-probe-interval -1",
        "set-active-ovsdb-server-probe-interval 5000",
        "set-active-ovsdb-server ACTIVE",
        "get-active-ovsdb-server",
        "sync-status",
        "set-sync-exclude-tables a b",
        "get-sync-exclude-tables x",
        "connect-active-ovsdb-server",
    ] {
        ask(line);
    }
    let replicates = || node.control("sync-status").contains("replicating: ");
    wait_for("it replicates", &[&node], replicates);
    for line in [
        "sync-status",
        "set-active-ovsdb-server-probe-interval 0",
        // Whom it follows next is not whom it follows.
        "set-active-ovsdb-server tcp:127.0.0.1:1",
        "get-active-ovsdb-server",
        "sync-status",
        "set-active-ovsdb-server ACTIVE",
        "set-sync-exclude-tables Ledger:Filler",
        "get-sync-exclude-tables",
    ] {
        ask(line);
    }
    wait_for("it replicates", &[&node], replicates);
    for line in [
        "sync-status",
        "disconnect-active-ovsdb-server",
        "sync-status",
        "get-active-ovsdb-server",
    ] {
        ask(line);
    }
    // Newer releases, and we, go on to name databases that were backups.
    for line in &mut told {
        *line = line.replace(
            &format!("database: {DATABASE}|state: active"),
            "state: active",
        );
    }
    told
}

#[test]
fn watchers_see_how_a_backup_stands() {
    let schema = ledger::schema(1);
    let mut active = Node::new(Corvid, &schema, &[]);
    let pages = tempfile::tempdir().expect("a directory");
    let socket = pages.path().join("http");
    let backup = Node::started(
        Corvid,
        &schema,
        &[
            format!("--sync-from={}", active.remote()),
            format!("--metrics-listen=unix:{}", socket.display()),
        ],
    );
    let get = |page: &str| http::get(&socket, page, "*/*").expect("an answer");
    let sample = |state: &str| {
        format!("corvid_database_replication{{database=\"Ledger\",state=\"{state}\"}} ")
    };
    let stands = |state: &str| get("/metrics").body.contains(&(sample(state) + "1\n"));
    assert!(stands("connecting"));
    let page = get("/readyz");
    let why = "[-]replication:Ledger failed: this backup has yet to receive what its source holds";
    assert!(
        page.status == 503 && page.body.contains(why),
        "{}",
        page.body
    );
    assert_eq!(get("/readyz?exclude=replication").status, 200);
    active.process.start().expect("a server");
    wait_for("it replicates", &[&backup], || stands("replicating"));
    assert_eq!(get("/readyz").status, 200);
    active.process.kill();
    wait_for("it has lost its source", &[&backup], || stands("lost"));
    assert_eq!(get("/readyz").status, 200, "what it holds can be read");
    assert_eq!(backup.control("disconnect-active-ovsdb-server"), "");
    assert!(!get("/metrics").body.contains(&sample("lost")));
    assert_eq!(get("/readyz").status, 200);
}

#[test]
fn tables_that_are_left_out_stay_as_they_are() {
    let schema = ledger::schema(1);
    let active = Node::started(Corvid, &schema, &[]);
    let options = [
        format!("--sync-from={}", active.remote()),
        "--active".to_owned(),
        "--sync-exclude-tables=Ledger:Filler,Nothing".to_owned(),
    ];
    let backup = Node::started(Corvid, &schema, &options);
    assert_eq!(
        backup.control("sync-status"),
        format!("state: active\ndatabase: {DATABASE}\n\n")
    );
    ledger::fill(&mut backup.client(), 3, 10).expect("it begins as active server");
    let mut ledger = Ledger::new(1, false, 100);
    begin(&active, &ledger, 1);
    ledger::fill(&mut active.client(), 5, 10).expect("filled");
    assert_eq!(backup.control("connect-active-ovsdb-server"), "");
    write(&active, &mut ledger, 20);
    let own = backup.rows(&schema);
    let own = || own.iter().filter(|row| row.starts_with("Filler"));
    let others = |node: &Node| -> Vec<String> {
        let rows = node.rows(&schema).into_iter();
        rows.filter(|row| !row.starts_with("Filler")).collect()
    };
    wait_for("the other tables are copied", &[&backup], || {
        others(&backup) == others(&active)
    });
    let status = format!(
        "state: backup\ndatabase: {DATABASE}\nreplicating: {}\nexclude: Ledger:Filler,Ledger:Nothing\n",
        active.remote()
    );
    assert_eq!(backup.control("sync-status"), status);
    let now = backup.rows(&schema);
    assert!(now.iter().filter(|row| row.starts_with("Filler")).eq(own()));
    assert_eq!(own().count(), 3);
}

#[test]
fn a_source_that_does_not_fit_leaves_a_backup_that_is_read_only() {
    let (old, new) = (ledger::schema(1), ledger::schema(2));
    let active = Node::started(Corvid, &new, &[]);
    let backup = Node::backup(Corvid, &old, &active);
    let failed = format!("Replication to ({}) failed\n", active.remote());
    wait_for("it fails", &[&backup], || {
        backup.control("sync-status").ends_with(&failed)
    });
    let log = backup.process.log();
    for line in [
        "|replication|INFO|Schema version mismatch, checking if Ledger can still be replicated or not.",
        "|replication|INFO|Column note not present in the local db schema table Entry.",
        "|replication|INFO|Table Extra not present in the local db schema",
        "|replication|INFO|Ledger cannot be replicated.",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
    let ledger = Ledger::new(1, false, 100);
    assert_eq!(backup.transact(&ledger.beginning())["error"], "not allowed");
    // A server with more than its source has a place for everything.
    assert_eq!(backup.control("disconnect-active-ovsdb-server"), "");
    begin(&backup, &ledger, 1);
    active.follow(&backup);
    wait_for("it is copied", &[&active], || {
        active.rows(&old) == backup.rows(&old)
    });
    // Nobody is a backup of itself.
    backup.follow(&backup);
    let failed = format!("Replication to ({}) failed\n", backup.remote());
    wait_for("it fails", &[&backup], || {
        backup.control("sync-status").ends_with(&failed)
    });
    assert!(
        backup
            .process
            .log()
            .contains("Server ID check failed: Self replicating is not allowed")
    );
    assert_eq!(backup.rows(&old).len(), 1, "it keeps what it has");
}

#[test]
fn a_conversion_at_the_source_is_followed_when_there_is_a_place_for_it() {
    let (old, new) = (ledger::schema(1), ledger::schema(2));
    let active = Node::started(Corvid, &old, &[]);
    let backup = Node::backup(Corvid, &new, &active);
    let mut ledger = Ledger::new(1, false, 100);
    begin(&active, &ledger, 1);
    wait_until_equal(&old, &active, &backup);
    let mut client = active.client();
    let converted = client.call("convert", &json!([DATABASE, new]));
    assert_eq!(converted.expect("a reply")["error"], Value::Null);
    let extra = json!({"op": "insert", "table": "Extra", "row": {"number": 1}});
    assert!(active.transact(&extra)["uuid"].is_array());
    write(&active, &mut ledger, 5);
    wait_until_equal(&new, &active, &backup);
    let refused = backup.client().call("convert", &json!([DATABASE, old]));
    assert_eq!(
        refused.expect("a reply")["error"]["details"],
        "conversion is not allowed for read-only database Ledger"
    );
}

#[test]
fn a_file_says_who_is_a_backup() {
    let schema = ledger::schema(1);
    let active = Node::started(Corvid, &schema, &[]);
    let ledger = Ledger::new(1, false, 100);
    begin(&active, &ledger, 1);
    ledger::fill(&mut active.client(), 5, 10).expect("filled");
    let dir = tempfile::tempdir().expect("a directory");
    database_file::create(&dir.path().join("db.db"), &schema).expect("a file");
    let config = dir.path().join("config.json");
    let remotes = json!({"punix:db.sock": null});
    let configure = |database: Value| {
        let config_text = json!({"remotes": remotes, "databases": {"db.db": database}});
        fs::write(&config, config_text.to_string()).expect("written");
    };
    let model = |is_backup: bool, excluded: &[&str]| {
        json!({"service-model": "active-backup", "backup": is_backup, "exclude-tables": excluded,
            "source": {active.remote(): {"inactivity-probe": 30000}}})
    };
    configure(model(true, &["Filler"]));
    let program = Corvid.server_binary().expect("built");
    let arguments = ["--config-file=config.json".into()];
    let mut process = Process::without_remote(&program, dir.path(), &arguments);
    process.start().expect("a server");
    let backup = Node { process, dir };
    wait_for("it replicates", &[&backup], || {
        backup.rows(&schema).len() == 1
    });
    assert!(
        backup
            .control("sync-status")
            .contains("exclude: Ledger:Filler")
    );
    let source = backup.control("get-active-ovsdb-server");
    assert_eq!(source.trim_end(), active.remote());
    let refusal = format!(
        "Update the {} and use ovsdb-server/reload instead",
        config.display()
    );
    for line in [
        "set-active-ovsdb-server x",
        "connect-active-ovsdb-server",
        "disconnect-active-ovsdb-server",
        "set-active-ovsdb-server-probe-interval 1000",
        "set-sync-exclude-tables x",
    ] {
        assert_eq!(backup.control(line).trim_end(), refusal, "{line}");
    }
    configure(model(true, &[]));
    assert_eq!(backup.control("reload"), "");
    wait_until_equal(&schema, &active, &backup);
    for standalone in [model(false, &[]), json!({"service-model": "standalone"})] {
        configure(standalone);
        assert_eq!(backup.control("reload"), "");
        let another = json!({"op": "insert", "table": "Filler", "row": {"number": 100}});
        assert!(backup.transact(&another)["uuid"].is_array());
    }
    assert_eq!(backup.control("sync-status"), "state: active\n");
    configure(model(true, &[]));
    assert_eq!(backup.control("reload"), "");
    wait_until_equal(&schema, &active, &backup);
}

/// The number in a pidfile, when there is one.
fn pid(file: &Path) -> Option<u32> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[test]
fn roles_survive_a_crash_under_supervision() {
    let schema = ledger::schema(1);
    let active = Node::started(Corvid, &schema, &[]);
    let ledger = Ledger::new(1, false, 100);
    begin(&active, &ledger, 1);
    let node = Node::new(Corvid, &schema, &[]);
    let folder = node.dir.path();
    let at = |name: &str| folder.join(name);
    let option = |name: &str, file: &str| format!("--{name}={}", at(file).display());
    let started = Command::new(Corvid.server_binary().expect("built"))
        .args(["--detach", "--monitor", "--no-chdir", "-vconsole:off"])
        .arg(format!("--remote=punix:{}", at("db.sock").display()))
        .args([option("pidfile", "pid"), option("unixctl", "server.ctl")])
        .arg(option("log-file", "server.log"))
        .arg(at("db.db"))
        .env("OVS_RUNDIR", folder)
        .stdin(Stdio::null())
        .status()
        .expect("started");
    assert!(started.success());
    node.follow(&active);
    assert_eq!(node.control("set-sync-exclude-tables Filler"), "");
    let first = pid(&at("pid")).expect("a pid");
    let crashed = Command::new("kill")
        .args(["-SEGV", &first.to_string()])
        .status();
    assert!(crashed.expect("run").success());
    wait_for("it is started again", &[&node], || {
        pid(&at("pid")).is_some_and(|pid| pid != first)
            && Client::connect(&node.process.control_socket()).is_ok()
    });
    wait_until_equal(&schema, &active, &node);
    let status = node.control("sync-status");
    assert!(
        status.starts_with("state: backup\n") && status.contains("exclude: Ledger:Filler"),
        "{status}"
    );
    let exit = node.process.control("exit", &[]).expect("a reply");
    assert_eq!(exit["error"], Value::Null);
    wait_for("it exits", &[&node], || !at("pid").exists());
}
