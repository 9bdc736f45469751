//! The roles of servers, active or backup. They are changed under load, changed by a file, and kept
//! after a crash.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use corvid_tests::client::Client;
use corvid_tests::database_file;
use corvid_tests::ledger::{self, Answer, Contents, Ledger};
use corvid_tests::process::Process;
use corvid_tests::random::{self, Random};
use corvid_tests::server::Implementation::{Corvid, Reference};
use serde_json::{Value, json};

use super::node::{Node, begin, receive, wait_for, wait_until_equal};

/// Writes until it is stopped or a transaction is rejected. The returned ledger contains the
/// acknowledged transactions.
fn load(mut client: Client, mut ledger: Ledger, is_over: &AtomicBool) -> Ledger {
    while !is_over.load(Ordering::Relaxed) {
        while ledger.in_flight() < 8 {
            let request = ledger.request(ledger.count() % 3 == 2);
            client.send(request.as_bytes()).expect("sent");
        }
        let reply = receive(&mut client).expect("a reply");
        if ledger.apply_reply(&reply) != Ok(Answer::Acknowledged) {
            break;
        }
    }
    while ledger.in_flight() > 0 {
        let reply = receive(&mut client).expect("a reply");
        let _ = ledger.apply_reply(&reply).expect("an answer in order");
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
fn a_configuration_file_makes_a_backup() {
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

/// Returns the process id in a pidfile, if the file exists.
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
