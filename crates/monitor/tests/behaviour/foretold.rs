//! Updates written before their commit is noted: what is told is the same.

use std::sync::Arc;

use corvid_monitor::{SessionId, Version};

use crate::bed::{Bed, SESSION, ZOO};

const OTHER: SessionId = SessionId(2);

/// What two sessions are told, the one after every commit, the other in the end.
fn told(version: Version, params: &str, is_foretelling: bool, rows_max: usize) -> Vec<String> {
    let mut bed = Bed::new(ZOO);
    bed.is_foretelling = is_foretelling;
    bed.monitors.set_update_rows_max(rows_max);
    let owl = bed.insert("Pet", r#"{"kind":"owl","size":1}"#);
    for session in [SESSION, OTHER] {
        bed.start(session, version, params).expect("started");
    }
    let mut told = Vec::new();
    let emu = bed.insert("Pet", r#"{"kind":"emu"}"#);
    told.extend(bed.told());
    bed.update("Pet", &owl, r#"{"size":7}"#);
    told.extend(bed.told());
    // Neither is told of this one alone.
    bed.update("Pet", &emu, r#"{"kind":"cat","size":2}"#);
    bed.update("Pet", &owl, r#"{"size":3}"#);
    told.extend(bed.told());
    bed.insert("Keeper", r#"{"name":"k"}"#);
    told.extend(bed.told());
    bed.delete("Pet", &emu);
    told.extend(bed.told());
    told.extend(bed.told_to(OTHER));
    told
}

#[test]
fn what_is_foretold_is_what_is_told() {
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
        let plainly = told(version, params, false, 1000);
        assert!(plainly.len() > 1, "{plainly:?}");
        assert_eq!(told(version, params, true, 1000), plainly);
        // Texts that are left to be written may turn out to tell nothing.
        let mut late = told(version, params, true, 0);
        late.retain(|text| !text.ends_with("{}"));
        assert_eq!(late, plainly);
    }
}

#[test]
fn an_update_that_nobody_has_begun_to_write_is_composed_when_it_is_told() {
    let mut bed = Bed::new(ZOO);
    bed.monitor(Version::V2, r#"1,{"Pet":{"columns":["kind"]}}"#);
    let delta = bed.execute(r#"{"op":"insert","table":"Pet","row":{"kind":"owl"}}"#);
    let texts = bed.monitors.foretell(&delta);
    assert_eq!(texts.len(), 1);
    bed.commit(&delta);
    let told = bed.told();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains(r#"{"insert":{"kind":"owl"}}"#), "{told:?}");
    assert!(!texts[0].is_written());
}

#[test]
fn a_commit_that_is_undone_is_not_told_and_makes_room_for_the_next() {
    let mut bed = Bed::new(ZOO);
    bed.monitor(Version::V2, r#"1,{"Pet":{"columns":["kind"]}}"#);
    let undone = bed.execute(r#"{"op":"insert","table":"Pet","row":{"kind":"owl"}}"#);
    for text in bed.monitors.foretell(&undone) {
        text.pieces();
    }
    assert!(
        bed.monitors.foretell(&undone).is_empty(),
        "one at a time for each group"
    );
    bed.database.undo(&undone);
    bed.monitors.undo();
    bed.is_foretelling = true;
    bed.insert("Pet", r#"{"kind":"emu"}"#);
    assert_eq!(
        bed.told(),
        [r##"update2 1,{"Pet":{"#1":{"insert":{"kind":"emu"}}}}"##]
    );
}

#[test]
fn what_does_not_show_is_not_kept() {
    let mut bed = Bed::new(ZOO);
    bed.monitor(Version::V2, r#"1,{"Keeper":{}}"#);
    let delta = bed.execute(r#"{"op":"insert","table":"Pet","row":{"kind":"owl"}}"#);
    assert!(bed.monitors.foretell(&delta).is_empty(), "of no table here");
    bed.commit(&delta);

    bed.monitor(Version::V2, r#"2,{"Pet":{"where":[["size",">",5]]}}"#);
    let delta = bed.execute(r#"{"op":"insert","table":"Pet","row":{"size":1}}"#);
    let texts = bed.monitors.foretell(&delta);
    assert_eq!(texts.len(), 1);
    bed.commit(&delta);
    assert_eq!(Arc::strong_count(&texts[0]), 1, "nobody will be told");
    let delta = bed.execute(r#"{"op":"insert","table":"Pet","row":{"size":9}}"#);
    let texts = bed.monitors.foretell(&delta);
    assert_eq!(texts.len(), 1, "there is room for the next");
    bed.commit(&delta);
    assert_eq!(Arc::strong_count(&texts[0]), 2, "until it is told");
    assert_eq!(bed.told().len(), 1);
}
