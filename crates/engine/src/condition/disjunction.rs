//! A condition of which any clause suffices, with its `==` and one-element `includes` clauses
//! gathered into a hash set per column.
//!
//! Clients send thousands of such clauses (ovn-controller: one per datapath), and all of them are
//! evaluated for each change.

use corvid_data::{AtomRef, ColumnId, Datum, HashSeed, Row, Uuid};

use super::{Clause, Function, Key, Probe, with_column};
use crate::hash::Set;

/// The clauses of a condition, grouped by how they can be evaluated fast.
#[derive(Clone, Debug)]
pub(crate) struct Disjunction {
    /// Every row matches: there are no clauses, or one is true.
    pub(crate) is_true: bool,
    /// `_uuid ==`
    pub(crate) uuids: Set<Uuid>,
    /// `column ==`
    pub(crate) equal: Vec<(ColumnId, Set<Datum>)>,
    /// `column includes` one element of a set. Maps are in `rest`.
    includes: Vec<(ColumnId, Set<Key>)>,
    /// All other clauses.
    rest: Vec<Clause>,
}

impl Disjunction {
    pub(super) fn new(clauses: &[Clause], seed: HashSeed) -> Disjunction {
        let mut disjunction = Disjunction {
            is_true: clauses.is_empty(),
            uuids: Set::with_hasher(seed),
            equal: Vec::new(),
            includes: Vec::new(),
            rest: Vec::new(),
        };
        for clause in clauses {
            disjunction.add(clause, seed);
        }
        disjunction
    }

    fn add(&mut self, clause: &Clause, seed: HashSeed) {
        let Clause::Compare {
            column,
            function,
            argument,
        } = clause
        else {
            self.is_true |= *clause == Clause::Constant(true);
            return;
        };
        match function {
            // Every datum includes the empty set, and every datum excludes it.
            Function::Includes if argument.is_empty() => self.is_true = true,
            Function::Excludes if argument.is_empty() => self.is_true = true,
            // A row has exactly one `_uuid`, so both functions test equality.
            Function::Equal | Function::Includes if *column == ColumnId::UUID => {
                self.uuids.extend(argument.as_uuid());
            }
            Function::Equal => {
                group(&mut self.equal, *column, seed).insert(argument.clone());
            }
            Function::Includes => match only_element(argument) {
                Some(element) => {
                    group(&mut self.includes, *column, seed).insert(Key(element.to_owned()));
                }
                None => self.rest.push(clause.clone()),
            },
            _ => self.rest.push(clause.clone()),
        }
    }

    /// Whether some clause holds for `row`.
    pub(crate) fn matches(&self, row: &Row) -> bool {
        let is_equal = |(column, values): &(ColumnId, Set<Datum>)| {
            with_column(row, *column, |datum| values.contains(datum))
        };
        self.is_true
            || self.uuids.contains(&row.uuid)
            || self.equal.iter().any(is_equal)
            || self
                .includes
                .iter()
                .any(|(column, elements)| with_column(row, *column, |d| has_any(d, elements)))
            || self.rest.iter().any(|clause| clause.holds(row))
    }

    /// The number of look-ups that find all matching rows if every column with `==` clauses has an
    /// index; `None` if there are clauses of other kinds.
    pub(crate) fn lookups(&self) -> Option<usize> {
        if self.is_true || !self.includes.is_empty() || !self.rest.is_empty() {
            return None;
        }
        let by_value: usize = self.equal.iter().map(|(_, values)| values.len()).sum();
        Some(self.uuids.len() + by_value)
    }
}

fn group<T>(groups: &mut Vec<(ColumnId, Set<T>)>, column: ColumnId, seed: HashSeed) -> &mut Set<T> {
    let position = match groups.iter().position(|(id, _)| *id == column) {
        Some(position) => position,
        None => {
            groups.push((column, Set::with_hasher(seed)));
            groups.len() - 1
        }
    };
    &mut groups[position].1
}

/// The element of a set of one.
fn only_element(datum: &Datum) -> Option<AtomRef<'_>> {
    let mut elements = datum.iter();
    match (elements.next(), elements.next()) {
        (Some((element, None)), None) => Some(element),
        _ => None,
    }
}

/// Whether both have an element in common. Iterates over the smaller side.
fn has_any(datum: &Datum, elements: &Set<Key>) -> bool {
    if datum.len() <= elements.len() {
        datum.keys().any(|key| elements.contains(&Probe(key)))
    } else {
        elements.iter().any(|key| datum.contains(key.0.as_ref()))
    }
}
