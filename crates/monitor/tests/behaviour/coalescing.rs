//! Changes merge while a session is not told (docs/spec/protocol.md 1.10), and who is to be told when.

use corvid_monitor::{SessionId, Version};

use crate::bed::{Bed, SESSION, ZOO};

const PET: &str = r#"1,{"Pet":{"columns":["kind","size"]}}"#;

fn row(event: &str) -> Vec<String> {
    vec![format!(r##"update2 1,{{"Pet":{{"#1":{event}}}}}"##)]
}

#[test]
fn insert_then_modify_is_an_insert_of_the_last_content() {
    let mut bed = Bed::new(ZOO);
    bed.monitor(Version::V2, PET);
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.update("Pet", &owl, r#"{"size":3}"#);
    assert_eq!(bed.told(), row(r#"{"insert":{"kind":"owl","size":3}}"#));
}

#[test]
fn insert_then_delete_is_nothing() {
    let mut bed = Bed::new(ZOO);
    bed.monitor(Version::V2, PET);
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.delete("Pet", &owl);
    assert_eq!(bed.pending(), [1]);
    assert!(bed.told().is_empty());
    assert!(bed.pending().is_empty());
}

#[test]
fn modifying_back_is_nothing() {
    let mut bed = Bed::new(ZOO);
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.monitor(Version::V2, PET);
    bed.update("Pet", &owl, r#"{"size":3}"#);
    bed.update("Pet", &owl, r#"{"size":0}"#);
    assert!(bed.told().is_empty());
}

#[test]
fn modify_then_delete_is_a_delete() {
    let mut bed = Bed::new(ZOO);
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.monitor(Version::V2, PET);
    bed.update("Pet", &owl, r#"{"size":3}"#);
    bed.delete("Pet", &owl);
    assert_eq!(bed.told(), row(r#"{"delete":null}"#));
}

#[test]
fn delete_then_insert_of_the_same_identity_is_a_modification() {
    let mut bed = Bed::new(ZOO);
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.monitor(Version::V2, PET);
    bed.delete("Pet", &owl);
    bed.transact(&format!(
        r#"{{"op":"insert","table":"Pet","uuid":"{owl}","row":{{"kind":"owl","size":4}}}}"#
    ));
    assert_eq!(bed.told(), row(r#"{"modify":{"size":4}}"#));
}

#[test]
fn deletion_of_version_1_tells_the_content_known_to_the_client() {
    let mut bed = Bed::new(ZOO);
    let owl = bed.insert("Pet", r#"{"kind":"owl","size":1}"#);
    bed.monitor(Version::V1, PET);
    bed.update("Pet", &owl, r#"{"size":3}"#);
    bed.delete("Pet", &owl);
    assert_eq!(
        bed.told(),
        [r##"update 1,{"Pet":{"#1":{"old":{"kind":"owl","size":1}}}}"##]
    );
}

#[test]
fn a_session_that_is_not_ready_is_withheld_and_told_once() {
    let mut bed = Bed::new(ZOO);
    bed.monitor(Version::V2, PET);
    bed.monitors.set_ready(SESSION, false);
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.update("Pet", &owl, r#"{"size":3}"#);
    assert!(bed.pending().is_empty());
    bed.monitors.set_ready(SESSION, true);
    bed.monitors.set_ready(SESSION, true);
    assert_eq!(bed.pending(), [1]);
    assert_eq!(bed.told(), row(r#"{"insert":{"kind":"owl","size":3}}"#));
    assert!(bed.told().is_empty());
}

#[test]
fn readiness_is_known_before_the_first_monitor() {
    let mut bed = Bed::new(ZOO);
    bed.monitors.set_ready(SESSION, false);
    bed.monitor(Version::V2, PET);
    bed.insert("Pet", r#"{"kind":"owl"}"#);
    assert!(bed.pending().is_empty());
    assert_eq!(
        bed.told().len(),
        1,
        "a reply is preceded by updates, ready or not"
    );
}

#[test]
fn a_session_that_stops_being_ready_after_it_was_listed_is_withheld() {
    let mut bed = Bed::new(ZOO);
    bed.monitor(Version::V2, PET);
    bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.monitors.set_ready(SESSION, false);
    assert!(bed.pending().is_empty());
    bed.monitors.set_ready(SESSION, true);
    assert_eq!(bed.pending(), [1]);
}

#[test]
fn sessions_are_listed_once_and_again_after_they_were_told() {
    let mut bed = Bed::new(ZOO);
    bed.monitor(Version::V2, PET);
    bed.monitor(Version::V1, r#"2,{"Pet":{}}"#);
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.update("Pet", &owl, r#"{"size":3}"#);
    assert_eq!(bed.pending(), [1]);
    assert_eq!(bed.told().len(), 2);
    bed.update("Pet", &owl, r#"{"size":4}"#);
    assert_eq!(bed.pending(), [1]);
}

#[test]
fn members_of_a_group_that_stand_at_different_places_are_told_their_own_part() {
    let mut bed = Bed::new(ZOO);
    let (slow, fast) = (SessionId(1), SessionId(2));
    for session in [slow, fast] {
        bed.start(session, Version::V2, PET).expect("started");
    }
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(bed.told_to(fast), row(r#"{"insert":{"kind":"owl"}}"#));
    bed.update("Pet", &owl, r#"{"size":1}"#);
    assert_eq!(bed.told_to(fast), row(r#"{"modify":{"size":1}}"#));
    bed.update("Pet", &owl, r#"{"size":2}"#);
    bed.update("Pet", &owl, r#"{"kind":"auk"}"#);
    assert_eq!(
        bed.told_to(slow),
        row(r#"{"insert":{"kind":"auk","size":2}}"#)
    );
    assert_eq!(
        bed.told_to(fast),
        row(r#"{"modify":{"kind":"auk","size":2}}"#)
    );
    bed.update("Pet", &owl, r#"{"size":3}"#);
    assert!(bed.share_a_body(slow, fast));
}

#[test]
fn update3_names_the_newest_transaction() {
    let mut bed = Bed::new(ZOO);
    let zero = "\"00000000-0000-0000-0000-000000000000\"";
    let result = bed.monitor(Version::V3, &format!("{PET},{zero}"));
    assert_eq!(result, r#"[false,"t0",{}]"#);
    bed.insert("Pet", r#"{"kind":"owl"}"#);
    bed.insert("Keeper", "{}");
    assert_eq!(
        bed.told(),
        [r##"update3 1,"t2",{"Pet":{"#1":{"insert":{"kind":"owl"}}}}"##]
    );
    bed.insert("Keeper", "{}");
    assert!(bed.told().is_empty());
}
