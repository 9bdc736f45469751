//! A row: its columns are attributes.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use corvid::{Column, ColumnId, Datum, RowId};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};

use crate::client::Client;
use crate::error;
use crate::value::{self, Read, Value};

/// The longest value that the representation of a row shows, in bytes.
const SHOWN_BYTES_MAX: usize = 100;

thread_local! {
    /// This thread makes the representation of a row.
    static IS_IN_REPR: Cell<bool> = const { Cell::new(false) };
    /// The client and the id of the next row ([`Row::pass`]).
    static PASSED: Cell<Option<(Py<Client>, RowId)>> = const { Cell::new(None) };
}

/// A row of a client's replica. A handle: it holds no values, but for rows of changes that tell of
/// a deletion. Programs derive classes of it for the rows of a table.
#[pyclass(frozen, subclass, weakref, module = "corvid")]
pub(crate) struct Row {
    pub(crate) client: Py<Client>,
    pub(crate) id: RowId,
    /// The last values of a row that is deleted.
    last: OnceLock<Vec<(ColumnId, Datum)>>,
    /// Its UUID as an object, once it was asked for.
    uuid: PyOnceLock<Py<PyAny>>,
}

impl Row {
    /// A handle.
    pub(crate) fn handle(client: Py<Client>, id: RowId) -> Row {
        Row {
            client,
            id,
            last: OnceLock::new(),
            uuid: PyOnceLock::new(),
        }
    }

    /// The handle of a row of a table, by names.
    pub(crate) fn of_names(
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

    /// Stores the client and the id of this thread's next row, for a call of its class without
    /// arguments. Passing arguments would cost more than the rest.
    pub(crate) fn pass(client: Py<Client>, id: RowId) {
        PASSED.set(Some((client, id)));
    }

    /// Drops what [`Row::pass`] has stored.
    pub(crate) fn pass_nothing() {
        PASSED.set(None);
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

    pub(crate) fn read(&self, py: Python<'_>, column: Column) -> PyResult<Py<PyAny>> {
        let client = self.client.get();
        let names = || client.schema.names(column);
        let read = match self.last.get() {
            None => client.with(py, |state| value::read(state.client.idl(), self.id, column)),
            Some(last) => {
                let found = last.iter().find(|(id, _)| *id == column.id);
                found.map_or(Read::NotReplicated, |(_, datum)| {
                    Read::Value(Value::of_past(datum.clone()))
                })
            }
        };
        match read {
            Read::Value(value) => {
                value.to_python(py, &self.client, client.schema.column_type(column))
            }
            Read::NotReplicated => Err(error::not_replicated(py, names(), self.id.uuid)),
            Read::Gone => Err(error::row_gone(py, self.table_name(), self.id.uuid)),
        }
    }

    /// The columns whose values are known, in the order of the schema.
    fn known_columns(&self, py: Python<'_>) -> Vec<Column> {
        let (client, table) = (self.client.get(), self.id.table);
        let columns = client.schema.schema.table(table).iter();
        let columns = columns.map(|(id, _)| Column { table, id });
        match self.last.get() {
            Some(last) => columns
                .filter(|column| last.iter().any(|(id, _)| *id == column.id))
                .collect(),
            None => client.with(py, |state| {
                let idl = state.client.idl();
                columns
                    .filter(|column| idl.is_known(self.id, *column))
                    .collect()
            }),
        }
    }

    /// Whether the replica has the row, as the open transaction leaves it.
    fn is_there(&self, py: Python<'_>) -> bool {
        self.client.get().with(py, |state| {
            let idl = state.client.idl();
            idl.row(self.id.table, self.id.uuid).is_some()
        })
    }

    /// `name=value` of the columns that do not have their defaults.
    fn shown_columns(&self, py: Python<'_>) -> PyResult<String> {
        let mut shown = String::new();
        for column in self.known_columns(py) {
            let name = self.client.get().schema.names(column).1;
            let value = self.read(py, column)?;
            let value = value.bind(py);
            if value.is_none() || (value.hasattr("__len__")? && value.len()? == 0) {
                continue;
            }
            let mut text = value.repr()?.to_string();
            if text.len() > SHOWN_BYTES_MAX {
                text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
                text.push_str("...");
            }
            shown += &format!(" {name}={text}");
        }
        Ok(shown)
    }

    pub(crate) fn write(&self, column: Column, object: &Bound<'_, PyAny>) -> PyResult<()> {
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
    #[pyo3(signature = (client=None, table=None, uuid=None))]
    fn new(
        client: Option<&Bound<'_, Client>>,
        table: Option<&str>,
        uuid: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Row> {
        if let Some((client, id)) = PASSED.take() {
            return Ok(Row::handle(client, id));
        }
        match (client, table, uuid) {
            (Some(client), Some(table), Some(uuid)) => Row::of_names(client, table, uuid),
            _ => Err(PyTypeError::new_err(
                "a row needs a client, a table and a UUID",
            )),
        }
    }

    #[getter]
    fn uuid(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.uuid.get_or_try_init(py, || {
            value::uuid_to_python(py, self.id.uuid).map(Bound::unbind)
        });
        Ok(made?.clone_ref(py))
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        match self.find_column(name) {
            Some(column) => self.read(py, column),
            None => Err(error::unknown_name(py, self.table_name(), name)),
        }
    }

    fn __setattr__(&self, name: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        match self.find_column(name) {
            Some(column) => self.write(column, object),
            None => Err(error::unknown_name(py, self.table_name(), name)),
        }
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        match self.find_column(name) {
            Some(column) => self.read(py, column),
            None => Err(error::unknown_name(py, self.table_name(), name)),
        }
    }

    fn __setitem__(&self, name: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        match self.find_column(name) {
            Some(column) => self.write(column, object),
            None => Err(error::unknown_name(py, self.table_name(), name)),
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

    /// The values of all columns that are replicated, by name.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = PyDict::new(py);
        if self.last.get().is_none() && !self.is_there(py) {
            return Err(error::row_gone(py, self.table_name(), self.id.uuid));
        }
        for column in self.known_columns(py) {
            let name = self.client.get().schema.names(column).1;
            values.set_item(name, self.read(py, column)?)?;
        }
        Ok(values)
    }

    /// A handle has no state of its own, so it is its own copy.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (_memo))]
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<()> {
        let text =
            "a row belongs to its client and cannot be pickled: pickle `as_dict()` and `uuid`";
        Err(error::usage(py, text))
    }

    /// The values that are not empty. Rows that these refer to are shown by their UUIDs alone,
    /// because they may refer to this one.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let head = format!("{} {}", self.table_name(), self.id.uuid);
        let is_outermost = !IS_IN_REPR.replace(true);
        if !is_outermost {
            return Ok(format!("<{head}>"));
        }
        let shown = match self.last.get().is_some() || self.is_there(py) {
            true => self.shown_columns(py),
            false => Ok(", gone".to_owned()),
        };
        IS_IN_REPR.set(false);
        Ok(format!("<{head}{}>", shown?))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}

/// Whether a row is there, as the open transaction leaves it.
#[pyfunction]
pub(crate) fn exists(py: Python<'_>, row: &Row) -> bool {
    row.is_there(py)
}

/// The name of a row's table.
#[pyfunction]
pub(crate) fn table_of(row: &Row) -> &str {
    row.table_name()
}
