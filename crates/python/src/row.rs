//! A row: its columns are attributes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use corvid::{Column, ColumnId, Datum, RowId};
use pyo3::exceptions::{PyAttributeError, PyKeyError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::client::Client;
use crate::error;
use crate::value::{self, Value};

/// A row of a client's replica. A handle: it holds no values, but for rows of changes that tell of a deletion. Programs derive classes of it for
/// the rows of a table.
#[pyclass(frozen, subclass, weakref, module = "corvid")]
pub(crate) struct Row {
    pub(crate) client: Py<Client>,
    pub(crate) id: RowId,
    /// The last values of a row that is deleted.
    last: OnceLock<Vec<(ColumnId, Datum)>>,
}

impl Row {
    /// A handle.
    pub(crate) fn handle(client: Py<Client>, id: RowId) -> Row {
        let last = OnceLock::new();
        Row { client, id, last }
    }

    /// The object for a row.
    pub(crate) fn object(py: Python<'_>, client: &Py<Client>, id: RowId) -> PyResult<Py<Row>> {
        client.get().rows.object(py, client, id)
    }

    /// The object for a row that is deleted.
    pub(crate) fn deleted(
        py: Python<'_>,
        client: &Py<Client>,
        id: RowId,
        last: Vec<(ColumnId, Datum)>,
    ) -> PyResult<Py<Row>> {
        client.get().rows.deleted(py, client, id, last)
    }

    /// The object shows these values from now on, if it shows none of its own yet.
    pub(crate) fn keep(&self, values: Vec<(ColumnId, Datum)>) {
        let _ = self.last.set(values);
    }

    /// The values of its own.
    pub(crate) fn kept(&self) -> Option<&[(ColumnId, Datum)]> {
        self.last.get().map(Vec::as_slice)
    }

    pub(crate) fn table_name(&self) -> &str {
        self.client.get().schema.table_name(self.id.table)
    }

    pub(crate) fn find_column(&self, name: &str) -> Option<Column> {
        self.client.get().schema.find_column(self.id.table, name)
    }

    pub(crate) fn column_named(&self, py: Python<'_>, name: &str) -> PyResult<Column> {
        self.client.get().schema.column_key(py, self.id.table, name)
    }

    fn read(&self, py: Python<'_>, column: Column) -> PyResult<Py<PyAny>> {
        let client = self.client.get();
        let value = match self.last.get() {
            None => client.with(py, |state| value::read(state.client.idl(), self.id, column)),
            Some(last) => {
                let found = last.iter().find(|(id, _)| *id == column.id);
                found.map(|(_, datum)| Value::of_past(datum.clone()))
            }
        };
        match value {
            Some(value) => value.to_python(py, &self.client, client.schema.column_type(column)),
            None => Err(error::row_gone(py, self.table_name(), self.id.uuid)),
        }
    }

    fn write(&self, column: Column, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, client) = (object.py(), self.client.get());
        let names = client.schema.names(column);
        let datum = value::datum_of(object, client.schema.column_type(column))
            .map_err(|e| error::conversion(py, e, names, Some(self.id.uuid)))?;
        let outcome = client.with(py, |state| {
            state.client.idl_mut().write(self.id, column, datum)
        });
        outcome.map_err(|misuse| error::misuse_of_column(py, &misuse, names, self.id.uuid))
    }
}

#[pymethods]
impl Row {
    /// The handle of a row, which need not be there.
    #[new]
    pub(crate) fn new(
        client: &Bound<'_, Client>,
        table: &str,
        uuid: &Bound<'_, PyAny>,
    ) -> PyResult<Row> {
        let table = client.get().schema.table_id(client.py(), table)?;
        let uuid = match uuid.cast::<PyBytes>() {
            Ok(bytes) => corvid::Uuid(bytes.extract()?),
            Err(_) => value::uuid_of(uuid)?,
        };
        let id = RowId { table, uuid };
        Ok(Row::handle(client.clone().unbind(), id))
    }

    #[getter]
    fn uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        value::uuid_to_python(py, self.id.uuid)
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        match self.find_column(name) {
            Some(column) => self.read(py, column),
            None => Err(PyAttributeError::new_err(format!(
                "table {} has no column {name}",
                self.table_name()
            ))),
        }
    }

    fn __setattr__(&self, name: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.find_column(name) {
            Some(column) => self.write(column, object),
            None => Err(PyAttributeError::new_err(format!(
                "table {} has no column {name}",
                self.table_name()
            ))),
        }
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        match self.find_column(name) {
            Some(column) => self.read(py, column),
            None => Err(PyKeyError::new_err(name.to_owned())),
        }
    }

    fn __setitem__(&self, name: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.find_column(name) {
            Some(column) => self.write(column, object),
            None => Err(PyKeyError::new_err(name.to_owned())),
        }
    }

    fn __dir__(&self) -> Vec<String> {
        let table = self.client.get().schema.schema.table(self.id.table);
        let columns = table.columns().iter().map(|column| column.name.to_string());
        columns.chain(["uuid".to_owned()]).collect()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Row>().is_ok_and(|other| {
            let other = other.get();
            other.id == self.id && other.client.is(&self.client)
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.id.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<{} {}>", self.table_name(), self.id.uuid)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}

/// The name of a row's table.
#[pyfunction]
pub(crate) fn table_of(row: &Row) -> &str {
    row.table_name()
}
