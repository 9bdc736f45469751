//! References: to the row itself, to rows that are not there, in maps, and between rows that come and go together.

use corvid_data::{Atom, Datum, Uuid};
use corvid_idl::{Class, RowId, Status};
use corvid_session::{Clause, Condition, Function};

use crate::bed::{Bed, integer, references, string};

fn links(bed: &mut Bed, count: i64) -> Vec<RowId> {
    let mut rows = Vec::new();
    bed.succeed(|bed| {
        rows = (0..count)
            .map(|number| bed.insert("link", &[("i", integer(number))]))
            .collect();
    });
    rows
}

/// The row that `one` of a link leads to.
fn target(bed: &mut Bed, row: RowId) -> Option<RowId> {
    let one = bed.column("link", "one");
    let uuid = bed.idl().read(row, one).expect("held").as_uuid()?;
    bed.idl().row(row.table, uuid)
}

#[test]
fn references_lead_to_the_row_itself_and_back() {
    let mut bed = Bed::with_client();
    let one = bed.column("link", "one");
    let rows = links(&mut bed, 3);
    for (from, to) in [(0, 0), (0, 1), (1, 0), (0, 2), (0, 0)] {
        bed.succeed(|bed| {
            let value = references(&rows[to..=to]);
            bed.idl().write(rows[from], one, value).unwrap();
            assert_eq!(target(bed, rows[from]), Some(rows[to]), "at once");
        });
        assert_eq!(target(&mut bed, rows[from]), Some(rows[to]));
        bed.idl().check_consistency().unwrap();
    }
    bed.succeed(|bed| bed.idl().write(rows[0], one, Datum::empty()).unwrap());
    assert_eq!(target(&mut bed, rows[0]), None);
}

#[test]
fn the_server_refuses_references_to_nothing() {
    let mut bed = Bed::with_client();
    let (one, many) = (bed.column("link", "one"), bed.column("link", "many"));
    let rows = links(&mut bed, 3);
    let nobody = Datum::one(Atom::Uuid(Uuid::from_random([9; 16])));
    let (txn, status) = bed.transact(|bed| bed.idl().write(rows[0], one, nobody).unwrap());
    assert_eq!(status, Status::Error);
    assert!(
        bed.idl()
            .txn_error(txn)
            .unwrap()
            .contains("referential integrity violation")
    );
    assert_eq!(target(&mut bed, rows[0]), None, "and it is not shown");
    bed.succeed(|bed| {
        bed.idl()
            .write(rows[0], one, references(&rows[1..2]))
            .unwrap();
        bed.idl().write(rows[0], many, references(&rows)).unwrap();
    });
    let (_, status) = bed.transact(|bed| bed.idl().delete(rows[1]).unwrap());
    assert_eq!((status, bed.idl().row_count(one.table)), (Status::Error, 3));
    bed.succeed(|bed| {
        for &row in &rows {
            bed.idl().delete(row).unwrap();
        }
    });
    assert_eq!(
        bed.idl().row_count(one.table),
        0,
        "all of them together may go"
    );
}

#[test]
fn maps_hold_references_too() {
    let mut bed = Bed::with_client();
    let (refs, notes, r) = (
        bed.column("kinds", "refs"),
        bed.column("kinds", "notes"),
        bed.column("kinds", "r"),
    );
    let rows = links(&mut bed, 2);
    let mut kinds = None;
    bed.succeed(|bed| kinds = Some(bed.insert("kinds", &[])));
    let kinds = kinds.unwrap();
    let text = |text: &str| Atom::String(text.into());
    // Elements of two maps beside a column as a whole: one operation each.
    bed.succeed(|bed| {
        let idl = bed.idl();
        idl.set_key(kinds, refs, Atom::Integer(1), Atom::Uuid(rows[0].uuid))
            .unwrap();
        idl.set_key(kinds, refs, Atom::Integer(2), Atom::Uuid(rows[1].uuid))
            .unwrap();
        idl.set_key(kinds, notes, text("k"), text("v")).unwrap();
        let half = corvid_data::Real::new(0.5).expect("finite");
        idl.write(kinds, r, Datum::one(Atom::Real(half))).unwrap();
    });
    let sent = bed.last_operations();
    assert_eq!(
        (
            sent.matches("update").count(),
            sent.matches("mutate").count()
        ),
        (1, 1),
        "{sent}"
    );
    let held = bed.idl().read(kinds, refs).unwrap();
    let found: Vec<_> = held
        .values()
        .filter_map(corvid_data::AtomRef::as_uuid)
        .collect();
    assert_eq!(found, [rows[0].uuid, rows[1].uuid]);
    bed.succeed(|bed| {
        bed.idl().remove_key(kinds, refs, Atom::Integer(1)).unwrap();
        bed.idl().delete(rows[0]).unwrap();
    });
    assert_eq!(bed.idl().read(kinds, refs).unwrap().len(), 1);
    bed.idl().check_consistency().unwrap();
}

/// A client that tracks everything.
fn tracking() -> Bed {
    Bed::with_class(Class::track_all)
}

#[test]
fn what_goes_together_keeps_its_references() {
    let mut bed = tracking();
    let (link, one, many) = (
        bed.table("link"),
        bed.column("link", "one"),
        bed.column("link", "many"),
    );
    for column in [one, many] {
        let rows = links(&mut bed, 2);
        bed.succeed(|bed| {
            bed.idl()
                .write(rows[0], column, references(&rows[1..]))
                .unwrap();
        });
        bed.idl().clear_changes();
        bed.succeed(|bed| {
            bed.idl().delete(rows[0]).unwrap();
            bed.idl().delete(rows[1]).unwrap();
        });
        assert!(
            bed.idl()
                .changes(link)
                .iter()
                .all(|change| change.is_deleted)
        );
        let kept = bed.idl().read(rows[0], column).unwrap().as_uuid();
        assert_eq!(kept, Some(rows[1].uuid));
        bed.idl().check_consistency().unwrap();
        bed.idl().clear_changes();
        assert_eq!(
            bed.idl().read(rows[0], column),
            None,
            "nothing is left behind"
        );
    }
}

#[test]
fn rows_that_come_and_go_in_one_look_are_told_as_such() {
    let mut bed = tracking();
    let (link, many) = (bed.table("link"), bed.column("link", "many"));
    let rows = links(&mut bed, 2);
    bed.idl().clear_changes();
    // Both are still unread when the second is done.
    bed.peers[0].is_deaf = true;
    let uuid = bed.uuid();
    let source = rows[0].uuid;
    bed.server.transact(&format!(
        r#"{{"op":"insert","table":"link","uuid":"{uuid}","row":{{"i":7}}}},
           {{"op":"update","table":"link","where":[["_uuid","==",["uuid","{source}"]]],"row":{{"many":["uuid","{uuid}"]}}}}"#
    ));
    bed.server
        .transact(r#"{"op":"delete","table":"link","where":[["i","==",7]]}"#);
    bed.peers[0].is_deaf = false;
    bed.run();
    let changes = bed.idl().changes(link).to_vec();
    let of = |uuid: Uuid| changes.iter().find(|change| change.uuid == uuid);
    assert!(of(uuid).is_some_and(|gone| gone.is_new && gone.is_deleted));
    assert!(of(source).is_some_and(|change| change.is_updated(many.id)));
    assert!(of(rows[1].uuid).is_none());
    bed.idl().check_consistency().unwrap();
}

#[test]
fn strong_targets_may_be_out_of_sight() {
    for is_tracked in [false, true] {
        let mut bed = if is_tracked {
            tracking()
        } else {
            Bed::with_client()
        };
        let (child, children) = (bed.table("child"), bed.column("parent", "children"));
        let parent_table = bed.table("parent");
        let mut rows = Vec::new();
        bed.succeed(|bed| {
            rows = vec![
                bed.insert("child", &[("name", string("a"))]),
                bed.insert("child", &[("name", string("b"))]),
            ];
            let parent = bed.insert("parent", &[("children", references(&rows))]);
            rows.push(parent);
        });
        let parent = rows[2];
        bed.idl().clear_changes();
        let shown = |bed: &mut Bed| {
            let held = bed.idl().read(parent, children).unwrap();
            let uuids = held.keys().filter_map(corvid_data::AtomRef::as_uuid);
            uuids
                .filter(|uuid| bed.idl().row(child, *uuid).is_some())
                .count()
        };
        for _ in 0..2 {
            let mut wanted = Condition::none();
            wanted.add(Clause::new("name", Function::Equal, &string("a"), false));
            bed.idl().set_condition(0, child, wanted);
            bed.run();
            assert_eq!(shown(&mut bed), 1);
            if is_tracked {
                assert!(bed.idl().changes(child)[0].is_deleted);
                let of_parent = &bed.idl().changes(parent_table)[0];
                assert!(!of_parent.is_deleted && of_parent.updated().count() == 0);
            }
            assert_eq!(bed.idl().rows(child).count(), 1, "orphans are no rows");
            bed.idl().clear_changes();
            bed.idl().set_condition(0, child, Condition::all());
            bed.run();
            assert_eq!(shown(&mut bed), 2);
            if is_tracked {
                let change = &bed.idl().changes(child)[0];
                assert!(change.is_new && !change.is_deleted);
            }
            bed.idl().clear_changes();
            bed.idl().check_consistency().unwrap();
        }
    }
}

#[test]
fn flags_are_those_of_the_present_look() {
    // Only `i` is tracked: the insert shows nothing but another column.
    let mut bed = Bed::with_class(|class| {
        let i = class.column("simple", "i").expect("a column");
        class.track(i);
    });
    let (simple, i) = (bed.table("simple"), bed.column("simple", "i"));
    let mut row = None;
    bed.succeed(|bed| row = Some(bed.insert("simple", &[("s", string("x"))])));
    bed.idl().clear_changes();
    bed.succeed(|bed| bed.idl().delete(row.unwrap()).unwrap());
    let change = bed.idl().changes(simple)[0].clone();
    assert!(change.is_deleted && !change.is_new && !change.is_updated(i.id));
    assert!(
        change
            .seqnos
            .iter()
            .all(|&seqno| seqno <= bed.peers[0].idl.change_seqno())
    );
}
