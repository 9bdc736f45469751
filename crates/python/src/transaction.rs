//! Transactions.

use corvid::data::BaseType;
use corvid::json::Value;
use corvid::{Atom, Column, Element, RowId, Status, TxnId};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyTuple};

use crate::client::Client;
use crate::row::Row;
use crate::{error, value};

/// A transaction of a client: open until it is committed or aborted, then a record of its outcome.
#[pyclass(frozen, weakref, module = "corvid")]
pub(crate) struct Transaction {
    client: Py<Client>,
    id: TxnId,
}

impl Transaction {
    pub(crate) fn begin(client: &Bound<'_, Client>) -> PyResult<Transaction> {
        let begun = client
            .get()
            .with(client.py(), |state| state.client.idl_mut().begin());
        Ok(Transaction {
            id: begun.map_err(|misuse| error::usage(client.py(), misuse.to_string()))?,
            client: client.clone().unbind(),
        })
    }

    /// Does something with the replica while this transaction is the open one.
    fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut corvid::Idl) -> R) -> PyResult<R> {
        let outcome = self.client.get().with(py, |state| {
            let idl = state.client.idl_mut();
            (idl.open_txn() == Some(self.id)).then(|| work(idl))
        });
        outcome.ok_or_else(|| error::usage(py, "the transaction is no longer open"))
    }

    /// The id of a row, which must be one of this client.
    fn own(&self, py: Python<'_>, row: &Row) -> PyResult<RowId> {
        if row.client.is(&self.client) {
            return Ok(row.id);
        }
        Err(error::usage(py, "the row belongs to another client"))
    }

    fn change(
        &self,
        py: Python<'_>,
        (row, column): (RowId, Column),
        work: impl FnOnce(&mut corvid::Idl) -> Result<(), corvid::Misuse>,
    ) -> PyResult<()> {
        let names = self.client.get().schema.names(column);
        self.with(py, work)?
            .map_err(|misuse| error::misuse_of_column(py, &misuse, names, row.uuid))
    }

    /// Changes elements of a column, which are made of Python objects.
    fn change_elements<'py>(
        &self,
        row: &Row,
        column: &str,
        objects: impl Iterator<Item = Bound<'py, PyAny>>,
        element: impl Fn(&Bound<'py, PyAny>, &BaseType) -> PyResult<Element>,
        py: Python<'py>,
    ) -> PyResult<()> {
        let schema = &self.client.get().schema;
        let id = self.own(py, row)?;
        let key = row.column_named(py, column)?;
        let base = &schema.column_type(key).key;
        let elements: PyResult<Vec<Element>> =
            objects.map(|object| element(&object, base)).collect();
        let elements =
            elements.map_err(|e| error::conversion(py, e, schema.names(key), Some(id.uuid)))?;
        self.change(py, (id, key), |idl| {
            for element in &elements {
                idl.change_element(id, key, element)?;
            }
            Ok(())
        })
    }
}

#[pymethods]
impl Transaction {
    /// Inserts a row.
    #[pyo3(signature = (table, /, **values))]
    fn insert(
        &self,
        py: Python<'_>,
        table: &str,
        values: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Row>> {
        let client = self.client.get();
        let table = client.schema.table_id(py, table)?;
        let mut columns = Vec::new();
        for (name, object) in values.into_iter().flat_map(PyDictMethods::iter) {
            let key = client
                .schema
                .column_key(py, table, &name.extract::<String>()?)?;
            let datum = value::datum_of(&object, client.schema.column_type(key));
            let datum =
                datum.map_err(|e| error::conversion(py, e, client.schema.names(key), None))?;
            columns.push((key, datum));
        }
        let row = self.with(py, |idl| idl.insert_new(table))?;
        let row = row.map_err(|misuse| error::usage(py, misuse.to_string()))?;
        for (key, datum) in columns {
            let written = self.change(py, (row, key), |idl| idl.write(row, key, datum));
            if let Err(error) = written {
                // A row without the values that it was to have helps nobody.
                let _ = self.with(py, |idl| idl.delete(row))?;
                return Err(error);
            }
        }
        Row::object(py, &self.client, row)
    }

    /// Inserts a row that goes by a UUID of the caller's: until it is committed, or for good with
    /// `persistent`.
    #[pyo3(signature = (table, uuid, persistent))]
    fn insert_as(
        &self,
        py: Python<'_>,
        table: &str,
        uuid: &Bound<'_, PyAny>,
        persistent: bool,
    ) -> PyResult<Py<Row>> {
        let table = self.client.get().schema.table_id(py, table)?;
        let uuid = value::uuid_of(uuid)?;
        let row = self.with(py, |idl| idl.insert(table, uuid, persistent))?;
        let row = row.map_err(|misuse| error::usage(py, misuse.to_string()))?;
        Row::object(py, &self.client, row)
    }

    /// Adds an operation of RFC 7047 5.2, as JSON, behind all others.
    fn add_operation(&self, py: Python<'_>, json: &str) -> PyResult<()> {
        let operation = Value::parse(json.as_bytes())
            .map_err(|e| error::usage(py, format!("the operation is not JSON: {e}")))?;
        let added = self.with(py, |idl| idl.add_operation(&operation))?;
        added.map_err(|misuse| error::usage(py, misuse.to_string()))
    }

    /// The rows that it inserts, changes or deletes, while it is open.
    fn touched_rows(&self, py: Python<'_>) -> PyResult<Vec<Py<Row>>> {
        let rows = self.client.get().with(py, |state| {
            let idl = state.client.idl();
            let is_open = idl.open_txn() == Some(self.id);
            let rows: Vec<RowId> = idl.touched_rows().collect();
            is_open.then_some(rows)
        });
        let rows = rows.unwrap_or_default().into_iter();
        rows.map(|row| Row::object(py, &self.client, row)).collect()
    }

    /// The names of the columns of a row that it has changed, while it is open.
    fn written_columns(&self, py: Python<'_>, row: &Row) -> Vec<String> {
        let client = self.client.get();
        let columns: Vec<corvid::ColumnId> = client.with(py, |state| {
            let idl = state.client.idl();
            let is_open = idl.open_txn() == Some(self.id);
            let columns = is_open.then(|| idl.written_columns(row.id));
            columns.into_iter().flatten().collect()
        });
        let table = client.schema.schema.table(row.id.table);
        let names = columns
            .into_iter()
            .map(|id| table.column(id).name.to_string());
        names.collect()
    }

    /// The first result with an error, as JSON, or why there is none.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<String> {
        let client = self.client.get();
        client.with(py, |state| {
            let error = state.client.idl().txn_error(self.id);
            error.map(ToOwned::to_owned)
        })
    }

    /// Deletes a row.
    fn delete(&self, py: Python<'_>, row: &Row) -> PyResult<()> {
        let id = self.own(py, row)?;
        let deleted = self.with(py, |idl| idl.delete(id))?;
        let schema = &self.client.get().schema;
        deleted.map_err(|_| error::row_gone(py, schema.table_name(row.id.table), row.id.uuid))
    }

    /// Adds elements to a set.
    #[pyo3(signature = (row, column, /, *elements))]
    fn add(
        &self,
        py: Python<'_>,
        row: &Row,
        column: &str,
        elements: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let add = |object: &Bound<'_, PyAny>, base: &BaseType| {
            value::atom_of(object, base).map(Element::Add)
        };
        self.change_elements(row, column, elements.iter(), add, py)
    }

    /// Removes elements from a set, or keys from a map.
    #[pyo3(signature = (row, column, /, *elements))]
    fn remove(
        &self,
        py: Python<'_>,
        row: &Row,
        column: &str,
        elements: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let key = row.column_named(py, column)?;
        let is_map = self.client.get().schema.column_type(key).is_map();
        let remove = |object: &Bound<'_, PyAny>, base: &BaseType| {
            let atom: Atom = value::atom_of(object, base)?;
            Ok(if is_map {
                Element::RemoveKey(atom)
            } else {
                Element::Remove(atom)
            })
        };
        self.change_elements(row, column, elements.iter(), remove, py)
    }

    /// Sets the value of a key of a map.
    fn set_key(
        &self,
        row: &Row,
        column: &str,
        key: &Bound<'_, PyAny>,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = key.py();
        let schema = &self.client.get().schema;
        let id = self.own(py, row)?;
        let column_key = row.column_named(py, column)?;
        let column_type = schema.column_type(column_key);
        let (names, uuid) = (schema.names(column_key), Some(id.uuid));
        let Some(value_type) = &column_type.value else {
            return Err(error::column(py, "it is not a map", names, uuid));
        };
        let atom = |object: &Bound<'_, PyAny>, base: &BaseType| {
            value::atom_of(object, base).map_err(|e| error::conversion(py, e, names, uuid))
        };
        let (key, value) = (atom(key, &column_type.key)?, atom(object, value_type)?);
        self.change(py, (id, column_key), |idl| {
            idl.set_key(id, column_key, key, value).map(drop)
        })
    }

    /// Commits only if columns still have the values that they have now.
    #[pyo3(signature = (row, /, *columns))]
    fn verify(&self, py: Python<'_>, row: &Row, columns: Vec<String>) -> PyResult<()> {
        let id = self.own(py, row)?;
        for column in columns {
            let key = row.column_named(py, &column)?;
            self.change(py, (id, key), |idl| idl.verify(id, key))?;
        }
        Ok(())
    }

    /// Adds one to a column at the end.
    #[pyo3(signature = (row, column, *, force=false))]
    fn increment(&self, py: Python<'_>, row: &Row, column: &str, force: bool) -> PyResult<()> {
        let id = self.own(py, row)?;
        let key = row.column_named(py, column)?;
        self.change(py, (id, key), |idl| idl.increment(id, key, force))
    }

    /// Adds a line to the comment.
    fn comment(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        self.with(py, |idl| idl.add_comment(text))?
            .map_err(|misuse| error::usage(py, misuse.to_string()))
    }

    /// Has the server try the transaction and undo it.
    fn set_dry_run(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, corvid::Idl::set_dry_run)?
            .map_err(|misuse| error::usage(py, misuse.to_string()))
    }

    /// Sends the changes. Returns the status.
    fn commit(&self, py: Python<'_>) -> PyResult<&'static str> {
        let status = self.with(py, corvid::Idl::commit)?;
        let status = status.map_err(|misuse| error::usage(py, misuse.to_string()))?;
        Ok(status.name())
    }

    /// Gives the transaction up.
    fn abort(&self, py: Python<'_>) {
        self.client
            .get()
            .with(py, |state| state.client.idl_mut().abort(self.id));
    }

    #[getter]
    fn status(&self, py: Python<'_>) -> &'static str {
        let client = self.client.get();
        let status = client.with(py, |state| state.client.idl().status(self.id));
        status.unwrap_or(Status::Aborted).name()
    }

    /// Why the server refused it: the tag of the error, its details, the place of the operation.
    #[getter]
    fn refusal(&self, py: Python<'_>) -> Option<(Option<&'static str>, String, Option<usize>)> {
        self.client.get().with(py, |state| {
            let refused = state.client.idl().txn_refused(self.id)?;
            let tag = refused.tag().map(corvid::Tag::text);
            Some((tag, refused.details().to_owned(), refused.operation()))
        })
    }

    /// The row that an inserted row has become.
    fn inserted(&self, py: Python<'_>, row: &Row) -> PyResult<Py<Row>> {
        let id = self.own(py, row)?;
        let (status, uuid) = self.client.get().with(py, |state| {
            let idl = state.client.idl();
            (idl.status(self.id), idl.inserted_uuid(self.id, id))
        });
        // A caller that got `None` would take it for a row and fail later, elsewhere.
        let Some(uuid) = uuid else {
            let status = status.unwrap_or(Status::Aborted).name();
            let text = format!("the transaction ({status}) did not insert and commit this row");
            return Err(error::usage(py, text));
        };
        Row::object(py, &self.client, RowId { uuid, ..id })
    }

    /// The UUID of the row that an inserted row has become.
    fn inserted_uuid<'py>(
        &self,
        py: Python<'py>,
        row: &Row,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let uuid = self.client.get().with(py, |state| {
            state.client.idl().inserted_uuid(self.id, row.id)
        });
        uuid.map(|uuid| value::uuid_to_python(py, uuid)).transpose()
    }

    /// The value of the incremented column.
    #[getter]
    fn incremented_to(&self, py: Python<'_>) -> Option<i64> {
        let client = self.client.get();
        client.with(py, |state| state.client.idl().incremented_to(self.id))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}

/// The record goes with the object.
impl Drop for Transaction {
    fn drop(&mut self) {
        Python::attach(|py| {
            let client = self.client.get();
            client.try_with(py, |state| state.client.idl_mut().forget(self.id));
        });
    }
}
