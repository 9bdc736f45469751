//! Clusters as operators run them: exits, several databases in one process, configuration files,
//! health and metrics pages, the audit log, and clients that choose a server.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::client::Client;
use corvid_tests::cluster::{Cluster, LIMIT, LONG_TIMER};
use corvid_tests::http;
use corvid_tests::numbered_rows::{
    add, add_to, await_rows, numbers, numbers_at, numbers_of, others, schema, schema_of, started,
    three,
};
use corvid_tests::peer;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use serde_json::{Value, json};

#[test]
fn leader_that_exits_hands_over_and_clients_of_others_notice_nothing() {
    let (mut cluster, mut leader) = three();
    // Without the transfer a write would wait for an election.
    cluster.slow_elections(leader, "D").expect("slow ones");
    for round in 0..3 {
        let is_done = AtomicBool::new(false);
        let sockets: Vec<_> = others(leader)
            .into_iter()
            .map(|member| cluster.members()[member].socket())
            .collect();
        let write = |at: usize, socket: &Path| {
            let mut client = Client::connect(socket).expect("a connection");
            let mut n = (round * 2 + at) * 1_000_000;
            let mut longest = Duration::ZERO;
            while !is_done.load(Ordering::Relaxed) {
                let began = Instant::now();
                add(&mut client, n).expect("no error");
                longest = longest.max(began.elapsed());
                n += 1;
            }
            longest
        };
        let write = &write;
        let (took, next) = std::thread::scope(|scope| {
            let writers: Vec<_> = sockets
                .iter()
                .enumerate()
                .map(|(at, socket)| scope.spawn(move || write(at, socket)))
                .collect();
            std::thread::sleep(Duration::from_millis(200));
            cluster.member(leader).stop().expect("exited with status 0");
            let (next, _) = cluster.leader_among(&others(leader)).expect("a new leader");
            std::thread::sleep(Duration::from_millis(200));
            is_done.store(true, Ordering::Relaxed);
            let longest = writers
                .into_iter()
                .map(|writer| writer.join().expect("no error"));
            (longest.max().unwrap_or_default(), next)
        });
        println!("longest transaction of the others: {took:?}");
        assert!(took < LONG_TIMER * 3 / 4, "{took:?}\n{}", cluster.said());
        let said = cluster.members()[leader].said();
        assert!(
            said.contains("because this server is shutting down"),
            "{said}"
        );
        cluster.member(leader).start().expect("started again");
        let expected = numbers_at(&cluster, next).expect("rows, each once");
        await_rows(&cluster, &[leader], &expected);
        leader = next;
    }
    // The command takes no arguments, as in the reference.
    let refusal = cluster
        .control(leader, "exit", &["--cleanup"])
        .expect_err("refused");
    let expected = "\"exit\" command takes at most 0 arguments";
    assert_eq!(refusal.to_string().trim(), expected);
}

/// Adds a second clustered database, `E`, to all members.
fn add_second(cluster: &Cluster, folder: &Path) {
    let schema = folder.join("E.ovsschema");
    fs::write(&schema, schema_of("E").to_string()).expect("written");
    let address = |number: usize| format!("unix:{}", folder.join(format!("e{number}")).display());
    for member in 0..3 {
        let file = folder.join(format!("E{member}.db"));
        let mut command = Command::new(binary::bin("ovsdb-tool"));
        match member {
            0 => command
                .arg("create-cluster")
                .arg(&file)
                .arg(&schema)
                .arg(address(0)),
            _ => command
                .arg("join-cluster")
                .arg(&file)
                .arg("E")
                .arg(address(member))
                .arg(address(0)),
        };
        peer::run(&mut command).expect("made");
        let file = file.display().to_string();
        cluster
            .control(member, "ovsdb-server/add-db", &[&file])
            .expect("added");
        let holds = || {
            let status = cluster.control(member, "cluster/status", &["E"]);
            status.is_ok_and(|it| {
                it.contains("Status: cluster member") && !it.contains("Leader: unknown")
            })
        };
        cluster.wait_until("joined", holds).expect("in time");
    }
}

#[test]
fn databases_of_one_process_are_clusters_of_their_own() {
    let (mut cluster, _) = three();
    let folder = tempfile::tempdir().expect("a folder");
    add_second(&cluster, folder.path());
    let leads = |cluster: &Cluster, member: usize, database: &str| {
        let status = cluster.control(member, "cluster/status", &[database]);
        status.is_ok_and(|status| status.contains("Role: leader"))
    };
    let listed = cluster
        .control(1, "ovsdb-server/list-dbs", &[])
        .expect("a list");
    assert_eq!(listed.trim(), "D\nE\n_Server");
    for (n, member) in (0..3).enumerate() {
        let mut client = cluster.connect(member).expect("a connection");
        add(&mut client, n).expect("inserted");
        add_to(&mut client, "E", n).expect("inserted");
    }
    // The leadership of one database is transferred, and that of the other stays.
    let leader_of = |cluster: &Cluster, database: &str| {
        let began = Instant::now();
        loop {
            match (0..3).find(|member| leads(cluster, *member, database)) {
                Some(member) => return member,
                None if began.elapsed() > LIMIT => panic!("no leader\n{}", cluster.said()),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    };
    let (of_d, of_e) = (leader_of(&cluster, "D"), leader_of(&cluster, "E"));
    cluster
        .control(of_e, "cluster/transfer-leadership", &["E"])
        .expect("transferred");
    assert_eq!(leader_of(&cluster, "D"), of_d);
    assert_ne!(leader_of(&cluster, "E"), of_e);
    // One database is removed at a member that leads it. The other database continues there, and
    // the removed one continues at the other members.
    let of_e = leader_of(&cluster, "E");
    let file = folder
        .path()
        .join(format!("E{of_e}.db"))
        .display()
        .to_string();
    cluster
        .control(of_e, "ovsdb-server/remove-db", &["E"])
        .expect("removed");
    let refusal = cluster
        .control(of_e, "cluster/status", &["E"])
        .expect_err("unknown");
    assert_eq!(refusal.to_string().trim(), "unknown cluster");
    let mut client = cluster.connect(of_e).expect("a connection");
    add(&mut client, 10).expect("inserted");
    let next = leader_of(&cluster, "E");
    let mut client = cluster.connect(next).expect("a connection");
    add_to(&mut client, "E", 10).expect("inserted");
    cluster
        .control(of_e, "ovsdb-server/add-db", &[&file])
        .expect("added");
    // If a process is killed, both databases elect a leader and lose nothing.
    let victim = leader_of(&cluster, "D");
    cluster.member(victim).kill();
    for database in ["D", "E"] {
        let member = (0..3).find(|member| *member != victim).expect("two");
        let mut client = cluster.connect(member).expect("a connection");
        add_to(&mut client, database, 20).expect("inserted");
        let expected = BTreeSet::from([0, 1, 2, 10, 20]);
        assert_eq!(numbers_of(&mut client, database).expect("rows"), expected);
    }
}

#[test]
fn configuration_file_serves_members() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("schema"), schema().to_string()).expect("written");
    let tool = |arguments: &[&str]| {
        let mut command = Command::new(binary::bin("ovsdb-tool"));
        peer::run(command.args(arguments).current_dir(folder.path())).expect("done");
    };
    tool(&["create-cluster", "D.db", "schema", "unix:d.raft"]);
    tool(&["create", "S.db", "schema"]);
    let configure = |databases: Value| {
        let socket = format!("punix:{}", at("db.sock").display());
        let config = json!({"remotes": {socket: null}, "databases": databases});
        fs::write(at("config.json"), config.to_string()).expect("written");
    };
    configure(json!({"D.db": {"service-model": "clustered"}}));
    let program = Implementation::Corvid.server_binary().expect("built");
    let option = format!("--config-file={}", at("config.json").display());
    let mut server = Process::without_remote(&program, folder.path(), &[option.into()]);
    server.start().expect("started");
    let control = |server: &Process, command: &str, arguments: &[&str]| -> Result<String, String> {
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let reply = server.control(command, &arguments).expect("a reply");
        match reply["error"].as_str() {
            Some(error) => Err(error.trim().to_owned()),
            None => Ok(reply["result"]
                .as_str()
                .unwrap_or_default()
                .trim()
                .to_owned()),
        }
    };
    let leads = |server: &Process| {
        let began = Instant::now();
        while !control(server, "cluster/status", &["D"]).is_ok_and(|it| it.contains("Role: leader"))
        {
            assert!(began.elapsed() < LIMIT, "{}", server.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    leads(&server);
    let mut client = server.connect().expect("a connection");
    add(&mut client, 1).expect("inserted");
    assert_eq!(
        control(&server, "ovsdb-server/list-dbs", &[]),
        Ok("D\n_Server".to_owned())
    );
    // A configured database cannot be removed with a command, like all configured databases.
    control(&server, "ovsdb-server/remove-db", &["D"]).expect_err("configured");
    // If the file does not name the service model, it is inferred, and the database is still
    // served.
    configure(json!({"D.db": {}}));
    assert_eq!(
        control(&server, "ovsdb-server/reload", &[]),
        Ok(String::new()),
        "{}",
        server.said()
    );
    assert_eq!(numbers(&mut client).expect("rows"), BTreeSet::from([1]));
    // The database is removed, and then served again from its file.
    configure(json!({}));
    assert_eq!(
        control(&server, "ovsdb-server/reload", &[]),
        Ok(String::new()),
        "{}",
        server.said()
    );
    assert_eq!(
        control(&server, "ovsdb-server/list-dbs", &[]),
        Ok("_Server".to_owned())
    );
    configure(json!({"D.db": {"service-model": "clustered"}}));
    assert_eq!(
        control(&server, "ovsdb-server/reload", &[]),
        Ok(String::new()),
        "{}",
        server.said()
    );
    leads(&server);
    let mut client = server.connect().expect("a connection");
    assert_eq!(numbers(&mut client).expect("rows"), BTreeSet::from([1]));
    // A file of another service model is rejected, and the other databases are still served.
    configure(json!({"D.db": {}, "S.db": {"service-model": "clustered"}}));
    control(&server, "ovsdb-server/reload", &[]).expect_err("refused");
    assert!(
        server
            .log()
            .contains("S.db: database is standalone and not clustered"),
        "{}",
        server.log()
    );
    assert_eq!(numbers(&mut client).expect("rows"), BTreeSet::from([1]));
    server.stop().expect("stopped");
    server.start().expect_err("the file is wrong");
}

#[test]
fn the_first_page_after_metrics_are_switched_on_has_the_state_of_a_member() {
    let mut cluster = Cluster::over("tcp", "127.0.0.1", 1, &[], &schema()).expect("made");
    cluster.member(0).start().expect("started");
    let leads = |cluster: &Cluster| cluster.row(0).is_ok_and(|row| row["leader"] == json!(true));
    cluster
        .wait_until("a leader", || leads(&cluster))
        .expect("in time");
    let pages = cluster.members()[0].socket().with_file_name("pages");
    let address = format!("unix:{}", pages.display());
    cluster
        .control(0, "ovsdb-server/set-setting", &["metrics-listen", &address])
        .expect("switched on");
    let body = http::get(&pages, "/readyz?verbose", "*/*")
        .expect("an answer")
        .body;
    assert!(body.contains("cluster:D"), "{body}");
    assert!(!body.contains("the member is starting"), "{body}");
}

#[test]
fn pages_and_commands_tell_of_members_in_every_state() {
    let options = ["--metrics-listen=unix:pages".into()];
    let mut cluster = Cluster::over("tcp", "127.0.0.1", 3, &options, &schema()).expect("made");
    cluster.member(0).start().expect("started");
    let get = |cluster: &Cluster, path: &str| {
        let pages = cluster.members()[0].socket().with_file_name("pages");
        http::get(&pages, path, "*/*").expect("an answer")
    };
    let storage = |cluster: &Cluster| {
        let status = cluster.control(0, "ovsdb-server/get-db-storage-status", &["D"]);
        status.expect("a status").trim().to_owned()
    };
    // A single member of three knows no leader.
    let answer = get(&cluster, "/readyz?verbose");
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(
        answer.body.contains("[-]cluster:D failed: "),
        "{}",
        answer.body
    );
    assert_eq!(get(&cluster, "/livez").status, 200);
    assert_eq!(storage(&cluster), "status: ok");
    assert_eq!(cluster.row(0).expect("a row")["connected"], json!(false));
    for member in [1, 2] {
        cluster.member(member).start().expect("started");
    }
    cluster.move_leadership(0).expect("transferred");
    let mut client = cluster.connect(0).expect("a connection");
    add(&mut client, 1).expect("inserted");
    let holds = || get(&cluster, "/readyz").status == 200;
    cluster.wait_until("ready", holds).expect("in time");
    // The page shows a state that is up to a quarter of a second old.
    let line = "[+]cluster:D ok: leads, 0 committed entries are not applied\n";
    let is_shown = || get(&cluster, "/readyz?verbose").body.contains(line);
    cluster.wait_until("applied", is_shown).expect("in time");
    // Every metric of clusters is on the page, with its help.
    let body = get(&cluster, "/metrics").body;
    let families = include_str!("../../../docs/reference/metrics.md");
    let families = families
        .lines()
        .filter_map(|line| line.strip_prefix("| `corvid_cluster_")?.split_once("` | "));
    let mut count = 0;
    for (name, rest) in families {
        let help = rest.trim_end_matches(" |").rsplit(" | ").next();
        let help = format!("# HELP corvid_cluster_{name} {}", help.unwrap_or_default());
        assert!(body.contains(&help), "{help}\n{body}");
        count += 1;
    }
    assert!(count > 14, "{count}");
    for sample in [
        "corvid_cluster_role{database=\"D\",role=\"leader\"} 1",
        "corvid_cluster_connected{database=\"D\"} 1",
        "corvid_cluster_has_leader{database=\"D\"} 1",
    ] {
        assert!(body.contains(sample), "{sample}\n{body}");
    }
    // When the others stop, it is no longer the leader, and reports this with the reason.
    for member in [1, 2] {
        cluster.member(member).kill();
    }
    let holds = || {
        let answer = get(&cluster, "/readyz");
        answer.status == 503
            && answer
                .body
                .contains("[-]cluster:D failed: is not in contact with a leader")
    };
    cluster.wait_until("not ready", holds).expect("in time");
    assert_eq!(get(&cluster, "/livez").status, 200);
    assert_eq!(storage(&cluster), "status: ok");
    let status = cluster.status(0).expect("a status");
    assert!(
        status.contains("Status: disconnected from the cluster (election timeout)"),
        "{status}"
    );
}

#[test]
fn audit_log_names_the_member_that_made_a_change() {
    let options = ["--audit-log=audit.log".into()];
    let cluster = Cluster::over("tcp", "127.0.0.1", 3, &options, &schema());
    let (cluster, leader) = started(cluster.expect("made"));
    let follower = others(leader)[0];
    let third = others(leader)[1];
    let sid = |member: usize| {
        cluster
            .control(member, "cluster/sid", &["D"])
            .expect("an id")
            .trim()
            .to_owned()
    };
    for (n, member) in [leader, follower].into_iter().enumerate() {
        let mut client = cluster.connect(member).expect("a connection");
        add(&mut client, n).expect("inserted");
    }
    let who = |member: usize| -> Vec<Value> {
        let file = cluster.members()[member]
            .socket()
            .with_file_name("audit.log");
        let text = fs::read_to_string(file).unwrap_or_default();
        let records = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        records
            .filter(|it| it["outcome"] == json!("committed"))
            .map(|it| it["who"].clone())
            .collect()
    };
    for member in 0..3 {
        let holds = || who(member).len() == 2;
        cluster.wait_until("two records", holds).expect("in time");
    }
    let of = |member: usize| json!({"peer": "member", "sid": sid(member)});
    let is_client = |who: &Value| who["remote"].is_string();
    let at = who(leader);
    assert!(is_client(&at[0]) && at[1] == of(follower), "{at:?}");
    let at = who(follower);
    assert!(at[0] == of(leader) && is_client(&at[1]), "{at:?}");
    assert_eq!(who(third), [of(leader), of(leader)]);
}

#[test]
fn clients_choose_among_members() {
    let (mut cluster, leader) = three();
    let follower = others(leader)[0];
    let mut client = cluster.connect(leader).expect("a connection");
    add(&mut client, 1).expect("inserted");
    let remote = |member: usize| format!("unix:{}", cluster.members()[member].socket().display());
    let folder = tempfile::tempdir().expect("a folder");
    let schema = folder.path().join("schema");
    fs::write(&schema, schema_of("D").to_string()).expect("written");
    let schema = schema.display().to_string();
    let follower_first = format!("{},{}", remote(follower), remote(leader));
    let at_follower = remote(follower);
    let query = r#"["D",{"op":"select","table":"T","where":[],"columns":["n"]}]"#;
    let two_followers = format!("{},{}", remote(follower), remote(others(leader)[1]));
    let row = "[{\"rows\":[{\"n\":1}]}]\n";
    // With a single remote, the client does not look for another server.
    let version = "get-schema-version";
    let lines: Vec<(Vec<&str>, Option<i32>, &str)> = vec![
        (vec!["query", &two_followers, query], Some(1), ""),
        (vec!["transact", &two_followers, query], Some(1), ""),
        (
            vec!["--no-leader-only", "transact", &two_followers, query],
            Some(0),
            row,
        ),
        (vec!["query", &follower_first, query], Some(0), row),
        (vec![version, &follower_first, "D"], Some(0), "1.0.0\n"),
        (vec![version, &at_follower, "D"], Some(0), "1.0.0\n"),
        (vec![version, &two_followers, "D"], Some(1), ""),
        (
            vec!["--leader-only", version, &two_followers, "D"],
            Some(1),
            "",
        ),
        (
            vec!["--no-leader-only", version, &two_followers, "D"],
            Some(0),
            "1.0.0\n",
        ),
        (
            vec!["needs-conversion", &at_follower, &schema],
            Some(0),
            "no\n",
        ),
        (vec!["wait", &at_follower, "D", "connected"], Some(0), ""),
        (vec!["wait", &at_follower, "D", "added"], Some(0), ""),
        (vec!["wait", &at_follower, "X", "removed"], Some(0), ""),
        (vec!["list-dbs", &at_follower], Some(0), "D\n_Server\n"),
    ];
    let programs = [
        Some(binary::bin("ovsdb-client")),
        binary::reference("ovsdb-client"),
    ];
    for program in programs.into_iter().flatten() {
        let run = |arguments: &[&str]| {
            let mut command = Command::new(&program);
            let output = command
                .arg("--timeout=60")
                .args(arguments)
                .output()
                .expect("started");
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stdout).into_owned(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        };
        let all_hold = || {
            let has_row = |member| run(&["query", &remote(member), query]).1 == row;
            (0..3).all(has_row)
        };
        cluster
            .wait_until("all members have the row", all_hold)
            .expect("in time");
        for (arguments, status, said) in &lines {
            let (found, output, errors) = run(arguments);
            assert_eq!(
                (found, output.as_str()),
                (*status, *said),
                "{} {arguments:?}: {errors}",
                program.display()
            );
        }
        // A backup of a follower is a standalone database with the follower's rows.
        let (status, backup, errors) = run(&["--no-leader-only", "backup", &at_follower, "D"]);
        assert_eq!(status, Some(0), "{errors}");
        assert!(
            backup.starts_with("OVSDB JSON ") && backup.contains("\"n\":1"),
            "{backup}"
        );
        // Waiting for the removal ends when the database is removed.
        let mut command = Command::new(&program);
        let mut waiting = command
            .args(["--timeout=60", "wait", &at_follower, "D", "removed"])
            .spawn()
            .expect("started");
        std::thread::sleep(Duration::from_millis(300));
        assert!(matches!(waiting.try_wait(), Ok(None)), "it waits");
        cluster
            .control(follower, "ovsdb-server/remove-db", &["D"])
            .expect("removed");
        assert!(waiting.wait().expect("ended").success());
        let file = cluster.file(follower).display().to_string();
        cluster
            .control(follower, "ovsdb-server/add-db", &[&file])
            .expect("added");
        let (status, _, errors) = run(&["wait", &at_follower, "D", "connected"]);
        assert_eq!(status, Some(0), "{errors}");
    }
    // Clients that want the leader find the next one.
    let all: Vec<String> = (0..3).map(remote).collect();
    cluster.member(leader).kill();
    let remotes = all.join(",");
    cluster.leader_among(&others(leader)).expect("a new leader");
    let mut command = Command::new(binary::bin("ovsdb-client"));
    let said =
        peer::run(command.args(["--timeout=60", "query", &remotes, query])).expect("a leader");
    assert_eq!(said, "[{\"rows\":[{\"n\":1}]}]\n");
}
