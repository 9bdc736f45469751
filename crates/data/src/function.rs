//! The functions of clauses (RFC 7047 5.1): `where` of operations, conditions of monitors, conditions that a client sends.
//!
//! A function compares two data. The reader of a condition decides on which columns it may be used and how its argument
//! is read.

use std::cmp::Ordering;

use crate::Datum;

/// A function of a clause. `false` and `true`, which are clauses of their own, are not among them.
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
    /// Its name on the wire.
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

    /// The function of this name on the wire.
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

    /// Whether it compares by order, which only numbers have.
    #[inline]
    #[must_use]
    pub fn is_ordering(self) -> bool {
        matches!(
            self,
            Function::Less | Function::LessOrEqual | Function::GreaterOrEqual | Function::Greater
        )
    }

    /// Whether it holds for a column's `datum` and the clause's `argument`. Functions that compare by order use the
    /// first element of each, and do not hold where one of them is empty.
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
