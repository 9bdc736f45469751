//! The Python objects of a client's rows.
//!
//! The package `corvid` makes a handle at each use, of a class that a program may choose for each
//! table. The drop-in for `ovs` has one object for each row for as long as the row is there,
//! because its programs compare rows with `is` and read them after their deletion.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use corvid::data::ColumnType;
use corvid::{ColumnId, Datum, RowId, TableId};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::client::Client;
use crate::row::Row;
use crate::row_class::RowClass;
use crate::{ovs, value};

/// How objects for rows are made.
pub(crate) struct RowObjects {
    kind: Kind,
    /// The classes of tables that have had a row: the program's, or derived of [`Row`].
    classes: Mutex<HashMap<TableId, RowClass>>,
}

enum Kind {
    /// At each use: of these classes, and of classes derived of [`Row`] for other tables.
    Handles(BTreeMap<TableId, Py<PyType>>),
    /// Once for each row, by a function of client, table and UUID.
    Live {
        /// The function.
        make: Py<PyAny>,
        /// Those that were made.
        objects: Mutex<HashMap<RowId, Py<Row>, foldhash::fast::RandomState>>,
    },
}

impl RowObjects {
    /// A handle at each use, of these classes where there is one.
    pub(crate) fn handles(classes: BTreeMap<TableId, Py<PyType>>) -> RowObjects {
        RowObjects::of_kind(Kind::Handles(classes))
    }

    /// One object for each row, made by a function of client, table and UUID.
    pub(crate) fn live(make: Py<PyAny>) -> RowObjects {
        let objects = Mutex::default();
        RowObjects::of_kind(Kind::Live { make, objects })
    }

    fn of_kind(kind: Kind) -> RowObjects {
        let classes = Mutex::default();
        RowObjects { kind, classes }
    }

    /// The class of a table's rows, made by `make` at the first call.
    pub(crate) fn class_of(
        &self,
        py: Python<'_>,
        table: TableId,
        make: impl FnOnce() -> PyResult<RowClass>,
    ) -> PyResult<RowClass> {
        if let Some(class) = lock(&self.classes).get(&table) {
            return Ok(class.clone_ref(py));
        }
        let made = make()?;
        // Making it may have run Python code that asked for the same class.
        let mut classes = lock(&self.classes);
        Ok(classes.entry(table).or_insert(made).clone_ref(py))
    }

    /// A value for a column, by the rules of the package.
    pub(crate) fn datum_of(
        &self,
        object: &Bound<'_, PyAny>,
        column_type: &ColumnType,
    ) -> PyResult<Datum> {
        match self.kind {
            Kind::Handles(_) => value::datum_of(object, column_type),
            Kind::Live { .. } => ovs::value::datum_of(object, column_type),
        }
    }

    /// The object for a row.
    pub(crate) fn object(
        &self,
        py: Python<'_>,
        client: &Py<Client>,
        id: RowId,
    ) -> PyResult<Py<Row>> {
        let Kind::Live { objects, .. } = &self.kind else {
            return self.make(py, client, id);
        };
        if let Some(object) = lock(objects).get(&id) {
            return Ok(object.clone_ref(py));
        }
        let made = self.make(py, client, id)?;
        // Making it may have run Python code that asked for the same row.
        Ok(lock(objects).entry(id).or_insert(made).clone_ref(py))
    }

    /// The objects for rows, in their order.
    pub(crate) fn objects(
        &self,
        py: Python<'_>,
        client: &Py<Client>,
        ids: &[RowId],
    ) -> PyResult<Vec<Py<Row>>> {
        let Kind::Live { objects, .. } = &self.kind else {
            return ids.iter().map(|id| self.make(py, client, *id)).collect();
        };
        // One lock for all: a lock waits until the counts of the objects before it are in memory.
        let found: Vec<Option<Py<Row>>> = {
            let objects = lock(objects);
            let found = ids.iter().map(|id| objects.get(id));
            found
                .map(|object| object.map(|object| object.clone_ref(py)))
                .collect()
        };
        let rows = ids.iter().zip(found);
        rows.map(|(id, object)| object.map_or_else(|| self.object(py, client, *id), Ok))
            .collect()
    }

    /// A new object.
    fn make(&self, py: Python<'_>, client: &Py<Client>, id: RowId) -> PyResult<Py<Row>> {
        let schema = &client.get().schema;
        let make = match &self.kind {
            Kind::Live { make, .. } => make.bind(py).clone(),
            Kind::Handles(classes) => {
                let class = self.class_of(py, id.table, || match classes.get(&id.table) {
                    Some(class) => RowClass::extend(class.bind(py), schema, id.table),
                    None => RowClass::derive(&py.get_type::<Row>(), schema, id.table),
                })?;
                if class.is_plain() {
                    Row::pass(client.clone_ref(py), id);
                    let made = class.class(py).call0();
                    if made.is_err() {
                        Row::pass_nothing();
                    }
                    return Ok(made?.cast_into::<Row>()?.unbind());
                }
                class.class(py).into_any()
            }
        };
        let table = schema.table_name(id.table);
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

    /// A second object for the row, which shows former values and no others.
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
        if let Kind::Live { objects, .. } = &self.kind {
            let forgotten = lock(objects).remove(&id);
            drop(forgotten);
        }
    }

    /// No row has an object any more.
    pub(crate) fn clear(&self) {
        if let Kind::Live { objects, .. } = &self.kind {
            let forgotten = std::mem::take(&mut *lock(objects));
            drop(forgotten);
        }
    }

    /// Neither objects nor classes are kept: the client is being collected.
    pub(crate) fn clear_all(&self) {
        self.clear();
        let forgotten = std::mem::take(&mut *lock(&self.classes));
        drop(forgotten);
    }

    /// For the collector of Python: objects refer to the client, and it to them and to the classes.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A thread that holds one of the locks holds the GIL too, so it is this one, in the middle
        // of a change.
        if let Ok(classes) = self.classes.try_lock() {
            for class in classes.values() {
                visit.call(class.as_py())?;
            }
        }
        match &self.kind {
            // A class of the program may reach the client through its attributes or its module.
            Kind::Handles(classes) => classes.values().try_for_each(|class| visit.call(class)),
            Kind::Live { make, objects } => {
                visit.call(make)?;
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
