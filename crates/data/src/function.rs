//! The functions of clauses (RFC 7047 5.1): in `where` of operations, in conditions of monitors,
//! and in conditions that a client sends.
//!
//! A function compares two data. It also decides for which types of columns it is defined and how
//! its argument is read, so a server and its clients treat a clause alike (docs/spec/protocol.md
//! 5.4).

use std::cmp::Ordering;

use corvid_json::Reader;

use crate::{AtomType, ColumnType, Datum, Symbols, WireError, wire};

/// A function of a clause. `false` and `true` are clauses of their own, not functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Function {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
    /// `includes`
    Includes,
    /// `excludes`
    Excludes,
}

impl Function {
    /// The function's name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Function::Less => "<",
            Function::LessOrEqual => "<=",
            Function::Equal => "==",
            Function::NotEqual => "!=",
            Function::GreaterOrEqual => ">=",
            Function::Greater => ">",
            Function::Includes => "includes",
            Function::Excludes => "excludes",
        }
    }

    /// The function with this name on the wire.
    #[inline]
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Function> {
        Some(match name {
            b"<" => Function::Less,
            b"<=" => Function::LessOrEqual,
            b"==" => Function::Equal,
            b"!=" => Function::NotEqual,
            b">=" => Function::GreaterOrEqual,
            b">" => Function::Greater,
            b"includes" => Function::Includes,
            b"excludes" => Function::Excludes,
            _ => return None,
        })
    }

    /// Whether the function compares by order, which only numbers have.
    #[inline]
    #[must_use]
    pub fn is_ordering(self) -> bool {
        matches!(
            self,
            Function::Less | Function::LessOrEqual | Function::GreaterOrEqual | Function::Greater
        )
    }

    /// Whether the function is defined for columns of this type. Scalars and optional scalars of
    /// numbers have an order; the other functions are defined for every type.
    #[must_use]
    pub fn is_defined_for(self, column_type: &ColumnType) -> bool {
        let is_single = column_type.is_scalar() || column_type.is_optional_scalar();
        let is_number = matches!(column_type.key.atom, AtomType::Integer | AtomType::Real);
        !self.is_ordering() || (is_single && is_number)
    }

    /// Parses the argument of a clause: the raw JSON text of a value. `symbols` is `None` if named
    /// UUIDs are not allowed. The function must be defined for the type
    /// ([`Function::is_defined_for`]).
    ///
    /// # Errors
    /// The value is not an argument of this function for such a column, with the texts of
    /// docs/spec/protocol.md 2.1 to 2.4.
    pub fn read_argument(
        self,
        column_type: &ColumnType,
        raw: &[u8],
        symbols: Option<&mut dyn Symbols>,
    ) -> Result<Datum, WireError> {
        let reader = &mut Reader::trusted(raw);
        let with_min = |min| ColumnType {
            min,
            ..column_type.clone()
        };
        match self {
            Function::Equal | Function::NotEqual => wire::read_datum(reader, column_type, symbols),
            _ if column_type.is_scalar() => wire::read_datum(reader, column_type, symbols),
            Function::Excludes => wire::read_diff(reader, column_type, symbols),
            Function::Includes => wire::read_datum(reader, &with_min(0), symbols),
            // An ordered column holds at most one element, so the argument has exactly one.
            _ => wire::read_datum(reader, &with_min(1), symbols),
        }
    }

    /// Whether the function holds for a column's `datum` and the clause's `argument`. Functions
    /// that compare by order use the first element of each, and do not hold if either is empty.
    #[inline]
    #[must_use]
    pub fn holds(self, datum: &Datum, argument: &Datum) -> bool {
        let ordering = || Some(datum.first()?.cmp(&argument.first()?));
        match self {
            Function::Equal => datum == argument,
            Function::NotEqual => datum != argument,
            Function::Includes => datum.includes(argument),
            Function::Excludes => datum.excludes(argument),
            Function::Less => ordering().is_some_and(Ordering::is_lt),
            Function::LessOrEqual => ordering().is_some_and(Ordering::is_le),
            Function::GreaterOrEqual => ordering().is_some_and(Ordering::is_ge),
            Function::Greater => ordering().is_some_and(Ordering::is_gt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Atom;

    const ALL: [Function; 8] = [
        Function::Less,
        Function::LessOrEqual,
        Function::Equal,
        Function::NotEqual,
        Function::GreaterOrEqual,
        Function::Greater,
        Function::Includes,
        Function::Excludes,
    ];

    #[test]
    fn every_function_is_found_by_its_name() {
        for function in ALL {
            assert_eq!(
                Function::from_name(function.name().as_bytes()),
                Some(function)
            );
        }
        assert_eq!(Function::from_name(b"="), None);
    }

    #[test]
    fn functions_hold_as_their_names_say() {
        let datum = |value| Datum::one(Atom::Integer(value));
        for (value, holding) in [
            (1, ["<", "<=", "!=", "excludes"]),
            (2, ["<=", "==", ">=", "includes"]),
            (3, ["!=", ">=", ">", "excludes"]),
        ] {
            let found: Vec<&str> = ALL
                .into_iter()
                .filter(|function| function.holds(&datum(value), &datum(2)))
                .map(Function::name)
                .collect();
            assert_eq!(found, holding, "{value}");
        }
        let ordering = ALL.into_iter().filter(|function| function.is_ordering());
        assert_eq!(ordering.count(), 4);
        assert!(!Function::LessOrEqual.holds(&Datum::empty(), &datum(2)));
    }
}
