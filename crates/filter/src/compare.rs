//! One comparison of an expression.

use std::cmp::Ordering;

use corvid_data::{Atom, AtomRef, ColumnId, ColumnType, Datum, Function, text};

use crate::Clause;
use crate::pattern::Pattern;

/// A comparison of a column, or of one key of a map, with values.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The column.
    pub column: ColumnId,
    /// The key, if the comparison is about its value.
    pub(crate) key: Option<Atom>,
    /// The test that one of the elements must pass.
    pub(crate) test: Test,
    /// The column has several elements, or none.
    pub(crate) is_set: bool,
}

/// A test of an element.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// It is equal to one of these.
    In(Vec<Atom>),
    /// It has this order to the other.
    Ordered(Atom, Vec<Ordering>),
    /// Its text matches.
    Matches(Pattern),
    /// It is there, and neither false nor zero.
    IsTrue,
    /// There is no element at all.
    IsEmpty,
}

impl Comparison {
    /// Whether the comparison holds for the column's value.
    #[must_use]
    pub fn holds(&self, datum: &Datum) -> bool {
        if let Some(key) = &self.key {
            let value = datum.get(key.as_ref());
            return match self.test {
                Test::IsEmpty => value.is_none(),
                _ => value.is_some_and(|value| self.test.holds(value, None)),
            };
        }
        match self.test {
            Test::IsEmpty => datum.is_empty(),
            _ => datum.iter().any(|(key, value)| self.test.holds(key, value)),
        }
    }

    /// The clause with which a server selects the same rows, if there is one.
    #[must_use]
    pub fn clause(&self) -> Option<Clause> {
        let (function, argument) = match (&self.test, &self.key) {
            (Test::In(atoms), key) => {
                let [only] = atoms.as_slice() else {
                    return None;
                };
                match key {
                    Some(key) => (Function::Includes, Datum::pair(key.clone(), only.clone())),
                    None if self.is_set => (Function::Includes, Datum::one(only.clone())),
                    None => (Function::Equal, Datum::one(only.clone())),
                }
            }
            (Test::Ordered(atom, orders), None) if !self.is_set => {
                let function = match orders.as_slice() {
                    [Ordering::Less] => Function::Less,
                    [Ordering::Greater] => Function::Greater,
                    [Ordering::Less, Ordering::Equal] => Function::LessOrEqual,
                    [Ordering::Greater, Ordering::Equal] => Function::GreaterOrEqual,
                    _ => return None,
                };
                let is_number = matches!(atom, Atom::Integer(_) | Atom::Real(_));
                is_number.then(|| (function, Datum::one(atom.clone())))?
            }
            (Test::IsEmpty, None) => (Function::Equal, Datum::empty()),
            _ => return None,
        };
        Some(Clause {
            column: self.column,
            function,
            argument,
        })
    }
}

impl Test {
    /// Whether the test holds for an element, or for a pair of a map.
    fn holds(&self, atom: AtomRef<'_>, value: Option<AtomRef<'_>>) -> bool {
        match self {
            Test::In(atoms) => atoms.iter().any(|one| one.as_ref() == atom),
            Test::Ordered(other, orders) => orders.contains(&atom.cmp(&other.as_ref())),
            Test::Matches(pattern) => {
                let mut shown = String::new();
                text::write_atom_bare(&mut shown, atom);
                if let Some(value) = value {
                    shown.push('=');
                    text::write_atom_bare(&mut shown, value);
                }
                pattern.matches(&shown)
            }
            Test::IsTrue => !matches!(atom, AtomRef::Boolean(false) | AtomRef::Integer(0)),
            Test::IsEmpty => false,
        }
    }
}

/// Whether columns of the type may have several elements, or none.
pub(crate) fn is_set(column_type: &ColumnType) -> bool {
    !column_type.is_scalar() && !column_type.is_optional_scalar()
}
