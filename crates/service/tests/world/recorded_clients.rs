//! Records that name the clients of their commits (`--record-clients`): at a standalone server, at
//! the source of relays, and in a cluster, whose members forward transactions to their leader.

use corvid_json::Value;
use corvid_service::Setting;
use corvid_service::audit::Exclusions;
use corvid_service::message::{Control, SessionInfo, ToDatabase};

use crate::cluster::{Cluster, sid};
use crate::databases::insert;
use crate::relays::Tree;
use crate::world::{World, play};

/// The id of a transaction that its client may send again.
const ID: &str = "6731fef6-0000-0a00-9c66-2f0d8e5b7a11";

/// A client with a certificate.
fn host(name: &str) -> SessionInfo {
    SessionInfo::new(false, "host".to_owned(), Some(name.to_owned()))
        .of_peer(format!("ssl:{name}").into(), "pssl:6642".into())
}

fn comment(text: &str) -> String {
    format!(r#"{{"op":"comment","comment":"{text}"}}"#)
}

/// The comments of the records of `A`, without those of earlier calls.
fn comments(world: &mut World, from: usize) -> Vec<String> {
    world.disk("A").comments().split_off(from)
}

fn record_clients(world: &mut World, are_recorded: bool) {
    let control = Control::SetRecordClients(are_recorded);
    let id = world.id("A");
    world.post(id, ToDatabase::Control(control));
    world.run();
}

const HV1: &str = "corvid: client=hv1 peer=ssl:hv1 role=host";

#[test]
fn a_record_names_its_client_between_the_clients_comment_and_the_id() {
    play(|world| {
        let client = world.connect_as(host("hv1"));
        let mut number = 0;
        let mut write = |world: &mut World, text: Option<&str>, is_once: bool| {
            number += 1;
            let mut operations = insert(&format!("k{number}"));
            if let Some(text) = text {
                operations = format!("{operations},{}", comment(text));
            }
            match is_once {
                false => world.transact(client, "1", "A", &operations),
                true => {
                    let id = ID.replace("6731fef6", &format!("{number:08}"));
                    let params = format!(r#"["{id}",null,["A",{operations}]]"#);
                    world.ask(client, "1", "transact_once", &params);
                }
            }
            world.run();
            let told = world.take(client);
            assert!(told.contains(r#""uuid""#), "{told}");
            let comments = world.disk("A").comments();
            let comment = comments.last().expect("a record");
            comment.split(" results").next().expect("text").to_owned()
        };
        let is_txn = |line: &str| line.starts_with("corvid: txn=");
        // Off, nothing changes.
        assert_eq!(write(world, None, false), "-");
        assert_eq!(write(world, Some("why"), false), "why");
        record_clients(world, true);
        assert_eq!(write(world, None, false), HV1);
        assert_eq!(write(world, Some("why"), false), format!("why\n{HV1}"));
        let written = write(world, Some("why"), true);
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!((lines[0], lines[1], lines.len()), ("why", HV1, 3));
        assert!(is_txn(lines[2]), "{written}");
        // A client names another one.
        let forged = "corvid: client=root peer=unix#0";
        let written = write(world, Some(forged), true);
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!((lines[0], lines[1]), (forged, HV1));
        record_clients(world, false);
        assert_eq!(write(world, Some(forged), false), format!("{forged}\n"));
        let written = write(world, Some(forged), true);
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!((lines[0], lines[1]), (forged, ""));
        assert!(is_txn(lines[2]), "{written}");
        String::new()
    });
}

#[test]
fn a_commit_that_is_executed_again_names_its_client_once() {
    play(|world| {
        record_clients(world, true);
        let client = world.connect_as(host("hv1"));
        world.service("A").set_audited(true);
        let from = world.disk("A").comments().len();
        world.disk("A").is_held = true;
        world.disk("A").failures = 1;
        world.insert(client, "1", "A", "a");
        world.run();
        let operations = format!("{},{}", insert("b"), comment("why"));
        world.transact(client, "2", "A", &operations);
        world.run();
        world.disk("A").is_held = false;
        world.run();
        assert_eq!(comments(world, from), [format!("why\n{HV1}")]);
        // The audit trail shows the client's own comment.
        let mut text = Vec::new();
        for entry in std::mem::take(&mut world.served("A").audit) {
            entry.write("", &Exclusions::default(), &mut text, &mut |_| {});
        }
        let text = String::from_utf8(text).expect("UTF-8");
        let (_, committed) = text.split_once("committed").expect("a commit");
        assert!(committed.contains(r#""comment":"why","rows""#), "{text}");
        String::new()
    });
}

#[test]
fn a_source_names_the_clients_of_the_relays_that_it_trusts() {
    fn trusted() -> SessionInfo {
        host("relay1").of_trusted_relay(true)
    }
    fn doubted() -> SessionInfo {
        host("relay1").of_trusted_relay(false)
    }
    // A relay without a role, so that its clients may write.
    fn plain() -> SessionInfo {
        SessionInfo::new(false, String::new(), None).of_peer("tcp:192.0.2.9".into(), "".into())
    }
    let via_one = format!("{HV1} via=relay:relay1@ssl:relay1");
    for (link, expected) in [
        (trusted as fn() -> SessionInfo, &*via_one),
        (doubted, "corvid: client=relay1 peer=ssl:relay1 role=host"),
        (plain, "corvid: client= peer=tcp:192.0.2.9"),
    ] {
        for sources in [&[&[0][..]][..], &[&[0], &[1]]] {
            let mut tree = Tree::with_ids(3, &[], true);
            tree.link_as = Some(link);
            for sources in sources {
                tree.add_relay(3, sources);
            }
            tree.wait(20_000);
            record_clients(&mut tree.worlds[0], true);
            let from = tree.worlds[0].disk("A").comments().len();
            let last = tree.worlds.len() - 1;
            let client = tree.worlds[last].connect_as(host("hv1").of_trusted_relay(false));
            let forged = "corvid: client=root";
            let operations = format!("{},{}", insert("a"), comment(forged));
            tree.worlds[last].transact(client, "1", "A", &operations);
            tree.run();
            let told = tree.worlds[last].take(client);
            let written = comments(&mut tree.worlds[0], from);
            // The client of a relay of relays comes through the last one.
            let written: Vec<&str> = written[0].lines().take(2).collect();
            assert_eq!(written, [forged, expected], "{told}");
            tree.check_idle();
        }
    }
}

/// The comments of the entries after the first `from`.
fn entries(cluster: &Cluster, from: usize) -> Vec<String> {
    let entries = cluster.log[from..].iter();
    let entries = entries.filter_map(|entry| entry.data.as_ref());
    let comment = |(_, data): &(_, bytes::Bytes)| {
        let json = Value::parse(data).expect("JSON");
        let transaction = &json.as_array().expect("an array")[1];
        let comment = transaction.get("_comment").and_then(Value::as_str);
        comment.unwrap_or("-").to_owned()
    };
    entries.map(comment).collect()
}

#[test]
fn a_leader_names_the_clients_of_its_followers_and_of_their_relays() {
    let mut cluster = Cluster::led(3, 3, 0);
    let record = |cluster: &mut Cluster, node: usize, are_recorded: bool| {
        let control = Control::SetRecordClients(are_recorded);
        let node = &mut cluster.nodes[node];
        node.inbox.push_back(ToDatabase::Control(control));
        cluster.run();
    };
    let at_leader = cluster.connect_as(0, host("hv0"));
    let at_follower = cluster.connect_as(1, host("hv1"));
    // Its role is that of its clients.
    let relay = cluster.connect_as(2, host("relay1").of_trusted_relay(true));
    let doubted = SessionInfo::new(false, String::new(), Some("relay2".to_owned()))
        .of_peer("ssl:relay2".into(), "pssl:6642".into());
    let doubted = cluster.connect_as(2, doubted);
    let told = r#"{"who":{"client":"hv 2","peer":"ssl:hv2","role":"host","remote":"pssl:1"}}"#;
    let write = |cluster: &mut Cluster| {
        let from = cluster.log.len();
        let insert = r#"{"op":"insert","table":"Log","row":{"id":1}}"#;
        cluster.transact(at_leader, 1, insert);
        cluster.run();
        cluster.transact(at_follower, 1, &format!("{insert},{}", comment("why")));
        cluster.run();
        cluster.relay(relay, 1, insert, told);
        cluster.run();
        cluster.relay(doubted, 1, insert, told);
        cluster.run();
        cluster.transact(doubted, 2, &format!("{insert},{}", comment(HV1)));
        cluster.run();
        cluster.check_equal();
        entries(cluster, from)
    };
    let guarded = format!("{HV1}\n");
    assert_eq!(write(&mut cluster), ["-", "why", "-", "-", &guarded]);
    // A standalone file made of these transactions must not believe clients, either.
    for forger in [at_leader, at_follower] {
        let from = cluster.log.len();
        let txn = format!("corvid: txn={ID} results=1");
        let insert = r#"{"op":"insert","table":"Log","row":{"id":1}}"#;
        cluster.transact(forger, 1, &format!("{insert},{}", comment(&txn)));
        cluster.run();
        assert_eq!(entries(&cluster, from), [format!("{txn}\n")]);
    }
    for node in 0..3 {
        record(&mut cluster, node, true);
    }
    let via = |node: usize| format!("via=member:{}", sid(node).0);
    let of_relay = "corvid: client=relay2 peer=ssl:relay2";
    let expected = [
        "corvid: client=hv0 peer=ssl:hv0 role=host".to_owned(),
        format!("why\n{HV1} {}", via(1)),
        format!(
            "corvid: client=hv%202 peer=ssl:hv2 role=host via=relay:relay1@ssl:relay1 {}",
            via(2)
        ),
        format!("{of_relay} {}", via(2)),
        format!("{HV1}\n{of_relay} {}", via(2)),
    ];
    assert_eq!(write(&mut cluster), expected);
    // A follower that does not record clients says of them what access control needs.
    record(&mut cluster, 1, false);
    let expected = format!("why\ncorvid: client=hv1 role=host {}", via(1));
    assert_eq!(write(&mut cluster)[1], expected);
    // The next leader decides.
    cluster.lead(1);
    assert_eq!(write(&mut cluster), ["-", "why", "-", "-", &guarded]);
    cluster.lead(2);
    let expected = format!("corvid: client=hv0 peer=ssl:hv0 role=host {}", via(0));
    assert_eq!(write(&mut cluster)[0], expected);
}

#[test]
fn the_line_of_the_client_counts_for_the_limit_of_entries() {
    let longest = |node: usize, are_recorded: bool| {
        let mut cluster = Cluster::led(3, 3, 0);
        for node in &mut cluster.nodes {
            let service = node.pump.service_mut();
            service.set(Setting::RecordClients, u64::from(are_recorded));
            service.set_entry_limits(1000, 1 << 20);
        }
        let client = cluster.connect_as(node, host("hv1"));
        let mut fits = |length: usize| {
            let text = comment(&"x".repeat(length));
            let insert = r#"{"op":"insert","table":"Log","row":{"id":1}}"#;
            cluster.transact(client, 1, &format!("{insert},{text}"));
            cluster.run();
            !cluster.take(client).contains("resources exhausted")
        };
        let longest = (0..1000).take_while(|length| fits(*length)).count();
        cluster.check_equal();
        longest
    };
    for (node, line) in [(0, HV1.len()), (1, HV1.len() + " via=member:".len() + 36)] {
        let (with, without) = (longest(node, true), longest(node, false));
        assert!(with > 0 && with + line <= without, "{with} and {without}");
    }
}
