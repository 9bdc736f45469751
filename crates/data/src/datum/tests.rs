//! Tests that compare the forms of a datum with plain collections.

use std::collections::BTreeMap;

use super::*;
use crate::diff::{Change, Changes};
use crate::{AtomType, BaseType};

/// A generator good enough to shuffle test data, the same in every run.
struct Shuffle(u64);

impl Shuffle {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// The number of steps of a test with many random changes. miri is a thousand times slower.
const fn steps(usual: usize) -> usize {
    if cfg!(miri) { usual / 20 } else { usual }
}

fn integers(values: impl IntoIterator<Item = i64>) -> Datum {
    let mut builder = DatumBuilder::new();
    for value in values {
        builder.push(Atom::Integer(value), None);
    }
    builder.finish().expect("distinct")
}

fn check_form(datum: &Datum) {
    match &datum.0 {
        Repr::Empty => assert_eq!(datum.len(), 0),
        Repr::One(_) => assert_eq!(datum.len(), 1),
        Repr::Short(short) => {
            assert!(short.len() >= 1 && short.len() <= short::SHORT_MAX);
            assert!(short.len() > 1 || short.is_map());
        }
        Repr::Leaf(leaf) => {
            assert!(leaf.len() >= 1 && leaf.len() <= LEAF_LIMIT);
            assert!(leaf.len() > 1 || leaf.values.is_some());
            assert!(leaf.len() > SHORT_AGAIN || Short::pack(Leaf::clone(leaf)).is_err());
        }
        Repr::Tree(tree) => {
            assert!(tree.len() > TREE_LIMIT);
            tree.check(true);
        }
    }
    assert!(datum.keys().is_sorted_by(|left, right| left < right));
    assert_eq!(datum.iter().count(), datum.len());
}

#[test]
fn a_datum_is_three_words() {
    assert_eq!(size_of::<Datum>(), 24);
}

#[test]
fn a_large_set_grows_and_shrinks_like_a_sorted_set() {
    let mut shuffle = Shuffle(0x9e37_79b9_7f4a_7c15);
    let mut model = std::collections::BTreeSet::new();
    let mut datum = Datum::empty();
    for step in 0..steps(12_000) {
        // The datum grows first, then shrinks back through both limits.
        let is_growing = shuffle.below(10) < if step < steps(6_000) { 8 } else { 2 };
        let key = shuffle.below(steps(4_000) as u64) as i64;
        if is_growing {
            let added = datum.insert(Atom::Integer(key), None);
            assert_eq!(added, model.insert(key));
        } else if let Some(&key) = model.range(key..).next() {
            assert!(datum.remove(AtomRef::Integer(key)));
            assert!(!datum.remove(AtomRef::Integer(key)));
            model.remove(&key);
        }
        assert_eq!(datum.len(), model.len());
        if step % 50 == 0 {
            check_form(&datum);
            assert!(
                datum
                    .keys()
                    .eq(model.iter().map(|&key| AtomRef::Integer(key)))
            );
        }
    }
    for key in std::mem::take(&mut model) {
        assert!(datum.contains(AtomRef::Integer(key)));
        assert!(datum.remove(AtomRef::Integer(key)));
    }
    assert_eq!(datum, Datum::empty());
    check_form(&datum);
}

#[test]
fn a_large_map_keeps_old_versions_intact() {
    let mut shuffle = Shuffle(7);
    let mut model: BTreeMap<i64, i64> = BTreeMap::new();
    let mut datum = Datum::empty();
    let mut versions = Vec::new();
    for step in 0..steps(6_000) as i64 {
        let key = shuffle.below(steps(1_500).max(100) as u64) as i64;
        let is_shrinking = step > steps(3_000) as i64;
        if is_shrinking && shuffle.below(3) > 0 {
            assert_eq!(
                datum.remove(AtomRef::Integer(key)),
                model.remove(&key).is_some()
            );
        } else if shuffle.below(2) == 0 {
            let is_new = !model.contains_key(&key);
            model.entry(key).or_insert(step);
            assert_eq!(
                datum.insert(Atom::Integer(key), Some(Atom::Integer(step))),
                is_new
            );
        } else {
            model.insert(key, step);
            datum.replace(Atom::Integer(key), Atom::Integer(step));
        }
        if step % steps(500) as i64 == 0 {
            versions.push((datum.clone(), model.clone()));
        }
    }
    versions.push((datum, model));
    for (datum, model) in &versions {
        check_form(datum);
        assert_eq!(datum.atom_count(), 2 * model.len() as u64);
        let pairs = model
            .iter()
            .map(|(&key, &value)| (AtomRef::Integer(key), Some(AtomRef::Integer(value))));
        assert!(datum.iter().eq(pairs));
        for (&key, &value) in model {
            assert_eq!(
                datum.get(AtomRef::Integer(key)),
                Some(AtomRef::Integer(value))
            );
        }
    }
}

#[test]
fn equal_content_of_both_forms_is_equal_and_hashes_equal() {
    use std::hash::{BuildHasher, RandomState};
    let small = integers(0..50);
    let mut large = integers(0..80);
    for key in 50..80 {
        large.remove(AtomRef::Integer(key));
    }
    assert!(matches!(small.0, Repr::Leaf(_)) && matches!(large.0, Repr::Tree(_)));
    assert_eq!(small, large);
    assert_eq!(small.cmp(&large), std::cmp::Ordering::Equal);
    let state = RandomState::new();
    assert_eq!(state.hash_one(&small), state.hash_one(&large));
    assert_eq!(
        state.hash_one(Datum::empty()),
        state.hash_one(Datum::default())
    );
    large.insert(Atom::Integer(-1), None);
    large.remove(AtomRef::Integer(49));
    assert_eq!(large.cmp(&small), std::cmp::Ordering::Less);
    assert_ne!(large, small);
}

#[test]
fn the_form_changes_with_hysteresis() {
    let mut datum = integers(0..64);
    assert!(matches!(datum.0, Repr::Leaf(_)));
    datum.insert(Atom::Integer(64), None);
    assert!(matches!(datum.0, Repr::Tree(_)));
    for key in (33..=64).rev() {
        assert!(matches!(datum.0, Repr::Tree(_)));
        datum.remove(AtomRef::Integer(key));
    }
    assert!(matches!(datum.0, Repr::Tree(_)));
    datum.remove(AtomRef::Integer(32));
    assert!(matches!(datum.0, Repr::Leaf(_)));
    assert_eq!(datum, integers(0..32));
}

#[test]
fn short_data_change_like_any_other_and_become_leaves_with_hysteresis() {
    let text = |number: i64| Atom::String(number.to_string().as_str().into());
    let mut shuffle = Shuffle(7);
    let (mut map, mut model) = (Datum::empty(), BTreeMap::new());
    for _ in 0..if cfg!(miri) { 60 } else { 4_000 } {
        let (key, value) = (shuffle.below(24) as i64, shuffle.below(3) as i64);
        let before = map.clone();
        match shuffle.below(4) {
            0 => assert_eq!(
                map.remove(text(key).as_ref()),
                model.remove(&text(key)).is_some()
            ),
            1 => {
                map.replace(text(key), text(value));
                model.insert(text(key), text(value));
            }
            _ => {
                let is_new = !model.contains_key(&text(key));
                assert_eq!(map.insert(text(key), Some(text(value))), is_new);
                model.entry(text(key)).or_insert(text(value));
            }
        }
        check_form(&map);
        assert_eq!(map.atom_count(), 2 * model.len() as u64);
        let pairs = model.iter().map(|(k, v)| (k.as_ref(), Some(v.as_ref())));
        assert!(map.iter().eq(pairs));
        // Equal contents that share no memory are equal too, and the version before the change is
        // unchanged.
        let again = map.iter().fold(Datum::empty(), |mut datum, (key, value)| {
            datum.insert(key.to_owned(), value.map(AtomRef::to_owned));
            datum
        });
        assert_eq!(again, map);
        assert_eq!(map.clone().cmp(&before), before.cmp(&map).reverse());
    }
    let mut set = integers(0..16);
    assert!(matches!(set.0, Repr::Short(_)));
    set.insert(Atom::Integer(16), None);
    for key in (9..=16).rev() {
        assert!(matches!(set.0, Repr::Leaf(_)));
        set.remove(AtomRef::Integer(key));
    }
    assert!(matches!(set.0, Repr::Leaf(_)));
    set.remove(AtomRef::Integer(8));
    assert!(matches!(set.0, Repr::Short(_)));
    assert_eq!(set, integers(0..8));
}

#[test]
fn the_difference_of_one_change_visits_few_nodes_however_large_the_set() {
    for size in [1_000_i64, 10_000, 100_000] {
        if cfg!(miri) && size > 1_000 {
            break;
        }
        let old = integers((0..size).map(|value| 2 * value));
        let mut shuffle = Shuffle(3);
        for _ in 0..steps(100) {
            let mut new = old.clone();
            let key = shuffle.below(2 * size as u64) as i64;
            let is_present = key % 2 == 0;
            if is_present {
                assert!(new.remove(AtomRef::Integer(key)));
            } else {
                assert!(new.insert(Atom::Integer(key), None));
            }
            check_form(&new);
            let mut changes = Changes::new(&old, &new);
            let change = changes.next();
            let atom = AtomRef::Integer(key);
            if is_present {
                assert_eq!(change, Some(Change::Removed(atom, None)));
            } else {
                assert_eq!(change, Some(Change::Added(atom, None)));
            }
            assert_eq!(changes.next(), None);
            let (entered, stepped) = changes.cost();
            // Four levels on both sides, a few more nodes where leaves were split or joined, and
            // the elements of the leaves.
            assert!(entered <= 14, "{entered} nodes of {size} elements entered");
            assert!(stepped <= 150, "{stepped} of {size} elements compared");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "30,000 elements take long")]
fn sharing_survives_many_changes_between_two_versions() {
    let old = integers((0..30_000).map(|value| 2 * value));
    let mut new = old.clone();
    for cluster in 0..40 {
        // A cluster of inserts that splits leaves and, with enough of them, inner nodes.
        for offset in 0..200 {
            new.insert(
                Atom::Integer(20_000 + 2 * (cluster * 200 + offset) + 1),
                None,
            );
        }
    }
    check_form(&new);
    let mut changes = Changes::new(&old, &new);
    assert_eq!(changes.by_ref().count(), 8_000);
    let (_, stepped) = changes.cost();
    assert!(stepped < 8_000 * 3 + 2_000, "{stepped} elements compared");
    drop(changes);
    for index in 0..8_000 {
        new.remove(AtomRef::Integer(20_000 + 2 * index + 1));
    }
    check_form(&new);
    assert_eq!(new, old);
    assert_eq!(Changes::new(&old, &new).next(), None);
}

#[test]
#[cfg_attr(miri, ignore = "100,000 elements take long")]
fn trees_of_every_length_are_well_formed() {
    for len in (65..3_000)
        .step_by(13)
        .chain([287, 288, 289, 3_455, 3_456, 3_457, 30_000, 100_000])
    {
        check_form(&integers(0..len));
    }
}

#[test]
fn large_trees_shrink_from_either_end() {
    for is_reversed in [false, true] {
        let length = steps(6_000) as i64;
        let mut datum = integers(0..length);
        for step in 0..length {
            let key = if is_reversed { length - 1 - step } else { step };
            assert!(datum.remove(AtomRef::Integer(key)));
            if step % 100 == 0 {
                check_form(&datum);
            }
        }
        assert!(datum.is_empty());
    }
}

#[test]
fn is_default_recognises_the_default_of_every_type() {
    let mut column_type = ColumnType::scalar(AtomType::String);
    for value in [None, Some(BaseType::plain(AtomType::Boolean))] {
        for min in [0, 1] {
            column_type.value = value.clone();
            column_type.min = min;
            let default = Datum::default_for(&column_type);
            assert_eq!(default.len(), min as usize);
            assert!(default.is_default(&column_type));
            column_type.min = 1 - min;
            assert!(!default.is_default(&column_type));
        }
    }
    assert!(!integers([0, 1]).is_default(&ColumnType::scalar(AtomType::Integer)));
    assert!(integers([0]).is_default(&ColumnType::scalar(AtomType::Integer)));
}

#[test]
fn duplicates_are_refused_with_the_message_of_their_class() {
    let mut set = DatumBuilder::new();
    let mut map = DatumBuilder::new();
    for key in [5, 3, 5] {
        set.push(Atom::Integer(key), None);
        map.push(Atom::Integer(key), Some(Atom::Integer(key)));
    }
    let error = set.finish().expect_err("twice 5");
    assert_eq!(error.to_string(), "ovsdb error: set contains duplicate");
    let error = map.finish().expect_err("twice 5");
    assert_eq!(error.to_string(), "ovsdb error: map contains duplicate key");
}

#[test]
fn a_map_with_every_value_replaced_is_its_own_difference() {
    let map_type = ColumnType {
        key: BaseType::plain(AtomType::String),
        value: Some(BaseType::plain(AtomType::String)),
        min: 0,
        max: ColumnType::UNLIMITED,
    };
    let text = |text: String| Atom::String(Str::new(&text));
    let map = |len: usize, value: &dyn Fn(usize) -> usize| {
        let mut map = DatumBuilder::new();
        for key in 0..len {
            map.push(
                text(format!("{key:04}")),
                Some(text(value(key).to_string())),
            );
        }
        map.finish().expect("distinct")
    };
    for len in [1, 2, 20, 60, 70, 100, 1000] {
        if cfg!(miri) && len > 70 {
            break;
        }
        let old = map(len, &|key| key);
        let new = map(len, &|key| key + 1);
        let diff = Datum::diff(&old, &new, &map_type).expect("they differ");
        assert_eq!(diff, new, "{len}");
        assert!(diff.ptr_eq(&new) || len < 20, "{len}");
        for same in [0, len / 2, len - 1] {
            let new = map(len, &|key| key + usize::from(key != same));
            let diff = Datum::diff(&old, &new, &map_type).unwrap_or_default();
            assert_eq!(diff.len(), len - 1, "{same} of {len}");
            let mut applied = old.clone();
            applied.apply_diff(&diff, &map_type).expect("unlimited");
            assert_eq!(applied, new, "{same} of {len}");
        }
    }
}
