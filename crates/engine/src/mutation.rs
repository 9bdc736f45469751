//! Mutations: `[COLUMN, MUTATOR, VALUE]`, parsed for a table and applied to a datum
//! (docs/spec/protocol.md 5.5).
//!
//! Mutating a large set by a small argument costs O(log n): the old and the new datum share the
//! rest. Arithmetic is exact: a result that does not fit is an error, and values do not wrap.

use corvid_data::{
    Atom, AtomRef, AtomType, BaseType, ColumnId, ColumnSchema, ColumnType, Datum, DatumBuilder,
    Real, Symbols, TableSchema, Tag, WireError, wire,
};
use corvid_json::Reader;
use smallvec::SmallVec;

use crate::names::reborrow;
use crate::triple::Triple;

/// One mutation of an operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mutation {
    /// The column that it changes, never a standard one.
    pub(crate) column: ColumnId,
    mutator: Mutator,
    argument: Datum,
    /// The argument of `delete` on a map is a set of keys.
    is_by_key: bool,
}

/// The mutations of one operation, usually one.
pub(crate) type Mutations = SmallVec<[Mutation; 2]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Insert,
    Delete,
}

impl Mutator {
    fn from_name(name: &[u8]) -> Option<Mutator> {
        Some(match name {
            b"+=" => Mutator::Add,
            b"-=" => Mutator::Subtract,
            b"*=" => Mutator::Multiply,
            b"/=" => Mutator::Divide,
            b"%=" => Mutator::Modulo,
            b"insert" => Mutator::Insert,
            b"delete" => Mutator::Delete,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Mutator::Add => "+=",
            Mutator::Subtract => "-=",
            Mutator::Multiply => "*=",
            Mutator::Divide => "/=",
            Mutator::Modulo => "%=",
            Mutator::Insert => "insert",
            Mutator::Delete => "delete",
        }
    }

    fn suits(self, column_type: &ColumnType) -> bool {
        let atom = column_type.key.atom;
        match self {
            Mutator::Insert | Mutator::Delete => !column_type.is_scalar(),
            Mutator::Modulo => !column_type.is_map() && atom == AtomType::Integer,
            _ => !column_type.is_map() && matches!(atom, AtomType::Integer | AtomType::Real),
        }
    }
}

/// Parses the raw text of a `mutations` array.
///
/// # Errors
/// Those of the first table in docs/spec/protocol.md 5.5.
pub(crate) fn read_mutations(
    table: &TableSchema,
    raw: &[u8],
    symbols: &mut dyn Symbols,
) -> Result<Mutations, WireError> {
    let mut symbols = Some(symbols);
    let mut reader = Reader::trusted(raw);
    let mut mutations = Mutations::new();
    let malformed = |_| malformed(raw);
    reader.begin_array().map_err(malformed)?;
    while reader.next_element().map_err(malformed)? {
        mutations.push(read_mutation(table, &mut reader, reborrow(&mut symbols))?);
    }
    Ok(mutations)
}

fn malformed(mutation: &[u8]) -> WireError {
    WireError::syntax(mutation, "Parse error in mutation.")
}

fn read_mutation(
    table: &TableSchema,
    reader: &mut Reader<'_>,
    mut symbols: Option<&mut dyn Symbols>,
) -> Result<Mutation, WireError> {
    let usual = Triple::read_usual(table, reader, |column, operator, reader| {
        let mutator = Mutator::from_name(operator)?;
        let schema = table.column(column);
        if !schema.mutable || !mutator.suits(&schema.column_type) {
            return None;
        }
        let argument = read_usual(mutator, &schema.column_type, reader, &mut symbols)?;
        Some(Mutation {
            column,
            mutator,
            argument,
            is_by_key: false,
        })
    });
    if let Some(usual) = usual {
        return Ok(usual);
    }
    // The fast path failed and did not move the reader. This path parses the mutation again, and
    // reports the error that comes first in the protocol's order.
    let triple = Triple::read(table, reader, malformed)?;
    let schema = table.column(triple.column);
    if !schema.mutable {
        return Err(WireError::new(
            Tag::ConstraintViolation,
            format!(
                "Cannot mutate immutable column {} in table {}.",
                schema.name, table.name
            ),
        )
        .with_fragment(triple.raw()));
    }
    let Some(mutator) = Mutator::from_name(&triple.operator) else {
        let name = triple.shown_operator();
        return Err(WireError::new(
            Tag::UnknownMutator,
            format!("No mutator named {name}."),
        ));
    };
    if !mutator.suits(&schema.column_type) {
        return Err(triple.type_mismatch(schema));
    }
    let (argument, is_by_key) =
        read_argument(mutator, &schema.column_type, triple.argument, &mut symbols)?;
    Ok(Mutation {
        column: triple.column,
        mutator,
        argument,
        is_by_key,
    })
}

/// The fast path for the argument of a mutator of sets; `None` for any other mutator, and for a
/// wrong argument.
fn read_usual(
    mutator: Mutator,
    column_type: &ColumnType,
    reader: &mut Reader<'_>,
    symbols: &mut Option<&mut dyn Symbols>,
) -> Option<Datum> {
    match mutator {
        // A column with a minimum of 1 is left to the slow path: an argument of `insert` may be
        // empty, a value of the column may not.
        Mutator::Insert if column_type.min == 0 => {
            wire::read_datum(reader, column_type, reborrow(symbols)).ok()
        }
        Mutator::Delete if !column_type.is_map() => {
            wire::read_diff(reader, column_type, reborrow(symbols)).ok()
        }
        _ => None,
    }
}

fn read_argument(
    mutator: Mutator,
    column_type: &ColumnType,
    raw: &[u8],
    symbols: &mut Option<&mut dyn Symbols>,
) -> Result<(Datum, bool), WireError> {
    let reader = &mut Reader::trusted(raw);
    match mutator {
        Mutator::Insert => {
            let any_number = ColumnType {
                min: 0,
                ..column_type.clone()
            };
            let argument = wire::read_datum(reader, &any_number, reborrow(symbols))?;
            Ok((argument, false))
        }
        Mutator::Delete => {
            let argument = wire::read_diff(reader, column_type, reborrow(symbols));
            match argument {
                // Keys alone are parsed second. If neither form fits, their error is the one that
                // clients get.
                Err(_) if column_type.is_map() => {
                    let keys = ColumnType {
                        value: None,
                        ..column_type.clone()
                    };
                    let reader = &mut Reader::trusted(raw);
                    let argument = wire::read_diff(reader, &keys, reborrow(symbols))?;
                    Ok((argument, true))
                }
                argument => Ok((argument?, false)),
            }
        }
        _ => {
            let one = ColumnType::scalar(column_type.key.atom);
            let argument = wire::read_datum(reader, &one, reborrow(symbols))?;
            Ok((argument, false))
        }
    }
}

impl Mutation {
    /// Changes `datum`, a value of `column`. Returns the argument if it equals the difference: all
    /// of it was added, or all of it was removed.
    ///
    /// # Errors
    /// Those of the second table in docs/spec/protocol.md 5.5. `datum` must not be used then.
    pub(crate) fn apply(
        &self,
        column: &ColumnSchema,
        datum: &mut Datum,
    ) -> Result<Option<Datum>, WireError> {
        let changed = match self.mutator {
            Mutator::Insert => datum.insert_all(&self.argument),
            Mutator::Delete if self.is_by_key => datum.remove_keys(&self.argument),
            Mutator::Delete => datum.remove_all(&self.argument),
            _ => {
                self.compute(&column.column_type.key, datum)?;
                return Ok(None);
            }
        };
        let column_type = &column.column_type;
        let count = datum.len();
        if count < column_type.min as usize || count > column_type.max as usize {
            return Err(WireError::new(
                Tag::ConstraintViolation,
                format!(
                    "Attempted to store {count} elements in {}.",
                    column_type.english()
                ),
            ));
        }
        // Only then is the argument the difference. An element that was there before an `insert`,
        // or missing before a `delete`, is in the argument and not in the difference. Deletion by
        // key names no values, which the difference of a map has.
        let is_plain = changed > 0
            && changed == self.argument.len()
            && column_type.is_composite()
            && !self.is_by_key;
        Ok(is_plain.then(|| self.argument.clone()))
    }

    /// Whether the work is proportional to the size of the column, not to that of the argument.
    pub(crate) fn visits_all(&self) -> bool {
        !matches!(self.mutator, Mutator::Insert | Mutator::Delete)
    }

    /// Applies an arithmetic mutator to every element.
    fn compute(&self, base: &BaseType, datum: &mut Datum) -> Result<(), WireError> {
        let Some(operand) = self.argument.first() else {
            unreachable!("arithmetic mutators are read with one argument");
        };
        let mut results = DatumBuilder::with_capacity(datum.len());
        for element in datum.keys() {
            let result = self.mutator.compute(element, operand)?;
            base.check(result.as_ref())?;
            results.push(result, None);
        }
        *datum = results.finish().map_err(|_| {
            WireError::new(
                Tag::ConstraintViolation,
                format!(
                    "Result of \"{}\" operation contains duplicates.",
                    self.mutator.name()
                ),
            )
        })?;
        Ok(())
    }
}

impl Mutator {
    fn compute(self, x: AtomRef<'_>, y: AtomRef<'_>) -> Result<Atom, WireError> {
        let result = match (x, y) {
            (AtomRef::Integer(x), AtomRef::Integer(y)) => {
                self.check_divisor(y == 0)?;
                self.compute_integer(x, y).map(Atom::Integer)
            }
            (AtomRef::Real(x), AtomRef::Real(y)) => {
                self.check_divisor(y.get() == 0.0)?;
                Real::new(self.compute_real(x.get(), y.get())).map(Atom::Real)
            }
            _ => unreachable!("arithmetic mutators are read for numbers only"),
        };
        result.ok_or_else(|| {
            WireError::new(
                Tag::RangeError,
                format!("Result of \"{}\" operation is out of range.", self.name()),
            )
        })
    }

    fn check_divisor(self, is_zero: bool) -> Result<(), WireError> {
        if is_zero && matches!(self, Mutator::Divide | Mutator::Modulo) {
            return Err(WireError::new(Tag::DomainError, "Division by zero."));
        }
        Ok(())
    }

    /// `None` if the result does not fit. Division truncates, and the remainder has the sign of the
    /// dividend, as in C.
    fn compute_integer(self, x: i64, y: i64) -> Option<i64> {
        match self {
            Mutator::Add => x.checked_add(y),
            Mutator::Subtract => x.checked_sub(y),
            Mutator::Multiply => x.checked_mul(y),
            Mutator::Divide => x.checked_div(y),
            Mutator::Modulo => x.checked_rem(y),
            Mutator::Insert | Mutator::Delete => None,
        }
    }

    /// Not finite if the result does not fit. Reals have no remainder.
    fn compute_real(self, x: f64, y: f64) -> f64 {
        match self {
            Mutator::Add => x + y,
            Mutator::Subtract => x - y,
            Mutator::Multiply => x * y,
            Mutator::Divide => x / y,
            Mutator::Modulo | Mutator::Insert | Mutator::Delete => f64::NAN,
        }
    }
}
