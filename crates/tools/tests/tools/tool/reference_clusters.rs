//! Hand-made files of cluster members, with both tools: invalid records, logs that break the rules,
//! files of different clusters, and the arguments of commands that create such files. Deliberate
//! differences are tested in `clustered.rs`.

use crate::tool::clustered::{file, member};
use crate::tool::reference::compare;
use crate::tool::sandbox::{SCHEMA, record, with_database};

/// Compares both tools on a single file.
fn compare_on_file(bytes: Vec<u8>) {
    compare(
        &[("f1", bytes)],
        &[
            &["show-log", "f1"],
            &["-mm", "show-log", "f1"],
            &["check-cluster", "f1"],
            &["db-name", "f1"],
            &["db-cid", "f1"],
            &["db-sid", "f1"],
            &["db-local-address", "f1"],
        ],
    );
}

#[test]
fn member_headers_are_read_as_by_the_reference() {
    let whole = r#"{"server_id":"A","name":"D","local_address":"tcp:127.0.0.1:1","cluster_id":"C","prev_servers":{"A":"tcp:127.0.0.1:1"},"prev_index":1,"prev_term":1,"prev_eid":"E1","prev_data":[{"name":"D","tables":{"t":{"columns":{"i":{"type":"integer"}}}}},{}]}"#;
    let entry = r#"{"term":1,"index":2}"#;
    compare_on_file(file(whole, &[]));
    for (from, to) in [
        (r#""name":"D","local"#, r#""local"#),
        (r#""name":"D","local"#, r#""name":"a b","local"#),
        (r#""server_id":"A""#, r#""server_id":"x""#),
        (r#""server_id":"A""#, r#""server_id":5"#),
        (
            r#""server_id":"A""#,
            r#""server_id":"00000000-0000-0000-0000-000000000000""#,
        ),
        (r#""cluster_id":"C","#, ""),
        (
            r#""cluster_id":"C""#,
            r#""cluster_id":"00000000-0000-0000-0000-000000000000""#,
        ),
        (r#""tcp:127.0.0.1:1","cluster"#, r#""nowhere","cluster"#),
        (r#""name""#, r#""foo":1,"name""#),
        (r#""prev_servers":{"A":"tcp:127.0.0.1:1"},"#, ""),
        (r#"{"A":"tcp:127.0.0.1:1"}"#, "{}"),
        (r#"{"A":"tcp:127.0.0.1:1"}"#, r#"{"x":"tcp:127.0.0.1:1"}"#),
        (r#"{"A":"tcp:127.0.0.1:1"}"#, r#"{"A":"nowhere"}"#),
        (r#"{"A":"tcp:127.0.0.1:1"}"#, r#"{"A":3}"#),
        (r#"{"A":"tcp:127.0.0.1:1"}"#, r#"{"B":"ssl:[::1]:1"}"#),
        (r#""prev_index":1"#, r#""prev_index":-1"#),
        (r#""prev_index":1"#, r#""prev_index":"x""#),
        (r#""prev_term":1,"#, ""),
        (r#""prev_term":1"#, r#""prev_term":0"#),
        (r#""prev_term":1"#, r#""prev_term":-1"#),
        (r#""prev_eid":"E1","#, ""),
        (r#""prev_eid":"E1""#, r#""prev_eid":"x""#),
        (
            r#""prev_eid":"E1""#,
            r#""prev_eid":"00000000-0000-0000-0000-000000000000""#,
        ),
        (r#""prev_eid""#, r#""prev_election_timer":700,"prev_eid""#),
        (r#""prev_eid""#, r#""prev_election_timer":"x","prev_eid""#),
        (r#"integer"}}}}},{}]"#, r#"integer"}}}}}]"#),
        (r#"integer"}}}}},{}]"#, r#"integer"}}}}},null]"#),
        (
            r#"integer"}}}}},{}]"#,
            r#"integer"}}}}},{"_date":5,"t":{"00000000-0000-4000-8000-000000000001":{"i":3}}}]"#,
        ),
        (r#"{"type":"integer"}"#, r#"{"type":"nothing"}"#),
    ] {
        assert!(whole.contains(from), "{from}");
        compare_on_file(file(&whole.replacen(from, to, 1), &[entry]));
    }
    for json in [
        "{}",
        r#"{"server_id":"A","name":"D","local_address":"unix:a"}"#,
        r#"{"server_id":"A","name":"D","local_address":"unix:a","cluster_id":"C","prev_servers":{"A":"unix:a"}}"#,
        r#"{"server_id":"A","name":"D","local_address":"unix:a","cluster_id":"C","prev_servers":{"A":"unix:a"},"prev_index":0}"#,
        r#"{"server_id":"A","name":"D","local_address":"unix:a","remote_addresses":[]}"#,
        r#"{"server_id":"A","name":"D","local_address":"unix:a","remote_addresses":["unix:a"]}"#,
        r#"{"server_id":"A","name":"D","local_address":"unix:a","remote_addresses":["x"]}"#,
        r#"{"server_id":"A","name":"D","local_address":"unix:a","remote_addresses":[1]}"#,
        r#"{"server_id":"A","name":"D","local_address":"unix:a","remote_addresses":"unix:b"}"#,
        r#"{"server_id":"A","name":"D","local_address":"unix:a","remote_addresses":["unix:b","unix:a","unix:b"]}"#,
        r#"{"server_id":"A","name":"D","local_address":"unix:a","cluster_id":"C","remote_addresses":["unix:b"]}"#,
        r#"{"server_id":"A","name":"D","local_address":"unix:a","cluster_id":"00000000-0000-0000-0000-000000000000","remote_addresses":["unix:b"]}"#,
    ] {
        compare_on_file(file(json, &[]));
    }
}

#[test]
fn member_records_are_read_as_by_the_reference() {
    for json in [
        "{}",
        r#"{"comment":"x"}"#,
        r#"{"comment":5,"term":1}"#,
        r#"{"comment":"why","term":1}"#,
        r#"{"note":"left"}"#,
        r#"{"note":"transfer leadership","comment":"c"}"#,
        r#"{"note":1}"#,
        r#"{"note":"left","term":1}"#,
        r#"{"commit_index":1}"#,
        r#"{"commit_index":0}"#,
        r#"{"commit_index":-1}"#,
        r#"{"commit_index":"a"}"#,
        r#"{"commit_index":1,"term":1}"#,
        r#"{"index":2}"#,
        r#"{"term":0}"#,
        r#"{"term":-3}"#,
        r#"{"term":"x"}"#,
        r#"{"term":1.5}"#,
        r#"{"term":2.0}"#,
        r#"{"term":1,"vote":"A"}"#,
        r#"{"term":1,"vote":"x"}"#,
        r#"{"term":1,"vote":"00000000-0000-0000-0000-000000000000"}"#,
        r#"{"term":1,"vote":"A","leader":"A"}"#,
        r#"{"term":1,"vote":"A","index":2}"#,
        r#"{"term":1,"leader":"B"}"#,
        r#"{"term":1,"leader":"00000000-0000-0000-0000-000000000000"}"#,
        r#"{"term":1,"leader":"B","index":2}"#,
        r#"{"term":1,"index":0}"#,
        r#"{"term":1,"index":-1}"#,
        r#"{"term":1,"index":2,"data":[null,{}]}"#,
        r#"{"term":1,"index":2,"eid":"E2"}"#,
        r#"{"term":1,"index":2,"eid":"E2","data":[null,{}]}"#,
        r#"{"term":1,"index":2,"eid":"E2","data":[null]}"#,
        r#"{"term":1,"index":2,"eid":"E2","data":[null,5]}"#,
        r#"{"term":1,"index":2,"eid":"E2","data":5}"#,
        r#"{"term":1,"index":2,"eid":"E2","data":null}"#,
        r#"{"term":1,"index":2,"eid":"x","data":[null,{}]}"#,
        r#"{"term":1,"index":2,"eid":"00000000-0000-0000-0000-000000000000","data":[null,{}]}"#,
        r#"{"term":1,"index":2,"eid":"E2","data":[{"x":1},{}]}"#,
        r#"{"term":1,"index":2,"eid":"E2","data":[{"name":"D","version":"2.0.0","tables":{"t":{"columns":{"i":{"type":"string"}}}}},{"t":{"00000000-0000-4000-8000-000000000001":{"i":"x"}}}]}"#,
        r#"{"term":1,"index":2,"eid":"E2","data":[null,{"_date":1700000000123,"_comment":"c","_is_diff":true,"t":{"00000000-0000-4000-8000-000000000001":{"i":4},"00000000-0000-4000-8000-000000000002":null}}]}"#,
        r#"{"term":1,"index":2,"servers":{"A":"tcp:127.0.0.1:1","B":"unix:b"}}"#,
        r#"{"term":1,"index":2,"servers":{}}"#,
        r#"{"term":1,"index":2,"servers":{"q":"tcp:127.0.0.1:1"}}"#,
        r#"{"term":1,"index":2,"servers":5}"#,
        r#"{"term":1,"index":2,"election_timer":5}"#,
        r#"{"term":1,"index":2,"election_timer":0}"#,
        r#"{"term":1,"index":2,"election_timer":"x"}"#,
        r#"{"term":1,"index":2,"foo":1}"#,
        "[1,2]",
        "{",
    ] {
        compare_on_file(member('A', &[json, r#"{"term":1}"#]));
    }
    for tail in [&b"OVSDB CLUSTER 5"[..], b"OVSDB JSON 3 x\n", b"x"] {
        compare_on_file([&member('A', &[r#"{"term":1,"index":2}"#])[..], tail].concat());
    }
}

#[test]
fn member_logs_are_compared_as_by_the_reference() {
    let e = |index: u64, term: u64| format!(r#"{{"term":{term},"index":{index}}}"#);
    let (e2, e3, e4) = (&*e(2, 1), &*e(3, 1), &*e(4, 1));
    let (e2t2, e3t2, e4t2) = (&*e(2, 2), &*e(3, 2), &*e(4, 2));
    let (c2, c3) = (r#"{"commit_index":2}"#, r#"{"commit_index":3}"#);
    let (t2, t3) = (r#"{"term":2}"#, r#"{"term":3}"#);
    let (a1, b1, b2, b3) = (
        r#"{"term":1,"leader":"A"}"#,
        r#"{"term":1,"leader":"B"}"#,
        r#"{"term":2,"leader":"B"}"#,
        r#"{"term":3,"leader":"B"}"#,
    );
    let left = r#"{"note":"left"}"#;
    for (a, b) in [
        (&[e2, c2][..], &[e2, e3, c3][..]),
        (&[e2, e3, e2], &[]),
        (&[e2, e3, c2, e3], &[e2]),
        (&[a1, e2, e3, e3], &[e2]),
        (&[a1, e2, e3, e3t2], &[e2]),
        (&[a1, e2, t2, b2, e2t2], &[e2]),
        (&[e3], &[e2]),
        (&[e2t2, e3], &[e2]),
        (&[e2, e3, c3, c2], &[e2]),
        (&[e2, c2, c2], &[e2]),
        (&[e2, c3], &[e2]),
        (&[a1, b1], &[e2]),
        (&[a1, a1], &[e2]),
        (&[a1], &[b1]),
        (&[a1, e2], &[b2, e2t2]),
        (&[e2, e3, c3, t2], &[e2, b2]),
        (&[e2, e3, c3, t2], &[e2, e3, b2]),
        (&[e2, e3, c3, t2], &[e2, b2, e3]),
        (&[e2, c2, e3t2, c3], &[e2, b2, b3]),
        (&[e2t2, e3t2, c3], &[e2t2, b2]),
        (&[e2, e3, t3, c3], &[e2, b2]),
        (&[e2, e3, e4], &[e2, e3t2, e4t2]),
        (&[e2, left], &[e2, e3]),
        (&[e3], &[e3t2, "{}"]),
        (&["{}"], &[e3]),
        (&[], &[]),
        (&[], &[e2]),
    ] {
        compare(
            &[("f1", member('A', a)), ("f2", member('B', b))],
            &[
                &["check-cluster", "f1", "f2"],
                &["check-cluster", "f2", "f1"],
                &["check-cluster", "f1", "f1"],
                &["check-cluster", "f1"],
                &["check-cluster", "none", "f1"],
                &["check-cluster", "f1", "f2", "none"],
            ],
        );
    }
}

#[test]
fn member_contents_are_recovered_as_by_the_reference() {
    let data = |index: u64, data: &str| {
        format!(r#"{{"term":1,"index":{index},"eid":"E{index}","data":{data}}}"#)
    };
    let row = r#"[null,{"_date":1700000000123,"_comment":"c","_is_diff":true,"t":{"00000000-0000-4000-8000-000000000001":{"i":4}}}]"#;
    let gone = r#"[null,{"_is_diff":true,"t":{"00000000-0000-4000-8000-000000000001":null}}]"#;
    let commit = r#"{"commit_index":3}"#;
    for records in [
        &[&*data(2, row), &data(3, gone), commit][..],
        &[&data(2, row), r#"{"term":1,"index":3}"#, commit],
        &[],
    ] {
        let standalone = record(SCHEMA);
        compare(
            &[("f1", member('A', records)), ("s", standalone)],
            &[
                &["cluster-to-standalone", "out", "f1"],
                &["-mm", "show-log", "out"],
                &["cluster-to-standalone", "out", "f1"],
                &["cluster-to-standalone", "out", "none"],
                &["cluster-to-standalone", "other", "none"],
                &["cluster-to-standalone", "s", "f1"],
                &[
                    "query",
                    "out",
                    r#"["D",{"op":"select","table":"t","where":[],"columns":["_uuid","i"]}]"#,
                ],
            ],
        );
    }
}

#[test]
fn new_member_arguments_are_refused_as_by_the_reference() {
    let addresses = [
        "tcp:127.0.0.1",
        "tcp:",
        "tcp",
        "",
        "foo:1.2.3.4:5",
        "TCP:1.2.3.4:5",
        "ptcp:5",
        "tcp:::1:3",
        "tcp:[::1]",
        "tcp:[::1",
        "tcp:[::1]x:4",
        "tcp:[::1]:x",
        "tcp:1.2.3.4:x",
        "tcp:1.2.3.4:-1",
        "tcp:1.2.3.4:65536",
        "tcp:1.2.3.4:5 ",
        "tcp:1.2.3.4:5:6",
        "tcp:1.2.3.4:0x10",
    ];
    let mut commands: Vec<Vec<&str>> = Vec::new();
    for address in addresses {
        commands.push(vec!["join-cluster", "k.db", "D", address, "unix:y"]);
        commands.push(vec!["join-cluster", "k.db", "D", "unix:x", address]);
        commands.push(vec!["create-cluster", "k.db", "demo.schema", address]);
    }
    let fine = [
        "tcp:1.2.3.4:5",
        "ssl:[::1]:5",
        "tcp:h:5",
        "tcp:1.2.3.4:",
        "tcp::5",
        "tcp:[::1]:",
        "tcp:1.2.3.4:+5",
        "tcp:[zz]:5",
        "unix:",
    ];
    for (number, address) in fine.iter().enumerate() {
        let name = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"][number];
        commands.push(vec!["join-cluster", name, "D", address, "unix:y"]);
        commands.push(vec!["show-log", name]);
    }
    for words in [
        &[
            "--election-timer=99",
            "create-cluster",
            "k.db",
            "demo.schema",
            "unix:x",
        ][..],
        &[
            "--election-timer=600001",
            "create-cluster",
            "k.db",
            "demo.schema",
            "unix:x",
        ],
        &["--election-timer=x", "db-name", "a.db"],
        &["--election-timer=", "db-name", "a.db"],
        &["--cid=x", "db-name", "a.db"],
        &["--cid=", "db-name", "a.db"],
        &[
            "--cid=00000000-0000-0000-0000-000000000000",
            "db-name",
            "a.db",
        ],
        &[
            "--cid=00000000-0000-4000-8000-000000000001",
            "join-cluster",
            "j.db",
            "Demo",
            "unix:x",
            "unix:y",
            "unix:y",
        ],
        &["-mm", "show-log", "j.db"],
        &["db-cid", "j.db"],
        &["join-cluster", "j.db", "Demo", "unix:x", "unix:y"],
        &["join-cluster", "k.db", "a b", "unix:x", "unix:y"],
        &["join-cluster", "k.db", "1a", "unix:x", "unix:y"],
        &["join-cluster", "k.db", "", "unix:x", "unix:y"],
        &["join-cluster", "k.db", "_a", "unix:x", "unix:y", "unix:x"],
        &["create-cluster", "k.db", "none", "unix:x"],
        &["create-cluster", "k.db", "j.db", "unix:x"],
        &["create-cluster", "k.db", "broken", "unix:x"],
        &["create-cluster", "a.db", "demo.schema", "unix:x"],
        &["create-cluster", "none/k.db", "demo.schema", "unix:x"],
        &[
            "--election-timer=100",
            "create-cluster",
            "c.db",
            "demo.schema",
            "unix:x",
        ],
        &["-mm", "show-log", "c.db"],
        &["create-cluster", "d.db", "a.db", "unix:x"],
        &["-mm", "show-log", "d.db"],
        &["check-cluster", "c.db"],
        &["check-cluster", "j.db"],
        &["check-cluster", "a.db"],
        &["cluster-to-standalone", "e.db", "d.db"],
        &["-mm", "show-log", "e.db"],
    ] {
        commands.push(words.to_vec());
    }
    let maker = with_database();
    maker.ok(&["transact", "a.db", r#"["Demo",{"op":"insert","table":"T","row":{"name":"x","eph":4,"set":["set",["q","r"]]},"uuid":"00000000-0000-4000-8000-000000000001"},{"op":"comment","comment":"c"}]"#]);
    let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
    compare(
        &[
            ("a.db", std::fs::read(maker.path("a.db")).expect("a file")),
            ("demo.schema", SCHEMA.as_bytes().to_vec()),
            ("broken", b"{\"name\":".to_vec()),
        ],
        &commands,
    );
}
