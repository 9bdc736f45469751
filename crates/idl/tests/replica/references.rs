//! References: to the row itself, to missing rows, in maps, and between rows that appear and
//! disappear together.

use corvid_data::{Atom, Datum, Uuid};
use corvid_idl::{Class, RowId, Status};
use corvid_session::{Clause, Condition, Function};

use crate::fixture::{Fixture, integer, references, string};

fn links(fixture: &mut Fixture, count: i64) -> Vec<RowId> {
    let mut rows = Vec::new();
    fixture.succeed(|fixture| {
        rows = (0..count)
            .map(|number| fixture.insert("link", &[("i", integer(number))]))
            .collect();
    });
    rows
}

/// The row that `one` of a link refers to.
fn target(fixture: &mut Fixture, row: RowId) -> Option<RowId> {
    let one = fixture.column("link", "one");
    let uuid = fixture.idl().read(row, one).expect("held").as_uuid()?;
    fixture.idl().row(row.table, uuid)
}

#[test]
fn references_lead_to_the_row_itself_and_back() {
    let mut fixture = Fixture::with_client();
    let one = fixture.column("link", "one");
    let rows = links(&mut fixture, 3);
    for (from, to) in [(0, 0), (0, 1), (1, 0), (0, 2), (0, 0)] {
        fixture.succeed(|fixture| {
            let value = references(&rows[to..=to]);
            fixture.idl().write(rows[from], one, value).unwrap();
            assert_eq!(target(fixture, rows[from]), Some(rows[to]), "at once");
        });
        assert_eq!(target(&mut fixture, rows[from]), Some(rows[to]));
        fixture.idl().check_consistency().unwrap();
    }
    fixture.succeed(|fixture| fixture.idl().write(rows[0], one, Datum::empty()).unwrap());
    assert_eq!(target(&mut fixture, rows[0]), None);
}

#[test]
fn the_server_refuses_references_to_nothing() {
    let mut fixture = Fixture::with_client();
    let (one, many) = (
        fixture.column("link", "one"),
        fixture.column("link", "many"),
    );
    let rows = links(&mut fixture, 3);
    let nobody = Datum::one(Atom::Uuid(Uuid::from_random([9; 16])));
    let (txn, status) =
        fixture.transact(|fixture| fixture.idl().write(rows[0], one, nobody).unwrap());
    assert_eq!(status, Status::Error);
    assert!(
        fixture
            .idl()
            .txn_error(txn)
            .unwrap()
            .contains("referential integrity violation")
    );
    assert_eq!(target(&mut fixture, rows[0]), None, "and it is not shown");
    fixture.succeed(|fixture| {
        fixture
            .idl()
            .write(rows[0], one, references(&rows[1..2]))
            .unwrap();
        fixture
            .idl()
            .write(rows[0], many, references(&rows))
            .unwrap();
    });
    let (_, status) = fixture.transact(|fixture| fixture.idl().delete(rows[1]).unwrap());
    assert_eq!(
        (status, fixture.idl().row_count(one.table)),
        (Status::Error, 3)
    );
    fixture.succeed(|fixture| {
        for &row in &rows {
            fixture.idl().delete(row).unwrap();
        }
    });
    assert_eq!(
        fixture.idl().row_count(one.table),
        0,
        "all of them together may go"
    );
}

#[test]
fn maps_hold_references_too() {
    let mut fixture = Fixture::with_client();
    let (refs, notes, r) = (
        fixture.column("kinds", "refs"),
        fixture.column("kinds", "notes"),
        fixture.column("kinds", "r"),
    );
    let rows = links(&mut fixture, 2);
    let mut kinds = None;
    fixture.succeed(|fixture| kinds = Some(fixture.insert("kinds", &[])));
    let kinds = kinds.unwrap();
    let text = |text: &str| Atom::String(text.into());
    // Changes elements of two maps and also writes a whole column: one operation each.
    fixture.succeed(|fixture| {
        let idl = fixture.idl();
        idl.set_key(kinds, refs, Atom::Integer(1), Atom::Uuid(rows[0].uuid))
            .unwrap();
        idl.set_key(kinds, refs, Atom::Integer(2), Atom::Uuid(rows[1].uuid))
            .unwrap();
        idl.set_key(kinds, notes, text("k"), text("v")).unwrap();
        let half = corvid_data::Real::new(0.5).expect("finite");
        idl.write(kinds, r, Datum::one(Atom::Real(half))).unwrap();
    });
    let sent = fixture.last_operations();
    assert_eq!(
        (
            sent.matches("update").count(),
            sent.matches("mutate").count()
        ),
        (1, 1),
        "{sent}"
    );
    let held = fixture.idl().read(kinds, refs).unwrap();
    let found: Vec<_> = held
        .values()
        .filter_map(corvid_data::AtomRef::as_uuid)
        .collect();
    assert_eq!(found, [rows[0].uuid, rows[1].uuid]);
    fixture.succeed(|fixture| {
        fixture
            .idl()
            .remove_key(kinds, refs, Atom::Integer(1))
            .unwrap();
        fixture.idl().delete(rows[0]).unwrap();
    });
    assert_eq!(fixture.idl().read(kinds, refs).unwrap().len(), 1);
    fixture.idl().check_consistency().unwrap();
}

/// A client that tracks everything.
fn tracking() -> Fixture {
    Fixture::with_class(Class::track_all)
}

#[test]
fn what_goes_together_keeps_its_references() {
    let mut fixture = tracking();
    let (link, one, many) = (
        fixture.table("link"),
        fixture.column("link", "one"),
        fixture.column("link", "many"),
    );
    for column in [one, many] {
        let rows = links(&mut fixture, 2);
        fixture.succeed(|fixture| {
            fixture
                .idl()
                .write(rows[0], column, references(&rows[1..]))
                .unwrap();
        });
        fixture.idl().clear_changes();
        fixture.succeed(|fixture| {
            fixture.idl().delete(rows[0]).unwrap();
            fixture.idl().delete(rows[1]).unwrap();
        });
        assert!(
            fixture
                .idl()
                .changes(link)
                .iter()
                .all(|change| change.is_deleted)
        );
        let kept = fixture.idl().read(rows[0], column).unwrap().as_uuid();
        assert_eq!(kept, Some(rows[1].uuid));
        fixture.idl().check_consistency().unwrap();
        fixture.idl().clear_changes();
        assert_eq!(
            fixture.idl().read(rows[0], column),
            None,
            "nothing is left behind"
        );
    }
}

#[test]
fn rows_that_come_and_go_in_one_look_are_told_as_such() {
    let mut fixture = tracking();
    let (link, many) = (fixture.table("link"), fixture.column("link", "many"));
    let rows = links(&mut fixture, 2);
    fixture.idl().clear_changes();
    // Both updates are still unread when the second one is sent.
    fixture.peers[0].is_deaf = true;
    let uuid = fixture.uuid();
    let source = rows[0].uuid;
    fixture.server.transact(&format!(
        r#"{{"op":"insert","table":"link","uuid":"{uuid}","row":{{"i":7}}}},
           {{"op":"update","table":"link","where":[["_uuid","==",["uuid","{source}"]]],"row":{{"many":["uuid","{uuid}"]}}}}"#
    ));
    fixture
        .server
        .transact(r#"{"op":"delete","table":"link","where":[["i","==",7]]}"#);
    fixture.peers[0].is_deaf = false;
    fixture.run();
    let changes = fixture.idl().changes(link).to_vec();
    let of = |uuid: Uuid| changes.iter().find(|change| change.uuid == uuid);
    assert!(of(uuid).is_some_and(|gone| gone.is_new && gone.is_deleted));
    assert!(of(source).is_some_and(|change| change.is_updated(many.id)));
    assert!(of(rows[1].uuid).is_none());
    fixture.idl().check_consistency().unwrap();
}

#[test]
fn strong_targets_may_be_out_of_sight() {
    for is_tracked in [false, true] {
        let mut fixture = if is_tracked {
            tracking()
        } else {
            Fixture::with_client()
        };
        let (child, children) = (fixture.table("child"), fixture.column("parent", "children"));
        let parent_table = fixture.table("parent");
        let mut rows = Vec::new();
        fixture.succeed(|fixture| {
            rows = vec![
                fixture.insert("child", &[("name", string("a"))]),
                fixture.insert("child", &[("name", string("b"))]),
            ];
            let parent = fixture.insert("parent", &[("children", references(&rows))]);
            rows.push(parent);
        });
        let parent = rows[2];
        fixture.idl().clear_changes();
        let shown = |fixture: &mut Fixture| {
            let held = fixture.idl().read(parent, children).unwrap();
            let uuids = held.keys().filter_map(corvid_data::AtomRef::as_uuid);
            uuids
                .filter(|uuid| fixture.idl().row(child, *uuid).is_some())
                .count()
        };
        for _ in 0..2 {
            let mut wanted = Condition::none();
            wanted.add(Clause::new("name", Function::Equal, &string("a"), false));
            fixture
                .idl()
                .set_condition(0, child, wanted)
                .expect("accepted");
            fixture.run();
            assert_eq!(shown(&mut fixture), 1);
            if is_tracked {
                assert!(fixture.idl().changes(child)[0].is_deleted);
                let of_parent = &fixture.idl().changes(parent_table)[0];
                assert!(!of_parent.is_deleted && of_parent.updated().count() == 0);
            }
            assert_eq!(fixture.idl().rows(child).count(), 1, "orphans are no rows");
            fixture.idl().clear_changes();
            fixture
                .idl()
                .set_condition(0, child, Condition::all())
                .expect("accepted");
            fixture.run();
            assert_eq!(shown(&mut fixture), 2);
            if is_tracked {
                let change = &fixture.idl().changes(child)[0];
                assert!(change.is_new && !change.is_deleted);
            }
            fixture.idl().clear_changes();
            fixture.idl().check_consistency().unwrap();
        }
    }
}

#[test]
fn flags_are_those_of_the_present_look() {
    // Only `i` is tracked: the insert lists only another column.
    let mut fixture = Fixture::with_class(|class| {
        let i = class.column("simple", "i").expect("a column");
        class.track(i);
    });
    let (simple, i) = (fixture.table("simple"), fixture.column("simple", "i"));
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert("simple", &[("s", string("x"))])));
    fixture.idl().clear_changes();
    fixture.succeed(|fixture| fixture.idl().delete(row.unwrap()).unwrap());
    let change = fixture.idl().changes(simple)[0].clone();
    assert!(change.is_deleted && !change.is_new && !change.is_updated(i.id));
    assert!(
        change
            .seqnos
            .iter()
            .all(|&seqno| seqno <= fixture.peers[0].idl.change_seqno())
    );
}
