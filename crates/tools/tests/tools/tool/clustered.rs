//! Hand-made files of cluster members, in which any rule can be broken: the faults that
//! `check-cluster` finds, the entries that `cluster-to-standalone` keeps, the files that
//! `create-cluster` and `join-cluster` write. In the bodies, A, B and C stand for server ids, `E1`
//! to `E9` for entry ids.

use crate::tool::sandbox::{Sandbox, cluster_record, record, with_database};

/// A server's id. Messages show its first four digits.
pub(crate) fn server(letter: char) -> String {
    format!(
        "{0}{0}{0}{0}0000-0000-4000-8000-000000000001",
        letter.to_ascii_lowercase()
    )
}

/// A member's file: the header of A or B, then these records.
pub(crate) fn member(letter: char, records: &[&str]) -> Vec<u8> {
    let header = format!(
        r#"{{"server_id":"{letter}","name":"D","local_address":"tcp:127.0.0.1:1","cluster_id":"cccc0000-0000-4000-8000-000000000003","prev_servers":{{"A":"tcp:127.0.0.1:1","B":"tcp:127.0.0.1:2"}},"prev_index":1,"prev_term":1,"prev_eid":"E1","prev_data":[{SMALL},{{}}]}}"#
    );
    file(&header, records)
}

pub(crate) fn file(header: &str, records: &[&str]) -> Vec<u8> {
    std::iter::once(&header)
        .chain(records)
        .flat_map(|body| cluster_record(&spelled(body)))
        .collect()
}

/// A body with its names replaced by ids.
fn spelled(body: &str) -> String {
    let mut body = body.to_owned();
    for letter in ['A', 'B', 'C'] {
        body = body.replace(&format!("\"{letter}\""), &format!("\"{}\"", server(letter)));
    }
    for digit in 1..=9 {
        let id = format!("\"eeee0000-0000-4000-8000-00000000000{digit}\"");
        body = body.replace(&format!("\"E{digit}\""), &id);
    }
    body
}

const SMALL: &str = r#"{"name":"D","tables":{"t":{"columns":{"i":{"type":"integer"}}}}}"#;

/// An entry without data.
fn entry(index: u64, term: u64) -> String {
    format!(r#"{{"term":{term},"index":{index}}}"#)
}

/// An entry that inserts row `n` with `i` = `n`.
fn insert(index: u64, term: u64, n: u64) -> String {
    format!(
        r#"{{"term":{term},"index":{index},"eid":"E{n}","data":[null,{}]}}"#,
        transaction(n)
    )
}

fn transaction(n: u64) -> String {
    format!(
        r#"{{"_comment":"n{n}","_date":170000000000{n},"_is_diff":true,"t":{{"00000000-0000-4000-8000-00000000000{n}":{{"i":{n}}}}}}}"#
    )
}

/// The result of `check-cluster` on these files: its output, and its message if it finds a fault.
fn check(files: &[Vec<u8>]) -> (String, Option<String>) {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (1..=files.len())
        .map(|number| format!("f{number}"))
        .collect();
    for (name, bytes) in names.iter().zip(files) {
        sandbox.write(name, bytes);
    }
    let args: Vec<&str> = std::iter::once("check-cluster")
        .chain(names.iter().map(String::as_str))
        .collect();
    let run = sandbox.run(&args);
    let message = run.stderr.strip_prefix("ovsdb-tool: ");
    assert_eq!(run.status, Some(i32::from(message.is_some())), "{run:?}");
    (run.stdout, message.map(|text| text.trim_end().to_owned()))
}

fn fault(files: &[Vec<u8>]) -> String {
    let (stdout, message) = check(files);
    assert_eq!(stdout, "");
    message.expect("a fault")
}

#[test]
fn valid_files_print_nothing() {
    let a = member(
        'A',
        &[
            r#"{"term":1,"vote":"A"}"#,
            r#"{"term":1,"leader":"A"}"#,
            &entry(2, 1),
            r#"{"commit_index":2}"#,
            &insert(3, 1, 3),
        ],
    );
    let b = member('B', &[r#"{"term":1,"leader":"A"}"#, &entry(2, 1)]);
    assert_eq!(check(std::slice::from_ref(&a)), (String::new(), None));
    assert_eq!(check(&[a, b]), (String::new(), None));
}

#[test]
fn warnings_are_not_faults() {
    let left = member('A', &[&entry(2, 1), r#"{"note":"left"}"#]);
    assert_eq!(
        check(&[left]),
        (
            "f1: record 2 shows that the server left the cluster\n".to_owned(),
            None
        )
    );
    let superseded = member('A', &[&entry(2, 1), &entry(3, 1), &entry(2, 2)]);
    assert_eq!(
        check(&[superseded]),
        (
            "f1: record 3 truncates log from 4 to 2 entries\n".to_owned(),
            None
        )
    );
    let joining = file(
        r#"{"server_id":"C","name":"D","local_address":"unix:c","remote_addresses":["unix:a"]}"#,
        &[],
    );
    let a = member('A', &[&entry(2, 1)]);
    let omitted = "f1 has not joined the cluster, omitting\n".to_owned();
    assert_eq!(check(&[joining.clone(), a]), (omitted.clone(), None));
    assert_eq!(
        check(&[joining]),
        (omitted, Some("all logs are empty".to_owned()))
    );
}

#[test]
fn headers_must_agree_on_the_cluster() {
    let a = || member('A', &[&entry(2, 1)]);
    let changed = |from: &str, to: &str| {
        let text = String::from_utf8(member('B', &[])).expect("text");
        let body = text.lines().nth(1).expect("a body").replace(from, to);
        [cluster_record(&body), cluster_record(&entry(2, 1))].concat()
    };
    assert_eq!(fault(&[a(), a()]), "Duplicate server ID aaaa in f2 and f1.");
    assert_eq!(
        fault(&[a(), changed("cccc0000", "dddd0000")]),
        "f1 has cluster ID cccc but f2 has cluster ID dddd"
    );
    assert_eq!(
        fault(&[a(), changed(r#""name":"D","local"#, r#""name":"X","local"#)]),
        "f1 is named \"D\" but f2 is named \"X\""
    );
    assert_eq!(
        fault(&[record(SMALL)]),
        "ovsdb error: f1: cannot identify file type"
    );
}

#[test]
fn log_rules_are_checked() {
    for (records, text) in [
        (
            &[&*entry(3, 1)][..],
            "record 1 with index 3 skips past expected index 2",
        ),
        (
            &[&entry(2, 0)],
            "record 1 with index 2 term 0 precedes previous entry's term 1",
        ),
        (
            &[r#"{"term":4}"#, r#"{"term":3,"vote":"A"}"#],
            "record 2 votes for term 3 but current term is 4",
        ),
        (
            &[r#"{"term":3,"vote":"A"}"#, r#"{"term":3,"vote":"C"}"#],
            "record 2 votes for cccc in term 3 but a previous record for the same term voted for f1",
        ),
        (
            &[
                &entry(2, 1),
                &entry(3, 1),
                r#"{"commit_index":3}"#,
                r#"{"commit_index":2}"#,
            ],
            "record 4 regresses commit index from 3 to 2",
        ),
        (
            &[&entry(2, 1), r#"{"commit_index":3}"#],
            "record 2 advances commit index to 3 but last log index is 2",
        ),
        (
            &[
                &entry(2, 1),
                &entry(3, 1),
                r#"{"commit_index":3}"#,
                &entry(2, 2),
            ],
            "record 4 attempts to truncate log from 4 to 2 entries, but commit index is already 3",
        ),
        // The reference checks only entries before the last committed one.
        (
            &[
                &entry(2, 1),
                &entry(3, 1),
                r#"{"commit_index":3}"#,
                &entry(3, 2),
            ],
            "record 4 attempts to truncate log from 4 to 3 entries, but commit index is already 3",
        ),
        (
            &[r#"{"term":1,"leader":"A"}"#, &entry(2, 1), &entry(2, 1)],
            "record 3 truncates log from 3 to 2 entries while server is leader",
        ),
        (
            &[r#"{"term":1,"leader":"A"}"#, r#"{"term":1,"leader":"B"}"#],
            "record 2 reports leader bbbb for term 1 but record 1 previously reported the leader as f1 in that term",
        ),
    ] {
        assert_eq!(fault(&[member('A', records)]), format!("f1: {text}"));
    }
    let torn = [member('A', &[&entry(2, 1)]), b"OVSDB CLUSTER 5".to_vec()].concat();
    let message = fault(&[torn]);
    assert!(
        message.starts_with("syntax error: f1: parse error at offset ")
            && message.ends_with(" in header line \"OVSDB CLUSTER\""),
        "{message}"
    );
    assert_eq!(
        fault(&[member('A', &["{}"])]),
        "syntax \"{}\": syntax error: Parsing raft log record failed: Required 'term' member is missing."
    );
}

#[test]
fn term_has_at_most_one_leader() {
    let says = |letter, leader: &str| member(letter, &[leader]);
    assert_eq!(
        fault(&[
            says('A', r#"{"term":1,"leader":"C"}"#),
            says('B', r#"{"term":1,"leader":"B"}"#)
        ]),
        "term 1 has two different leaders: f1 says that the leader is cccc and f2 says that the leader is f2"
    );
}

#[test]
fn leaders_have_all_committed_entries() {
    let a = |more: &str| {
        member(
            'A',
            &[&entry(2, 1), &entry(3, 1), r#"{"commit_index":3}"#, more],
        )
    };
    let b = member(
        'B',
        &[&entry(2, 1), r#"{"term":2,"leader":"B"}"#, &entry(3, 2)],
    );
    let text = "leader f2 for term 2 has log entries only up to index 2, but index 3 was committed in a previous term (e.g. by f1)";
    assert_eq!(fault(&[a(r#"{"term":2}"#), b.clone()]), text);
    // The message names the leader, whatever the order of the files.
    assert_eq!(fault(&[a(r#"{"term":2,"leader":"B"}"#), b]), text);
    let full = member(
        'B',
        &[&entry(2, 1), &entry(3, 1), r#"{"term":2,"leader":"B"}"#],
    );
    assert_eq!(check(&[a(r#"{"term":2}"#), full]), (String::new(), None));
}

#[test]
fn entries_of_equal_index_and_term_are_equal() {
    let a = member('A', &[&insert(2, 1, 2), &insert(3, 2, 3)]);
    let b = member('B', &[&insert(2, 1, 4), &insert(3, 2, 3)]);
    let data = |n: u64| {
        format!(
            r#"{{"data":[null,{}],"eid":"eeee0000-0000-4000-8000-00000000000{n}","term":1}}"#,
            transaction(n)
        )
    };
    assert_eq!(
        fault(&[a.clone(), b]),
        format!(
            "log entries with index 2 differ:\nf1 has {}\nf2 has {}",
            data(2),
            data(4)
        )
    );
    // Unreplicated entries at the end of a log may differ.
    let stray = member('B', &[&insert(2, 1, 2), &insert(3, 3, 5)]);
    assert_eq!(check(&[a, stray]), (String::new(), None));
    let timer = r#"{"term":1,"index":2,"election_timer":2000}"#;
    assert_eq!(
        fault(&[member('A', &[timer]), member('B', &[&entry(2, 1)])]),
        "log entries with index 2 differ:\nf1 has {\"election_timer\":2000,\"term\":1}\nf2 has {\"term\":1}"
    );
}

#[test]
fn members_are_in_a_list_of_servers() {
    let header = r#"{"server_id":"A","name":"D","local_address":"unix:a","cluster_id":"C","prev_servers":{"B":"unix:b"}}"#;
    assert_eq!(
        fault(&[file(header, &[&entry(1, 1)])]),
        "f1: server aaaa not found in server list"
    );
    let added = r#"{"term":1,"index":1,"servers":{"A":"unix:a"}}"#;
    let removed = r#"{"term":1,"index":2,"servers":{"B":"unix:b"}}"#;
    assert_eq!(
        check(&[file(header, &[added, removed])]),
        (String::new(), None)
    );
}

/// Runs `cluster-to-standalone` on a file. Returns the bodies of the new file and the messages. A
/// failure must leave no file.
fn recovered(bytes: &[u8]) -> Result<(Vec<String>, String), String> {
    let sandbox = Sandbox::new();
    sandbox.write("c.db", bytes);
    let run = sandbox.run(&["cluster-to-standalone", "s.db", "c.db"]);
    assert_eq!(run.stdout, "");
    let made = sandbox.list().contains(&"s.db".to_owned());
    assert_eq!(run.status, Some(i32::from(!made)), "{run:?}");
    assert!(!sandbox.list().contains(&"s.db.tmp".to_owned()));
    if !made {
        return Err(run.stderr);
    }
    assert_eq!(sandbox.ok(&["db-name", "s.db"]), "D\n");
    sandbox.ok(&["query", "s.db", r#"["D"]"#]);
    let bodies = sandbox.read("s.db");
    let bodies = bodies.lines().skip(1).step_by(2).map(str::to_owned);
    Ok((bodies.collect(), run.stderr))
}

#[test]
fn superseded_entries_are_left_out_and_uncommitted_ones_kept() {
    let committed = member(
        'A',
        &[&insert(2, 1, 2), &insert(3, 1, 3), r#"{"commit_index":3}"#],
    );
    let expected = [
        SMALL.to_owned(),
        "{}".to_owned(),
        transaction(2),
        transaction(3),
    ];
    assert_eq!(
        recovered(&committed),
        Ok((expected.to_vec(), String::new()))
    );
    let superseded = member(
        'A',
        &[
            &insert(2, 1, 2),
            &insert(3, 1, 3),
            &insert(4, 1, 4),
            r#"{"commit_index":2}"#,
            &insert(3, 2, 5),
            &entry(4, 2),
        ],
    );
    assert_eq!(
        recovered(&superseded),
        Ok((
            [
                SMALL.to_owned(),
                "{}".to_owned(),
                transaction(2),
                transaction(5)
            ]
            .to_vec(),
            "ovsdb-tool: c.db: its last transaction is not known to be committed; it is included\n"
                .to_owned()
        ))
    );
    let (bodies, said) =
        recovered(&member('A', &[&insert(2, 1, 2), &insert(3, 1, 3)])).expect("a file");
    assert_eq!(bodies.len(), 4);
    assert_eq!(
        said,
        "ovsdb-tool: c.db: its last 2 transactions are not known to be committed; they are included\n"
    );
}

#[test]
fn schema_in_an_entry_replaces_the_contents() {
    let new = r#"{"name":"D","tables":{"t":{"columns":{"i":{"type":"integer"},"j":{"type":"integer"}}}}}"#;
    let conversion = |data: &str| {
        let entry = format!(r#"{{"term":1,"index":3,"eid":"E3","data":[{new},{data}]}}"#);
        let records = [
            &*insert(2, 1, 2),
            &entry,
            &insert(4, 1, 4),
            r#"{"commit_index":4}"#,
        ];
        recovered(&member('A', &records)).expect("a file").0
    };
    assert_eq!(
        conversion(&transaction(7)),
        [new.to_owned(), transaction(7), transaction(4)]
    );
    let converted = conversion("null");
    assert_eq!(
        (converted.len(), &*converted[0], &converted[2]),
        (3, new, &transaction(4))
    );
    assert!(
        converted[1].starts_with(r#"{"_comment":"converted by ovsdb-tool 3.7.0","_date":"#)
            && converted[1].ends_with(r#","t":{"00000000-0000-4000-8000-000000000002":{"i":2}}}"#),
        "{}",
        converted[1]
    );
}

#[test]
fn only_a_torn_last_record_is_skipped() {
    let whole = member('A', &[&insert(2, 1, 2), r#"{"commit_index":2}"#]);
    let next = cluster_record(&insert(3, 1, 3));
    for cut in [1, 15, 60, next.len() - 1] {
        let (bodies, said) = recovered(&[&whole[..], &next[..cut]].concat()).expect("a file");
        assert_eq!(bodies.len(), 3);
        assert!(
            said.starts_with("ovsdb-tool: c.db: the last record is torn and left out: "),
            "{cut}: {said}"
        );
    }
    let mut flipped = [&whole[..], &next].concat();
    let place = flipped.len() - 10;
    flipped[place] ^= 1;
    assert!(
        recovered(&flipped)
            .expect_err("damage")
            .contains("have SHA-1 hash")
    );
    // A damaged length that extends over an undamaged record.
    let long = String::from_utf8(next.clone())
        .expect("text")
        .replacen("CLUSTER 1", "CLUSTER 9", 1);
    let hidden = [&whole[..], long.as_bytes(), &next].concat();
    assert!(
        recovered(&hidden)
            .expect_err("damage")
            .contains("(End of file)")
    );
}

#[test]
fn file_without_contents_leaves_no_file_behind() {
    let joining =
        r#"{"server_id":"C","name":"D","local_address":"unix:c","remote_addresses":["unix:a"]}"#;
    assert_eq!(
        recovered(&file(joining, &[])),
        Err("ovsdb-tool: c.db: has not joined its cluster, so there are no contents\n".to_owned())
    );
    assert_eq!(
        recovered(&record(SMALL)),
        Err("ovsdb-tool: Database is not clustered db.\n\n".to_owned())
    );
    assert_eq!(
        recovered(&member(
            'A',
            &[r#"{"term":1,"index":2,"eid":"E2","data":[null]}"#]
        )),
        Err("ovsdb-tool: Incorrect raft record array length\n".to_owned())
    );
    assert_eq!(
        recovered(&member('A', &[&entry(3, 1)])),
        Err("ovsdb-tool: c.db: record 1 with index 3 skips past expected index 2; \"head -n 2 c.db\" prints a file of what precedes it\n".to_owned())
    );
}

#[test]
fn inconsistent_votes_do_not_prevent_recovery() {
    let (bodies, said) = recovered(&member(
        'A',
        &[
            r#"{"term":4}"#,
            r#"{"term":3,"vote":"A"}"#,
            &insert(2, 4, 2),
            r#"{"commit_index":9}"#,
            &insert(3, 4, 3),
            r#"{"commit_index":3}"#,
        ],
    ))
    .expect("a file");
    assert_eq!(bodies[2..], [transaction(2), transaction(3)]);
    assert_eq!(
        said,
        "ovsdb-tool: c.db: record 2 votes for term 3 but current term is 4\n\
         ovsdb-tool: c.db: record 4 advances commit index to 9 but last log index is 2\n"
    );
}

#[test]
fn error_explains_how_to_extract_records_before_damage() {
    let sandbox = Sandbox::new();
    let records = [&*insert(2, 1, 2), &insert(4, 1, 4), &insert(5, 1, 5)];
    sandbox.write("c.db", &member('A', &records));
    let message = sandbox.fails(&["cluster-to-standalone", "s.db", "c.db"]);
    assert_eq!(
        message,
        "c.db: record 2 with index 4 skips past expected index 3; \"head -n 4 c.db\" prints a file of what precedes it"
    );
    let before: Vec<String> = sandbox
        .read("c.db")
        .lines()
        .take(4)
        .map(|line| format!("{line}\n"))
        .collect();
    let (bodies, _) = recovered(before.concat().as_bytes()).expect("a file");
    assert_eq!(bodies[2..], [transaction(2)]);
}

#[test]
fn recovery_does_not_overwrite_files() {
    let sandbox = with_database();
    sandbox.write("c.db", &member('A', &[]));
    let before = sandbox.read("a.db");
    assert_eq!(
        sandbox.fails(&["cluster-to-standalone", "a.db", "c.db"]),
        "I/O error: a.db: create failed (File exists)"
    );
    assert_eq!(sandbox.read("a.db"), before);
}

#[test]
fn new_cluster_has_the_rows_of_the_database() {
    let sandbox = with_database();
    sandbox.ok(&["transact", "a.db", r#"["Demo",{"op":"insert","table":"T","row":{"name":"x","eph":7}},{"op":"insert","table":"U","row":{}}]"#]);
    let run = sandbox.run(&[
        "--election-timer=2000",
        "create-cluster",
        "c.db",
        "a.db",
        "tcp:127.0.0.1:6643",
    ]);
    assert_eq!((run.status, run.stdout.as_str()), (Some(0), ""));
    assert!(
        run.stderr.ends_with("|ovsdb|WARN|a.db: changed 1 columns in 'Demo' database from ephemeral to persistent, including 'eph' column in 'T' table, because clusters do not support ephemeral columns\n"),
        "{}",
        run.stderr
    );
    let uuid_of = |command: &str| sandbox.ok(&[command, "c.db"]).trim_end().to_owned();
    let (sid, cid) = (uuid_of("db-sid"), uuid_of("db-cid"));
    assert_ne!(sid, cid);
    assert_eq!(
        sandbox.ok(&["db-local-address", "c.db"]),
        "tcp:127.0.0.1:6643\n"
    );
    assert_eq!(sandbox.ok(&["db-name", "c.db"]), "Demo\n");
    assert_eq!(sandbox.ok(&["db-is-clustered", "c.db"]), "");
    assert_eq!(sandbox.ok(&["check-cluster", "c.db"]), "");
    let log = sandbox.ok(&["-mm", "show-log", "c.db"]);
    for line in [
        " prev_index: 1\n prev_term: 1\n",
        &format!(" prev_servers: {}(\"tcp:127.0.0.1:6643\")\n", &sid[..4]),
        " prev_schema: \"Demo\", version=\"1.2.3\", cksum=\"111 222\"\n",
        " \"created from a.db\"\n",
        "    name=x\n",
        "record 1:\n term: 1\n index: 2\n\n",
    ] {
        assert!(log.contains(line), "{line} in {log}");
    }
    assert_eq!(sandbox.ok(&["cluster-to-standalone", "b.db", "c.db"]), "");
    let select = |db: &str| {
        sandbox
            .ok(&[
                "query",
                db,
                r#"["Demo",{"op":"select","table":"T","where":[]}]"#,
            ])
            .split("\"_version\"")
            .next()
            .map(str::to_owned)
    };
    assert_eq!(select("b.db"), select("a.db"));
    assert!(!sandbox.read("b.db").contains("ephemeral"));
}

#[test]
fn new_member_arguments_are_checked() {
    let sandbox = with_database();
    let timer = "ovsdb error: election timer must be between 100 and 600000, in msec.";
    for (args, message) in [
        (&["--election-timer=99", "db-name", "a.db"][..], timer),
        (
            &[
                "--election-timer=600001",
                "create-cluster",
                "c.db",
                "demo.schema",
                "unix:x",
            ],
            timer,
        ),
        (
            &[
                "--election-timer=x",
                "create-cluster",
                "c.db",
                "demo.schema",
                "unix:x",
            ],
            timer,
        ),
        (&["--cid=x", "db-name", "a.db"], "x: not a valid UUID"),
        (
            &[
                "--cid=00000000-0000-0000-0000-000000000000",
                "join-cluster",
                "c.db",
                "D",
                "unix:x",
                "unix:y",
            ],
            "00000000-0000-0000-0000-000000000000: not a valid UUID",
        ),
        (
            &["join-cluster", "c.db", "a b", "unix:x", "unix:y"],
            "a b: not a valid schema name (use \"schema-name\" command to find the correct name)",
        ),
        (
            &["join-cluster", "c.db", "D", "unix:x", "unix:y", "unix:x"],
            "ovsdb error: remote addresses cannot be the same as the local address",
        ),
        (
            &["join-cluster", "c.db", "D", "unix:x", "x:y"],
            "ovsdb error: x:y: expected \"tcp\" or \"ssl\" address",
        ),
        (
            &["join-cluster", "a.db", "D", "unix:x", "unix:y"],
            "I/O error: a.db: create failed (File exists)",
        ),
        (
            &["create-cluster", "c.db", "none", "unix:x"],
            "I/O error: none: open failed (No such file or directory)",
        ),
    ] {
        assert_eq!(sandbox.fails(args), message, "{args:?}");
    }
    assert!(!sandbox.list().contains(&"c.db".to_owned()));
}

#[test]
fn joining_member_has_no_contents() {
    let sandbox = Sandbox::new();
    let cid = "cccc0000-0000-4000-8000-000000000003";
    sandbox.ok(&[
        "join-cluster",
        "j.db",
        "Demo",
        "ssl:[::1]:1",
        "tcp:a:2",
        "tcp:b:3",
        "tcp:a:2",
    ]);
    let run = sandbox.run(&["db-cid", "j.db"]);
    assert_eq!(
        (run.status, run.stdout.as_str(), run.stderr.as_str()),
        (Some(2), "", "j.db: cluster ID not yet known\n")
    );
    let sid = sandbox.ok(&["db-sid", "j.db"]);
    assert_eq!(
        sandbox.ok(&["show-log", "j.db"]),
        format!(
            "record 0:\n name: \"Demo'\n local address: \"ssl:[::1]:1\"\n server_id: {}\n remote_addresses: tcp:a:2 tcp:b:3\n\n",
            &sid[..4]
        )
    );
    sandbox.ok(&[
        &format!("--cid={cid}"),
        "join-cluster",
        "k.db",
        "Demo",
        "unix:x",
        "unix:y",
    ]);
    assert_eq!(sandbox.ok(&["db-cid", "k.db"]), format!("{cid}\n"));
}

#[test]
fn malformed_data_is_listed_as_invalid() {
    let sandbox = Sandbox::new();
    for data in ["{}", "[]", "[null]", "[null,{},{}]"] {
        let entry = format!(r#"{{"term":1,"index":2,"eid":"E2","data":{data}}}"#);
        sandbox.write("c.db", &member('A', &[&entry]));
        let listing = sandbox.ok(&["show-log", "c.db"]);
        assert!(
            listing.ends_with(" index: 2\n eid: eeee\n ***invalid data***\n\n"),
            "{listing}"
        );
    }
}
