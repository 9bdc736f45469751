//! Databases that are added and removed while clients use them.

use expect_test::expect;

use crate::databases::schema;
use crate::world::play;

#[test]
fn aware_clients_are_notified_and_others_disconnected() {
    let told = play(|world| {
        let (aware, unaware) = (world.connect_aware(), world.connect());
        world.monitor(aware, "1", "A", "m");
        world.ask(
            aware,
            "2",
            "monitor",
            r#"["_Server","s",{"Database":{"columns":["name"],"select":{"initial":false}}}]"#,
        );
        world.transact(
            aware,
            "3",
            "A",
            r#"{"op":"wait","table":"T","where":[],"columns":["k"],"until":"==","rows":[{"k":"a"}]}"#,
        );
        world.run();
        world.take(aware);
        world.remove("A");
        world.run();
        assert!(world.clients[&unaware].closed.is_some());
        world.ask(aware, "4", "monitor_cancel", r#"["m"]"#);
        world.ask(aware, "5", "get_schema", r#"["A"]"#);
        world.ask(aware, "6", "list_dbs", "[]");
        world.run();
        world.serve(schema("A"));
        world.run();
        world.monitor(aware, "7", "A", "m");
        world.run();
        world.take(aware)
    });
    expect![[r#"
        {"id":null,"method":"monitor_canceled","params":["m"]}
        {"error":"canceled","id":3}
        {"id":null,"method":"update","params":["s",{"Database":{"<0>":{"old":{"name":"A"}}}}]}
        {"error":"unknown monitor","id":4}
        {"error":{"details":"get_schema request specifies unknown database A","error":"unknown database","syntax":"[\"A\"]"},"id":5}
        {"error":null,"id":6,"result":["B","_Server"]}
        {"id":null,"method":"update","params":["s",{"Database":{"<1>":{"new":{"name":"A"}}}}]}
        {"error":null,"id":7,"result":{}}
    "#]].assert_eq(&told);
}

#[test]
fn requests_that_come_too_late_are_answered() {
    // The order of events decides which requests come too late; each must be answered, in order.
    play(|world| {
        let client = world.connect_aware();
        world.ask(client, "0", "monitor", r#"["A","m",{"T":{}}]"#);
        world.ask(client, "1", "monitor", r#"["B","n",{"T":{}}]"#);
        world.run();
        world.take(client);
        world.ask(client, "0", "monitor", r#"["A","late",{"T":{}}]"#);
        world.insert(client, "1", "A", "a");
        world.ask(client, "2", "list_dbs", "[]");
        world.ask(client, "3", "get_schema", r#"["A"]"#);
        world.ask(client, "4", "monitor_cond_change", r#"["m","m",{}]"#);
        world.ask(client, "5", "monitor_cancel", r#"["late"]"#);
        world.transact(client, "6", "B", r#"{"op":"comment","comment":"x"}"#);
        world.ask(client, "7", "convert", r#"["A",{}]"#);
        world.ask(client, "8", "list_dbs", "[]");
        for _ in 0..world.dice.below(30) {
            world.step();
        }
        world.remove("A");
        world.run();
        let client = &world.clients[&client];
        let ids: Vec<i64> = client.received[client.seen..]
            .iter()
            .filter_map(|message| message.get("id")?.as_integer())
            .collect();
        assert!(ids.iter().copied().eq(0..9), "{ids:?}");
        let last = client.received.last().map(ToString::to_string);
        assert!(
            !last.unwrap_or_default().contains(r#""A""#),
            "the last reply names what is served"
        );
        String::new()
    });
}

#[test]
fn a_removed_database_is_stored_whole() {
    let told = play(|world| {
        let client = world.connect_aware();
        let id = world.id("A");
        world.disk("A").is_held = true;
        world.transact(
            client,
            "1",
            "A",
            r#"{"op":"insert","table":"T","row":{"k":"a"}},{"op":"commit","durable":true}"#,
        );
        world.run();
        world.remove("A");
        world.run();
        assert_eq!(world.take(client), "");
        world
            .databases
            .get_mut(&id)
            .unwrap()
            .disk
            .as_mut()
            .unwrap()
            .is_held = false;
        world.run();
        world.take(client)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]},{}]}
    "#]]
    .assert_eq(&told);
}
