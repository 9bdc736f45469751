//! Conditions from clauses.

use corvid::{Clause, Condition, Function, TableId};
use pyo3::prelude::*;

use crate::schema::Schema;
use crate::{error, value};

/// Column, function, value.
type PyClause<'py> = (String, String, Bound<'py, PyAny>);

/// A condition that any of the clauses makes true; `None` is all rows.
pub(crate) fn condition_of(
    py: Python<'_>,
    schema: &Schema,
    table: TableId,
    clauses: Option<Vec<PyClause<'_>>>,
) -> PyResult<Condition> {
    let Some(clauses) = clauses else {
        return Ok(Condition::all());
    };
    let mut condition = Condition::none();
    for (column, function, object) in clauses {
        let key = schema.column_key(py, table, &column)?;
        let column_type = schema.column_type(key);
        let function = Function::from_name(function.as_bytes())
            .ok_or_else(|| error::usage(py, format!("unknown condition function {function:?}")))?;
        let argument = value::datum_of(&object, column_type)
            .map_err(|e| error::conversion(py, e, schema.names(key), None))?;
        condition.add(Clause::new(
            &column,
            function,
            &argument,
            column_type.is_map(),
        ));
    }
    Ok(condition)
}
