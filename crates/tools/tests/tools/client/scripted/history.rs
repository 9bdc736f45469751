//! `history`, `log`, `diff` and `--at`: what the program asks a server for, and what it prints of
//! the pages that it gets.

use corvid_json::Value;

use crate::client::OURS;
use crate::client::scripted::peer::{Peer, serve};
use crate::support::{Dir, Outcome, run};

/// The id of a server that reads history.
const READS: &str = r#""d7a3bf0c-5e0c-8c02-b71d-68018ad7ce10""#;
/// That of an older release.
const OLDER: &str = r#""d7a3bf0c-5e0c-8c02-b71d-0d8ad7a2ce10""#;

/// Runs the program with these words against a server that plays `script`.
fn against(words: &[&str], script: impl FnOnce(&mut Peer) + Send + 'static) -> Outcome {
    let dir = Dir::new();
    let server = serve(dir.path(), "db.sock", script);
    let done = run(OURS, dir.path(), words, b"");
    server.join().expect("the script ran to its end");
    done
}

fn ok(words: &[&str], script: impl FnOnce(&mut Peer) + Send + 'static) -> String {
    let done = against(words, script);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{words:?}");
    done.stdout
}

/// Answers a `read_history` with a page. Returns what was asked.
fn page(peer: &mut Peer, page: &str) -> String {
    peer.answer("read_history", page).to_string()
}

#[test]
fn pages_of_a_log_are_printed_as_ovsdb_tool_prints_them() {
    let commit = r#"{"event":"commit","id":"5f36b2ea2906","date":1700000000000,"file":"a.db","comment":"ovs-vsctl: set\nport","changes":[{"table":"Port","row":"5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11","name":"p1","op":"modify","columns":{"tag":{"old":5,"new":["set",[]]},"trunks":{"added":7}}}]}"#;
    let later = r#"{"event":"schema","date":1700000001000,"file":"a.db","old":"1.0.0","new":""}"#;
    let script = move |peer: &mut Peer| {
        peer.answer("list_dbs", r#"["A"]"#);
        peer.answer("get_server_id", READS);
        let asked = page(
            peer,
            &format!(r#"{{"lines":[{commit}],"next":9,"at":1,"done":0.5}}"#),
        );
        assert_eq!(asked, r#"["A",{"read":"log"}]"#);
        let asked = page(peer, r#"{"lines":[],"next":9,"at":1,"done":0.7}"#);
        assert_eq!(asked, r#"["A",{"next":9}]"#);
        page(
            peer,
            &format!(r#"{{"lines":[{later}],"next":null,"at":null,"done":1}}"#),
        );
    };
    let text = "\
commit 5f36b2ea2906
Date:    2023-11-14T22:13:20.000Z

    ovs-vsctl: set
    port

modify Port \"p1\" 5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11
- tag: 5
+ tag: []
+ trunks: [7]

conversion from schema version 1.0.0 to (none)
Date:    2023-11-14T22:13:21.000Z
";
    assert_eq!(ok(&["log"], script), text);
    // Programs get the server's lines, byte for byte.
    assert_eq!(
        ok(&["--json", "log"], script),
        format!("{commit}\n{later}\n")
    );
}

#[test]
fn options_select_on_the_server_and_local_times_are_converted_before() {
    let words = [
        "--table=T",
        "--row=5db7",
        "--column=c",
        "--client=ovs-vsctl",
        "--since=-2h",
        "--until=2023-11-14T22:13:20",
        "-n",
        "3",
        "log",
        "A",
    ];
    let printed = ok(&words, |peer| {
        peer.answer("list_dbs", r#"["A","B"]"#);
        peer.answer("get_server_id", READS);
        let asked = peer.answer("read_history", r#"{"lines":[],"next":null}"#);
        let question = &asked.as_array().expect("params")[1];
        let until = question.get("until").and_then(Value::as_str);
        // In universal time it may be the next day.
        let until = until
            .expect("a time")
            .strip_prefix("2023-11-1")
            .expect("a date");
        let zone = ["4T", "5T"].iter().find_map(|day| until.strip_prefix(day));
        let zone = zone.expect("within 14 hours");
        assert!(zone.ends_with(".000Z"), "{zone}");
        let rest = r#"{"client":"ovs-vsctl","column":"c","newest":3,"read":"log","row":"5db7","since":"-2h","table":"T","until":"2023-11-1"#;
        assert!(question.to_string().starts_with(rest), "{question}");
    });
    assert_eq!(printed, "");
}

#[test]
fn differences_and_files_are_printed_and_what_is_missing_is_said() {
    let change = r#"{"table":"T","row":"5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11","op":"delete","columns":{"s":{"old":"x y"}}}"#;
    let done = against(&["diff", "A", "-2h", "HEAD"], move |peer| {
        peer.answer("list_dbs", r#"["A"]"#);
        peer.answer("get_server_id", READS);
        let warnings = r#"["segment 2 is missing before a.db","table U: not compared"]"#;
        let reply = format!(
            r#"{{"lines":[{change},{change}],"next":null,"done":1.0,"warnings":{warnings}}}"#
        );
        let asked = page(peer, &reply);
        assert_eq!(asked, r#"["A",{"from":"-2h","read":"diff","to":"HEAD"}]"#);
    });
    let row = "delete T 5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11\n- s: \"x y\"\n";
    assert_eq!((done.status, done.stdout), (0, format!("{row}\n{row}")));
    assert_eq!(
        done.stderr,
        "ovsdb-client: segment 2 is missing before a.db\n\
         ovsdb-client: table U: not compared\n"
    );

    let files = |peer: &mut Peer| {
        peer.answer("list_dbs", r#"["A"]"#);
        peer.answer("get_server_id", READS);
        let lines = r#"{"file":"a.db","compressed":false,"bytes":100,"text_bytes":100,"transactions":1},{"gap":"segment 2 is missing"}"#;
        let asked = page(peer, &format!(r#"{{"lines":[{lines}],"next":null}}"#));
        assert_eq!(asked, r#"["A",{"read":"files"}]"#);
    };
    let line = "         -  no dates  1 transactions  100 bytes  a.db\nsegment 2 is missing\n";
    assert_eq!(ok(&["history"], files), line);
}

const SCHEMA: &str = r#"{"name":"A","tables":{"T":{"columns":{"n":{"type":"integer"}}}}}"#;
const ROWS: &str =
    r#"[{"rows":[{"_uuid":["uuid","5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11"],"n":7}]}]"#;

#[test]
fn contents_of_a_moment_have_the_schema_of_then() {
    let script = |peer: &mut Peer| {
        peer.answer("list_dbs", r#"["A"]"#);
        peer.answer("get_server_id", READS);
        let asked = page(peer, &format!(r#"{{"lines":[{SCHEMA}],"next":null}}"#));
        assert_eq!(asked, r#"["A",{"at":"HEAD~2","read":"schema"}]"#);
        let asked = peer.answer("select_at", ROWS).to_string();
        let select =
            r#"["A","HEAD~2",{"columns":["_uuid","n"],"op":"select","table":"T","where":[]}]"#;
        assert_eq!(asked, select);
    };
    let table = "T table\n_uuid                                n\n------------------------------------ -\n5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11 7\n";
    assert_eq!(ok(&["--at=HEAD~2", "dump"], script), table);
    let backup = ok(&["--at=HEAD~2", "backup"], script);
    assert!(
        backup.contains(r#""_comment":"produced by \"ovsdb-client backup --at=HEAD~2\"""#)
            && backup.contains(r#"{"5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11":{"n":7}}"#),
        "{backup}"
    );
    let select = r#"{"op":"select","table":"T","where":[]}"#;
    let query = ["--at=@1", "query", &format!(r#"["A",{select}]"#)];
    let printed = ok(&query, |peer| {
        peer.answer("get_server_id", READS);
        let asked = peer.answer("select_at", "[{\"rows\":[]}]").to_string();
        assert_eq!(
            asked,
            r#"["A","@1",{"op":"select","table":"T","where":[]}]"#
        );
    });
    assert_eq!(printed, "[{\"rows\":[]}]\n");
}

#[test]
fn servers_that_cannot_read_history_are_told_with_the_command_that_can() {
    for (words, instead) in [
        (&["history", "A"][..], "ovsdb-tool history FILE"),
        (&["log", "A"], "ovsdb-tool log FILE"),
        (
            &["diff", "A", "HEAD~1", "HEAD"],
            "ovsdb-tool diff FILE FROM TO",
        ),
        (
            &["--at=HEAD", "dump", "A"],
            "ovsdb-tool --at=MOMENT dump FILE",
        ),
        (
            &["--at=HEAD", "backup", "A"],
            "ovsdb-tool --at=MOMENT restore FILE NEW",
        ),
        (
            &["--at=HEAD", "query", r#"["A"]"#],
            "ovsdb-tool --at=MOMENT query FILE TRANSACTION",
        ),
    ] {
        for id in [Some(OLDER), None] {
            let has_list = !words.contains(&"query");
            let done = against(words, move |peer| {
                if has_list {
                    peer.answer("list_dbs", r#"["A"]"#);
                }
                match id {
                    Some(id) => {
                        peer.answer("get_server_id", id);
                    }
                    None => peer.refuse("get_server_id", "\"unknown method\""),
                }
            });
            assert_eq!((done.status, done.stdout.as_str()), (1, ""), "{words:?}");
            let told = done.stderr.starts_with("ovsdb-client: unix:")
                && done.stderr.contains(": the server cannot read the history of its databases: it is an older release or another program; ")
                && done.stderr.contains(&format!("use \"{instead}\" on a host"))
                && done.stderr.lines().count() == 1;
            assert!(told, "{words:?}: {}", done.stderr);
        }
    }
}

/// Without a server, which may be the reason to look into the file.
#[test]
fn words_of_ovsdb_tool_are_told_to_be_its_own() {
    let dir = Dir::new();
    let said = |words: &[&str]| {
        let done = run(OURS, dir.path(), words, b"");
        assert_eq!((done.status, done.stdout.as_str()), (1, ""), "{words:?}");
        done.stderr
    };
    for (words, command) in [
        (&["history", "verify", "a.db"][..], "history verify"),
        (
            &["history", "unix:x", "remove", "a.db", "3"],
            "history remove",
        ),
        (&["show-log", "a.db"], "show-log"),
    ] {
        let hint = format!(
            "ovsdb-client: \"{command}\" is a command of ovsdb-tool, which works on a database's file\n"
        );
        let said = said(words);
        assert!(said.ends_with(&hint) && said.lines().count() == 2, "{said}");
    }
    let served = |served: &'static str, answers: bool| {
        against(&["history", "verify"], move |peer| {
            peer.answer("list_dbs", served);
            if answers {
                peer.answer("get_server_id", READS);
                page(peer, r#"{"lines":[],"next":null}"#);
            }
        })
    };
    let done = served(r#"["A"]"#, false);
    assert!(
        done.stderr.contains("a command of ovsdb-tool"),
        "{}",
        done.stderr
    );
    assert_eq!(
        served(r#"["A","verify"]"#, true).status,
        0,
        "a database of that name"
    );
}

#[test]
fn refusals_and_malformed_replies_end_the_command() {
    let error = r#"{"error":"bad moment","details":"\"HEAD~9\" is before the history"}"#;
    let done = against(&["--since=HEAD~9", "log", "A"], |peer| {
        peer.answer("list_dbs", r#"["A"]"#);
        peer.answer("get_server_id", READS);
        peer.refuse("read_history", error);
    });
    let text = "ovsdb-client: bad moment: \"HEAD~9\" is before the history\n";
    assert_eq!((done.status, done.stderr.as_str()), (1, text));

    // An id of an older server may look like that of one that reads.
    let done = against(&["log", "A"], |peer| {
        peer.answer("list_dbs", r#"["A"]"#);
        peer.answer("get_server_id", READS);
        peer.refuse(
            "read_history",
            r#"{"error":"unknown method","details":"x"}"#,
        );
    });
    let said = done.stderr.contains("use \"ovsdb-tool log FILE\"");
    assert!(done.status == 1 && said, "{}", done.stderr);

    for reply in ["7", "[]", r#"{"lines":{}}"#] {
        let done = against(&["log", "A"], move |peer| {
            peer.answer("list_dbs", r#"["A"]"#);
            peer.answer("get_server_id", READS);
            page(peer, reply);
        });
        assert_eq!(done.status, 1, "{reply}");
        let said = done
            .stderr
            .ends_with(": the reply to read_history is malformed\n");
        assert!(said, "{reply}: {}", done.stderr);
    }

    // Lines that came before the connection broke are printed, and the status tells.
    let done = against(&["--json", "log", "A"], |peer| {
        peer.answer("list_dbs", r#"["A"]"#);
        peer.answer("get_server_id", READS);
        page(peer, r#"{"lines":[{"event":"commit"}],"next":1}"#);
        peer.expect("read_history");
    });
    assert_eq!(done.status, 1);
    assert_eq!(done.stdout, "{\"event\":\"commit\"}\n");
    assert_eq!(
        done.stderr,
        "ovsdb-client: transaction failed (End of file)\n"
    );
}

#[test]
fn bad_moments_and_commands_without_moments_are_refused_before_anything_is_asked() {
    let forms = "a moment is HEAD, HEAD~3, now, -2h, 2026-11-28, 2026-11-28T10:00:00, @1700000000000, or the id of a commit";
    for words in [
        &["--since=yesterday", "log", "A"][..],
        &["--at=yesterday", "dump", "A"],
    ] {
        let done = against(words, |peer| {
            peer.answer("list_dbs", r#"["A"]"#);
        });
        let text = format!("ovsdb-client: \"yesterday\": {forms}\n");
        assert_eq!((done.status, done.stderr), (1, text), "{words:?}");
    }
    let dir = Dir::new();
    for (words, name) in [
        (&["--at=HEAD", "transact", r#"["A"]"#][..], "transact"),
        (&["--at=HEAD", "restore"], "restore"),
        (&["--at=HEAD", "log"], "log"),
        (&["--at=HEAD", "ping"], "ping"),
    ] {
        let done = run(OURS, dir.path(), words, b"");
        let text = format!(
            "ovsdb-client: '{name}' does not accept --at, only these commands do: query, dump, backup\n"
        );
        assert_eq!((done.status, done.stderr), (1, text), "{words:?}");
    }
    let done = run(OURS, dir.path(), &["--row=xyz", "log"], b"");
    assert_eq!(
        done.stderr,
        "ovsdb-client: \"xyz\" is not a row's UUID, nor the beginning of one\n"
    );
}

/// A server that takes long says how far it is; scripts do not see it. `script` of util-linux
/// provides the terminal.
#[test]
fn long_readings_show_their_progress_on_a_terminal() {
    for (errors, is_shown) in [("", true), ("2>said", false)] {
        let dir = Dir::new();
        let server = serve(dir.path(), "db.sock", |peer| {
            peer.answer("list_dbs", r#"["A"]"#);
            peer.answer("get_server_id", READS);
            page(peer, r#"{"lines":[],"next":7,"at":null,"done":0.25}"#);
            let (id, _) = peer.expect("read_history");
            std::thread::sleep(std::time::Duration::from_secs(2));
            peer.reply(&id, r#"{"lines":[],"next":null,"at":null,"done":1}"#);
        });
        let line = format!("{OURS} log A >out {errors}");
        let done = run("script", dir.path(), &["-qec", &line, "/dev/null"], b"");
        server.join().expect("the script ran to its end");
        let screen = done.stdout;
        let is_there = screen.contains("Reading the history") && screen.contains("25%");
        assert_eq!(is_there, is_shown, "{errors}: {screen}");
        let out = std::fs::read_to_string(dir.file("out")).expect("the output");
        assert_eq!((done.status, out.as_str()), (0, ""));
    }
}
