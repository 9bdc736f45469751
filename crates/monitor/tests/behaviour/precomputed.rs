//! Updates composed before their commit is stored equal those composed at the flush.

use std::sync::Arc;

use corvid_monitor::{SessionId, Version};

use crate::fixture::{Fixture, SESSION, ZOO};

const OTHER: SessionId = SessionId(2);

/// The notifications of two sessions: one is flushed after every commit, the other at the end.
fn notifications(
    version: Version,
    params: &str,
    precomputes_updates: bool,
    rows_max: usize,
) -> Vec<String> {
    let mut fixture = Fixture::new(ZOO);
    fixture.precomputes_updates = precomputes_updates;
    fixture.monitors.set_update_rows_max(rows_max);
    let owl = fixture.insert("Pet", r#"{"kind":"owl","size":1}"#);
    for session in [SESSION, OTHER] {
        fixture.start(session, version, params).expect("started");
    }
    let mut sent = Vec::new();
    let emu = fixture.insert("Pet", r#"{"kind":"emu"}"#);
    sent.extend(fixture.notifications());
    fixture.update("Pet", &owl, r#"{"size":7}"#);
    sent.extend(fixture.notifications());
    // Neither session gets this commit alone.
    fixture.update("Pet", &emu, r#"{"kind":"cat","size":2}"#);
    fixture.update("Pet", &owl, r#"{"size":3}"#);
    sent.extend(fixture.notifications());
    fixture.insert("Keeper", r#"{"name":"k"}"#);
    sent.extend(fixture.notifications());
    fixture.delete("Pet", &emu);
    sent.extend(fixture.notifications());
    sent.extend(fixture.notifications_to(OTHER));
    sent
}

#[test]
fn precomputed_updates_equal_composed_ones() {
    let requests = [
        (Version::V1, r#"1,{"Pet":{"columns":["kind","size"]}}"#),
        (Version::V2, r#"1,{"Pet":{"columns":["size"]}}"#),
        (
            Version::V2,
            r#"1,{"Pet":{"where":[["size","<",5]]},"Keeper":{}}"#,
        ),
        (
            Version::V3,
            r#"1,{"Pet":{"select":{"modify":false}}},"00000000-0000-0000-0000-000000000000""#,
        ),
    ];
    for (version, params) in requests {
        let plainly = notifications(version, params, false, 1000);
        assert!(plainly.len() > 1, "{plainly:?}");
        assert_eq!(notifications(version, params, true, 1000), plainly);
        // Deferred bodies may turn out to be empty.
        let mut deferred = notifications(version, params, true, 0);
        deferred.retain(|text| !text.ends_with("{}"));
        assert_eq!(deferred, plainly);
    }
}

#[test]
fn update_whose_writing_has_not_begun_is_composed_at_the_flush() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, r#"1,{"Pet":{"columns":["kind"]}}"#);
    let delta = fixture.execute(r#"{"op":"insert","table":"Pet","row":{"kind":"owl"}}"#);
    let texts = fixture.monitors.precompute_updates(&delta);
    assert_eq!(texts.len(), 1);
    fixture.commit(&delta);
    let sent = fixture.notifications();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].contains(r#"{"insert":{"kind":"owl"}}"#), "{sent:?}");
    assert!(!texts[0].is_written());
}

#[test]
fn undone_commit_is_not_sent_and_makes_room_for_the_next() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, r#"1,{"Pet":{"columns":["kind"]}}"#);
    let undone = fixture.execute(r#"{"op":"insert","table":"Pet","row":{"kind":"owl"}}"#);
    for text in fixture.monitors.precompute_updates(&undone) {
        text.pieces();
    }
    assert!(
        fixture.monitors.precompute_updates(&undone).is_empty(),
        "one update at a time for each group"
    );
    fixture.database.undo(&undone);
    fixture.monitors.undo();
    fixture.precomputes_updates = true;
    fixture.insert("Pet", r#"{"kind":"emu"}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update2 1,{"Pet":{"#1":{"insert":{"kind":"emu"}}}}"##]
    );
}

#[test]
fn invisible_precomputed_update_is_dropped() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, r#"1,{"Keeper":{}}"#);
    let delta = fixture.execute(r#"{"op":"insert","table":"Pet","row":{"kind":"owl"}}"#);
    assert!(
        fixture.monitors.precompute_updates(&delta).is_empty(),
        "no group subscribes to the table"
    );
    fixture.commit(&delta);

    fixture.monitor(Version::V2, r#"2,{"Pet":{"where":[["size",">",5]]}}"#);
    let delta = fixture.execute(r#"{"op":"insert","table":"Pet","row":{"size":1}}"#);
    let texts = fixture.monitors.precompute_updates(&delta);
    assert_eq!(texts.len(), 1);
    fixture.commit(&delta);
    assert_eq!(Arc::strong_count(&texts[0]), 1, "the group has dropped it");
    let delta = fixture.execute(r#"{"op":"insert","table":"Pet","row":{"size":9}}"#);
    let texts = fixture.monitors.precompute_updates(&delta);
    assert_eq!(texts.len(), 1, "the next one is precomputed");
    fixture.commit(&delta);
    assert_eq!(Arc::strong_count(&texts[0]), 2, "until the flush");
    assert_eq!(fixture.notifications().len(), 1);
}
