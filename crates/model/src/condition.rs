//! Conditions of the model: each clause is tested on each row (docs/spec/protocol.md 5.4).

use corvid_json::Value;

use super::Row;
use super::atom::Kind;
use super::datum::{Datum, Names};
use super::fault::Fault;
use super::schema::{Table, Type};

/// One clause of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    /// `true` or `false`
    Constant(bool),
    /// `[COLUMN, FUNCTION, VALUE]`
    Test {
        /// The tested column.
        column: String,
        /// The function's name, such as `==`.
        function: String,
        /// The value that the column is compared with.
        argument: Datum,
    },
}

/// Parses the clauses of a `where` member.
///
/// # Errors
/// The first fault found.
pub fn read(
    table_name: &str,
    table: &Table,
    json: &Value,
    names: &mut Names<'_>,
) -> Result<Vec<Clause>, Fault> {
    let clauses = json.as_array().expect("an array, as was checked");
    clauses
        .iter()
        .map(|clause| read_clause(table_name, table, clause, names))
        .collect()
}

fn read_clause(
    table_name: &str,
    table: &Table,
    json: &Value,
    names: &mut Names<'_>,
) -> Result<Clause, Fault> {
    if let Value::Bool(constant) = json {
        return Ok(Clause::Constant(*constant));
    }
    let malformed = || Fault::syntax(json, "Parse error in condition.");
    let Some([column, function, argument]) = json.as_array() else {
        return Err(malformed());
    };
    let (Some(column), Some(function)) = (column.as_str(), function.as_str()) else {
        return Err(malformed());
    };
    let Some(ty) = table.ty(column) else {
        let details = format!("No column {column} in table {table_name}.");
        return Err(Fault::new("unknown column", details).about(json));
    };
    let ty = match function {
        "<" | "<=" | ">" | ">=" => {
            let is_number = matches!(ty.key.kind, Kind::Integer | Kind::Real);
            if !is_number || ty.value.is_some() || ty.max > 1 {
                return Err(mismatch(json, function, column, &ty));
            }
            ty.limited(1, 1)
        }
        "==" | "!=" => ty,
        "includes" | "excludes" if ty.is_scalar() => ty,
        "includes" => ty.limited(0, ty.max),
        "excludes" => ty.limited(0, super::schema::UNLIMITED),
        other => {
            return Err(Fault::new(
                "unknown function",
                format!("No function named {other}."),
            ));
        }
    };
    Ok(Clause::Test {
        column: column.to_owned(),
        function: function.to_owned(),
        argument: Datum::read(&ty, argument, names)?,
    })
}

/// Makes the error for a function or mutator that does not apply to the column's type.
pub fn mismatch(json: &Value, operator: &str, column: &str, ty: &Type) -> Fault {
    let english = ty.english();
    let details = format!(
        "Type mismatch: \"{operator}\" operator may not be applied to column {column} of type {english}."
    );
    Fault::syntax(json, details)
}

impl Clause {
    /// Returns whether a row matches the clause.
    #[must_use]
    pub fn holds(&self, row: &Row) -> bool {
        let (column, function, argument) = match self {
            Clause::Constant(constant) => return *constant,
            Clause::Test {
                column,
                function,
                argument,
            } => (column, function, argument),
        };
        let datum = &row[column];
        let has = |(key, value): (&super::atom::Atom, Option<&super::atom::Atom>)| {
            datum.get(key).is_some_and(|found| found.as_ref() == value)
        };
        match function.as_str() {
            "==" => datum == argument,
            "!=" => datum != argument,
            "includes" => argument.iter().all(has),
            "excludes" => !argument.iter().any(has),
            ordering => {
                let (Some(left), Some(right)) = (datum.keys().next(), argument.keys().next())
                else {
                    return false;
                };
                match ordering {
                    "<" => left < right,
                    "<=" => left <= right,
                    ">" => left > right,
                    _ => left >= right,
                }
            }
        }
    }
}
