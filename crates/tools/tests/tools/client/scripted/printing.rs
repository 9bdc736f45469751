//! The output of commands.

use expect_test::{Expect, expect};

use crate::client::OURS;
use crate::client::scripted::peer::{Peer, serve};
use crate::support::{Dir, Outcome, run, without_uuids};

const SCHEMA: &str = r#"{"name":"D","version":"1.2.3","cksum":"9 9","tables":{"T":{"columns":{
    "a":{"type":"string"},
    "n":{"type":{"key":"integer","min":0,"max":"unlimited"}},
    "m":{"type":{"key":"string","value":"real","min":0,"max":"unlimited"}},
    "kind":{"type":{"key":{"type":"string","enum":["set",["x","y"]]}}},
    "e":{"type":"string","ephemeral":true}}}}}"#;

const ROWS: &str = r#"[{"rows":[
    {"_uuid":["uuid","6731fef6-afef-4e54-bb8b-892b04777101"],"a":"b c","n":["set",[1,2]],"m":["map",[["k",0.5]]],"kind":"x","e":""},
    {"_uuid":["uuid","0131fef6-afef-4e54-bb8b-892b04777101"],"a":"<&>","n":3,"m":["map",[]],"kind":"z","e":"6731fef6-afef-4e54-bb8b-892b04777101"}]}]"#;

fn with_schema(args: &[&str], script: impl FnOnce(&mut Peer) + Send + 'static) -> Outcome {
    let dir = Dir::new();
    let server = serve(dir.path(), "db.sock", |peer| {
        peer.answer("list_dbs", r#"["_Server","D"]"#);
        peer.answer("get_schema", SCHEMA);
        script(peer);
    });
    let outcome = run(OURS, dir.path(), args, b"");
    server.join().expect("the script ran to its end");
    outcome
}

fn dump(style: &[&str], expected: &Expect) {
    let args: Vec<&str> = style.iter().copied().chain(["dump"]).collect();
    let outcome = with_schema(&args, |peer| {
        peer.answer("transact", ROWS);
    });
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    expected.assert_eq(&outcome.stdout);
}

/// One value is not a member of its enumeration, so it is printed as JSON.
#[test]
fn dumps_come_in_five_formats() {
    dump(
        &[],
        &expect![[r#"
        T table
        _uuid                                a     e                                      kind m       n
        ------------------------------------ ----- -------------------------------------- ---- ------- ------
        0131fef6-afef-4e54-bb8b-892b04777101 "<&>" "6731fef6-afef-4e54-bb8b-892b04777101" "z"  {}      [3]
        6731fef6-afef-4e54-bb8b-892b04777101 "b c" ""                                     x    {k=0.5} [1, 2]
    "#]],
    );
    dump(
        &["-flist", "-dbare"],
        &expect![[r#"
        T table
        _uuid               : 0131fef6-afef-4e54-bb8b-892b04777101
        a                   : <&>
        e                   : 6731fef6-afef-4e54-bb8b-892b04777101
        kind                : "z"
        m                   : 
        n                   : 3

        _uuid               : 6731fef6-afef-4e54-bb8b-892b04777101
        a                   : b c
        e                   : 
        kind                : x
        m                   : k=0.5
        n                   : 1 2
    "#]],
    );
    dump(
        &["-fcsv"],
        &expect![[r#"
        T table
        _uuid,a,e,kind,m,n
        0131fef6-afef-4e54-bb8b-892b04777101,"""<&>""","""6731fef6-afef-4e54-bb8b-892b04777101""","""z""",{},[3]
        6731fef6-afef-4e54-bb8b-892b04777101,"""b c""","""""",x,{k=0.5},"[1, 2]"
    "#]],
    );
    dump(
        &["-fhtml", "--no-headings"],
        &expect![[r##"
        <table border=1>
            <caption>T table</caption>
          <tr>
            <td><a name="0131fef6-afef-4e54-bb8b-892b04777101">0131fef6</a></td>
            <td>&quot;&lt;&amp;&gt;&quot;</td>
            <td>&quot;<a href="#6731fef6-afef-4e54-bb8b-892b04777101">6731fef6</a>&quot;</td>
            <td>&quot;z&quot;</td>
            <td>{}</td>
            <td>[3]</td>
          </tr>
          <tr>
            <td><a name="6731fef6-afef-4e54-bb8b-892b04777101">6731fef6</a></td>
            <td>&quot;b c&quot;</td>
            <td>&quot;&quot;</td>
            <td>x</td>
            <td>{k=0.5}</td>
            <td>[1, 2]</td>
          </tr>
        </table>
    "##]],
    );
    dump(
        &["-fjson"],
        &expect![[r#"
        {"caption":"T table","data":[[["uuid","0131fef6-afef-4e54-bb8b-892b04777101"],"<&>","6731fef6-afef-4e54-bb8b-892b04777101","z",["map",[]],3],[["uuid","6731fef6-afef-4e54-bb8b-892b04777101"],"b c","","x",["map",[["k",0.5]]],["set",[1,2]]]],"headings":["_uuid","a","e","kind","m","n"]}
    "#]],
    );
    dump(
        &["--max-column-width=4"],
        &expect![[r#"
            T table
            _uuid a    e    kind m    n
            ----- ---- ---- ---- ---- ----
            0131f "<&> "673 "z"  {}   [3]
            6731f "b c ""   x    {k=0 [1,
        "#]],
    );
}

#[test]
fn schemas_are_printed_on_one_line_or_indented() {
    expect![[r#"
        {"cksum":"9 9","name":"D","tables":{"T":{"columns":{"a":{"type":"string"},"e":{"ephemeral":true,"type":"string"},"kind":{"type":{"key":{"enum":["set",["x","y"]],"type":"string"}}},"m":{"type":{"key":"string","max":"unlimited","min":0,"value":"real"}},"n":{"type":{"key":"integer","max":"unlimited","min":0}}}}},"version":"1.2.3"}
    "#]].assert_eq(&with_schema(&["get-schema"], |_| ()).stdout);
    let pretty = with_schema(&["--pretty", "get-schema"], |_| ()).stdout;
    assert!(pretty.starts_with("{\n  \"cksum\": \"9 9\","), "{pretty}");
    assert_eq!(
        with_schema(&["get-schema-version"], |_| ()).stdout,
        "1.2.3\n"
    );
    assert_eq!(with_schema(&["get-schema-cksum"], |_| ()).stdout, "9 9\n");
    expect![[r#"
        Column   Type
        -------- ---------------------------------------------------------
        _uuid    "uuid"
        _version "uuid"
        a        "string"
        e        "string"
        kind     {"key":{"enum":["set",["x","y"]],"type":"string"}}
        m        {"key":"string","max":"unlimited","min":0,"value":"real"}
        n        {"key":"integer","max":"unlimited","min":0}
    "#]]
    .assert_eq(&with_schema(&["list-columns", "T"], |_| ()).stdout);
    expect![[r#"
        Table
        -----
        T
    "#]]
    .assert_eq(&with_schema(&["list-tables"], |_| ()).stdout);
}

#[test]
fn backup_is_a_database_file() {
    let outcome = with_schema(&["backup"], |peer| {
        let params = peer.answer("transact", ROWS);
        let select =
            r#"{"columns":["_uuid","a","kind","m","n"],"op":"select","table":"T","where":[]}"#;
        assert_eq!(params.to_string(), format!("[\"D\",{select}]"));
    });
    let dated = outcome.stdout.lines().last().unwrap_or_default();
    let (head, tail) = dated.split_once("\"_date\":").expect("there is a date");
    let tail = tail.trim_start_matches(|digit: char| digit.is_ascii_digit());
    expect![[r#"{"_comment":"produced by \"ovsdb-client backup\"","_date":,"_is_diff":true,"T":{"6731fef6-afef-4e54-bb8b-892b04777101":{"a":"b c","kind":"x","m":["map",[["k",0.5]]],"n":["set",[1,2]]},"0131fef6-afef-4e54-bb8b-892b04777101":{"a":"<&>","kind":"z","m":["map",[]],"n":3}}}"#]].assert_eq(&format!("{head}\"_date\":{tail}"));
    assert!(
        outcome.stdout.starts_with("OVSDB JSON "),
        "{}",
        outcome.stdout
    );
}

fn monitor(args: &[&str], script: impl FnOnce(&mut Peer) + Send + 'static) -> Outcome {
    with_schema(args, |peer| {
        peer.refuse("set_db_change_aware", "\"unknown method\"");
        script(peer);
    })
}

/// Asserts exit status 1 and a message that ends with the socket's name and `reason`.
fn assert_failed(outcome: &Outcome, reason: &str) {
    assert_eq!(outcome.status, 1);
    let message = &outcome.stderr;
    assert!(
        message.ends_with(&format!("db.sock: {reason}\n")),
        "{message}"
    );
}

#[test]
fn plain_monitors_show_old_and_new() {
    let outcome = monitor(&["monitor", "T", "a,n"], |peer| {
        let params = peer.answer(
            "monitor",
            r#"{"T":{"6731fef6-afef-4e54-bb8b-892b04777101":{"new":{"a":"x","n":["set",[]]}}}}"#,
        );
        assert_eq!(
            params.to_string(),
            r#"["D",null,{"T":[{"columns":["a","n"]}]}]"#
        );
        peer.probe();
        peer.notify("update", r#"[null,{"T":{"6731fef6-afef-4e54-bb8b-892b04777101":{"old":{"n":["set",[]]},"new":{"a":"x","n":7}}}}]"#);
        peer.notify("update", r#"["another",{"T":{}}]"#);
        peer.notify(
            "update",
            r#"[null,{"T":{"6731fef6-afef-4e54-bb8b-892b04777101":{"old":{"a":"x","n":7}}}}]"#,
        );
        peer.notify("monitor_canceled", "[null]");
    });
    expect![[r#"
        row                                  action  a n
        ------------------------------------ ------- - --
        uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu initial x []

        row                                  action a n
        ------------------------------------ ------ - ---
        uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu old      []
                                             new    x [7]

        row                                  action a n
        ------------------------------------ ------ - ---
        uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu delete x [7]
    "#]]
    .assert_eq(&without_uuids(&outcome.stdout));
    assert_failed(&outcome, "D database was removed");
}

#[test]
fn conditional_monitors_show_differences() {
    let outcome = monitor(
        &["monitor-cond-since", "[[\"a\",\"==\",\"x\"]]", "T", "a,n,m"],
        |peer| {
            let first = "00000000-0000-0000-0000-000000000001";
            let reply = format!(
                r#"[true,"{first}",{{"T":{{"6731fef6-afef-4e54-bb8b-892b04777101":{{"insert":{{"a":"x","n":["set",[1,2]]}}}}}}}}]"#
            );
            let params = peer.answer("monitor_cond_since", &reply);
            assert_eq!(
                params.to_string(),
                r#"["D",null,{"T":[{"columns":["a","n","m"],"where":[["a","==","x"]]}]},"00000000-0000-0000-0000-000000000000"]"#
            );
            let update = |change: &str| {
                format!(
                    r#"[null,"{first}",{{"T":{{"6731fef6-afef-4e54-bb8b-892b04777101":{change}}}}}]"#
                )
            };
            peer.notify(
                "update3",
                &update(r#"{"modify":{"n":["set",[2,3]],"m":["map",[["k",1]]]}}"#),
            );
            peer.notify("update3", &update(r#"{"delete":null}"#));
        },
    );
    expect![[r#"
        found: true, last_id: uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu
        row                                  action a n      m
        ------------------------------------ ------ - ------ -
        uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu insert x [1, 2]

        last_id: uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu
        row                                  action a n      m
        ------------------------------------ ------ - ------ -----
        uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu modify   [2, 3] {k=1}

        last_id: uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu
        row                                  action a n m
        ------------------------------------ ------ - - -
        uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu delete
    "#]]
    .assert_eq(&without_uuids(&outcome.stdout));
    assert_failed(&outcome, "receive failed (End of file)");
}

#[test]
fn refused_monitor_ends_the_program() {
    let outcome = monitor(&["monitor-cond", "[[\"zz\",\"==\",1]]", "T"], |peer| {
        let error = r#"{"details":"No column zz in table T.","error":"unknown column","syntax":"[\"zz\",\"==\",1]"}"#;
        peer.refuse("monitor_cond", error);
    });
    let message =
        "ovsdb-client: syntax \"[\"zz\",\"==\",1]\": unknown column: No column zz in table T.\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, message));
}

#[test]
fn query_hides_its_abort() {
    let query = |reply: &'static str| {
        let dir = Dir::new();
        let server = serve(dir.path(), "db.sock", move |peer| {
            let params = peer.answer("transact", reply);
            assert_eq!(
                params.to_string(),
                r#"["D",{"op":"comment"},{"op":"abort"}]"#
            );
        });
        let outcome = run(
            OURS,
            dir.path(),
            &["query", r#"["D",{"op":"comment"}]"#],
            b"",
        );
        server.join().expect("the script ran to its end");
        outcome.stdout
    };
    assert_eq!(
        query(r#"[{},{"error":"aborted","details":"aborted by request"}]"#),
        "[{}]\n"
    );
    assert_eq!(
        query(r#"[{"error":"aborted"},null]"#),
        "[{\"error\":\"aborted\"},null]\n"
    );
}

#[test]
fn lock_prints_the_reply_and_every_notification() {
    let dir = Dir::new();
    let server = serve(dir.path(), "db.sock", |peer| {
        assert_eq!(
            peer.answer("lock", r#"{"locked":false}"#).to_string(),
            "[\"foo\"]"
        );
        peer.notify("locked", "[\"foo\"]");
        peer.notify("stolen", "[\"foo\"]");
    });
    let outcome = run(OURS, dir.path(), &["lock", "foo"], b"");
    server.join().expect("the script ran to its end");
    assert_eq!(
        outcome.stdout,
        "{\"locked\":false}\nlocked\n[\"foo\"]\nstolen\n[\"foo\"]\n"
    );
    assert_eq!(outcome.status, 1);
    let server = serve(dir.path(), "other.sock", |peer| {
        peer.refuse("unlock", r#"{"error":"syntax error"}"#);
    });
    let outcome = run(OURS, dir.path(), &["unlock", "unix:other.sock", "foo"], b"");
    server.join().expect("the script ran to its end");
    let message = "ovsdb-client: transaction returned error: {\"error\":\"syntax error\"}\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, message));
}
