//! Compound indexes: order, ranges and cursors. A transaction moves rows at once, and an abort
//! moves them back.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use corvid_data::Datum;
use corvid_idl::{Class, ClassError, Direction, IndexColumn, IndexId, RowId, RowVersion};

use crate::fixture::{Fixture, integer, integers, references, string, strings, text_atom};

/// A client with an index on `s` of `simple`, and one on descending `i`, then `s`.
fn indexed() -> (Fixture, IndexId, IndexId) {
    let mut ids = None;
    let fixture = Fixture::with_class(|class| {
        let (i, s) = (
            class.column("simple", "i").expect("a column"),
            class.column("simple", "s").expect("a column"),
        );
        let by_s = class.add_index(i.table, "by s", vec![IndexColumn::ascending(s)]);
        let columns = vec![IndexColumn::descending(i), IndexColumn::ascending(s)];
        let by_both = class.add_index(i.table, "", columns);
        ids = Some((by_s.expect("new"), by_both.expect("new")));
    });
    let (by_s, by_both) = ids.expect("made");
    (fixture, by_s, by_both)
}

/// The rows of an index as `s` and `i`.
fn listed(fixture: &Fixture, rows: impl Iterator<Item = RowId>) -> String {
    let texts: Vec<String> = rows
        .map(|row| fixture.value(row, "s").replace('"', "") + &fixture.value(row, "i"))
        .collect();
    texts.join(" ")
}

fn all(fixture: &Fixture, index: IndexId) -> String {
    listed(fixture, fixture.peers[0].idl.range_of(index, None, None))
}

fn fill(fixture: &mut Fixture, rows: &[(&str, i64)]) -> Vec<RowId> {
    let mut made = Vec::new();
    fixture.succeed(|fixture| {
        for (s, i) in rows {
            made.push(fixture.insert("simple", &[("s", string(s)), ("i", integer(*i))]));
        }
    });
    made
}

#[test]
fn rows_come_in_order_column_by_column() {
    let (mut fixture, by_s, by_both) = indexed();
    fill(
        &mut fixture,
        &[("b", 1), ("a", 2), ("c", 2), ("a", 1), ("b", 3)],
    );
    assert_eq!(all(&fixture, by_s), "a2 a1 b1 b3 c2", "equal ones by UUID");
    assert_eq!(all(&fixture, by_both), "b3 a2 c2 a1 b1");
    let (i, s) = (fixture.column("simple", "i"), fixture.column("simple", "s"));
    let idl = &fixture.peers[0].idl;
    let mut key = idl.key(by_s);
    assert!(key.set(s, string("a")) && !key.set(i, integer(1)));
    assert_eq!(listed(&fixture, idl.equal(&key)), "a2 a1");
    let mut from = idl.key(by_both);
    from.set(i, integer(2));
    from.set(s, string("b"));
    let mut to = idl.key(by_both);
    to.set(i, integer(1));
    to.set(s, string("a"));
    assert_eq!(
        listed(&fixture, idl.range_of(by_both, Some(&from), Some(&to))),
        "c2 a1"
    );
    assert_eq!(
        listed(&fixture, idl.range_of(by_both, Some(&to), Some(&from))),
        ""
    );
    assert_eq!(idl.find(&from), None);
    assert_eq!(idl.index(i.table, "by s"), Some(by_s));
    assert_eq!(idl.index_len(by_s), 5);
}

#[test]
fn the_first_of_equal_rows_is_found_after_any_changes() {
    let (mut fixture, by_s, _) = indexed();
    let s = fixture.column("simple", "s");
    let rows = fill(&mut fixture, &[("a", 0), ("a", 1), ("b", 2), ("a", 3)]);
    let mut key = fixture.peers[0].idl.key(by_s);
    key.set(s, string("a"));
    let found = |fixture: &Fixture| {
        let idl = &fixture.peers[0].idl;
        assert_eq!(idl.find(&key), idl.equal(&key).next());
        idl.check_consistency().expect("it agrees with itself");
        idl.find(&key)
    };
    assert_eq!(found(&fixture), Some(rows[0]));
    let txn = fixture.idl().begin().expect("none is open");
    fixture.idl().delete(rows[0]).expect("it is there");
    assert_eq!(found(&fixture), Some(rows[1]), "the one behind it");
    fixture.idl().write(rows[1], s, string("c")).expect("fits");
    assert_eq!(found(&fixture), Some(rows[3]), "not the one of another key");
    fixture.idl().write(rows[3], s, string("c")).expect("fits");
    assert_eq!(found(&fixture), None, "none is left");
    fixture.idl().write(rows[2], s, string("a")).expect("fits");
    assert_eq!(found(&fixture), Some(rows[2]), "a key that comes back");
    fixture.idl().abort(txn);
    assert_eq!(
        found(&fixture),
        Some(rows[0]),
        "the one before others again"
    );
}

#[test]
fn a_transaction_moves_rows_and_an_abort_moves_them_back() {
    let (mut fixture, by_s, by_both) = indexed();
    let rows = fill(&mut fixture, &[("b", 1), ("c", 2)]);
    let (i, s) = (fixture.column("simple", "i"), fixture.column("simple", "s"));
    for is_committed in [false, true] {
        let txn = fixture.idl().begin().unwrap();
        fixture.insert("simple", &[("s", string("a"))]);
        fixture.idl().write(rows[0], s, string("z")).unwrap();
        fixture.idl().write(rows[0], i, integer(9)).unwrap();
        assert_eq!(
            (all(&fixture, by_s), all(&fixture, by_both)),
            ("a0 c2 z9".into(), "z9 c2 a0".into())
        );
        fixture.idl().delete(rows[1]).unwrap();
        assert_eq!(all(&fixture, by_s), "a0 z9");
        if is_committed {
            fixture.idl().commit().unwrap();
            assert_eq!(all(&fixture, by_s), "b1 c2");
            fixture.run();
            assert_eq!(
                (all(&fixture, by_s), all(&fixture, by_both)),
                ("a0 z9".into(), "z9 a0".into())
            );
        } else {
            fixture.idl().abort(txn);
            assert_eq!(
                (all(&fixture, by_s), all(&fixture, by_both)),
                ("b1 c2".into(), "c2 b1".into())
            );
        }
    }
}

#[test]
fn slots_tell_present_rows_apart_and_versions_their_contents() {
    let (mut fixture, by_s, _) = indexed();
    let rows = fill(&mut fixture, &[("a", 1), ("b", 2), ("c", 3)]);
    let i = fixture.column("simple", "i");
    let found = |fixture: &Fixture, text: &str| {
        let found = fixture.peers[0].idl.find_values(by_s, &[string(text)]);
        found.inspect(|(row, slot)| assert_eq!(fixture.peers[0].idl.slot(*row), Some(*slot)))
    };
    let slots = rows.iter().map(|row| fixture.peers[0].idl.slot(*row));
    let slots: BTreeSet<usize> = slots.map(|slot| slot.expect("it is there")).collect();
    assert_eq!(slots.len(), 3);
    assert_eq!(found(&fixture, "b").map(|(row, _)| row), Some(rows[1]));
    assert_eq!(fixture.peers[0].idl.find_values(by_s, &[]), None);
    let versions = |fixture: &Fixture| {
        let versions = rows.iter().map(|row| fixture.peers[0].idl.version(*row));
        versions.collect::<Vec<_>>()
    };
    let current = |fixture: &Fixture, versions: &[Option<RowVersion>]| {
        let versions = versions.iter().flatten();
        let current = versions.map(|version| fixture.peers[0].idl.is_current(*version));
        current.collect::<Vec<_>>()
    };
    let before = versions(&fixture);
    assert_eq!(current(&fixture, &before), [true; 3]);
    let txn = fixture.idl().begin().unwrap();
    fixture.idl().write(rows[0], i, integer(9)).unwrap();
    fixture.idl().delete(rows[1]).unwrap();
    let slot = fixture.peers[0].idl.slot(rows[0]);
    let inserted = fixture.insert("simple", &[("s", string("d"))]);
    assert_eq!(current(&fixture, &before), [false, false, true]);
    assert_eq!(fixture.peers[0].idl.version(rows[1]), None);
    assert_eq!(found(&fixture, "b"), None);
    assert_eq!(found(&fixture, "d").map(|(row, _)| row), Some(inserted));
    assert_eq!(
        fixture.peers[0].idl.slot(rows[0]),
        slot,
        "a change keeps it"
    );
    let within = versions(&fixture);
    fixture.idl().abort(txn);
    assert_eq!(current(&fixture, &within), [false, true]);
    assert_eq!(current(&fixture, &before), [false, false, true]);
    assert_eq!(found(&fixture, "b").map(|(row, _)| row), Some(rows[1]));
    // A change by the server.
    let before = versions(&fixture);
    fixture.succeed(|fixture| {
        fixture.idl().write(rows[2], i, integer(7)).unwrap();
    });
    assert_eq!(current(&fixture, &before), [true, true, false]);
}

#[test]
fn cursors_survive_changes_of_their_row() {
    let (mut fixture, by_s, _) = indexed();
    let rows = fill(
        &mut fixture,
        &[("a", 1), ("b", 1), ("b", 2), ("c", 1), ("d", 1)],
    );
    let s = fixture.column("simple", "s");
    let mut key = fixture.idl().key(by_s);
    key.set(s, string("b"));
    let mut cursor = fixture.idl().cursor_equal(&key);
    let mut seen = Vec::new();
    while let Some(row) = fixture.idl().cursor_row(&cursor) {
        seen.push(row);
        fixture.idl().cursor_next_equal(&mut cursor);
    }
    assert_eq!(seen, rows[1..3]);
    fixture.idl().begin().unwrap();
    let mut cursor = fixture.idl().cursor_at_least(&key);
    assert_eq!(fixture.idl().cursor_row(&cursor), Some(rows[1]));
    fixture.idl().delete(rows[1]).unwrap();
    assert_eq!(fixture.idl().cursor_row(&cursor), None);
    fixture.idl().cursor_next(&mut cursor);
    assert_eq!(fixture.idl().cursor_row(&cursor), Some(rows[2]));
    // The row moved to after the cursor's position, so the cursor reaches it again.
    fixture.idl().write(rows[2], s, string("z")).unwrap();
    let mut rest = Vec::new();
    loop {
        fixture.idl().cursor_next(&mut cursor);
        let Some(row) = fixture.idl().cursor_row(&cursor) else {
            break;
        };
        rest.push(row);
    }
    assert_eq!(rest, [rows[3], rows[4], rows[2]]);
    let cursor = fixture.idl().cursor_first(by_s);
    assert_eq!(fixture.idl().cursor_row(&cursor), Some(rows[0]));
    key.set(s, string("nobody"));
    let cursor = fixture.idl().cursor_equal(&key);
    assert_eq!(fixture.idl().cursor_row(&cursor), None);
    let idl = fixture.idl();
    assert!(idl.compare(by_s, Some(rows[0]), Some(rows[3])).is_lt());
    assert!(idl.compare(by_s, None, Some(rows[0])).is_gt());
    assert!(idl.compare(by_s, None, None).is_eq());
}

#[test]
fn comparators_of_ones_own() {
    let address = |datum: &Datum| {
        let text = datum.as_string().map(ToString::to_string);
        text.and_then(|text| text.parse::<Ipv4Addr>().ok())
    };
    let mut index = None;
    let mut fixture = Fixture::with_class(|class: &mut Class| {
        let (i, s) = (
            class.column("simple", "i").unwrap(),
            class.column("simple", "s").unwrap(),
        );
        let by_address = IndexColumn {
            comparator: Some(Arc::new(move |left, right| {
                address(left).cmp(&address(right))
            })),
            direction: Direction::Ascending,
            column: s,
        };
        let columns = vec![by_address, IndexColumn::descending(i)];
        index = Some(class.add_index(s.table, "address", columns).unwrap());
    });
    let index = index.unwrap();
    fill(
        &mut fixture,
        &[("10.0.0.10", 1), ("10.0.0.9", 1), ("x", 0), ("10.0.0.9", 2)],
    );
    assert_eq!(all(&fixture, index), "x0 10.0.0.92 10.0.0.91 10.0.0.101");
    let s = fixture.column("simple", "s");
    let mut from = fixture.idl().key(index);
    from.set(s, string("10.0.0.10"));
    let idl = &fixture.peers[0].idl;
    // The second column of the key is at its default, 0, which sorts after 1 here.
    assert_eq!(listed(&fixture, idl.range_of(index, Some(&from), None)), "");
    let row = idl.range_of(index, None, None).last().unwrap();
    assert_eq!(idl.compare_key(row, &from), Some(std::cmp::Ordering::Less));
}

#[test]
fn sets_and_references_are_ordered_too() {
    let mut indexes = Vec::new();
    let mut fixture = Fixture::with_class(|class| {
        for (table, column) in [("link", "many"), ("simple", "ia")] {
            let column = class.column(table, column).unwrap();
            let columns = vec![IndexColumn::ascending(column)];
            indexes.push(class.add_index(column.table, "", columns).unwrap());
        }
    });
    let many = fixture.column("link", "many");
    let mut rows = Vec::new();
    fixture.succeed(|fixture| {
        rows = (0..3).map(|_| fixture.insert("link", &[])).collect();
        fixture
            .idl()
            .write(rows[0], many, references(&rows[1..]))
            .unwrap();
        fixture.insert("simple", &[("ia", integers(&[1, 2]))]);
        fixture.insert("simple", &[("ia", integers(&[9]))]);
    });
    let idl = fixture.idl();
    let mut key = idl.key(indexes[0]);
    key.set(many, references(&rows[1..]));
    assert_eq!(idl.find(&key), Some(rows[0]));
    let first = idl.range_of(indexes[1], None, None).next().unwrap();
    assert_eq!(fixture.value(first, "ia"), "9", "fewer elements first");
}

#[test]
fn what_cannot_be_indexed() {
    let mut class = Class::new(corvid_data::Arc::new(crate::fixture::schema()));
    let (i, name) = (
        class.column("simple", "i").unwrap(),
        class.column("maps", "name").unwrap(),
    );
    class.add_column(name);
    let refused = |result: Result<IndexId, ClassError>| {
        assert!(matches!(result, Err(ClassError::NotIndexable(_))));
    };
    refused(class.add_index(i.table, "", vec![]));
    refused(class.add_index(i.table, "", vec![IndexColumn::ascending(i)]));
    class.add_column(i);
    refused(class.add_index(i.table, "", vec![IndexColumn::ascending(name)]));
    let columns = vec![IndexColumn::ascending(i)];
    assert!(class.add_index(i.table, "x", columns.clone()).is_ok());
    assert_eq!(
        class.add_index(i.table, "x", columns),
        Err(ClassError::IndexExists("x".to_owned()))
    );
}

#[test]
fn late_indexes_have_the_rows_that_are_there() {
    let (mut fixture, by_s, _) = indexed();
    fill(&mut fixture, &[("b", 1), ("a", 2), ("c", 3)]);
    let (i, s) = (fixture.column("simple", "i"), fixture.column("simple", "s"));
    fixture.idl().begin().unwrap();
    fixture.insert("simple", &[("s", string("d")), ("i", integer(0))]);
    let columns = vec![IndexColumn::ascending(i)];
    let late = fixture.idl().add_index(i.table, "late", columns.clone());
    let late = late.unwrap();
    assert_eq!(
        all(&fixture, late),
        "d0 b1 a2 c3",
        "also those of the open transaction"
    );
    let txn = fixture.idl().open_txn().unwrap();
    fixture.idl().abort(txn);
    assert_eq!(all(&fixture, late), "b1 a2 c3");
    let first = fixture.idl().range_of(late, None, None).next().unwrap();
    fixture.succeed(|fixture| fixture.idl().write(first, i, integer(9)).unwrap());
    assert_eq!(
        (all(&fixture, late), all(&fixture, by_s)),
        ("a2 c3 b9".into(), "a2 b9 c3".into())
    );
    fixture.idl().check_consistency().unwrap();
    assert_eq!(fixture.idl().index(s.table, "late"), Some(late));
    assert!(fixture.idl().add_index(i.table, "late", columns).is_err());
}

#[test]
fn maps_are_ordered_by_one_of_their_keys() {
    let mut index = None;
    let mut fixture = Fixture::with_class(|class| {
        let smap = class.column("maps", "smap").expect("a column");
        let columns = vec![IndexColumn::at_key(smap, text_atom("id"))];
        index = class.add_index(smap.table, "", columns).ok();
    });
    let index = index.expect("made");
    fixture.succeed(|fixture| {
        for (name, pairs) in [
            ("none", &[("other", "9")][..]),
            ("two", &[("id", "2"), ("other", "1")]),
            ("one", &[("id", "1"), ("other", "3")]),
        ] {
            fixture.insert("maps", &[("name", string(name)), ("smap", strings(pairs))]);
        }
    });
    let smap = fixture.column("maps", "smap");
    let names = |fixture: &Fixture| -> Vec<String> {
        let rows = fixture.peers[0].idl.range_of(index, None, None);
        rows.map(|row| fixture.value(row, "name").replace('"', ""))
            .collect()
    };
    assert_eq!(names(&fixture), ["none", "one", "two"]);
    let mut key = fixture.idl().key(index);
    key.set(smap, strings(&[("id", "2")]));
    let found = fixture.idl().find(&key).expect("it is there");
    assert_eq!(fixture.value(found, "name"), "\"two\"");
    fixture.succeed(|fixture| {
        fixture
            .idl()
            .set_key(found, smap, text_atom("id"), text_atom("0"))
            .unwrap();
    });
    assert_eq!(names(&fixture), ["none", "two", "one"]);
}

#[test]
fn rows_of_a_range_are_read_on_the_way() {
    let mut fixture = Fixture::with_class(|class| {
        let (i, s) = (
            class.column("simple", "i").expect("a column"),
            class.column("simple", "s").expect("a column"),
        );
        class.omit(s);
        let columns = vec![IndexColumn::ascending(i)];
        class.add_index(i.table, "", columns).expect("new");
    });
    let (i, s, name) = (
        fixture.column("simple", "i"),
        fixture.column("simple", "s"),
        fixture.column("maps", "name"),
    );
    let index = fixture.idl().index(i.table, "").expect("made");
    let mut rows = Vec::new();
    fixture.succeed(|fixture| {
        rows = (0..5)
            .map(|number| fixture.insert("simple", &[("i", integer(4 - number))]))
            .collect();
    });
    fixture.idl().begin().expect("none is open");
    fixture
        .idl()
        .write(rows[0], i, integer(-1))
        .expect("it fits");
    fixture.idl().delete(rows[1]).expect("it is there");
    let idl = fixture.idl();
    let read = |view: &corvid_idl::RowView<'_>| view.get(i).and_then(Datum::as_integer);
    let values: Vec<_> = idl
        .views_of(index, None, None)
        .map(|view| read(&view))
        .collect();
    assert_eq!(values, [Some(-1), Some(0), Some(1), Some(2)]);
    let ids: Vec<_> = idl
        .views_of(index, None, None)
        .map(|view| view.id())
        .collect();
    assert_eq!(ids, idl.range_of(index, None, None).collect::<Vec<_>>());
    assert_eq!(idl.views(i.table).count(), 4);
    let view = idl.view(rows[0]).expect("it is there");
    assert_eq!((view.id(), view.uuid()), (rows[0], rows[0].uuid));
    assert!(
        view.get(s).is_none() && view.get(name).is_none(),
        "not held"
    );
    assert!(idl.view(rows[1]).is_none());
}
