//! Changes merge while a session is not flushed (docs/spec/protocol.md 1.10). Also: which sessions
//! are listed for a flush.

use corvid_monitor::{SessionId, Version};

use crate::fixture::{Fixture, SESSION, ZOO, text};

const PET: &str = r#"1,{"Pet":{"columns":["kind","size"]}}"#;

fn row(event: &str) -> Vec<String> {
    vec![format!(r##"update2 1,{{"Pet":{{"#1":{event}}}}}"##)]
}

#[test]
fn insert_then_modify_is_an_insert_of_the_last_content() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, PET);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.update("Pet", &owl, r#"{"size":3}"#);
    assert_eq!(
        fixture.notifications(),
        row(r#"{"insert":{"kind":"owl","size":3}}"#)
    );
}

#[test]
fn insert_then_delete_is_nothing() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, PET);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.delete("Pet", &owl);
    assert_eq!(fixture.pending(), [1]);
    assert!(fixture.notifications().is_empty());
    assert!(fixture.pending().is_empty());
}

#[test]
fn modifying_back_is_nothing() {
    let mut fixture = Fixture::new(ZOO);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.monitor(Version::V2, PET);
    fixture.update("Pet", &owl, r#"{"size":3}"#);
    fixture.update("Pet", &owl, r#"{"size":0}"#);
    assert!(fixture.notifications().is_empty());
}

#[test]
fn modify_then_delete_is_a_delete() {
    let mut fixture = Fixture::new(ZOO);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.monitor(Version::V2, PET);
    fixture.update("Pet", &owl, r#"{"size":3}"#);
    fixture.delete("Pet", &owl);
    assert_eq!(fixture.notifications(), row(r#"{"delete":null}"#));
}

#[test]
fn delete_then_insert_of_the_same_identity_is_a_modification() {
    let mut fixture = Fixture::new(ZOO);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.monitor(Version::V2, PET);
    fixture.delete("Pet", &owl);
    fixture.transact(&format!(
        r#"{{"op":"insert","table":"Pet","uuid":"{owl}","row":{{"kind":"owl","size":4}}}}"#
    ));
    assert_eq!(fixture.notifications(), row(r#"{"modify":{"size":4}}"#));
}

#[test]
fn deletion_of_version_1_has_the_content_that_the_client_has() {
    let mut fixture = Fixture::new(ZOO);
    let owl = fixture.insert("Pet", r#"{"kind":"owl","size":1}"#);
    fixture.monitor(Version::V1, PET);
    fixture.update("Pet", &owl, r#"{"size":3}"#);
    fixture.delete("Pet", &owl);
    assert_eq!(
        fixture.notifications(),
        [r##"update 1,{"Pet":{"#1":{"old":{"kind":"owl","size":1}}}}"##]
    );
}

#[test]
fn session_that_is_not_ready_gets_one_merged_update() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, PET);
    fixture.monitors.set_ready(SESSION, false);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.update("Pet", &owl, r#"{"size":3}"#);
    assert!(fixture.pending().is_empty());
    fixture.monitors.set_ready(SESSION, true);
    fixture.monitors.set_ready(SESSION, true);
    assert_eq!(fixture.pending(), [1]);
    assert_eq!(
        fixture.notifications(),
        row(r#"{"insert":{"kind":"owl","size":3}}"#)
    );
    assert!(fixture.notifications().is_empty());
}

#[test]
fn readiness_is_known_before_the_first_monitor() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitors.set_ready(SESSION, false);
    fixture.monitor(Version::V2, PET);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert!(fixture.pending().is_empty());
    assert_eq!(
        fixture.notifications().len(),
        1,
        "a reply is preceded by updates, ready or not"
    );
}

#[test]
fn session_that_stops_being_ready_after_it_was_listed_gets_nothing() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, PET);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.monitors.set_ready(SESSION, false);
    assert!(fixture.pending().is_empty());
    fixture.monitors.set_ready(SESSION, true);
    assert_eq!(fixture.pending(), [1]);
}

#[test]
fn sessions_are_listed_once_and_again_after_a_flush() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, PET);
    fixture.monitor(Version::V1, r#"2,{"Pet":{}}"#);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.update("Pet", &owl, r#"{"size":3}"#);
    assert_eq!(fixture.pending(), [1]);
    assert_eq!(fixture.notifications().len(), 2);
    fixture.update("Pet", &owl, r#"{"size":4}"#);
    assert_eq!(fixture.pending(), [1]);
}

#[test]
fn members_at_different_segments_get_their_own_part() {
    let mut fixture = Fixture::new(ZOO);
    let (slow, fast) = (SessionId(1), SessionId(2));
    for session in [slow, fast] {
        fixture.start(session, Version::V2, PET).expect("started");
    }
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(
        fixture.notifications_to(fast),
        row(r#"{"insert":{"kind":"owl"}}"#)
    );
    fixture.update("Pet", &owl, r#"{"size":1}"#);
    assert_eq!(
        fixture.notifications_to(fast),
        row(r#"{"modify":{"size":1}}"#)
    );
    fixture.update("Pet", &owl, r#"{"size":2}"#);
    fixture.update("Pet", &owl, r#"{"kind":"auk"}"#);
    assert_eq!(
        fixture.notifications_to(slow),
        row(r#"{"insert":{"kind":"auk","size":2}}"#)
    );
    assert_eq!(
        fixture.notifications_to(fast),
        row(r#"{"modify":{"kind":"auk","size":2}}"#)
    );
    fixture.update("Pet", &owl, r#"{"size":3}"#);
    assert!(fixture.share_a_body(slow, fast));
}

#[test]
fn update3_names_the_newest_transaction() {
    let mut fixture = Fixture::new(ZOO);
    let zero = "\"00000000-0000-0000-0000-000000000000\"";
    let result = fixture.monitor(Version::V3, &format!("{PET},{zero}"));
    assert_eq!(result, r#"[false,"t0",{}]"#);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.insert("Keeper", "{}");
    assert_eq!(
        fixture.notifications(),
        [r##"update3 1,"t2",{"Pet":{"#1":{"insert":{"kind":"owl"}}}}"##]
    );
    fixture.insert("Keeper", "{}");
    assert!(fixture.notifications().is_empty());
}

#[test]
fn members_at_different_positions_get_long_changes_in_steps_that_they_share() {
    let mut fixture = Fixture::new(ZOO);
    let zero = "\"00000000-0000-0000-0000-000000000000\"";
    let (slow, other, fast) = (SessionId(1), SessionId(2), SessionId(3));
    for session in [slow, other, fast] {
        let params = format!("{PET},{zero}");
        fixture
            .start(session, Version::V3, &params)
            .expect("started");
    }
    fixture.monitors.set_step_bytes(16 << 10);
    let kind = |letter: &str| letter.repeat(40 << 10);
    let owl = fixture.insert("Pet", &format!(r#"{{"kind":"{}"}}"#, kind("o")));
    assert_eq!(fixture.frames(other).len(), 1);
    assert_eq!(fixture.frames(fast).len(), 1);
    fixture.insert("Pet", &format!(r#"{{"kind":"{}"}}"#, kind("e")));
    assert_eq!(fixture.frames(fast).len(), 1);
    fixture.update("Pet", &owl, r#"{"size":2}"#);

    let mut step = |session| {
        let mut frames = Vec::new();
        let is_behind = fixture.monitors.flush_step(session, &mut frames);
        (frames.remove(0), is_behind)
    };
    let (first, is_behind) = step(slow);
    assert!(is_behind, "the rest comes later");
    assert!(text(&first).starts_with(r#"update3 1,"t1","#));
    let [(second, is_behind), (same, _)] = [slow, other].map(&mut step);
    assert!(is_behind && text(&second).starts_with(r#"update3 1,"t2","#));
    assert!(second.body.ptr_eq(&same.body), "one text");
    let (third, is_behind) = step(slow);
    assert!(!is_behind);
    let expected = r##"update3 1,"t3",{"Pet":{"#1":{"modify":{"size":2}}}}"##;
    assert_eq!(text(&third), expected);

    for session in [other, fast] {
        assert_eq!(fixture.notifications_to(session), [expected]);
    }
}

#[test]
fn updates_before_a_reply_are_all_that_is_pending() {
    let mut fixture = Fixture::new(ZOO);
    let (slow, other) = (SESSION, SessionId(2));
    for session in [slow, other] {
        fixture.start(session, Version::V2, PET).expect("started");
    }
    fixture.monitors.set_step_bytes(1);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(fixture.frames(other).len(), 1);
    fixture.insert("Pet", r#"{"kind":"emu"}"#);
    assert_eq!(fixture.frames(slow).len(), 2, "a step, and the rest");
    assert!(fixture.notifications_to(slow).is_empty());
}
