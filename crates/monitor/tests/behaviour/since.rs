//! `monitor_cond_since` (docs/spec/protocol.md 4.9).

use corvid_data::Uuid;
use corvid_monitor::{SessionId, Version};

use crate::bed::{Bed, ZOO, txn};

fn since(last: Uuid, request: &str) -> String {
    format!(r#"1,{{"Pet":{request}}},"{last}""#)
}

const KIND: &str = r#"{"columns":["kind"]}"#;

/// Somebody who is told ids of commits, without whom nobody could come back with one.
fn follow(bed: &mut Bed) {
    let started = bed.start(SessionId(100), Version::V3, &since(Uuid::ZERO, KIND));
    assert!(started.is_ok(), "{started:?}");
}

#[test]
fn without_a_known_transaction_everything_is_told() {
    let mut bed = Bed::new(ZOO);
    bed.insert("Pet", r#"{"kind":"owl"}"#);
    let all = r##"[false,"t1",{"Pet":{"#1":{"initial":{"kind":"owl"}}}}]"##;
    assert_eq!(bed.monitor(Version::V3, &since(Uuid::ZERO, KIND)), all);
    let unknown = bed.start(SessionId(2), Version::V3, &since(txn(99), KIND));
    assert_eq!(unknown.as_deref(), Ok(all));
}

#[test]
fn the_net_change_after_a_known_transaction_is_told() {
    let mut bed = Bed::new(ZOO);
    follow(&mut bed);
    bed.insert_ballast();
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    let ape = bed.insert("Pet", r#"{"kind":"ape"}"#);
    bed.update("Pet", &owl, r#"{"kind":"auk"}"#);
    bed.update("Pet", &owl, r#"{"kind":"emu"}"#);
    let gnu = bed.insert("Pet", r#"{"kind":"gnu"}"#);
    bed.delete("Pet", &gnu);
    bed.update("Pet", &ape, r#"{"size":7}"#);
    assert_eq!(
        bed.monitor(Version::V3, &since(txn(3), KIND)),
        r##"[true,"t8",{"Pet":{"#1":{"modify":{"kind":"emu"}}}}]"##
    );
    let mut ask = |session, last| bed.start(SessionId(session), Version::V3, &since(last, KIND));
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
fn the_condition_counts_for_both_sides_and_initial_does_not_matter() {
    let mut bed = Bed::new(ZOO);
    follow(&mut bed);
    bed.insert_ballast();
    let owl = bed.insert("Pet", r#"{"kind":"owl","size":1}"#);
    let ape = bed.insert("Pet", r#"{"kind":"ape","size":9}"#);
    bed.update("Pet", &owl, r#"{"size":9}"#);
    bed.update("Pet", &ape, r#"{"size":2}"#);
    let small = r#"{"columns":["kind"],"where":[["size","<",5]],"select":{"initial":false}}"#;
    assert_eq!(
        bed.monitor(Version::V3, &since(txn(3), small)),
        r##"[true,"t5",{"Pet":{"#1":{"delete":null},"#2":{"insert":{"kind":"ape"}}}}]"##
    );
    let none = bed.start(SessionId(2), Version::V3, &since(Uuid::ZERO, small));
    assert_eq!(none.as_deref(), Ok(r#"[false,"t5",{}]"#));
}

#[test]
fn what_was_told_to_nobody_is_not_kept_to_be_asked_for() {
    let mut bed = Bed::new(ZOO);
    bed.insert_ballast();
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.update("Pet", &owl, r#"{"kind":"auk"}"#);
    assert_eq!(bed.monitors.history_size(), (0, 0));
    assert_eq!(
        bed.monitor(Version::V3, &since(txn(2), KIND)),
        r##"[false,"t3",{"Pet":{"#1":{"initial":{"kind":"auk"}}}}]"##
    );
    // What was told may be asked for, also by who left before anything happened.
    assert!(bed.monitors.cancel(SessionId(1), b"1"));
    bed.update("Pet", &owl, r#"{"kind":"emu"}"#);
    assert_eq!(
        bed.monitor(Version::V3, &since(txn(3), KIND)),
        r##"[true,"t4",{"Pet":{"#1":{"modify":{"kind":"emu"}}}}]"##
    );
    bed.update("Pet", &owl, r#"{"kind":"gnu"}"#);
    bed.told();
    assert!(bed.monitors.cancel(SessionId(1), b"1"));
    bed.update("Pet", &owl, r#"{"kind":"yak"}"#);
    assert_eq!(
        bed.monitor(Version::V3, &since(txn(5), KIND)),
        r##"[true,"t6",{"Pet":{"#1":{"modify":{"kind":"yak"}}}}]"##
    );
}

#[test]
fn after_the_reply_updates_go_on_from_there() {
    let mut bed = Bed::new(ZOO);
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.update("Pet", &owl, r#"{"kind":"auk"}"#);
    bed.monitor(Version::V3, &since(txn(1), KIND));
    assert!(bed.told().is_empty());
    bed.update("Pet", &owl, r#"{"kind":"emu"}"#);
    assert_eq!(
        bed.told(),
        [r##"update3 1,"t3",{"Pet":{"#1":{"modify":{"kind":"emu"}}}}"##]
    );
}

#[test]
fn a_database_without_history_never_finds_and_has_zero_ids() {
    let mut bed = Bed::with_history(ZOO, false);
    bed.insert("Pet", r#"{"kind":"owl"}"#);
    let all = r##"[false,"#0",{"Pet":{"#1":{"initial":{"kind":"owl"}}}}]"##;
    assert_eq!(bed.monitor(Version::V3, &since(Uuid::ZERO, KIND)), all);
    let known = bed.start(SessionId(2), Version::V3, &since(txn(1), KIND));
    assert_eq!(known.as_deref(), Ok(all));
    bed.insert("Pet", r#"{"kind":"ape"}"#);
    assert_eq!(
        bed.told(),
        [r##"update3 1,"#0",{"Pet":{"#2":{"insert":{"kind":"ape"}}}}"##]
    );
    assert_eq!(bed.monitors.last_txn(), Uuid::ZERO);
}

#[test]
fn those_who_come_back_from_the_same_place_share_one_body() {
    let mut bed = Bed::new(ZOO);
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.update("Pet", &owl, r#"{"kind":"auk"}"#);
    let params = format!("[\"Zoo\",{}]", since(txn(1), KIND));
    let mut ask = |session| {
        let session = SessionId(session);
        let started = bed
            .monitors
            .monitor(
                &bed.database,
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
