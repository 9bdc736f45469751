//! Where the Python objects of a client's rows come from.
//!
//! The package `corvid` makes a handle at each use, of a class that a program may choose for each table. The drop-in for `ovs` has one object for each
//! row for as long as the row is there, because its programs compare rows with `is` and read them after their deletion.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use corvid::data::ColumnType;
use corvid::{ColumnId, Datum, RowId, TableId};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::client::Client;
use crate::row::Row;
use crate::{ovs, value};

/// How objects for rows are made.
pub(crate) enum RowObjects {
    /// At each use: of these classes, and of [`Row`] for other tables.
    Handles(BTreeMap<TableId, Py<PyType>>),
    /// Once for each row, by a function of client, table and UUID.
    Live {
        /// The function.
        make: Py<PyAny>,
        /// Those that were made.
        objects: Mutex<HashMap<RowId, Py<Row>>>,
    },
}

impl RowObjects {
    /// A value for a column, by the rules of the package.
    pub(crate) fn datum_of(
        &self,
        object: &Bound<'_, PyAny>,
        column_type: &ColumnType,
    ) -> PyResult<Datum> {
        match self {
            RowObjects::Handles(_) => value::datum_of(object, column_type),
            RowObjects::Live { .. } => ovs::value::datum_of(object, column_type),
        }
    }

    /// The object for a row.
    pub(crate) fn object(
        &self,
        py: Python<'_>,
        client: &Py<Client>,
        id: RowId,
    ) -> PyResult<Py<Row>> {
        let RowObjects::Live { objects, .. } = self else {
            return self.make(py, client, id);
        };
        if let Some(object) = lock(objects).get(&id) {
            return Ok(object.clone_ref(py));
        }
        let made = self.make(py, client, id)?;
        // Making it may have run Python code that asked for the same row.
        Ok(lock(objects).entry(id).or_insert(made).clone_ref(py))
    }

    /// A new object.
    fn make(&self, py: Python<'_>, client: &Py<Client>, id: RowId) -> PyResult<Py<Row>> {
        let make = match self {
            RowObjects::Live { make, .. } => make.bind(py),
            RowObjects::Handles(classes) => match classes.get(&id.table) {
                Some(class) => class.bind(py).as_any(),
                None => return Py::new(py, Row::handle(client.clone_ref(py), id)),
            },
        };
        let table = client.get().schema.table_name(id.table);
        let made = make.call1((client, table, PyBytes::new(py, &id.uuid.0)))?;
        Ok(made.cast_into::<Row>()?.unbind())
    }

    /// The object for a row that is deleted: it keeps the last values.
    pub(crate) fn deleted(
        &self,
        py: Python<'_>,
        client: &Py<Client>,
        id: RowId,
        last: Vec<(ColumnId, Datum)>,
    ) -> PyResult<Py<Row>> {
        let object = self.object(py, client, id)?;
        self.forget(id);
        object.get().keep(last);
        Ok(object)
    }

    /// An object beside that of the row, which shows former values and no others.
    pub(crate) fn former(
        &self,
        py: Python<'_>,
        client: &Py<Client>,
        id: RowId,
        values: Vec<(ColumnId, Datum)>,
    ) -> PyResult<Py<Row>> {
        let object = self.make(py, client, id)?;
        object.get().keep(values);
        Ok(object)
    }

    /// The row has no object any more.
    pub(crate) fn forget(&self, id: RowId) {
        if let RowObjects::Live { objects, .. } = self {
            let forgotten = lock(objects).remove(&id);
            drop(forgotten);
        }
    }

    /// No row has an object any more.
    pub(crate) fn clear(&self) {
        if let RowObjects::Live { objects, .. } = self {
            let forgotten = std::mem::take(&mut *lock(objects));
            drop(forgotten);
        }
    }

    /// For the collector of Python: objects and classes refer to the client, and it to them.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            RowObjects::Handles(classes) => {
                // A class of the program may reach the client through its attributes or its module.
                classes.values().try_for_each(|class| visit.call(class))
            }
            RowObjects::Live { make, objects } => {
                visit.call(make)?;
                // A thread that holds the lock holds the GIL too, so it is this one, in the middle of a change.
                let Ok(objects) = objects.try_lock() else {
                    return Ok(());
                };
                objects.values().try_for_each(|object| visit.call(object))
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
