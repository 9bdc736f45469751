//! Conditions of `find` and `wait-until`: `COLUMN[:KEY] OPERATOR VALUE`.
//!
//! A condition is judged here. Those that the server judges in the same way are also sent as
//! clauses, so that other rows are not fetched.

use std::cmp::Ordering;

use corvid_data::{Atom, AtomType, ColumnId, ColumnType, Datum, Function, TableSchema};

use super::argument;
use super::row_names::RowNames;
use crate::contents::Clause;
use crate::failure::Failure;

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    SetEqual,
    SetNotEqual,
    ProperSubset,
    ProperSuperset,
    Subset,
    Superset,
    In,
    NotIn,
}

/// The operators and their spellings, in the order in which an error lists them.
const OPERATORS: [(&str, Operator); 14] = [
    ("=", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("{=}", Operator::SetEqual),
    ("{!=}", Operator::SetNotEqual),
    ("{<}", Operator::ProperSubset),
    ("{>}", Operator::ProperSuperset),
    ("{<=}", Operator::Subset),
    ("{>=}", Operator::Superset),
    ("{in}", Operator::In),
    ("{not-in}", Operator::NotIn),
];

impl Operator {
    /// Whether a missing key counts as the empty set, instead of excluding the row.
    fn is_of_sets(self) -> bool {
        self as u8 >= Operator::SetEqual as u8
    }

    fn holds(self, have: &Datum, want: &Datum) -> bool {
        let order = have.cmp(want);
        match self {
            Operator::Equal | Operator::SetEqual => order == Ordering::Equal,
            Operator::NotEqual | Operator::SetNotEqual => order != Ordering::Equal,
            Operator::Less => order == Ordering::Less,
            Operator::Greater => order == Ordering::Greater,
            Operator::LessOrEqual => order != Ordering::Greater,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::ProperSubset => have.len() < want.len() && want.includes(have),
            Operator::ProperSuperset => have.len() > want.len() && have.includes(want),
            Operator::Subset | Operator::In => want.includes(have),
            Operator::Superset => have.includes(want),
            Operator::NotIn => have.excludes(want),
        }
    }
}

/// Conditions of a command, all of which a row must satisfy.
///
/// A wrong condition matters only for a row that satisfies those before it, as with the reference:
/// a table without rows never complains.
#[derive(Debug)]
pub(crate) struct Conditions {
    /// The conditions before the first wrong one.
    right: Vec<Condition>,
    /// The fault of the next one.
    fault: Option<Failure>,
}

impl Conditions {
    /// Parses conditions about a table.
    pub(crate) fn parse(
        table: &TableSchema,
        texts: &[String],
        names: &mut RowNames<'_>,
    ) -> Conditions {
        let (mut right, mut fault) = (Vec::new(), None);
        for text in texts {
            match Condition::parse(table, text, names) {
                Ok(condition) => right.push(condition),
                Err(failure) => {
                    fault = Some(failure);
                    break;
                }
            }
        }
        Conditions { right, fault }
    }

    /// Whether all hold for a row.
    ///
    /// # Errors
    /// The right ones hold, but there is a wrong one; or the row cannot be read.
    pub(crate) fn hold(
        &self,
        mut read: impl FnMut(ColumnId) -> Result<Datum, Failure>,
    ) -> Result<bool, Failure> {
        for condition in &self.right {
            if !condition.holds(&read(condition.column)?) {
                return Ok(false);
            }
        }
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(true),
        }
    }

    /// The columns that are compared.
    pub(crate) fn columns(&self) -> impl Iterator<Item = ColumnId> {
        self.right.iter().map(|condition| condition.column)
    }

    /// The clauses for the server, which select at least the rows for which all hold.
    pub(crate) fn clauses(&self) -> Vec<Clause> {
        self.right.iter().filter_map(Condition::clause).collect()
    }
}

/// A parsed condition.
#[derive(Clone, Debug)]
struct Condition {
    /// The column that is compared.
    pub column: ColumnId,
    key: Option<Atom>,
    operator: Operator,
    want: Datum,
    /// The column has exactly one element, a number, so that the server orders its values as we do.
    is_number: bool,
}

impl Condition {
    /// Parses a condition about a table.
    ///
    /// # Errors
    /// The column is unknown, the operator or value is missing, or the value is not one of the
    /// column.
    fn parse(
        table: &TableSchema,
        text: &str,
        names: &mut RowNames<'_>,
    ) -> Result<Condition, Failure> {
        let parsed = argument::with_value(table, text, &OPERATORS.map(|(name, _)| name))?;
        let (_, operator) = OPERATORS[parsed.operator];
        let schema = table.column(parsed.column);
        let column_type = &schema.column_type;
        let (key, want) = match parsed.key {
            None => (None, names.read_datum(parsed.value, column_type)),
            Some(key) => {
                let Some(value_type) = &column_type.value else {
                    return Err(Failure::usage(format!(
                        "cannot specify key to check for non-map column {}",
                        schema.name
                    )));
                };
                let key = names
                    .read_atom(&key, &column_type.key)
                    .map_err(Failure::usage)?;
                let of_values = ColumnType {
                    key: value_type.clone(),
                    value: None,
                    ..column_type.clone()
                };
                (Some(key), names.read_datum(parsed.value, &of_values))
            }
        };
        Ok(Condition {
            column: parsed.column,
            key,
            operator,
            want: want.map_err(Failure::usage)?,
            is_number: column_type.is_scalar()
                && matches!(column_type.key.atom, AtomType::Integer | AtomType::Real),
        })
    }

    /// Whether the condition holds for the column's value in a row.
    #[must_use]
    fn holds(&self, datum: &Datum) -> bool {
        let Some(key) = &self.key else {
            return self.operator.holds(datum, &self.want);
        };
        let have = match datum.get(key.as_ref()) {
            Some(value) => Datum::one(value.to_owned()),
            None if self.operator.is_of_sets() => Datum::empty(),
            None => return false,
        };
        self.operator.holds(&have, &self.want)
    }

    /// The clause with which a server selects the same rows, if there is one.
    #[must_use]
    fn clause(&self) -> Option<Clause> {
        let (function, argument) = match (&self.key, self.operator) {
            (None, Operator::Equal | Operator::SetEqual) => (Function::Equal, self.want.clone()),
            (None, Operator::NotEqual | Operator::SetNotEqual) => {
                (Function::NotEqual, self.want.clone())
            }
            (None, Operator::Less) if self.is_number => (Function::Less, self.want.clone()),
            (None, Operator::Greater) if self.is_number => (Function::Greater, self.want.clone()),
            (None, Operator::LessOrEqual) if self.is_number => {
                (Function::LessOrEqual, self.want.clone())
            }
            (None, Operator::GreaterOrEqual) if self.is_number => {
                (Function::GreaterOrEqual, self.want.clone())
            }
            (None, Operator::Superset) => (Function::Includes, self.want.clone()),
            (Some(key), Operator::Equal) if self.want.len() == 1 => {
                let value = self.want.first()?.to_owned();
                (Function::Includes, Datum::pair(key.clone(), value))
            }
            _ => return None,
        };
        Some(Clause {
            column: self.column,
            function,
            argument,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[i64]) -> Datum {
        let mut datum = Datum::empty();
        for value in values {
            datum.insert(Atom::Integer(*value), None);
        }
        datum
    }

    #[test]
    fn operators_hold_as_the_manual_says() {
        let holding = |have: &[i64], want: &[i64]| {
            let (have, want) = (set(have), set(want));
            OPERATORS
                .iter()
                .filter(|(_, operator)| operator.holds(&have, &want))
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(holding(&[1, 2], &[1, 2]), "= <= >= {=} {<=} {>=} {in}");
        assert_eq!(holding(&[1], &[1, 2]), "!= < <= {!=} {<} {<=} {in}");
        // The number of elements is compared first.
        assert_eq!(holding(&[1, 2], &[9]), "!= > >= {!=} {not-in}");
        assert_eq!(holding(&[], &[1]), "!= < <= {!=} {<} {<=} {in} {not-in}");
    }

    #[test]
    fn a_missing_key_is_an_empty_set_for_set_operators_only() {
        let condition = |operator| Condition {
            column: ColumnId(0),
            key: Some(Atom::Integer(7)),
            operator,
            want: set(&[5]),
            is_number: false,
        };
        let with_key = Datum::pair(Atom::Integer(7), Atom::Integer(5));
        assert!(condition(Operator::Equal).holds(&with_key));
        assert!(!condition(Operator::NotEqual).holds(&Datum::empty()));
        assert!(condition(Operator::SetNotEqual).holds(&Datum::empty()));
    }
}
