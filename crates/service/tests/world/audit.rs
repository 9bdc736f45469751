//! Audit entries of databases: each action has one, commits are in order, even if the disk fails.

use corvid_json::Value;
use corvid_service::audit::{Action, Exclusions};
use corvid_service::message::SessionInfo;
use expect_test::expect;

use crate::databases::insert;
use crate::world::{World, play};

const DURABLE: &str = r#"{"op":"commit","durable":true}"#;

/// The records of `A`, one per line: the outcome, and the keys of rows or the error.
fn trail(world: &mut World) -> String {
    let entries = std::mem::take(&mut world.served("A").audit);
    let mut text = Vec::new();
    for entry in &entries {
        if let Action::Committed { record_bytes, .. } = &entry.what {
            assert!(entry.weight() > *record_bytes && *record_bytes > 0);
        }
        entry.write("", &Exclusions::default(), &mut text, &mut |_| {});
    }
    let text = String::from_utf8(text).expect("UTF-8");
    let brief = |line: &str| {
        let record = Value::parse(line.as_bytes()).expect("JSON");
        let of = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
        let rows = record.get("rows").map_or(String::new(), |rows| {
            let rows = rows.to_string();
            let keys = rows.split(r#""k":""#).skip(1);
            keys.filter_map(|rest| rest.split('"').next()).collect()
        });
        format!("{} {rows} {}\n", of("outcome"), of("error"))
    };
    text.lines().map(brief).collect()
}

#[test]
fn without_an_audit_trail_no_entries_are_made() {
    play(|world| {
        let client = world.connect();
        world.insert(client, "1", "A", "a");
        world.run();
        assert!(world.served("A").audit.is_empty());
        world.take(client)
    });
}

#[test]
fn a_refused_request_makes_a_short_entry() {
    play(|world| {
        world.service("A").set_audited(true);
        let reader = world.connect_as(SessionInfo::new(true, String::new(), None));
        let long = "x".repeat(100_000);
        let comment = format!(r#"{{"op":"comment","comment":"{long}"}}"#);
        let operations = format!("{comment},{},{comment}", insert_into(&long));
        world.transact(reader, "1", "A", &operations);
        world.transact(reader, "2", "A", &format!("{comment},{}", insert("a")));
        world.run();
        let entries = std::mem::take(&mut world.served("A").audit);
        assert_eq!(entries.len(), 1, "one request lacks a right");
        let mut text = Vec::new();
        for entry in &entries {
            entry.write("", &Exclusions::default(), &mut text, &mut |_| {});
        }
        let text = String::from_utf8(text).expect("UTF-8");
        let cut = r#"xxx... (98976 more bytes)","operations":[{"op":"comment""#;
        assert!(text.len() < 2000 && text.contains(cut), "{text}");
        assert!(entries[0].weight() > 1024);
        String::new()
    });
}

fn insert_into(table: &str) -> String {
    format!(r#"{{"op":"insert","table":"{table}","row":{{}}}}"#)
}

#[test]
fn failed_commits_refusals_and_repeated_commits_have_one_entry_each_in_order() {
    let told = play(|world| {
        world.service("A").set_audited(true);
        let one = world.connect();
        let reader = world.connect_as(SessionInfo::new(true, String::new(), None));
        world.disk("A").is_held = true;
        world.disk("A").failures = 1;
        world.transact(one, "1", "A", &format!("{},{DURABLE}", insert("a")));
        world.run();
        // All of these have seen the commit that fails, and are executed again.
        world.insert(one, "2", "A", "a");
        world.run();
        world.insert(reader, "1", "A", "b");
        world.run();
        world.insert(one, "3", "A", "c");
        world.run();
        assert_eq!(trail(world), "", "nothing is known yet");
        world.disk("A").is_held = false;
        world.run();
        trail(world)
    });
    expect![[r#"
        failed a x.db: write failed (No space left on device)
        committed a 
        denied  not allowed
        committed c 
    "#]]
    .assert_eq(&told);
}
