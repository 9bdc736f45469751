//! Online schema conversion (docs/spec/protocol.md 4.15).

use corvid_service::Setting;
use expect_test::expect;

use corvid_monitor::SessionId;

use crate::databases::wider_schema;
use crate::world::{World, play};

#[test]
fn sessions_are_notified_of_a_conversion_in_order() {
    let told = play(|world| {
        let (asker, aware, unaware) = (world.connect(), world.connect_aware(), world.connect());
        world.monitor(aware, "1", "A", "m");
        world.monitor(aware, "2", "B", "other");
        world.monitor(asker, "1", "A", "mine");
        world.transact(
            aware,
            "3",
            "A",
            r#"{"op":"wait","table":"T","where":[],"columns":["k"],"until":"==","rows":[{"k":"a"}]}"#,
        );
        world.run();
        world.take(asker);
        world.take(aware);
        world.ask(
            asker,
            "2",
            "convert",
            &format!(r#"["A",{}]"#, wider_schema("A")),
        );
        world.run();
        assert!(world.clients[&asker].closed.is_some());
        assert!(world.clients[&unaware].closed.is_some());
        assert!(world.clients[&aware].closed.is_none());
        // The id of the lost monitor is free again; the other id is not.
        world.ask(
            aware,
            "4",
            "monitor",
            r#"["A","m",{"T":{"columns":["extra"]}}]"#,
        );
        world.ask(
            aware,
            "5",
            "monitor",
            r#"["A","other",{"T":{"columns":["extra"]}}]"#,
        );
        world.ask(aware, "6", "monitor_cancel", r#"["m"]"#);
        world.run();
        world.take(asker) + "\n" + &world.take(aware)
    });
    expect![[r#"
        {"error":null,"id":2,"result":{}}

        {"id":null,"method":"monitor_canceled","params":["m"]}
        {"error":"canceled","id":3}
        {"error":null,"id":4,"result":{}}
        {"error":{"details":"duplicate monitor ID","error":"syntax error","syntax":"\"other\""},"id":5}
        {"error":null,"id":6,"result":{}}
    "#]].assert_eq(&told);
}

/// As with the reference, a session that was aware during a conversion stays when it is not aware
/// any more, and only the next conversion closes it.
#[test]
fn a_session_that_turns_awareness_off_after_a_conversion_is_served() {
    let told = play(|world| {
        let (asker, former) = (world.connect_aware(), world.connect_aware());
        let params = format!(r#"["A",{}]"#, wider_schema("A"));
        world.ask(asker, "1", "convert", &params);
        world.run();
        // In one go: the conversion of the same session comes before the end of its awareness.
        world.ask(former, "1", "convert", &params);
        world.ask(former, "2", "set_db_change_aware", "[false]");
        world.transact(
            former,
            "3",
            "A",
            r#"{"op":"select","table":"T","where":[]}"#,
        );
        world.ask(former, "4", "get_schema", r#"["B"]"#);
        world.ask(former, "5", "echo", "[]");
        world.run();
        assert!(world.clients[&former].closed.is_none());
        let told = world.take(former);
        world.ask(asker, "2", "convert", &params);
        world.run();
        assert!(world.clients[&former].closed.is_some());
        told
    });
    let answers: Vec<&str> = told.lines().collect();
    assert_eq!(answers.len(), 5, "{told}");
    assert!(answers[2].contains(r#""rows":"#), "{told}");
}

/// A session loses its monitor without notification, and becomes change-aware before sessions are
/// closed.
#[test]
fn a_session_that_becomes_aware_after_losing_its_monitor_is_closed() {
    play(|world| {
        let (asker, late) = (world.connect_aware(), world.connect());
        world.monitor(late, "1", "A", "m");
        world.run();
        world.is_main_held = true;
        let params = format!(r#"["A",{}]"#, wider_schema("A"));
        world.ask(asker, "1", "convert", &params);
        world.run();
        world.ask(late, "2", "set_db_change_aware", "[true]");
        world.run();
        assert!(world.clients[&late].closed.is_none());
        world.is_main_held = false;
        world.run();
        assert!(world.clients[&late].closed.is_some());
        world.take(asker)
    });
}

/// A new client starts a conversion of `A` to `schema`. Its job is held.
fn begin(world: &mut World, schema: &str) -> SessionId {
    let asker = world.connect_aware();
    world.served("A").is_worker_held = true;
    world.ask(asker, "1", "convert", &format!(r#"["A",{schema}]"#));
    world.run();
    asker
}

/// `A` with one more index.
fn stricter_schema() -> String {
    let schema = wider_schema("A");
    let stricter = schema.replace(r#"[["k"]]"#, r#"[["k"],["n"]]"#);
    assert_ne!(stricter, schema);
    stricter
}

#[test]
fn other_sessions_continue_under_the_old_schema() {
    let told = play(|world| {
        let other = world.connect_aware();
        world.transact(other, "0", "A", r#"{"op":"insert","table":"T","row":{"k":"a"}},{"op":"insert","table":"T","row":{"k":"b"}}"#);
        world.run();
        world.take(other);
        let asker = begin(world, &wider_schema("A"));
        world.transact(other, "1", "A", r#"{"op":"insert","table":"T","row":{"k":"c"}},{"op":"delete","table":"T","where":[["k","==","a"]]}"#);
        world.ask(
            other,
            "2",
            "monitor",
            r#"["A","m",{"T":{"columns":["n"]}}]"#,
        );
        world.run();
        let early = world.take(other);
        world.served("A").is_worker_held = false;
        world.run_until(|world| world.jobs_done("A") == 1);
        // The new file is being written, or will be next.
        world.transact(other, "3", "A", r#"{"op":"update","table":"T","where":[["k","==","b"]],"row":{"n":7}},{"op":"commit","durable":true}"#);
        world.run();
        world.transact(
            asker,
            "2",
            "A",
            r#"{"op":"select","table":"T","where":[],"columns":["extra","k","n"],"sort":["k"]}"#,
        );
        world.run();
        world.take(other);
        early + "\n" + &world.take(asker)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]},{"count":1}]}
        {"error":null,"id":2,"result":{"T":{"<1>":{"new":{"n":0}},"<0>":{"new":{"n":0}}}}}

        {"error":null,"id":1,"result":{}}
        {"error":null,"id":2,"result":[{"rows":[{"extra":0,"k":"b","n":7},{"extra":0,"k":"c","n":0}]}]}
    "#]].assert_eq(&told);
}

#[test]
fn the_session_that_converts_waits_for_the_new_schema() {
    let told = play(|world| {
        let other = world.connect_aware();
        let asker = begin(world, &wider_schema("A"));
        world.transact(
            asker,
            "2",
            "A",
            r#"{"op":"insert","table":"T","row":{"k":"a","extra":1}}"#,
        );
        world.ask(asker, "3", "get_schema", r#"["A"]"#);
        world.ask(
            asker,
            "4",
            "monitor",
            r#"["A","m",{"T":{"columns":["extra"]}}]"#,
        );
        world.ask(asker, "5", "echo", "[]");
        world.ask(
            other,
            "1",
            "convert",
            &format!(r#"["A",{}]"#, wider_schema("A").replace("extra", "more")),
        );
        world.transact(
            other,
            "2",
            "A",
            r#"{"op":"insert","table":"T","row":{"k":"b","more":1}}"#,
        );
        world.run();
        assert_eq!(world.take(asker) + &world.take(other), "");
        world.served("A").is_worker_held = false;
        world.run();
        assert!(world.take(asker).contains(r#""id":5"#));
        world.take(other)
    });
    expect![[r#"
        {"error":null,"id":1,"result":{}}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<0>"]}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn requests_before_a_second_conversion_are_answered_before_it() {
    let told = play(|world| {
        let (client, asker) = (world.connect_aware(), world.connect_aware());
        let select = r#"{"op":"select","table":"T","where":[],"columns":["k"],"sort":["k"]}"#;
        world.insert(client, "0", "A", "a");
        world.run();
        world.take(client);
        world.service("A").set(Setting::SelectStepsMax, 0);
        world.served("A").may_inline = false;
        world.served("A").is_worker_held = true;
        world.transact(client, "1", "A", select);
        world.run();
        let convert = format!(r#"["A",{}]"#, wider_schema("A"));
        world.ask(asker, "1", "convert", &convert);
        world.run();
        // The session waits for the first reply, with the second request queued. The third also
        // waits for the other conversion.
        world.insert(client, "2", "A", "b");
        world.ask(client, "3", "convert", &convert);
        world.transact(client, "4", "A", select);
        world.run();
        assert_eq!(world.take(client), "");
        world.served("A").is_worker_held = false;
        world.run();
        world.take(client)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"rows":[{"k":"a"}]}]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<0>"]}]}
        {"error":null,"id":3,"result":{}}
        {"error":null,"id":4,"result":[{"rows":[{"k":"a"},{"k":"b"}]}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_second_conversion_ends_before_the_main_thread_handles_the_first() {
    let told = play(|world| {
        let askers = [world.connect_aware(), world.connect_aware()];
        let before = world.connect();
        world.is_main_held = true;
        for (asker, column) in askers.iter().zip(["extra", "more"]) {
            let schema = wider_schema("A").replace("extra", column);
            world.ask(*asker, "1", "convert", &format!(r#"["A",{schema}]"#));
        }
        let replies = |world: &World| {
            let replied = |asker| world.clients[asker].received.len() == 2;
            askers.iter().filter(|asker| replied(asker)).count()
        };
        world.run_until(|world| replies(world) == 1);
        let between = world.connect();
        world.run();
        assert_eq!(replies(world), 2);
        let after = world.connect();
        world.is_main_held = false;
        world.run();
        let is_closed = |session| world.clients[session].closed.is_some();
        format!("{:?}", [&before, &between, &after].map(is_closed))
    });
    expect!["[true, true, false]"].assert_eq(&told);
}

#[test]
fn a_commit_that_breaks_the_new_schema_fails_the_conversion() {
    let told = play(|world| {
        let other = world.connect_aware();
        let asker = begin(world, &stricter_schema());
        world.transact(other, "1", "A", r#"{"op":"insert","table":"T","row":{"k":"a","n":1}},{"op":"insert","table":"T","row":{"k":"b","n":1}}"#);
        world.run();
        world.served("A").is_worker_held = false;
        world.run();
        world.transact(
            other,
            "2",
            "A",
            r#"{"op":"select","table":"T","where":[],"columns":["k"],"sort":["k"]}"#,
        );
        world.run();
        world.take(asker) + &world.take(other)
    });
    expect![[r#"
        {"error":{"details":"Transaction causes multiple rows in \"T\" table to have identical values (1) for index on column \"n\".  First row, with UUID <0>, was inserted by this transaction.  Second row, with UUID <1>, was inserted by this transaction.","error":"constraint violation"},"id":1}
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]},{"uuid":["uuid","<1>"]}]}
        {"error":null,"id":2,"result":[{"rows":[{"k":"a"},{"k":"b"}]}]}
    "#]].assert_eq(&told);
}

#[test]
fn a_commit_that_breaks_the_new_schema_and_is_reverted_does_no_harm() {
    let told = play(|world| {
        let other = world.connect_aware();
        let asker = begin(world, &stricter_schema());
        world.transact(other, "1", "A", r#"{"op":"insert","table":"T","row":{"k":"a","n":1}},{"op":"insert","table":"T","row":{"k":"b","n":1}}"#);
        world.run();
        world.transact(
            other,
            "2",
            "A",
            r#"{"op":"update","table":"T","where":[["k","==","b"]],"row":{"n":2}}"#,
        );
        world.run();
        world.served("A").is_worker_held = false;
        world.run();
        world.transact(
            asker,
            "2",
            "A",
            r#"{"op":"select","table":"T","where":[],"columns":["extra","k","n"],"sort":["k"]}"#,
        );
        world.run();
        world.take(asker)
    });
    expect![[r#"
        {"error":null,"id":1,"result":{}}
        {"error":null,"id":2,"result":[{"rows":[{"extra":0,"k":"a","n":1},{"extra":0,"k":"b","n":2}]}]}
    "#]].assert_eq(&told);
}

#[test]
fn a_conversion_ends_although_commits_keep_coming() {
    play(|world| {
        let other = world.connect_aware();
        let asker = begin(world, &stricter_schema());
        // Every commit breaks a rule of the new schema, and the next one repairs it.
        let mut id = 0;
        while world.clients[&asker].received.len() < 2 {
            for n in [1, 2] {
                id += 1;
                let operations = format!(
                    r#"{{"op":"delete","table":"T","where":[]}},{{"op":"insert","table":"T","row":{{"k":"a","n":1}}}},{{"op":"insert","table":"T","row":{{"k":"b","n":{n}}}}}"#
                );
                world.transact(other, &id.to_string(), "A", &operations);
            }
            let jobs = world.jobs_done("A");
            world.served("A").is_worker_held = false;
            while world.jobs_done("A") == jobs && world.step() {}
            assert!(id < 100, "it never ends");
        }
        world.run();
        String::new()
    });
}

#[test]
fn a_conversion_can_be_canceled() {
    let told = play(|world| {
        let asker = begin(world, &wider_schema("A"));
        world.insert(asker, "2", "A", "a");
        world.send(asker, r#"{"id":null,"method":"cancel","params":[1]}"#);
        world.run();
        let told = world.take(asker);
        world.served("A").is_worker_held = false;
        world.run();
        assert_eq!(world.service("A").database().schema().version, "1.0.0");
        told
    });
    expect![[r#"
        {"error":"canceled","id":1}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<0>"]}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_conversion_ends_with_its_session() {
    play(|world| {
        let other = world.connect_aware();
        let asker = begin(world, &wider_schema("A"));
        world.insert(asker, "2", "A", "a");
        world.ask(
            other,
            "1",
            "convert",
            &format!(r#"["A",{}]"#, stricter_schema()),
        );
        world.run();
        world.disconnect(asker);
        world.served("A").is_worker_held = false;
        world.run();
        assert_eq!(world.contents("A").len(), 1, "the transaction had arrived");
        assert_eq!(
            world.service("A").database().schema().version,
            "2.0.0",
            "the other's"
        );
        world.take(other)
    });
}

#[test]
fn a_database_is_removed_in_the_middle_of_its_conversion() {
    let told = play(|world| {
        let asker = begin(world, &wider_schema("A"));
        world.insert(asker, "2", "A", "a");
        world.run();
        let id = world.id("A");
        world.remove("A");
        world.run();
        world.databases.get_mut(&id).expect("there").is_worker_held = false;
        world.take(asker)
    });
    expect![[r#"
        {"error":{"details":"database conversion canceled because removing database","error":"canceled"},"id":1}
        {"error":{"details":"transact request specifies unknown database A","error":"unknown database","syntax":"[\"A\",{\"op\":\"insert\",\"row\":{\"k\":\"a\"},\"table\":\"T\"}]"},"id":2}
    "#]].assert_eq(&told);
}

#[test]
fn a_new_file_that_cannot_be_written_changes_nothing() {
    let told = play(|world| {
        let other = world.connect_aware();
        let asker = begin(world, &wider_schema("A"));
        world.disk("A").failures = 1;
        world.served("A").is_worker_held = false;
        world.run();
        world.insert(other, "1", "A", "a");
        world.run();
        assert_eq!(world.service("A").database().schema().version, "1.0.0");
        world.take(asker) + &world.take(other)
    });
    expect![[r#"
        {"error":{"details":"x.db.tmp: write failed","error":"I/O error","io-error":"No space left on device"},"id":1}
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]}]}
    "#]].assert_eq(&told);
}

#[test]
fn refusals_change_nothing() {
    let told = play(|world| {
        use corvid_service::message::SessionInfo;
        let client = world.connect();
        let reader = world.connect_as(SessionInfo::new(true, String::new(), None));
        let role = world.connect_as(SessionInfo::new(
            false,
            "r".to_owned(),
            Some("c".to_owned()),
        ));
        world.ask(client, "1", "convert", r#"["A"]"#);
        world.ask(
            client,
            "2",
            "convert",
            &format!(r#"["A",{}]"#, wider_schema("B")),
        );
        world.ask(client, "3", "convert", r#"["A",{"name":"A"}]"#);
        world.ask(client, "4", "convert", r#"["_Server",{}]"#);
        world.ask(reader, "5", "convert", r#"["A",{}]"#);
        world.ask(role, "6", "convert", r#"["A",{}]"#);
        let long = format!(r#"["A",["{}"]]"#, "x".repeat(16 << 20));
        world.ask(client, "7", "convert", &long);
        world.run();
        world.take(client) + &world.take(reader) + &world.take(role)
    });
    expect![[r#"
        {"error":{"details":"array expected","error":"syntax error","syntax":"[\"A\"]"},"id":1}
        {"error":{"details":"new schema name (B) does not match database name (A)","error":"invalid parameters"},"id":2}
        {"error":{"details":"Parsing database schema failed: Required 'tables' member is missing.","error":"syntax error","syntax":"{\"name\":\"A\"}"},"id":3}
        {"error":{"details":"conversion is not allowed for read-only database _Server","error":"not allowed"},"id":4}
        {"error":{"details":"the request has 16777226 bytes, more than 16777216 for a schema","error":"resources exhausted"},"id":7}
        {"error":{"details":"conversion is not allowed for read-only database A","error":"not allowed"},"id":5}
        {"error":{"details":"RBAC rules for client \"c\" role \"r\" prohibit \"convert\" of database A (only the root role may convert databases)","error":"permission error"},"id":6}
    "#]].assert_eq(&told);
}

#[test]
fn all_inputs_wait_for_a_conversion_that_falls_too_far_behind() {
    play(|world| {
        let (asker, writer) = (world.connect(), world.connect_aware());
        let replies = |told: String| told.matches(r#""result":[{"uuid"#).count();
        world.served("A").is_worker_held = true;
        let params = format!(r#"["A",{}]"#, wider_schema("A"));
        world.ask(asker, "1", "convert", &params);
        world.run();
        world.service("A").set(Setting::ConversionBytesMax, 1);
        world.insert(writer, "1", "A", "a");
        world.run();
        assert_eq!(replies(world.take(writer)), 1, "there was room");
        world.insert(writer, "2", "A", "b");
        world.run();
        assert_eq!(world.take(writer), "", "there is none");
        world.served("A").is_worker_held = false;
        world.run();
        assert_eq!(replies(world.take(writer)), 1);
        assert_eq!(world.contents("A").len(), 2);
        String::new()
    });
}
