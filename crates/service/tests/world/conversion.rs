//! Online schema conversion (protocol.md 4.15).

use expect_test::expect;

use crate::world::{play, wider_schema};

#[test]
fn everybody_is_told_in_order() {
    let told = play(|world| {
        let (asker, aware, unaware) = (world.connect(), world.connect_aware(), world.connect());
        world.ask(
            aware,
            "1",
            "monitor",
            r#"["A","m",{"T":{"columns":["k"]}}]"#,
        );
        world.ask(
            aware,
            "2",
            "monitor",
            r#"["B","other",{"T":{"columns":["k"]}}]"#,
        );
        world.ask(
            asker,
            "1",
            "monitor",
            r#"["A","mine",{"T":{"columns":["k"]}}]"#,
        );
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
        // The id of the lost monitor is free again, that of the other is not.
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

#[test]
fn what_arrives_meanwhile_sees_the_new_schema() {
    let told = play(|world| {
        let (asker, other) = (world.connect_aware(), world.connect_aware());
        world.disk("A").is_held = true;
        world.ask(
            asker,
            "1",
            "convert",
            &format!(r#"["A",{}]"#, wider_schema("A")),
        );
        world.run();
        world.transact(
            other,
            "1",
            "A",
            r#"{"op":"insert","table":"T","row":{"k":"a","extra":1}}"#,
        );
        world.ask(
            other,
            "2",
            "monitor",
            r#"["A","m",{"T":{"columns":["extra"]}}]"#,
        );
        world.run();
        assert_eq!(world.take(asker) + &world.take(other), "");
        world.disk("A").is_held = false;
        world.run();
        world.take(asker) + &world.take(other)
    });
    expect![[r#"
        {"error":null,"id":1,"result":{}}
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]}]}
        {"error":null,"id":2,"result":{"T":{"<0>":{"new":{"extra":1}}}}}
    "#]]
    .assert_eq(&told);
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
        world.run();
        world.take(client) + &world.take(reader) + &world.take(role)
    });
    expect![[r#"
        {"error":{"details":"array expected","error":"syntax error","syntax":"[\"A\"]"},"id":1}
        {"error":{"details":"new schema name (B) does not match database name (A)","error":"invalid parameters"},"id":2}
        {"error":{"details":"Parsing database schema failed: Required 'tables' member is missing.","error":"syntax error","syntax":"{\"name\":\"A\"}"},"id":3}
        {"error":{"details":"conversion is not allowed for read-only database _Server","error":"not allowed"},"id":4}
        {"error":{"details":"conversion is not allowed for read-only database A","error":"not allowed"},"id":5}
        {"error":{"details":"RBAC rules for client \"c\" role \"r\" prohibit \"convert\" of database A (only the root role may convert databases)","error":"permission error"},"id":6}
    "#]].assert_eq(&told);
}
