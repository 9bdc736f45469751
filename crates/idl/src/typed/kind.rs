//! Kinds of columns: the number of elements that a column holds, and so the type of its values.
//!
//! Kinds exist only at compile time and have no values. Values are read leniently, because the
//! server's schema may differ from the generated code's. If there are too many elements, the first
//! ones count; a missing element reads as the default.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use corvid_data::{Atom, AtomRef, Datum};

use super::{Element, Row};
use crate::idl::Idl;

/// A kind of column.
pub trait Kind {
    /// The type of the column's values.
    type Value;

    /// Converts a datum to a value.
    fn read(datum: &Datum, idl: &Idl) -> Self::Value;

    /// Converts a value to a datum.
    fn write(value: Self::Value) -> Datum;

    /// Whether the data are maps.
    const IS_MAP: bool = false;
}

/// Exactly one element.
#[derive(Debug)]
pub struct One<E>(PhantomData<E>);

/// Exactly one reference. If its row is not in the replica it reads as `None`; writing `None`
/// writes the zero UUID, which no row has.
#[derive(Debug)]
pub struct OneRow<R>(PhantomData<R>);

/// At most one element.
#[derive(Debug)]
pub struct Optional<E>(PhantomData<E>);

/// Any number of elements.
#[derive(Debug)]
pub struct Set<E>(PhantomData<E>);

/// Any number of key-value pairs.
#[derive(Debug)]
pub struct Map<K, V>(PhantomData<(K, V)>);

fn shown<'a, E: Element + 'a>(datum: &'a Datum, idl: &'a Idl) -> impl Iterator<Item = E> + 'a {
    let elements = datum.keys().filter_map(E::from_atom);
    elements.filter(|element| element.is_shown(idl))
}

impl<E: Element + Default> Kind for One<E> {
    type Value = E;

    fn read(datum: &Datum, _idl: &Idl) -> E {
        datum.first().and_then(E::from_atom).unwrap_or_default()
    }

    fn write(value: E) -> Datum {
        Datum::one(value.into_atom())
    }
}

impl<R: Row> Kind for OneRow<R> {
    type Value = Option<R>;

    fn read(datum: &Datum, idl: &Idl) -> Option<R> {
        shown(datum, idl).next()
    }

    fn write(value: Option<R>) -> Datum {
        let uuid = value.map_or(corvid_data::Uuid::ZERO, Row::uuid);
        Datum::one(Atom::Uuid(uuid))
    }
}

impl<E: Element> Kind for Optional<E> {
    type Value = Option<E>;

    fn read(datum: &Datum, idl: &Idl) -> Option<E> {
        shown(datum, idl).next()
    }

    fn write(value: Option<E>) -> Datum {
        value.map_or(Datum::empty(), |value| Datum::one(value.into_atom()))
    }
}

impl<E: Element> Kind for Set<E> {
    type Value = BTreeSet<E>;

    fn read(datum: &Datum, idl: &Idl) -> BTreeSet<E> {
        shown(datum, idl).collect()
    }

    fn write(value: BTreeSet<E>) -> Datum {
        let mut datum = Datum::empty();
        for element in value {
            datum.insert(element.into_atom(), None);
        }
        datum
    }
}

impl<K: Element, V: Element> Kind for Map<K, V> {
    type Value = BTreeMap<K, V>;

    fn read(datum: &Datum, idl: &Idl) -> BTreeMap<K, V> {
        let pair = |(key, value): (AtomRef<'_>, Option<AtomRef<'_>>)| {
            let (key, value) = (K::from_atom(key)?, V::from_atom(value?)?);
            (key.is_shown(idl) && value.is_shown(idl)).then_some((key, value))
        };
        datum.iter().filter_map(pair).collect()
    }

    fn write(value: BTreeMap<K, V>) -> Datum {
        let mut datum = Datum::empty();
        for (key, value) in value {
            datum.insert(key.into_atom(), Some(value.into_atom()));
        }
        datum
    }

    const IS_MAP: bool = true;
}
