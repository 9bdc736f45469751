//! Clients with roles at relays: their transactions are checked where they are executed, on the
//! rows that they change, whether or not the source checks clients of relays.

use corvid_monitor::SessionId;
use corvid_service::audit::Exclusions;
use corvid_service::message::SessionInfo;

use crate::relays::Tree;
use crate::world::{Dice, World};

/// Orders of events per play.
const SEEDS: u64 = 20;

const SCHEMA: &str = r#"{"name":"A","version":"2.0.0","tables":{
    "T":{"isRoot":true,"columns":{"k":{"type":"string"}}},
    "RBAC_Role":{"isRoot":true,"columns":{
        "name":{"type":"string"},
        "permissions":{"type":{"key":"string","value":{"type":"uuid","refTable":"RBAC_Permission"},"min":0,"max":"unlimited"}}}},
    "RBAC_Permission":{"isRoot":true,"columns":{
        "authorization":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "insert_delete":{"type":"boolean"},
        "update":{"type":{"key":"string","min":0,"max":"unlimited"}}}},
    "Chassis":{"isRoot":true,"columns":{"name":{"type":"string"},"nb":{"type":"integer"}}}}}"#;

const RULES: &str = r#"{"op":"insert","table":"RBAC_Permission","uuid-name":"c","row":{"authorization":"name","insert_delete":true,"update":"nb"}},
    {"op":"insert","table":"RBAC_Role","row":{"name":"host","permissions":["map",[["Chassis",["named-uuid","c"]]]]}}"#;

/// A client with the role; `name` is its certificate's common name.
fn host(name: &str) -> SessionInfo {
    SessionInfo::new(false, "host".to_owned(), Some(name.to_owned()))
        .of_peer(format!("ssl:{name}").into(), "pssl:6642".into())
}

fn chassis(name: &str, nb: u32) -> String {
    format!(r#"{{"op":"insert","table":"Chassis","row":{{"name":"{name}","nb":{nb}}}}}"#)
}

/// A tree whose database has rules for the role `host`. `judges`: its servers check clients of
/// relays.
fn guarded(
    seed: u64,
    sources: &[&[usize]],
    judges: bool,
    link: Option<fn() -> SessionInfo>,
) -> Tree {
    let mut tree = Tree::with_ids(seed, &[], judges);
    tree.link_as = link;
    tree.run();
    let client = tree.worlds[0].connect();
    let params = format!(r#"["A",{SCHEMA}]"#);
    tree.worlds[0].ask(client, "1", "convert", &params);
    tree.run();
    tree.write(RULES);
    for sources in sources {
        tree.add_relay(seed, sources);
    }
    tree.wait(20_000);
    tree
}

/// The number of rows in a table of the source.
fn rows(world: &mut World, table: &str) -> usize {
    let contents = world.contents("A");
    contents.iter().filter(|row| row.starts_with(table)).count()
}

fn connect(tree: &mut Tree, world: usize, name: &str) -> SessionId {
    tree.worlds[world].connect_as(host(name))
}

/// Each form of tree: one or two levels of relays, with and without servers that check clients.
fn trees(link: Option<fn() -> SessionInfo>) -> impl Iterator<Item = (u64, bool, Tree)> {
    (0..SEEDS).map(move |seed| {
        let judges = seed % 2 == 0;
        let sources: &[&[usize]] = match seed % 4 {
            0 | 1 => &[&[0]],
            _ => &[&[0], &[1]],
        };
        (seed, judges, guarded(seed, sources, judges, link))
    })
}

const DENIED: &str = r#""error":"permission error""#;

#[test]
fn a_role_writes_its_own_rows_through_relays_and_sees_the_plain_results() {
    for (seed, judges, mut tree) in trees(None) {
        let last = tree.worlds.len() - 1;
        let client = connect(&mut tree, last, "hv1");
        let update = |name: &str| {
            format!(
                r#"{},{{"op":"update","table":"Chassis","where":[["name","==","{name}"]],"row":{{"nb":2}}}},{{"op":"comment","comment":"x"}}"#,
                chassis("hv1", 1)
            )
        };
        tree.worlds[last].transact(client, "1", "A", &update("hv1"));
        tree.run();
        tree.worlds[last].transact(
            client,
            "2",
            "A",
            r#"{"op":"delete","table":"Chassis","where":[]}"#,
        );
        tree.run();
        let text = tree.worlds[last].take(client);
        let told = r#"{"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]},{"count":1},{}]}
{"error":null,"id":2,"result":[{"count":1}]}
"#;
        assert_eq!(text, told, "seed {seed}, {judges}");
        assert_eq!(rows(&mut tree.worlds[0], "Chassis"), 0);
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_condition_that_matches_foreign_rows_only_at_the_source_is_denied() {
    for (seed, judges, mut tree) in trees(None) {
        let last = tree.worlds.len() - 1;
        let client = connect(&mut tree, last, "hv1");
        tree.run();
        // The relay does not learn of the rows before its client's request is on its way.
        tree.relay(last).is_held = true;
        tree.write(&format!("{},{}", chassis("hv2", 7), chassis("hv3", 7)));
        let delete = r#"{"op":"delete","table":"Chassis","where":[["nb","==",7]]}"#;
        tree.worlds[last].transact(client, "1", "A", delete);
        tree.run();
        tree.relay(last).is_held = false;
        tree.run();
        let text = tree.worlds[last].take(client);
        let denied = r#""result":[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit row deletion from table \"Chassis\".","error":"permission error"}]"#;
        assert!(text.contains(denied), "seed {seed}, {judges}: {text}");
        // The same in the middle of a transaction.
        tree.relay(last).is_held = true;
        tree.write(&chassis("hv4", 9));
        let mutate = r#"{"op":"comment","comment":"x"},{"op":"mutate","table":"Chassis","where":[["nb","==",9]],"mutations":[["nb","+=",1]]},{"op":"comment","comment":"y"}"#;
        tree.worlds[last].transact(client, "2", "A", mutate);
        tree.run();
        tree.relay(last).is_held = false;
        tree.run();
        let text = tree.worlds[last].take(client);
        assert!(
            text.contains(r#""result":[{},{"details""#) && text.contains(DENIED),
            "{text}"
        );
        assert!(text.contains("},null]"), "{text}");
        assert_eq!(rows(&mut tree.worlds[0], "Chassis"), 3, "seed {seed}");
        tree.wait(10_000);
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_wait_that_blocks_at_the_source_arms_no_foreign_write() {
    for (seed, judges, mut tree) in trees(None) {
        let last = tree.worlds.len() - 1;
        let client = connect(&mut tree, last, "hv1");
        let go = r#"{"op":"insert","table":"T","row":{"k":"go"}}"#;
        tree.write(go);
        tree.run();
        // The row that satisfies the wait is gone at the source, and the relay does not know.
        tree.relay(last).is_held = true;
        tree.write(r#"{"op":"delete","table":"T","where":[]}"#);
        let armed = r#"{"op":"wait","table":"T","where":[["k","==","go"]],"columns":["k"],"until":"==","rows":[{"k":"go"}]},{"op":"update","table":"Chassis","where":[["nb","==",9]],"row":{"nb":777777}}"#;
        tree.worlds[last].transact(client, "1", "A", armed);
        tree.run();
        tree.relay(last).is_held = false;
        tree.run();
        assert_eq!(tree.worlds[last].take(client), "", "it waits");
        tree.write(&chassis("hv2", 9));
        tree.write(go);
        tree.run();
        let text = tree.worlds[last].take(client);
        assert!(text.contains(DENIED), "seed {seed}, {judges}: {text}");
        let contents = tree.worlds[0].contents("A");
        assert!(
            !contents.iter().any(|row| row.contains("777777")),
            "{contents:?}"
        );
        tree.check_idle();
    }
}

/// A relay whose own connection has the role.
fn relay_with_role() -> SessionInfo {
    host("relay1")
}

fn trusted_relay() -> SessionInfo {
    host("relay1").of_trusted_relay(true)
}

#[test]
fn a_relay_speaks_for_its_clients_only_where_the_source_trusts_it() {
    for seed in 0..SEEDS {
        for (link, is_trusted) in [
            (relay_with_role as fn() -> SessionInfo, false),
            (trusted_relay, true),
        ] {
            let mut tree = guarded(seed, &[&[0]], true, Some(link));
            for world in 0..2 {
                tree.worlds[world].service("A").set_audited(true);
            }
            let client = connect(&mut tree, 1, "hv1");
            tree.worlds[1].transact(client, "1", "A", &chassis("hv1", 1));
            tree.run();
            let text = tree.worlds[1].take(client);
            assert_eq!(text.contains(DENIED), !is_trusted, "{text}");
            assert_eq!(
                rows(&mut tree.worlds[0], "Chassis"),
                usize::from(is_trusted)
            );
            // A client without a role, at a trusted relay, has none at the source.
            let root = tree.worlds[1].connect();
            tree.worlds[1].transact(root, "1", "A", &chassis("hv2", 1));
            tree.run();
            let text = tree.worlds[1].take(root);
            assert_eq!(text.contains(DENIED), !is_trusted, "{text}");

            let told =
                r#""for":{"client":"hv1","peer":"ssl:hv1","remote":"pssl:6642","role":"host""#;
            let source = trail(&mut tree.worlds[0]);
            assert_eq!(source.contains(told), is_trusted, "{source}");
            let outcome = if is_trusted { "committed" } else { "denied" };
            assert!(
                source.contains(&format!(r#""outcome":"{outcome}""#)),
                "{source}"
            );
            assert!(
                source.contains(r#""peer":"ssl:relay1","client":"relay1""#),
                "{source}"
            );
            // The relay itself knows its clients.
            let relay = trail(&mut tree.worlds[1]);
            let mut of_client = relay
                .lines()
                .filter(|line| line.contains(r#""peer":"ssl:hv1""#));
            let line = of_client.next().unwrap_or_else(|| panic!("{relay}"));
            let outcome = if is_trusted { "relayed" } else { "denied" };
            assert!(
                line.contains(&format!(r#""outcome":"{outcome}""#)),
                "{line}"
            );
            assert!(
                line.contains(r#""operations":[{"op":"insert","table":"Chassis"}]"#),
                "{line}"
            );
            tree.check_idle();
        }
    }
}

/// The audit trail of a world.
fn trail(world: &mut World) -> String {
    let mut text = Vec::new();
    for entry in std::mem::take(&mut world.served("A").audit) {
        entry.write("", &Exclusions::default(), &mut text, &mut |_| {});
    }
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn a_client_may_restrict_itself_and_nothing_else() {
    for seed in 0..SEEDS {
        let mut tree = guarded(seed, &[], true, None);
        tree.write(&chassis("hv2", 1));
        let client = tree.worlds[0].connect();
        let delete = r#"["A",{"op":"delete","table":"Chassis","where":[]}]"#;
        let as_client = |client: &str| format!("[null,null,{delete},{client}]");
        let hv1 = as_client(r#"{"roles":[{"role":"host","client":"hv1"}]}"#);
        tree.worlds[0].ask(client, "1", "transact_once", &hv1);
        tree.worlds[0].ask(
            client,
            "2",
            "transact_once",
            &as_client(r#"{"read_only":true}"#),
        );
        tree.worlds[0].ask(
            client,
            "3",
            "transact_once",
            &as_client(r#"{"unknown":true}"#),
        );
        // The role of the session itself stays.
        let other = connect(&mut tree, 0, "hv1");
        tree.worlds[0].ask(other, "4", "transact_once", &as_client("{}"));
        tree.run();
        let text = tree.worlds[0].take(client);
        assert!(text.contains(DENIED), "{text}");
        assert!(text.contains(r#""error":"not allowed""#), "{text}");
        assert!(
            text.contains(r#"{"error":"unknown method","id":3}"#),
            "{text}"
        );
        assert!(tree.worlds[0].take(other).contains(DENIED));
        assert_eq!(rows(&mut tree.worlds[0], "Chassis"), 1);
        tree.check_idle();
    }
}

/// Runs of `no_client_writes_foreign_rows_under_any_order_of_events`.
const RUNS: u64 = 60;

/// A random transaction of a client with the role: its conditions may match other clients' rows,
/// now or when it is executed.
fn drawn(dice: &mut Dice) -> String {
    let nb = dice.below(4);
    let condition = match dice.below(3) {
        0 => "[]".to_owned(),
        1 => format!(r#"[["nb","==",{nb}]]"#),
        _ => format!(r#"[["nb",">",{nb}],["name","!=","none"]]"#),
    };
    // Only these clients write 424242.
    let write = match dice.below(3) {
        0 => format!(r#"{{"op":"delete","table":"Chassis","where":{condition}}}"#),
        1 => format!(
            r#"{{"op":"update","table":"Chassis","where":{condition},"row":{{"nb":424242}}}}"#
        ),
        _ => format!(
            r#"{{"op":"mutate","table":"Chassis","where":{condition},"mutations":[["nb","*=",0],["nb","+=",424242]]}}"#
        ),
    };
    match dice.below(4) {
        0 => {
            let wait = r#"{"op":"wait","table":"T","where":[["k","==","go"]],"columns":["k"],"until":"==","rows":[{"k":"go"}]}"#;
            format!("{wait},{write}")
        }
        1 => format!("{},{write}", chassis("hv1", 5)),
        _ => write,
    }
}

#[test]
fn no_client_writes_foreign_rows_under_any_order_of_events() {
    let (mut denied, mut done) = (0, 0);
    for seed in 0..RUNS {
        let judges = seed % 2 == 0;
        let sources: &[&[usize]] = &[&[0], &[0, 1]];
        let mut tree = guarded(seed, sources, judges, None);
        let mut dice = Dice::new(seed ^ 0x0c0f_fee0);
        let root = tree.worlds[0].connect();
        let clients = [1, 2].map(|world| (world, connect(&mut tree, world, "hv1")));
        let mut foreign = 0;
        for number in 0..40 {
            let id = number.to_string();
            match dice.below(8) {
                0 | 1 => {
                    foreign += 1;
                    let insert = chassis("hv2", dice.below(4) as u32);
                    tree.worlds[0].transact(root, &id, "A", &insert);
                }
                2 => {
                    let toggle = match dice.below(2) {
                        0 => r#"{"op":"insert","table":"T","row":{"k":"go"}}"#,
                        _ => r#"{"op":"delete","table":"T","where":[]}"#,
                    };
                    tree.worlds[0].transact(root, &id, "A", toggle);
                }
                3 => {
                    let change = r#"{"op":"update","table":"Chassis","where":[["name","==","hv2"]],"row":{"nb":2}}"#;
                    tree.worlds[0].transact(root, &id, "A", change);
                }
                4 if dice.below(4) == 0 => tree.cut(1 + dice.below(2)),
                _ => {
                    let (world, client) = clients[dice.below(2)];
                    let operations = drawn(&mut dice);
                    tree.worlds[world].transact(client, &id, "A", &operations);
                }
            }
            for _ in 0..dice.below(30) {
                tree.step();
            }
        }
        tree.wait(30_000);
        let contents = tree.worlds[0].contents("A");
        let of_others = contents.iter().filter(|row| row.contains("hv2"));
        let of_others: Vec<_> = of_others.collect();
        assert_eq!(of_others.len(), foreign, "seed {seed}: {contents:?}");
        let is_written = |row: &&&String| row.contains("424242");
        assert_eq!(of_others.iter().find(is_written), None, "seed {seed}");
        for (world, client) in clients {
            let text = tree.worlds[world].take(client);
            denied += text.matches(DENIED).count();
            done += text.matches(r#""result":[{"#).count() - text.matches(DENIED).count();
            assert!(!text.contains("timed out"), "a guard is not seen: {text}");
            // The transactions that still wait at the source are canceled there.
            tree.worlds[world].disconnect(client);
        }
        tree.wait(1000);
        tree.check_equal();
        tree.check_idle();
    }
    assert!(denied > 100 && done > 100, "{denied} and {done}");
}
