//! Plays with relays, line by line of docs/spec/distribution.md 2.2 to 2.4.

use corvid_monitor::SessionId;
use corvid_service::message::{Control, ControlAnswer, Event, SessionInfo, ToDatabase};
use corvid_session::Input;

use crate::databases::{insert, schema, wider_schema};
use crate::relays::Tree;

/// Orders of events per play.
const SEEDS: u64 = 30;

/// Waits until `T` has this row.
fn wait_for(key: &str) -> String {
    format!(
        r#"{{"op":"wait","table":"T","where":[["k","==","{key}"]],"columns":["k"],"until":"==","rows":[{{"k":"{key}"}}]}}"#
    )
}

/// The schema, with tables for roles.
fn schema_with_roles() -> String {
    let tables = r#""tables":{"RBAC_Role":{"isRoot":true,"indexes":[["name"]],"columns":{"name":{"type":"string"},
        "permissions":{"type":{"key":"string","value":{"type":"uuid","refTable":"RBAC_Permission"},"min":0,"max":"unlimited"}}}},
        "RBAC_Permission":{"isRoot":true,"columns":{"table":{"type":"string"},"insert_delete":{"type":"boolean"},
        "authorization":{"type":{"key":"string","min":0,"max":"unlimited"}},"update":{"type":{"key":"string","min":0,"max":"unlimited"}}}},"#;
    let schema = schema("A").to_json().to_string();
    let with_roles = schema.replace(r#""tables":{"#, tables);
    assert_ne!(schema, with_roles);
    with_roles
}

/// Inserts rows, because a history has no more atoms than the database.
pub(crate) fn fill(tree: &mut Tree) {
    let rows: Vec<String> = (0..20).map(|row| insert(&format!("old{row}"))).collect();
    tree.write(&rows.join(","));
}

/// The parameters of `monitor_cond_since` for the keys of `T`, from a transaction on.
fn since(id: &str) -> String {
    format!(r#"["A","m",{{"T":[{{"columns":["k"]}}]}},"{id}"]"#)
}

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

/// From the reply to `monitor_cond_since`: whether the contents continue from the id, and the id of
/// the last transaction.
fn found(text: &str) -> (bool, String) {
    let result = text.split(r#""result":["#).nth(1).expect("a result");
    let mut elements = result.split(',');
    let is_found = elements.next() == Some("true");
    let id = elements.next().expect("an id");
    (is_found, id.trim_matches('"').to_owned())
}

impl Tree {
    /// The messages that a client has received since the last call, unchanged.
    fn raw(&mut self, world: usize, client: SessionId) -> String {
        let client = self.worlds[world]
            .clients
            .get_mut(&client)
            .expect("connected");
        let lines = client.received[client.seen..].iter();
        let text = lines.map(|line| line.to_string() + "\n").collect();
        client.seen = client.received.len();
        text
    }

    /// A client sends a request; returns the reply.
    fn ask(&mut self, world: usize, client: SessionId, method: &str, params: &str) -> String {
        self.worlds[world].ask(client, "9", method, params);
        self.run();
        self.raw(world, client)
    }

    pub(crate) fn is_closed(&self, world: usize, client: SessionId) -> bool {
        self.worlds[world].clients[&client].closed.is_some()
    }

    /// The row of `A` in `_Server`.
    fn server_row(&mut self, world: usize) -> String {
        let rows = self.worlds[world].contents("_Server");
        let row = rows.into_iter().find(|row| row.contains("\"A\""));
        row.expect("listed")
    }

    pub(crate) fn is_shown_connected(&mut self, world: usize) -> bool {
        let row = self.server_row(world);
        let is = |value| row.contains(&format!("connected={{Boolean({value})}}"));
        assert_ne!(is("true"), is("false"), "{row}");
        is("true")
    }
}

#[test]
fn a_relay_of_a_relay_has_the_contents_of_the_source_and_tells_its_changes() {
    for seed in 0..SEEDS {
        let mut tree = Tree::new(seed, &[&[0], &[1]]);
        let early = tree.worlds[2].connect();
        tree.worlds[2].ask(early, "1", "get_schema", r#"["A"]"#);
        tree.worlds[2].run();
        let text = tree.worlds[2].take(early);
        assert!(text.contains("database not available"), "{text}");
        tree.wait(20_000);
        tree.write(&insert("a"));
        tree.check_equal();
        assert!(tree.is_closed(2, early), "the database has come");
        let reader = tree.worlds[2].connect();
        tree.worlds[2].monitor(reader, "1", "A", "m");
        tree.run();
        let text = tree.worlds[2].take(reader);
        assert!(
            text.contains(r#""initial":{"k":"a"}"#) || text.contains(r#""new":{"k":"a"}"#),
            "{text}"
        );
        tree.write(&insert("b"));
        let text = tree.worlds[2].take(reader);
        assert!(text.contains(r#""new":{"k":"b"}"#), "{text}");
        tree.check_equal();
        let row = tree.server_row(2);
        for part in [
            "\"relay\"",
            "leader={Boolean(false)}",
            "connected={Boolean(true)}",
        ] {
            assert!(row.contains(part), "{part} in {row}");
        }
        tree.check_idle();
    }
}

#[test]
fn a_write_is_made_at_the_source_and_its_update_precedes_the_reply() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0], &[1]]);
        let client = tree.worlds[2].connect();
        tree.worlds[2].monitor(client, "1", "A", "m");
        tree.run();
        tree.worlds[2].take(client);
        tree.worlds[2].insert(client, "2", "A", "a");
        tree.worlds[2].insert(client, "3", "A", "b");
        tree.worlds[2].insert(client, "4", "A", "b");
        tree.worlds[2].transact(
            client,
            "5",
            "A",
            r#"{"op":"select","table":"T","where":[],"columns":["k"]}"#,
        );
        tree.run();
        let text = tree.raw(2, client);
        let at = |part: &str| {
            text.find(part)
                .unwrap_or_else(|| panic!("{part} in {text}"))
        };
        assert!(at(r#""new":{"k":"a"}"#) < at(r#""id":2,"#));
        assert!(at(r#""new":{"k":"b"}"#) < at(r#""id":3,"#));
        assert!(at(r#""id":3,"#) < at(r#""id":4,"#) && at(r#""id":4,"#) < at(r#""id":5,"#));
        // The source has checked the index, not the relay.
        let fourth = &text[at(r#""id":4,"#)..at(r#""id":5,"#)];
        assert!(fourth.contains("constraint violation"), "{fourth}");
        assert!(
            text[at(r#""id":5,"#)..].contains(r#"{"k":"a"},{"k":"b"}"#)
                || text[at(r#""id":5,"#)..].contains(r#"{"k":"b"},{"k":"a"}"#)
        );
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn without_a_source_clients_read_and_errors_are_told_and_writes_wait() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        tree.write(&insert("a"));
        tree.is_down[0] = true;
        tree.run();
        let client = tree.worlds[1].connect();
        let select = r#"{"op":"select","table":"T","where":[],"columns":["k"]}"#;
        tree.worlds[1].transact(client, "1", "A", select);
        tree.worlds[1].transact(client, "2", "A", r#"{"op":"insert","table":"X","row":{}}"#);
        let aborted = format!(r#"{},{{"op":"abort"}}"#, insert("x"));
        tree.worlds[1].transact(client, "3", "A", &aborted);
        tree.run();
        let text = tree.worlds[1].take(client);
        assert!(
            text.contains(r#"{"k":"a"}"#) && text.contains("No table named X"),
            "{text}"
        );
        assert!(text.contains(r#""error":"aborted""#), "{text}");
        // A duplicate at the relay, but the source may decide differently by then.
        tree.worlds[1].insert(client, "4", "A", "a");
        tree.worlds[1].insert(client, "5", "A", "b");
        tree.worlds[1].ask(client, "6", "echo", "[]");
        tree.wait(100_000);
        let text = tree.worlds[1].take(client);
        assert!(text.contains(r#""id":6"#), "probes are answered: {text}");
        assert!(
            !text.contains(r#""id":4"#) && !text.contains(r#""id":5"#),
            "{text}"
        );
        tree.worlds[0].transact_here(r#"{"op":"delete","table":"T","where":[]}"#);
        tree.is_down[0] = false;
        tree.wait(20_000);
        let text = tree.worlds[1].take(client);
        assert!(text.contains(r#""id":4,"result":[{"uuid""#), "{text}");
        assert!(text.contains(r#""id":5,"result":[{"uuid""#), "{text}");
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_write_whose_connection_is_lost_is_canceled_and_may_have_happened() {
    let (mut made, mut lost) = (0, 0);
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        let client = tree.worlds[1].connect();
        tree.worlds[1].insert(client, "1", "A", "a");
        while tree.relay(1).machine.session().metrics().bytes_sent < 1 {
            tree.step();
        }
        let sent = tree.relay(1).machine.session().metrics().bytes_sent;
        while tree.relay(1).machine.session().metrics().bytes_sent == sent {
            assert!(tree.step());
        }
        for _ in 0..seed % 9 {
            tree.worlds[0].step();
        }
        tree.cut(1);
        tree.wait(20_000);
        let text = tree.worlds[1].take(client);
        assert!(text.contains(r#"{"error":"canceled","id":1}"#), "{text}");
        match tree.worlds[0].contents("A").is_empty() {
            true => lost += 1,
            false => made += 1,
        }
        tree.check_equal();
        tree.check_idle();
    }
    assert!(made > 0 && lost > 0, "{made} and {lost}");
}

#[test]
fn a_client_that_leaves_takes_waiting_requests_along_and_no_others() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        let client = tree.worlds[1].connect();
        tree.worlds[1].insert(client, "1", "A", "sent");
        let sent = tree.relay(1).machine.session().metrics().bytes_sent;
        while tree.relay(1).machine.session().metrics().bytes_sent == sent {
            assert!(tree.step());
        }
        tree.worlds[1].disconnect(client);
        tree.run();
        assert_eq!(tree.worlds[0].contents("A").len(), 1);
        tree.is_down[0] = true;
        tree.run();
        let client = tree.worlds[1].connect();
        tree.worlds[1].insert(client, "1", "A", "waiting");
        tree.run();
        tree.worlds[1].disconnect(client);
        tree.run();
        tree.is_down[0] = false;
        tree.wait(20_000);
        assert_eq!(tree.worlds[0].contents("A").len(), 1);
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_wait_blocks_at_the_relay_and_is_judged_again_at_the_source() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        let client = tree.worlds[1].connect();
        let both = format!("{},{}", wait_for("a"), insert("b"));
        tree.worlds[1].transact(client, "1", "A", &both);
        let limited = wait_for("never").replace(r#""until""#, r#""timeout":400,"until""#);
        tree.worlds[1].transact(client, "2", "A", &limited);
        tree.worlds[1].insert(client, "3", "A", "c");
        tree.run();
        let text = tree.worlds[1].take(client);
        assert!(
            text.contains(r#""id":3"#) && !text.contains(r#""id":1"#),
            "{text}"
        );
        tree.wait(1000);
        let text = tree.worlds[1].take(client);
        assert!(
            text.contains("timed out") && text.contains(r#""id":2"#),
            "{text}"
        );
        tree.write(&insert("a"));
        let text = tree.worlds[1].take(client);
        assert!(text.contains(r#""id":1,"result":[{},{"uuid""#), "{text}");
        assert_eq!(tree.worlds[0].contents("A").len(), 3);
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_wait_that_blocks_at_the_source_holds_up_nothing_and_can_be_canceled() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        tree.write(&insert("a"));
        // The relay does not know yet that the row is gone.
        tree.relay(1).is_held = true;
        tree.worlds[0].transact_here(r#"{"op":"delete","table":"T","where":[]}"#);
        let client = tree.worlds[1].connect();
        let leaver = tree.worlds[1].connect();
        let both = format!("{},{}", wait_for("a"), insert("b"));
        tree.worlds[1].transact(client, "1", "A", &both);
        tree.worlds[1].transact(leaver, "1", "A", &both);
        tree.worlds[1].run();
        tree.relay(1).is_held = false;
        tree.run();
        tree.worlds[1].insert(client, "2", "A", "c");
        tree.run();
        let text = tree.worlds[1].take(client);
        assert!(
            text.contains(r#""id":2,"result""#) && !text.contains(r#""id":1"#),
            "{text}"
        );
        tree.worlds[1].send(client, r#"{"id":null,"method":"cancel","params":[1]}"#);
        tree.worlds[1].disconnect(leaver);
        tree.run();
        let text = tree.worlds[1].take(client);
        assert!(text.contains(r#"{"error":"canceled","id":1}"#), "{text}");
        tree.write(&insert("a"));
        let rows = tree.worlds[0].contents("A").len();
        assert_eq!(rows, 2, "neither transaction was executed later");
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_waiting_write_can_be_canceled() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        tree.is_down[0] = true;
        tree.run();
        let client = tree.worlds[1].connect();
        tree.worlds[1].insert(client, "1", "A", "a");
        tree.worlds[1].send(client, r#"{"id":null,"method":"cancel","params":[1]}"#);
        tree.run();
        let text = tree.worlds[1].take(client);
        assert!(text.contains(r#"{"error":"canceled","id":1}"#), "{text}");
        tree.is_down[0] = false;
        tree.wait(20_000);
        assert!(tree.worlds[0].contents("A").is_empty());
        tree.check_idle();
    }
}

#[test]
fn rights_are_judged_at_the_relay() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        let roles = tree.worlds[0].connect();
        let text = tree.ask(
            0,
            roles,
            "convert",
            &format!(r#"["A",{}]"#, schema_with_roles()),
        );
        assert!(text.contains(r#""result":{}"#), "{text}");
        tree.wait(20_000);
        let reader = tree.worlds[1].connect_as(SessionInfo::new(true, String::new(), None));
        let name = Some("ch1".to_owned());
        let chassis = SessionInfo::new(false, "ovn-controller".to_owned(), name);
        let chassis = tree.worlds[1].connect_as(chassis);
        for client in [reader, chassis] {
            tree.worlds[1].insert(client, "1", "A", "a");
            tree.worlds[1].ask(
                client,
                "2",
                "convert",
                &format!(r#"["A",{}]"#, wider_schema("A")),
            );
        }
        tree.run();
        let text = tree.worlds[1].take(reader);
        assert!(
            text.contains("not allowed when database server is in read only mode"),
            "{text}"
        );
        assert!(
            text.contains("conversion is not allowed for read-only database A"),
            "{text}"
        );
        let text = tree.worlds[1].take(chassis);
        assert!(
            text.contains("permission error") && text.contains("prohibit \\\"convert\\\""),
            "{text}"
        );
        assert!(tree.worlds[0].contents("A").is_empty());
        tree.check_idle();
    }
}

#[test]
fn a_conversion_is_made_at_the_source() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0], &[1]]);
        tree.write(&insert("a"));
        let asks = match seed % 2 {
            0 => tree.worlds[2].connect(),
            _ => tree.worlds[2].connect_aware(),
        };
        let aware = tree.worlds[2].connect_aware();
        let other = tree.worlds[2].connect();
        for client in [aware, other] {
            tree.worlds[2].monitor(client, "1", "A", "m");
            tree.run();
            tree.worlds[2].take(client);
        }
        tree.worlds[2].transact(aware, "2", "A", &wait_for("never"));
        tree.run();
        let params = format!(r#"["A",{}]"#, wider_schema("A"));
        tree.worlds[2].ask(asks, "1", "convert", &params);
        tree.worlds[2].ask(asks, "2", "get_schema", r#"["A"]"#);
        tree.wait(20_000);
        let text = tree.worlds[2].take(asks);
        assert!(
            text.contains(r#"{"error":null,"id":1,"result":{}}"#),
            "{text}"
        );
        if seed % 2 == 1 {
            assert!(text.contains("extra"), "the schema is the new one: {text}");
        } else {
            assert!(tree.is_closed(2, asks));
        }
        let text = tree.worlds[2].take(aware);
        assert!(
            text.contains("monitor_canceled") && text.contains("canceled\""),
            "{text}"
        );
        assert!(tree.is_closed(2, other) && !tree.is_closed(2, aware));
        for world in 0..3 {
            let schema = tree.worlds[world].service("A").database().schema().clone();
            assert_eq!(schema.version, "2.0.0", "world {world}");
            assert!(tree.server_row(world).contains("extra"), "world {world}");
        }
        assert_eq!(tree.worlds[2].contents("A").len(), 1);
        tree.write_at(2, &insert("b"));
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_conversion_to_the_present_schema_is_answered() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0], &[1], &[2]]);
        for world in [1, 2, 3] {
            let client = tree.worlds[world].connect_aware();
            let schema = schema("A").to_json().to_string();
            let text = tree.ask(world, client, "convert", &format!(r#"["A",{schema}]"#));
            assert!(text.contains(r#""id":9,"result":{}"#), "{text}");
        }
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_conversion_that_the_source_refuses_changes_nothing() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        tree.write(&insert("a"));
        let client = tree.worlds[1].connect();
        // The relay itself would accept this.
        let narrow = wider_schema("A").replace(
            r#""k":{"type":"string"}"#,
            r#""k":{"type":{"key":{"type":"string","maxLength":0}}}"#,
        );
        let text = tree.ask(1, client, "convert", &format!(r#"["A",{narrow}]"#));
        assert!(text.contains("constraint violation"), "{text}");
        let text = tree.ask(1, client, "get_schema", r#"["A"]"#);
        assert!(text.contains(r#""version":"1.0.0""#), "{text}");
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_relay_counts_as_connected_for_half_a_minute() {
    for seed in 0..SEEDS {
        let mut tree = Tree::new(seed, &[&[0], &[1]]);
        tree.is_down[0] = true;
        tree.wait(3000);
        assert!(!tree.is_shown_connected(1), "there never were contents");
        tree.is_down[0] = false;
        tree.wait(20_000);
        assert!(tree.is_shown_connected(1) && tree.is_shown_connected(2));
        tree.is_down[0] = true;
        tree.wait(29_000);
        assert!(tree.is_shown_connected(1) && tree.is_shown_connected(2));
        tree.wait(2000);
        // The relay of the relay learns that, and waits no longer.
        assert!(!tree.is_shown_connected(1) && !tree.is_shown_connected(2));
        tree.is_down[0] = false;
        tree.wait(30_000);
        assert!(tree.is_shown_connected(1) && tree.is_shown_connected(2));
        tree.check_idle();
    }
}

#[test]
fn a_reconnection_brings_the_difference_to_clients_whether_the_source_knows_the_past_or_not() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        let has_history = seed % 2 == 0;
        fill(&mut tree);
        let id = tree.worlds[0].id("A");
        let history = Control::SetHistory(has_history);
        tree.worlds[0].post(id, ToDatabase::Control(history));
        tree.run();
        tree.cut(1);
        tree.wait(20_000);
        for key in ["a", "b"] {
            tree.write(&insert(key));
        }
        let reader = tree.worlds[1].connect();
        tree.worlds[1].monitor(reader, "1", "A", "m");
        tree.run();
        tree.worlds[1].take(reader);
        let downloads = tree.relay(1).downloads;
        tree.is_down[0] = true;
        tree.run();
        tree.worlds[0].transact_here(&insert("c"));
        tree.worlds[0].transact_here(r#"{"op":"delete","table":"T","where":[["k","==","a"]]}"#);
        tree.is_down[0] = false;
        tree.wait(20_000);
        let expected = downloads + usize::from(!has_history);
        assert_eq!(tree.relay(1).downloads, expected, "seed {seed}");
        let text = tree.worlds[1].take(reader);
        assert_eq!(text.lines().count(), 1, "one update: {text}");
        assert!(
            text.contains(r#""new":{"k":"c"}"#) && text.contains(r#""old":{"k":"a"}"#),
            "{text}"
        );
        assert!(!text.contains(r#""k":"b""#), "{text}");
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn clients_move_between_source_and_relays_without_a_download() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0], &[1]]);
        let first = tree.worlds[0].connect();
        let (_, id) = found(&tree.ask(0, first, "monitor_cond_since", &since(ZERO)));
        // The relays have seen that transaction and the later ones.
        tree.write(&insert("a"));
        for world in [1, 2, 0] {
            let client = tree.worlds[world].connect();
            let text = tree.ask(world, client, "monitor_cond_since", &since(&id));
            let (is_found, _) = found(&text);
            assert!(is_found && text.contains(r#""insert":{"k":"a"}"#), "{text}");
        }
        let third = tree.worlds[2].connect();
        let (_, id) = found(&tree.ask(2, third, "monitor_cond_since", &since(ZERO)));
        tree.write(&insert("b"));
        for world in [0, 1] {
            let client = tree.worlds[world].connect();
            let text = tree.ask(world, client, "monitor_cond_since", &since(&id));
            let (is_found, _) = found(&text);
            assert!(is_found && !text.contains(r#""k":"a""#), "{text}");
        }
        tree.check_idle();
    }
}

#[test]
fn a_source_without_ids_has_relays_with_a_history_of_their_own() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0], &[1]]);
        fill(&mut tree);
        let id = tree.worlds[0].id("A");
        let history = ToDatabase::Control(Control::SetHistory(false));
        tree.worlds[0].post(id, history);
        tree.run();
        let client = tree.worlds[1].connect();
        let (_, id) = found(&tree.ask(1, client, "monitor_cond_since", &since(ZERO)));
        assert_ne!(id, ZERO);
        tree.write(&insert("a"));
        // A reconnection of the relay does not end its history.
        tree.cut(1);
        tree.wait(20_000);
        tree.write(&insert("b"));
        for world in [1, 2] {
            let client = tree.worlds[world].connect();
            let text = tree.ask(world, client, "monitor_cond_since", &since(&id));
            assert!(found(&text).0, "{text}");
            assert!(
                text.contains(r#"{"k":"a"}"#) && text.contains(r#"{"k":"b"}"#),
                "{text}"
            );
        }
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn an_update_that_does_not_apply_has_everything_fetched_again() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        tree.write(&insert("a"));
        let reader = tree.worlds[1].connect();
        tree.worlds[1].monitor(reader, "1", "A", "m");
        tree.run();
        tree.worlds[1].take(reader);
        let row = "00000000-0000-4000-8000-00000000abcd";
        let broken = [
            r#"{"modify":{"n":1}}"#,
            r#"{"delete":null}"#,
            r#"{"insert":{"k":1}}"#,
            r#"{"insert":{"x":1}}"#,
        ];
        let broken = broken[seed as usize % broken.len()];
        let text = format!(
            r#"{{"id":null,"method":"update3","params":[["monid","A"],"{row}",{{"T":{{"{row}":{broken}}}}}]}}"#
        );
        let now_ms = tree.now_ms();
        let downloads = tree.relay(1).downloads;
        tree.relay(1)
            .machine
            .handle(now_ms, Input::Received(text.as_bytes()));
        tree.write(&insert("b"));
        tree.wait(20_000);
        assert_eq!(tree.relay(1).downloads, downloads + 1, "seed {seed}");
        let log = tree.relay(1).log.join("\n");
        assert!(
            log.contains("Warn tcp:192.0.2.0:6640: inconsistent data")
                || log.contains("Warn tcp:192.0.2.0:6640: malformed message"),
            "{log}"
        );
        let text = tree.worlds[1].take(reader);
        assert!(
            text.contains(r#""new":{"k":"b"}"#) && !text.contains(r#""k":"a""#),
            "{text}"
        );
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn nothing_more_is_read_while_the_database_has_not_applied_what_was() {
    let mut tree = Tree::started(3, &[&[0]]);
    let value = "x".repeat(1 << 20);
    let client = tree.worlds[0].connect();
    for number in 0..60 {
        tree.worlds[0].insert(client, "1", "A", &format!("{number}{value}"));
        while tree.worlds[0].step() {}
        // The relay's thread works, its database does not.
        for _ in 0..3 {
            tree.turn(1);
        }
    }
    assert!(!tree.relay(1).machine.wants_input());
    let received = tree.relay(1).machine.session().metrics().bytes_received;
    assert!(received < 40 << 20, "{received}");
    tree.run();
    assert!(tree.relay(1).machine.wants_input());
    tree.check_equal();
    tree.check_idle();
}

#[test]
fn a_compaction_succeeds_and_a_removal_answers_everything() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0]]);
        let id = tree.worlds[1].id("A");
        let compact = ToDatabase::Control(Control::Compact(Some(5)));
        tree.worlds[1].post(id, compact);
        let status = ToDatabase::Control(Control::StorageStatus(6));
        tree.worlds[1].post(id, status);
        tree.run();
        let is_done =
            |event: &Event| matches!(event, Event::Answered(5, ControlAnswer::Compacted(Ok(()))));
        assert!(tree.worlds[1].events.iter().any(is_done));
        let is_ok = |event: &Event| {
            matches!(
                event,
                Event::Answered(6, ControlAnswer::StorageStatus(None))
            )
        };
        assert!(tree.worlds[1].events.iter().any(is_ok));
        tree.is_down[0] = true;
        tree.run();
        let aware = tree.worlds[1].connect_aware();
        tree.worlds[1].insert(aware, "1", "A", "a");
        tree.run();
        tree.worlds[1].remove("A");
        tree.relay(1).is_held = true;
        tree.worlds[1].run();
        let text = tree.worlds[1].take(aware);
        assert!(text.contains(r#"{"error":"canceled","id":1}"#), "{text}");
    }
}
