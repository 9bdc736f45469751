//! Mutations of the model (docs/spec/protocol.md 5.5).

use corvid_json::Value;

use super::atom::{Atom, Kind, Real};
use super::condition::mismatch;
use super::datum::{Datum, Names, check_atom};
use super::fault::Fault;
use super::schema::{Base, Table, Type, UNLIMITED};

/// One mutation: `[COLUMN, MUTATOR, VALUE]`.
#[derive(Clone, Debug)]
pub(super) struct Mutation {
    /// The mutated column.
    pub column: String,
    ty: Type,
    mutator: String,
    argument: Datum,
    /// Whether this is a `delete` from a map that names only keys.
    is_by_key: bool,
}

impl Mutation {
    /// Parses one mutation.
    ///
    /// # Errors
    /// The first fault found.
    pub(super) fn read(
        table_name: &str,
        table: &Table,
        json: &Value,
        names: &mut Names<'_>,
    ) -> Result<Mutation, Fault> {
        let malformed = || Fault::syntax(json, "Parse error in mutation.");
        let Some([column, mutator, argument]) = json.as_array() else {
            return Err(malformed());
        };
        let (Some(column), Some(mutator)) = (column.as_str(), mutator.as_str()) else {
            return Err(malformed());
        };
        let Some(ty) = table.ty(column) else {
            let details = format!("No column {column} in table {table_name}.");
            return Err(Fault::new("unknown column", details).about(json));
        };
        if !table.is_mutable(column) {
            let details = format!("Cannot mutate immutable column {column} in table {table_name}.");
            return Err(Fault::constraint(details).about(json));
        }
        let is_number = ty.value.is_none() && matches!(ty.key.kind, Kind::Integer | Kind::Real);
        let fits = match mutator {
            "+=" | "-=" | "*=" | "/=" => is_number,
            "%=" => is_number && ty.key.kind == Kind::Integer,
            "insert" | "delete" => !ty.is_scalar(),
            other => {
                return Err(Fault::new(
                    "unknown mutator",
                    format!("No mutator named {other}."),
                ));
            }
        };
        if !fits {
            return Err(mismatch(json, mutator, column, &ty));
        }
        let mut is_by_key = false;
        let argument = match mutator {
            "insert" => Datum::read(&ty.limited(0, ty.max), argument, names)?,
            "delete" => {
                let whole = ty.limited(0, UNLIMITED);
                match Datum::read(&whole, argument, names) {
                    Err(_) if ty.value.is_some() => {
                        is_by_key = true;
                        let keys = Type {
                            value: None,
                            ..whole
                        };
                        Datum::read(&keys, argument, names)?
                    }
                    read => read?,
                }
            }
            _ => Datum::read(&Type::scalar(Base::plain(ty.key.kind)), argument, names)?,
        };
        Ok(Mutation {
            column: column.to_owned(),
            ty,
            mutator: mutator.to_owned(),
            argument,
            is_by_key,
        })
    }

    /// Returns the column's new value.
    ///
    /// # Errors
    /// The first fault found.
    pub(super) fn apply(&self, datum: &Datum) -> Result<Datum, Fault> {
        let result = match self.mutator.as_str() {
            "insert" => datum.united(&self.argument),
            "delete" => datum.filtered(|key, value| match self.argument.get(key) {
                Some(found) => !self.is_by_key && found.as_ref() != value,
                None => true,
            }),
            _ => return self.calculate(datum),
        };
        let count = result.len() as u64;
        if count < self.ty.min || count > self.ty.max {
            let details = format!(
                "Attempted to store {count} elements in {}.",
                self.ty.english()
            );
            return Err(Fault::constraint(details));
        }
        Ok(result)
    }

    fn calculate(&self, datum: &Datum) -> Result<Datum, Fault> {
        let operand = self.argument.keys().next().expect("one atom");
        let mut results = Vec::new();
        for atom in datum.keys() {
            let result = self.calculate_one(atom, operand)?;
            check_atom(&self.ty.key, &result)?;
            results.push((result, None));
        }
        let count = results.len();
        let result = Datum::from_pairs(results);
        if result.len() < count {
            let details = format!(
                "Result of \"{}\" operation contains duplicates.",
                self.mutator
            );
            return Err(Fault::constraint(details));
        }
        Ok(result)
    }

    fn calculate_one(&self, left: &Atom, right: &Atom) -> Result<Atom, Fault> {
        let mutator = self.mutator.as_str();
        let is_zero = *right == self.ty.key.kind.default();
        if is_zero && matches!(mutator, "/=" | "%=") {
            return Err(Fault::new("domain error", "Division by zero."));
        }
        let result = match (left, right) {
            (Atom::Integer(left), Atom::Integer(right)) => {
                let (left, right) = (i128::from(*left), i128::from(*right));
                // The remainder of the smallest integer by -1 is 0, but the processor's division
                // overflows, so the server reports a range error.
                let traps = left == i128::from(i64::MIN) && right == -1;
                let exact = match mutator {
                    "+=" => left + right,
                    "-=" => left - right,
                    "*=" => left * right,
                    "/=" => left / right,
                    _ if traps => i128::MAX,
                    _ => left % right,
                };
                i64::try_from(exact).ok().map(Atom::Integer)
            }
            (Atom::Real(left), Atom::Real(right)) => {
                let (left, right) = (left.get(), right.get());
                let result = match mutator {
                    "+=" => left + right,
                    "-=" => left - right,
                    "*=" => left * right,
                    _ => left / right,
                };
                result.is_finite().then(|| Atom::Real(Real::new(result)))
            }
            _ => unreachable!("both are of the column's type"),
        };
        result.ok_or_else(|| {
            Fault::new(
                "range error",
                format!("Result of \"{mutator}\" operation is out of range."),
            )
        })
    }
}
