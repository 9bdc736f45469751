//! Exceptions. Their classes are Python (`python/corvid/errors.py`), so that they have attributes
//! and docstrings.

use corvid::data::Uuid;
use corvid::json::Value;
use corvid::{FetchError, Misuse};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// An exception of a class of `corvid.errors`, made with these arguments.
fn of_class<A>(py: Python<'_>, class: &str, arguments: A) -> PyErr
where
    A: for<'py> pyo3::call::PyCallArgs<'py>,
{
    let module = MODULE.get_or_try_init(py, || {
        PyModule::import(py, "corvid.errors").map(Bound::unbind)
    });
    let made = module.and_then(|module| module.bind(py).getattr(class)?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// A call that is not allowed now.
pub(crate) fn usage(py: Python<'_>, text: impl Into<String>) -> PyErr {
    of_class(py, "UsageError", (text.into(),))
}

/// A list of remotes that cannot work.
pub(crate) fn remote(py: Python<'_>, text: String) -> PyErr {
    of_class(py, "RemoteError", (text,))
}

/// A client that cannot be made of these arguments.
pub(crate) fn connecting(py: Python<'_>, error: &corvid::Error) -> PyErr {
    match error {
        corvid::Error::Misuse(misuse) => usage(py, misuse.to_string()),
        _ => remote(py, error.to_string()),
    }
}

/// A condition that a server would refuse.
pub(crate) fn condition(py: Python<'_>, misuse: &Misuse, table: &str) -> PyErr {
    let named = match misuse {
        Misuse::Condition(refused) => refused.column(),
        _ => None,
    };
    match named {
        Some(name) => column(py, &misuse.to_string(), (table, name), None),
        None => usage(py, misuse.to_string()),
    }
}

/// A name that the schema does not have, or a schema that is none.
pub(crate) fn schema(py: Python<'_>, text: String) -> PyErr {
    of_class(py, "SchemaError", (text,))
}

/// An attribute or item that a row does not have.
pub(crate) fn unknown_name(py: Python<'_>, table: &str, name: &str) -> PyErr {
    let text = format!("table {table} has no column {name}");
    of_class(py, "UnknownName", (text,))
}

/// A read of a column that is not replicated.
pub(crate) fn not_replicated(py: Python<'_>, names: (&str, &str), row: Uuid) -> PyErr {
    let text = "it is not replicated, so its value is unknown: select it in the tables of connect";
    column(py, text, names, Some(row))
}

/// A row that is not there.
pub(crate) fn row_gone(py: Python<'_>, table: &str, row: Uuid) -> PyErr {
    let text = format!("there is no row {row} in table {table}");
    of_class(py, "RowError", (text, table, row.to_string()))
}

/// A value or a change that does not fit a column.
pub(crate) fn column(
    py: Python<'_>,
    text: &str,
    (table, column): (&str, &str),
    row: Option<Uuid>,
) -> PyErr {
    let row = row.map(|row| row.to_string());
    let place = match &row {
        Some(row) => format!("{table}.{column} of row {row}"),
        None => format!("{table}.{column}"),
    };
    of_class(
        py,
        "ColumnError",
        (format!("{place}: {text}"), table, column, row),
    )
}

/// An error of a conversion as one of a column, whose text it becomes. An exception that a
/// program's own iterator has raised stays as it is.
pub(crate) fn conversion(
    py: Python<'_>,
    error: PyErr,
    names: (&str, &str),
    row: Option<Uuid>,
) -> PyErr {
    if error.is_instance_of::<Mismatch>(py) {
        column(py, &error.value(py).to_string(), names, row)
    } else {
        error
    }
}

// A value that does not fit, before it is known for which column.
pyo3::import_exception!(corvid.errors, Mismatch);

/// Misuse of a column of a row.
pub(crate) fn misuse_of_column(
    py: Python<'_>,
    misuse: &Misuse,
    names: (&str, &str),
    row: Uuid,
) -> PyErr {
    match misuse {
        Misuse::RowGone => row_gone(py, names.0, row),
        Misuse::NoTransaction
        | Misuse::TransactionOpen
        | Misuse::ReadOnly
        | Misuse::UuidInUse
        | Misuse::SecondIncrement => usage(py, misuse.to_string()),
        _ => column(py, &misuse.to_string(), names, Some(row)),
    }
}

/// A fetch that could not start.
pub(crate) fn fetch(py: Python<'_>, error: FetchError) -> PyErr {
    of_class(py, "FetchError", (error.to_string(),))
}

/// A reading of history that failed, or could not start.
pub(crate) fn history(py: Python<'_>, error: &corvid::Error) -> PyErr {
    match error {
        corvid::Error::HistoryUnsupported => {
            of_class(py, "HistoryUnsupported", (error.to_string(),))
        }
        corvid::Error::HistoryLost => of_class(py, "HistoryLost", (error.to_string(),)),
        corvid::Error::HistoryRefused(json) => {
            let json = Value::parse(json.as_bytes()).unwrap_or_else(|_| Value::string(json));
            let text = |name| json.get(name).and_then(Value::as_str).map(str::to_owned);
            let tag = text("error").or_else(|| json.as_str().map(str::to_owned));
            let details = text("details").unwrap_or_default();
            of_class(py, "HistoryRefused", (tag, details))
        }
        error => usage(py, error.to_string()),
    }
}
