//! Laws that hold for all data: order, differences, set algebra, and both notations.
//!
//! Failures print the seed and the smallest failing input; `PROPTEST_RNG_SEED` replays a run.

use std::collections::BTreeMap;

use corvid_data::{
    Atom, AtomRef, AtomType, BaseType, ColumnType, Datum, DatumBuilder, Real, Str, Uuid, text, wire,
};
use corvid_json::Reader;
use proptest::collection::vec;
use proptest::prelude::*;

/// Few distinct atoms, so that two data overlap, including special cases.
fn atom(atom_type: AtomType) -> BoxedStrategy<Atom> {
    match atom_type {
        AtomType::Integer => prop_oneof![
            8 => (-400..400_i64).boxed(),
            1 => Just(i64::MIN).boxed(),
            1 => Just(i64::MAX).boxed(),
        ]
        .prop_map(Atom::Integer)
        .boxed(),
        // Quarters are exact in 15 digits.
        AtomType::Real => (-2_000..2_000_i32)
            .prop_map(|quarters| {
                Atom::Real(Real::new(f64::from(quarters) / 4.0).unwrap_or_default())
            })
            .boxed(),
        AtomType::Boolean => any::<bool>().prop_map(Atom::Boolean).boxed(),
        AtomType::String => prop_oneof![
            4 => "[a-c]{0,3}".boxed(),
            1 => "\\PC{0,4}".boxed(),
            1 => "[\\x01-\\x20\"\\\\=,\\[\\]{}:!<>]{0,4}".boxed(),
            1 => Just("true".to_owned()).boxed(),
            1 => Just("01234567-89ab-cdef-0123-456789abcdef".to_owned()).boxed(),
        ]
        .prop_map(|text| Atom::String(Str::new(&text)))
        .boxed(),
        AtomType::Uuid => (0..500_u16)
            .prop_map(|number| {
                let mut bytes = [0x5a; 16];
                bytes[..2].copy_from_slice(&number.to_be_bytes());
                Atom::Uuid(Uuid(bytes))
            })
            .boxed(),
    }
}

fn atom_type() -> impl Strategy<Value = AtomType> {
    prop::sample::select(vec![
        AtomType::Integer,
        AtomType::Real,
        AtomType::Boolean,
        AtomType::String,
        AtomType::Uuid,
    ])
}

/// A set or map type of any number of elements.
fn many() -> impl Strategy<Value = ColumnType> {
    (atom_type(), prop::option::of(atom_type())).prop_map(|(key, value)| ColumnType {
        key: BaseType::plain(key),
        value: value.map(BaseType::plain),
        min: 0,
        max: ColumnType::UNLIMITED,
    })
}

type Model = BTreeMap<Atom, Option<Atom>>;

fn model(column_type: &ColumnType) -> BoxedStrategy<Model> {
    let key = atom(column_type.key.atom);
    let pairs = match &column_type.value {
        None => key.prop_map(|key| (key, None)).boxed(),
        Some(value) => (key, atom(value.atom).prop_map(Some)).boxed(),
    };
    // Lengths around one, around a few, and around the limits of the forms.
    prop_oneof![
        vec(pairs.clone(), 0..4),
        vec(pairs.clone(), 0..30),
        vec(pairs, 200..500)
    ]
    .prop_map(|pairs| pairs.into_iter().collect())
    .boxed()
}

fn datum(model: &Model) -> Datum {
    let mut builder = DatumBuilder::new();
    for (key, value) in model.iter().rev() {
        builder.push(key.clone(), value.clone());
    }
    builder.finish().expect("keys of a map are distinct")
}

/// The same contents, made by inserting elements one by one and removing surplus ones.
fn grown(model: &Model, others: &Model) -> Datum {
    let mut grown = Datum::empty();
    for (key, value) in others.iter().chain(model) {
        match value {
            Some(value) => grown.replace(key.clone(), value.clone()),
            None => {
                grown.insert(key.clone(), None);
            }
        }
    }
    for key in others.keys().filter(|key| !model.contains_key(*key)) {
        grown.remove(key.as_ref());
    }
    grown
}

fn models() -> impl Strategy<Value = (ColumnType, Model, Model)> {
    many().prop_flat_map(|column_type| {
        let (left, right) = (model(&column_type), model(&column_type));
        (Just(column_type), left, right)
    })
}

/// JSON that resembles a datum: containers, pairs and atoms, often misplaced.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "1",
        "2.5",
        "\"a\"",
        "\"set\"",
        "\"map\"",
        "\"uuid\"",
        "true",
        "null",
        "{}",
        "[]",
        "{\"a\":[1]}",
        "[\"uuid\",\"01234567-89ab-cdef-0123-456789abcdef\"]",
        "[\"named-uuid\",\"a\"]",
        "[\"set\",[]]",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(4, 40, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(|elements| format!("[{}]", elements.join(" , "))),
                (prop::sample::select(vec!["set", "map"]), vec(inner, 0..4)).prop_map(
                    |(class, elements)| format!("[\"{class}\",[{}]]", elements.join(","))
                ),
            ]
        })
}

/// A fresh seed unless the environment sets one; shown when a test fails.
fn config() -> ProptestConfig {
    use std::hash::{BuildHasher, Hasher};
    let seed = std::env::var("PROPTEST_RNG_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| std::hash::RandomState::new().build_hasher().finish());
    println!("PROPTEST_RNG_SEED={seed}");
    ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(seed),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn content_decides_equality_order_and_hash((_, left, right) in models()) {
        let (a, b) = (datum(&left), datum(&right));
        let c = grown(&left, &right);
        prop_assert_eq!(&a, &c);
        prop_assert!(a.iter().eq(c.iter()));
        prop_assert_eq!(a == b, left == right);
        prop_assert_eq!(a.cmp(&b), c.cmp(&b));
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        let by_content = left.len().cmp(&right.len())
            .then_with(|| left.keys().cmp(right.keys()))
            .then_with(|| left.values().cmp(right.values()));
        prop_assert_eq!(a.cmp(&b), by_content);
        use std::hash::BuildHasher;
        let state = std::hash::RandomState::new();
        prop_assert_eq!(state.hash_one(&a), state.hash_one(&c));
    }

    #[test]
    fn a_difference_applied_to_the_old_datum_gives_the_new((column_type, left, right) in models()) {
        let (old, new) = (datum(&left), grown(&right, &left));
        let diff = Datum::diff(&old, &new, &column_type);
        prop_assert_eq!(diff.is_none(), old == new);
        let expected: Model = left.keys().chain(right.keys())
            .filter(|key| left.get(*key) != right.get(*key))
            .map(|key| (key.clone(), right.get(key).or_else(|| left.get(key)).cloned().flatten()))
            .collect();
        let diff = diff.unwrap_or_default();
        prop_assert_eq!(&diff, &datum(&expected));
        let mut applied = old.clone();
        applied.apply_diff(&diff, &column_type).expect("unlimited");
        prop_assert_eq!(&applied, &new);
        prop_assert_eq!(&old, &datum(&left));
        let mut bounded = old.clone();
        let exact = ColumnType { max: (new.len() as u32).max(2), ..column_type.clone() };
        bounded.apply_diff(&diff, &exact).expect("just fits");
        prop_assert_eq!(&bounded, &new);
        if new.len() > 2 {
            let narrow = ColumnType { max: new.len() as u32 - 1, ..column_type };
            let before = bounded.clone();
            prop_assert!(old.clone().apply_diff(&diff, &narrow).is_err());
            prop_assert_eq!(bounded, before);
        }
    }

    #[test]
    fn a_small_change_of_a_datum_is_its_difference(
        (column_type, left, right) in models(),
        pick in any::<prop::sample::Index>(),
    ) {
        let old = datum(&left);
        let mut new = old.clone();
        let mut expected = Model::new();
        if let Some((key, value)) = (!right.is_empty()).then(|| right.iter().nth(pick.index(right.len()))).flatten() {
            match (left.get(key), value) {
                (None, value) => {
                    new.insert(key.clone(), value.clone());
                    expected.insert(key.clone(), value.clone());
                }
                (Some(here), Some(value)) if here.as_ref() != Some(value) => {
                    new.replace(key.clone(), value.clone());
                    expected.insert(key.clone(), Some(value.clone()));
                }
                (Some(here), _) => {
                    new.remove(key.as_ref());
                    expected.insert(key.clone(), here.clone());
                }
            }
        }
        prop_assert_eq!(Datum::diff(&old, &new, &column_type).unwrap_or_default(), datum(&expected));
    }

    #[test]
    fn set_algebra_agrees_with_the_model((column_type, left, right) in models()) {
        let (a, b) = (datum(&left), datum(&right));
        let has = |model: &Model, (key, value): (&Atom, &Option<Atom>)| model.get(key) == Some(value);
        prop_assert_eq!(a.includes(&b), right.iter().all(|pair| has(&left, pair)));
        prop_assert_eq!(a.excludes(&b), !right.iter().any(|pair| has(&left, pair)));
        prop_assert!(a.includes(&Datum::empty()) && a.excludes(&Datum::empty()));
        prop_assert!(a.includes(&a.clone()));

        let mut union = a.clone();
        let added = union.insert_all(&b);
        let mut expected = left.clone();
        for (key, value) in &right {
            expected.entry(key.clone()).or_insert_with(|| value.clone());
        }
        prop_assert_eq!(added, expected.len() - left.len());
        prop_assert_eq!(&union, &datum(&expected));
        prop_assert!(union.includes(&a));

        let mut rest = a.clone();
        let removed = rest.remove_all(&b);
        let expected: Model = left.iter().filter(|pair| !has(&right, *pair))
            .map(|(key, value)| (key.clone(), value.clone())).collect();
        prop_assert_eq!(removed, left.len() - expected.len());
        prop_assert_eq!(&rest, &datum(&expected));
        prop_assert!(rest.excludes(&b));

        if column_type.is_map() {
            let keys = datum(&right.keys().map(|key| (key.clone(), None)).collect());
            let mut rest = a.clone();
            rest.remove_keys(&keys);
            let expected: Model = left.iter().filter(|(key, _)| !right.contains_key(*key))
                .map(|(key, value)| (key.clone(), value.clone())).collect();
            prop_assert_eq!(rest, datum(&expected));
        }
    }

    #[test]
    fn lookups_agree_with_the_model((_, left, right) in models()) {
        let here = grown(&left, &right);
        for key in left.keys().chain(right.keys()) {
            prop_assert_eq!(here.contains(key.as_ref()), left.contains_key(key));
            let value = left.get(key).and_then(|value| value.as_ref().map(Atom::as_ref));
            prop_assert_eq!(here.get(key.as_ref()), value);
        }
        prop_assert_eq!(here.iter().len(), left.len());
        prop_assert_eq!(here.first(), left.keys().next().map(Atom::as_ref));
    }

    #[test]
    fn data_written_as_json_read_back((column_type, left, _) in models()) {
        let here = datum(&left);
        let mut json = Vec::new();
        wire::write_datum(&mut json, &here, column_type.is_map());
        let mut reader = Reader::new(&json);
        let again = wire::read_datum(&mut reader, &column_type, None).expect("what was written reads");
        reader.end().expect("nothing is left");
        prop_assert_eq!(&again, &here);
        let other = ColumnType { key: column_type.key.clone(), value: column_type.value.clone(), min: 0, max: 1000 };
        prop_assert_eq!(here.convert(&column_type, &other).expect("fits"), here.clone());
        prop_assert_eq!(Datum::from_json(&here.to_json(column_type.is_map()), &column_type).expect("tree"), here);
    }

    #[test]
    fn data_written_as_text_read_back((column_type, left, _) in models()) {
        let here = datum(&left);
        let mut shown = String::new();
        text::write_datum(&mut shown, &here, &column_type);
        let again = text::read_datum(&shown, &column_type, &mut |_| None);
        prop_assert_eq!(again.as_ref(), Ok(&here), "{}", shown);
    }

    #[test]
    fn the_reader_passes_every_value_completely(
        json in json(),
        column_type in many(),
        min in 0..2_u32,
    ) {
        let column_type = ColumnType { min, ..column_type };
        let whole = format!("[{json},1]");
        let mut reader = Reader::new(whole.as_bytes());
        reader.begin_array().expect("array");
        reader.next_element().expect("element");
        let _ = wire::read_datum(&mut reader, &column_type, None);
        prop_assert!(reader.next_element().expect("second"));
        prop_assert_eq!(reader.skip().expect("second"), b"1");
    }

    #[test]
    fn any_text_is_read_or_refused(shown in "\\PC{0,20}", column_type in many()) {
        let _ = text::read_datum(&shown, &column_type, &mut |_| None);
    }

    #[test]
    fn uuids_written_as_text_read_back(bytes in any::<[u8; 16]>(), other in any::<[u8; 16]>()) {
        let uuid = Uuid(bytes);
        prop_assert_eq!(Uuid::parse(&uuid.to_text()), Some(uuid));
        prop_assert_eq!(uuid.cmp(&Uuid(other)), uuid.to_text().cmp(&Uuid(other).to_text()));
        prop_assert!(AtomRef::Uuid(uuid).as_uuid() == Some(uuid));
    }
}
