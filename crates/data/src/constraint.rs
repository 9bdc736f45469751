//! Checks atoms against a base type's constraints, with the exact texts of docs/spec/protocol.md
//! 2.2.
//!
//! Called for every atom that is read ([`crate::wire`], [`crate::text`]), and by the engine after
//! each mutation. The number of elements and the references are checked elsewhere.

use crate::types::Bounds;
use crate::{AtomRef, BaseType, ColumnType, Datum, Tag, WireError, text};

impl BaseType {
    /// Whether every atom of the type passes [`BaseType::check`].
    #[must_use]
    pub fn is_unconstrained(&self) -> bool {
        self.enumeration.is_none() && matches!(self.bounds, Bounds::None)
    }

    /// Checks one atom: enum first, then range or length.
    ///
    /// # Errors
    /// `constraint violation`.
    #[inline]
    pub fn check(&self, atom: AtomRef<'_>) -> Result<(), WireError> {
        if self.is_unconstrained() {
            return Ok(());
        }
        self.check_constrained(atom)
    }

    fn check_constrained(&self, atom: AtomRef<'_>) -> Result<(), WireError> {
        if let Some(allowed) = &self.enumeration
            && !allowed.contains(atom)
        {
            let mut details = shown(atom);
            details.push_str(" is not one of the allowed values ([");
            for (index, choice) in allowed.keys().enumerate() {
                if index > 0 {
                    details.push_str(", ");
                }
                text::write_atom(&mut details, choice);
            }
            details.push_str("])");
            return Err(violation(details));
        }
        match (&self.bounds, atom) {
            (&Bounds::Integer { min, max }, AtomRef::Integer(value)) => range(
                atom,
                (value < min, value > max),
                (AtomRef::Integer(min), min == i64::MIN),
                (AtomRef::Integer(max), max == i64::MAX),
            ),
            (&Bounds::Real { min, max }, AtomRef::Real(value)) => range(
                atom,
                (value.get() < min, value.get() > max),
                (real(min), min == -f64::MAX),
                (real(max), max == f64::MAX),
            ),
            (&Bounds::Length { min, max }, AtomRef::String(value)) => length(value, min, max),
            _ => Ok(()),
        }
    }
}

impl ColumnType {
    /// Checks every key and value of `datum`, but not their number.
    ///
    /// # Errors
    /// `constraint violation`.
    pub fn check(&self, datum: &Datum) -> Result<(), WireError> {
        let is_free = self.key.is_unconstrained()
            && self.value.as_ref().is_none_or(BaseType::is_unconstrained);
        if is_free {
            return Ok(());
        }
        for (key, value) in datum {
            self.key.check(key)?;
            if let (Some(base), Some(value)) = (&self.value, value) {
                base.check(value)?;
            }
        }
        Ok(())
    }
}

/// Bounds come from schemas, which hold only finite numbers.
fn real(value: f64) -> AtomRef<'static> {
    AtomRef::Real(crate::Real::new(value).unwrap_or_default())
}

/// The flag next to `min` and `max` tells that it is the limit of the type, and so not a bound.
fn range(
    atom: AtomRef<'_>,
    (is_below, is_above): (bool, bool),
    (min, is_min_free): (AtomRef<'_>, bool),
    (max, is_max_free): (AtomRef<'_>, bool),
) -> Result<(), WireError> {
    if !is_below && !is_above {
        return Ok(());
    }
    let (value, min, max) = (shown(atom), shown(min), shown(max));
    Err(violation(if !is_min_free && !is_max_free {
        format!("{value} is not in the valid range {min} to {max} (inclusive)")
    } else if is_below {
        format!("{value} is less than minimum allowed value {min}")
    } else {
        format!("{value} is greater than maximum allowed value {max}")
    }))
}

fn length(value: &str, min: u32, max: u32) -> Result<(), WireError> {
    // A code point takes one to four bytes, so most strings need no count.
    if value.len() / 4 >= min as usize && value.len() <= max as usize {
        return Ok(());
    }
    let count = value.chars().count();
    if count < min as usize {
        Err(violation(format!(
            "\"{value}\" length {count} is less than minimum allowed length {min}"
        )))
    } else if count > max as usize {
        Err(violation(format!(
            "\"{value}\" length {count} is greater than maximum allowed length {max}"
        )))
    } else {
        Ok(())
    }
}

fn shown(atom: AtomRef<'_>) -> String {
    let mut text = String::new();
    text::write_atom(&mut text, atom);
    text
}

fn violation(details: String) -> WireError {
    WireError::new(Tag::ConstraintViolation, details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Atom, AtomType, DatumBuilder, Real, Str};

    #[allow(clippy::needless_pass_by_value)] // called with literals
    fn details(base: &BaseType, atom: Atom) -> String {
        match base.check(atom.as_ref()) {
            Ok(()) => "ok".to_owned(),
            Err(error) => {
                assert_eq!(error.tag, Tag::ConstraintViolation);
                assert_eq!(error.syntax, None);
                error.details
            }
        }
    }

    fn bounded(atom: AtomType, bounds: Bounds) -> BaseType {
        BaseType {
            bounds,
            ..BaseType::plain(atom)
        }
    }

    #[test]
    fn integers_name_the_bounds_that_exist() {
        let check = |min, max, value| {
            let base = bounded(AtomType::Integer, Bounds::Integer { min, max });
            details(&base, Atom::Integer(value))
        };
        assert_eq!(check(-5, 10, 10), "ok");
        assert_eq!(check(-5, 10, -5), "ok");
        assert_eq!(
            check(-5, 10, 11),
            "11 is not in the valid range -5 to 10 (inclusive)"
        );
        assert_eq!(
            check(-5, i64::MAX, -6),
            "-6 is less than minimum allowed value -5"
        );
        assert_eq!(
            check(i64::MIN, 10, 77),
            "77 is greater than maximum allowed value 10"
        );
    }

    #[test]
    fn reals_are_shown_with_15_digits() {
        let check = |min, max, value| {
            let base = bounded(AtomType::Real, Bounds::Real { min, max });
            details(&base, Atom::Real(Real::new(value).expect("finite")))
        };
        assert_eq!(check(-1.5, 2.5, 2.5), "ok");
        assert_eq!(
            check(-1.5, 2.5, 1e20),
            "1e+20 is not in the valid range -1.5 to 2.5 (inclusive)"
        );
        assert_eq!(
            check(0.1, f64::MAX, 0.05),
            "0.05 is less than minimum allowed value 0.1"
        );
        assert_eq!(
            check(-f64::MAX, 0.1, 3.0),
            "3 is greater than maximum allowed value 0.1"
        );
    }

    #[test]
    fn lengths_count_code_points() {
        let base = bounded(AtomType::String, Bounds::Length { min: 2, max: 4 });
        let check = |text: &str| details(&base, Atom::String(Str::new(text)));
        assert_eq!(check("\u{1f600}\u{e9}\u{e9}a"), "ok");
        assert_eq!(check("ab"), "ok");
        assert_eq!(
            check("\u{1f600}"),
            "\"\u{1f600}\" length 1 is less than minimum allowed length 2"
        );
        assert_eq!(
            check("abc de"),
            "\"abc de\" length 6 is greater than maximum allowed length 4"
        );
    }

    #[test]
    fn enums_list_their_choices_sorted_in_brackets() {
        let mut choices = DatumBuilder::new();
        for choice in ["standalone", "clustered", "a b"] {
            choices.push(Atom::String(Str::new(choice)), None);
        }
        let base = BaseType {
            enumeration: Some(choices.finish().expect("distinct")),
            ..BaseType::plain(AtomType::String)
        };
        assert_eq!(details(&base, Atom::String(Str::new("a b"))), "ok");
        assert_eq!(
            details(&base, Atom::String(Str::new(""))),
            "\"\" is not one of the allowed values ([\"a b\", clustered, standalone])"
        );
        let base = BaseType {
            enumeration: Some(Datum::one(Atom::Integer(1))),
            ..BaseType::plain(AtomType::Integer)
        };
        assert_eq!(
            details(&base, Atom::Integer(2)),
            "2 is not one of the allowed values ([1])"
        );
    }
}
