//! The condition that selects the rows of a table for a client: a disjunction of clauses (docs/spec/protocol.md 4.7, docs/spec/idl.md 1.13).
//!
//! Invariant: clauses are kept sorted and distinct, so equal conditions compare equal, in any order of clauses. No clauses at
//! all means no rows, unlike on the wire, where an empty list means all of them.

use std::collections::BTreeSet;

pub use corvid_data::Function;
use corvid_data::{Datum, Str, TableSchema, wire};
use corvid_json::{ArrayWriter, Value, write};

/// One clause: a column, a function, an argument.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clause {
    column: Str,
    /// `["COLUMN","FUNCTION",ARGUMENT]`, which decides the order.
    text: Box<[u8]>,
}

impl Clause {
    /// A clause; `is_map` says what an empty argument is.
    #[must_use]
    pub fn new(column: &str, function: Function, argument: &Datum, is_map: bool) -> Clause {
        let mut text = Vec::new();
        let mut array = ArrayWriter::new(&mut text);
        write::string(array.element(), column.as_bytes());
        write::string(array.element(), function.name().as_bytes());
        wire::write_datum(array.element(), argument, is_map);
        array.end();
        Clause {
            column: Str::new(column),
            text: text.into(),
        }
    }

    /// A clause as JSON; `None` when it is no array of three that begins with a name. The server checks
    /// the other two.
    #[must_use]
    pub fn from_json(json: &Value) -> Option<Clause> {
        let [column, Value::String(_), _] = json.as_array()? else {
            return None;
        };
        Some(Clause {
            column: Str::new(column.as_str()?),
            text: json.to_bytes().into(),
        })
    }

    /// The column that it looks at.
    #[must_use]
    pub fn column(&self) -> &str {
        &self.column
    }
}

/// Which rows of a table are wanted.
///
/// ```
/// use corvid_session::condition::{Clause, Condition, Function};
/// use corvid_data::{Atom, Datum};
///
/// let mut wanted = Condition::none();
/// assert_eq!(wanted.to_json(), b"[false]");
/// let one = Datum::one(Atom::Integer(1));
/// wanted.add(Clause::new("age", Function::GreaterOrEqual, &one, false));
/// assert_eq!(wanted.to_json(), br#"[["age",">=",1]]"#);
/// assert_eq!(Condition::all().to_json(), b"[true]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// All of them.
    True,
    /// Those for which any of the clauses holds; without clauses none.
    AnyOf(BTreeSet<Clause>),
}

impl Default for Condition {
    /// All rows: the condition of a table for which none was set.
    fn default() -> Condition {
        Condition::True
    }
}

impl Condition {
    /// All rows.
    #[must_use]
    pub fn all() -> Condition {
        Condition::True
    }

    /// No rows; begin with this and add clauses.
    #[must_use]
    pub fn none() -> Condition {
        Condition::AnyOf(BTreeSet::new())
    }

    /// Whether all rows are wanted.
    #[must_use]
    pub fn is_true(&self) -> bool {
        *self == Condition::True
    }

    /// Adds the rows for which `clause` holds; no change to a condition that selects all rows.
    pub fn add(&mut self, clause: Clause) {
        if let Condition::AnyOf(clauses) = self {
            clauses.insert(clause);
        }
    }

    /// A condition as JSON: an array of clauses and booleans. `false` adds nothing, `true` makes it true, and an empty array wants no
    /// rows. `None` when it is something else.
    #[must_use]
    pub fn from_json(json: &Value) -> Option<Condition> {
        let mut condition = Condition::none();
        for element in json.as_array()? {
            match element {
                Value::Bool(true) => condition = Condition::True,
                Value::Bool(false) => {}
                clause => condition.add(Clause::from_json(clause)?),
            }
        }
        Some(condition)
    }

    /// As a monitor request holds it.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Condition::True => out.extend_from_slice(b"[true]"),
            Condition::AnyOf(clauses) if clauses.is_empty() => out.extend_from_slice(b"[false]"),
            Condition::AnyOf(clauses) => {
                let mut array = ArrayWriter::new(&mut out);
                for clause in clauses {
                    array.element().extend_from_slice(&clause.text);
                }
                array.end();
            }
        }
        out
    }

    /// The condition for a table that lacks some of its columns: clauses on those are dropped. If no clause is left, it selects no rows.
    #[must_use]
    pub fn restricted(&self, table: &TableSchema) -> Condition {
        match self {
            Condition::True => Condition::True,
            Condition::AnyOf(clauses) => Condition::AnyOf(
                clauses
                    .iter()
                    .filter(|clause| table.column_id(&clause.column).is_some())
                    .cloned()
                    .collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(text: &str) -> Option<Condition> {
        Condition::from_json(&Value::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        let one = condition(r#"[["a","==",1],["b","<",2],["a","==",1]]"#).unwrap();
        let other = condition(r#"[["b","<",2],false,["a","==",1.0]]"#).unwrap();
        assert_eq!(one, other);
        assert_eq!(one.to_json(), br#"[["a","==",1],["b","<",2]]"#);
    }

    #[test]
    fn true_swallows_clauses_and_nothing_means_no_rows() {
        assert_eq!(condition(r#"[["a","==",1],true]"#), Some(Condition::True));
        assert_eq!(condition("[]"), Some(Condition::none()));
        let mut all = Condition::all();
        all.add(Clause::new("a", Function::Equal, &Datum::empty(), false));
        assert!(all.is_true());
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in ["true", r#"["a"]"#, r#"[["a","=="]]"#, r#"[[1,"==",2]]"#] {
            assert_eq!(condition(text), None, "{text}");
        }
    }
}
