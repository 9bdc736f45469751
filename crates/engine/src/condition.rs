//! Conditions: `where` of operations (all clauses) and of monitors (any clause),
//! docs/spec/protocol.md 5.4 and 4.7.
//!
//! A condition is parsed for one table and evaluated on rows of that table. It knows no indexes and
//! no slots: `lookup` finds the rows. A disjunction of thousands of `==` and `includes` clauses is
//! evaluated by hashing, not clause by clause.

mod disjunction;
mod read;

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use corvid_data::{Atom, AtomRef, ColumnId, Datum, HashSeed, Row, TableSchema};

pub use corvid_data::Function;

pub(crate) use disjunction::Disjunction;

/// Bytes of each element of an argument except the first.
const ELEMENT_BYTES: usize = 2 * size_of::<Atom>();

/// Bytes of a string apart from its text.
const STRING_BYTES: usize = 16;

/// One clause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clause {
    /// `true` or `false`
    Constant(bool),
    /// `[column, function, argument]`
    Compare {
        /// The column, which may be a standard one.
        column: ColumnId,
        /// The comparison.
        function: Function,
        /// The value to compare with.
        argument: Datum,
    },
}

impl Clause {
    /// The memory that the clause takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Clause::Compare { argument, .. } = self else {
            return size_of::<Clause>();
        };
        let text = |atom: AtomRef<'_>| match atom {
            AtomRef::String(text) => STRING_BYTES + text.len(),
            _ => 0,
        };
        let keys: usize = argument.keys().map(text).sum();
        let values: usize = argument.values().map(text).sum();
        let elements = argument.len().saturating_sub(1) * ELEMENT_BYTES;
        size_of::<Clause>() + elements + keys + values
    }

    /// Whether the clause holds for `row`.
    fn holds(&self, row: &Row) -> bool {
        match self {
            Clause::Constant(constant) => *constant,
            Clause::Compare {
                column,
                function,
                argument,
            } => with_column(row, *column, |datum| function.holds(datum, argument)),
        }
    }
}

/// Calls `read` with a column of a row, which may be `_uuid` or `_version`.
pub(crate) fn with_column<T>(row: &Row, column: ColumnId, read: impl FnOnce(&Datum) -> T) -> T {
    match column {
        ColumnId::UUID => read(&Datum::one(Atom::Uuid(row.uuid))),
        ColumnId::VERSION => read(&Datum::one(Atom::Uuid(row.version))),
        own => read(&row.columns[usize::from(own.0)]),
    }
}

/// A list of clauses, immutable once built.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The clauses as given.
    pub clauses: Vec<Clause>,
    seed: HashSeed,
    /// The clauses in the form in which a disjunction is evaluated. Built on first use.
    disjunction: OnceLock<Box<Disjunction>>,
}

impl Condition {
    /// A condition of these clauses, whose arguments are hashed with `seed`.
    #[must_use]
    pub fn new(clauses: Vec<Clause>, seed: HashSeed) -> Condition {
        Condition {
            clauses,
            seed,
            disjunction: OnceLock::new(),
        }
    }

    /// The condition without clauses, which every row matches.
    #[must_use]
    pub fn always() -> Condition {
        // There is nothing to hash, so any seed will do.
        Condition::new(Vec::new(), HashSeed::FIXED)
    }

    /// The seed that the condition was made with.
    #[must_use]
    pub fn hash_seed(&self) -> HashSeed {
        self.seed
    }

    /// Whether every clause holds (operations). True without clauses.
    pub(crate) fn holds_for(&self, row: &Row) -> bool {
        self.clauses.iter().all(|clause| clause.holds(row))
    }

    /// Whether some clause holds (monitors). True without clauses. `table` is the table that the
    /// condition was parsed for. The time does not grow with the number of `==` and one-element
    /// `includes` clauses.
    #[must_use]
    pub fn matches_any(&self, _table: &TableSchema, row: &Row) -> bool {
        match &self.clauses[..] {
            [] => true,
            [one] => one.holds(row),
            _ => self.as_disjunction().matches(row),
        }
    }

    /// The clauses, grouped for evaluation and for look-ups.
    pub(crate) fn as_disjunction(&self) -> &Disjunction {
        self.disjunction
            .get_or_init(|| Box::new(Disjunction::new(&self.clauses, self.seed)))
    }

    /// The row that the condition names by `_uuid ==`, if any.
    pub(crate) fn named_row(&self) -> Option<corvid_data::Uuid> {
        self.equal_to(ColumnId::UUID).and_then(Datum::as_uuid)
    }

    /// The non-standard columns that an `==` clause compares, each with its argument.
    pub(crate) fn equalities(&self) -> impl Iterator<Item = (ColumnId, &Datum)> {
        self.clauses.iter().filter_map(|clause| match clause {
            Clause::Compare {
                column,
                function: Function::Equal,
                argument,
            } if !column.is_standard() => Some((*column, argument)),
            _ => None,
        })
    }

    /// The argument of an `==` clause on `column`.
    pub(crate) fn equal_to(&self, wanted: ColumnId) -> Option<&Datum> {
        self.clauses.iter().find_map(|clause| match clause {
            Clause::Compare {
                column,
                function: Function::Equal,
                argument,
            } if *column == wanted => Some(argument),
            _ => None,
        })
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.clauses == other.clauses
    }
}

impl Eq for Condition {}

impl Hash for Condition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.clauses.hash(state);
    }
}

/// A borrowed atom that finds owned ones in a set.
pub(crate) struct Probe<'a>(pub(crate) AtomRef<'a>);

impl Hash for Probe<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl hashbrown::Equivalent<Key> for Probe<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.0 == key.0.as_ref()
    }
}

/// An atom that hashes like a reference to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) Atom);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_ref().hash(state);
    }
}
