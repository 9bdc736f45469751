//! `monitor_cond_since` (docs/spec/protocol.md 4.9).

use corvid_data::{TableId, Uuid};
use corvid_monitor::{PastAnswer, PastRows, SessionId, Version};

use crate::fixture::{Fixture, ZOO, txn};

fn since(last: Uuid, request: &str) -> String {
    format!(r#"1,{{"Pet":{request}}},"{last}""#)
}

const KIND: &str = r#"{"columns":["kind"]}"#;

/// Adds a monitor that gets ids of commits. Without one the history keeps nothing.
fn add_update3_monitor(fixture: &mut Fixture) {
    let started = fixture.start(SessionId(100), Version::V3, &since(Uuid::ZERO, KIND));
    assert!(started.is_ok(), "{started:?}");
}

#[test]
fn unknown_transaction_gets_all_contents() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    let all = r##"[false,"t1",{"Pet":{"#1":{"initial":{"kind":"owl"}}}}]"##;
    assert_eq!(fixture.monitor(Version::V3, &since(Uuid::ZERO, KIND)), all);
    let unknown = fixture.start(SessionId(2), Version::V3, &since(txn(99), KIND));
    assert_eq!(unknown.as_deref(), Ok(all));
}

#[test]
fn known_transaction_gets_the_net_change() {
    let mut fixture = Fixture::new(ZOO);
    add_update3_monitor(&mut fixture);
    fixture.insert_ballast();
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    let ape = fixture.insert("Pet", r#"{"kind":"ape"}"#);
    fixture.update("Pet", &owl, r#"{"kind":"auk"}"#);
    fixture.update("Pet", &owl, r#"{"kind":"emu"}"#);
    let gnu = fixture.insert("Pet", r#"{"kind":"gnu"}"#);
    fixture.delete("Pet", &gnu);
    fixture.update("Pet", &ape, r#"{"size":7}"#);
    assert_eq!(
        fixture.monitor(Version::V3, &since(txn(3), KIND)),
        r##"[true,"t8",{"Pet":{"#1":{"modify":{"kind":"emu"}}}}]"##
    );
    let mut ask =
        |session, last| fixture.start(SessionId(session), Version::V3, &since(last, KIND));
    assert_eq!(ask(2, txn(8)).as_deref(), Ok(r#"[true,"t8",{}]"#));
    assert_eq!(ask(3, txn(7)).as_deref(), Ok(r#"[true,"t8",{}]"#));
    assert_eq!(
        ask(4, txn(2)).as_deref(),
        Ok(
            r##"[true,"t8",{"Pet":{"#2":{"insert":{"kind":"ape"}},"#1":{"modify":{"kind":"emu"}}}}]"##
        )
    );
}

#[test]
fn condition_applies_to_both_states_and_initial_is_ignored() {
    let mut fixture = Fixture::new(ZOO);
    add_update3_monitor(&mut fixture);
    fixture.insert_ballast();
    let owl = fixture.insert("Pet", r#"{"kind":"owl","size":1}"#);
    let ape = fixture.insert("Pet", r#"{"kind":"ape","size":9}"#);
    fixture.update("Pet", &owl, r#"{"size":9}"#);
    fixture.update("Pet", &ape, r#"{"size":2}"#);
    let small = r#"{"columns":["kind"],"where":[["size","<",5]],"select":{"initial":false}}"#;
    assert_eq!(
        fixture.monitor(Version::V3, &since(txn(3), small)),
        r##"[true,"t5",{"Pet":{"#1":{"delete":null},"#2":{"insert":{"kind":"ape"}}}}]"##
    );
    let none = fixture.start(SessionId(2), Version::V3, &since(Uuid::ZERO, small));
    assert_eq!(none.as_deref(), Ok(r#"[false,"t5",{}]"#));
}

#[test]
fn commits_whose_ids_were_not_sent_are_not_kept() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert_ballast();
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.update("Pet", &owl, r#"{"kind":"auk"}"#);
    assert_eq!(fixture.monitors.history_size(), (0, 0));
    assert_eq!(
        fixture.monitor(Version::V3, &since(txn(2), KIND)),
        r##"[false,"t3",{"Pet":{"#1":{"initial":{"kind":"auk"}}}}]"##
    );
    // A client may name any id that was sent, even the id of a client that left before the next
    // commit.
    assert!(fixture.monitors.cancel(SessionId(1), b"1"));
    fixture.update("Pet", &owl, r#"{"kind":"emu"}"#);
    assert_eq!(
        fixture.monitor(Version::V3, &since(txn(3), KIND)),
        r##"[true,"t4",{"Pet":{"#1":{"modify":{"kind":"emu"}}}}]"##
    );
    fixture.update("Pet", &owl, r#"{"kind":"gnu"}"#);
    fixture.notifications();
    assert!(fixture.monitors.cancel(SessionId(1), b"1"));
    fixture.update("Pet", &owl, r#"{"kind":"yak"}"#);
    assert_eq!(
        fixture.monitor(Version::V3, &since(txn(5), KIND)),
        r##"[true,"t6",{"Pet":{"#1":{"modify":{"kind":"yak"}}}}]"##
    );
}

#[test]
fn updates_continue_after_the_reply() {
    let mut fixture = Fixture::new(ZOO);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.update("Pet", &owl, r#"{"kind":"auk"}"#);
    fixture.monitor(Version::V3, &since(txn(1), KIND));
    assert!(fixture.notifications().is_empty());
    fixture.update("Pet", &owl, r#"{"kind":"emu"}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update3 1,"t3",{"Pet":{"#1":{"modify":{"kind":"emu"}}}}"##]
    );
}

#[test]
fn database_without_history_never_finds_and_sends_zero_ids() {
    let mut fixture = Fixture::with_history(ZOO, false);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    let all = r##"[false,"#0",{"Pet":{"#1":{"initial":{"kind":"owl"}}}}]"##;
    assert_eq!(fixture.monitor(Version::V3, &since(Uuid::ZERO, KIND)), all);
    let known = fixture.start(SessionId(2), Version::V3, &since(txn(1), KIND));
    assert_eq!(known.as_deref(), Ok(all));
    fixture.insert("Pet", r#"{"kind":"ape"}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update3 1,"#0",{"Pet":{"#2":{"insert":{"kind":"ape"}}}}"##]
    );
    assert_eq!(fixture.monitors.last_txn(), Uuid::ZERO);
}

#[test]
fn clients_with_the_same_transaction_share_one_body() {
    let mut fixture = Fixture::new(ZOO);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.update("Pet", &owl, r#"{"kind":"auk"}"#);
    let params = format!("[\"Zoo\",{}]", since(txn(1), KIND));
    let mut ask = |session| {
        let session = SessionId(session);
        let started = fixture
            .monitors
            .monitor(
                &fixture.database,
                session,
                Version::V3,
                params.as_bytes(),
                &|_| false,
            )
            .expect("started");
        started.result.into_reply(b"1").body
    };
    let first = ask(1);
    assert!(first.ptr_eq(&ask(2)));
}

#[test]
fn rows_as_they_were_give_the_net_change_unless_it_is_larger_than_the_contents() {
    let mut fixture = Fixture::new(ZOO);
    add_update3_monitor(&mut fixture);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    let ape = fixture.insert("Pet", r#"{"kind":"ape"}"#);
    let gnu = fixture.insert("Pet", r#"{"kind":"gnu"}"#);
    let table = fixture.database.schema().table_id("Pet").expect("a table");
    let rows = |fixture: &Fixture| -> Vec<_> {
        let rows = fixture.database.rows(table);
        rows.map(|row| (table, row.uuid, Some(row.clone())))
            .collect()
    };
    let then = rows(&fixture);
    fixture.update("Pet", &owl, r#"{"kind":"emu"}"#);
    fixture.update("Pet", &ape, r#"{"size":7}"#);
    fixture.delete("Pet", &gnu);
    fixture.insert("Pet", r#"{"kind":"elk"}"#);
    let is_new = |row: &&(_, Uuid, _)| !then.iter().any(|(_, uuid, _)| *uuid == row.1);
    let now = rows(&fixture);
    let elk = now.iter().find(is_new).expect("the elk");
    let mut past = PastRows::new(vec![table], 100);
    let absent = (table, elk.1, None);
    assert!(past.complete(then.iter().cloned().chain([absent])));

    let found = |fixture: &mut Fixture, session, rows: &PastRows, request: &str| {
        let answer = |id: Uuid, _: &[TableId]| match id == txn(77) {
            true => PastAnswer::Rows(rows),
            false => PastAnswer::Wait,
        };
        fixture.begin_from(SessionId(session), &since(txn(77), request), &answer)
    };
    assert_eq!(
        found(&mut fixture, 1, &past, KIND),
        r##"[true,"t7",{"Pet":{"#1":{"modify":{"kind":"emu"}},"#3":{"delete":null},"#4":{"insert":{"kind":"elk"}}}}]"##
    );
    // Only the row that was an owl leaves this view.
    let owls = r#"{"columns":["kind"],"where":[["kind","==","owl"]]}"#;
    let text = found(&mut fixture, 2, &past, owls);
    assert_eq!(text, r##"[true,"t7",{"Pet":{"#1":{"delete":null}}}]"##);
    // Four rows differ, and there are three.
    let (_, _, row) = &then[0];
    let gone = row.clone().expect("a row");
    let gone = (1..=4).map(|number| (table, Uuid([number; 16]), Some(gone.clone())));
    let mut large = PastRows::new(vec![table], 100);
    assert!(large.complete(gone));
    let text = found(&mut fixture, 4, &large, KIND);
    assert!(text.starts_with("[false"), "{text}");
    // Versions are not known.
    let versions = r#"{"columns":["kind","_version"]}"#;
    let text = found(&mut fixture, 3, &past, versions);
    assert!(text.starts_with("[false"), "{text}");
}
