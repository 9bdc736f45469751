//! Changes of rows: collected when an update is applied, told when the program asks.
//!
//! A change holds references to data, not copies, so its cost follows the change. Tables without a
//! watcher cost nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use corvid::data::{AtomRef, diff};
use corvid::track::{Kind, Tracked};
use corvid::{Column, ColumnId, Datum, HandlerId, Idl, RowId, TableId};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet};

use crate::client::Client;
use crate::row::Row;
use crate::value::Value;

/// A change as it is collected.
pub(crate) struct Collected {
    pub(crate) kind: Kind,
    pub(crate) row: RowId,
    /// The change number of the change.
    pub(crate) seqno: u64,
    /// The columns that changed, with their values before and after; of inserted and deleted rows
    /// none.
    pub(crate) changed: Vec<(ColumnId, Datum, Datum)>,
    /// The last values of a row that is deleted.
    pub(crate) last: Vec<(ColumnId, Datum)>,
}

/// The changes of some tables from one moment on, until it goes.
#[pyclass(frozen, weakref, module = "corvid")]
pub(crate) struct Watch {
    client: Py<Client>,
    collected: Arc<Mutex<Vec<Collected>>>,
    handlers: Vec<HandlerId>,
}

impl Watch {
    pub(crate) fn begin(client: &Bound<'_, Client>, tables: &[String]) -> PyResult<Watch> {
        let (py, native) = (client.py(), client.get());
        let ids = tables.iter().map(|table| native.schema.table_id(py, table));
        let ids: BTreeSet<TableId> = ids.collect::<PyResult<_>>()?;
        let collected = Arc::default();
        let handlers = native.with(py, |state| {
            let kinds = [Kind::Insert, Kind::Modify, Kind::Delete];
            let pairs = ids.iter().flat_map(|id| kinds.map(|kind| (*id, kind)));
            let idl = state.client.idl_mut();
            pairs
                .map(|(id, kind)| handler(idl, id, kind, &collected))
                .collect()
        });
        Ok(Watch {
            client: client.clone().unbind(),
            collected,
            handlers,
        })
    }
}

/// Collects changes of one kind.
pub(crate) fn handler(
    idl: &mut Idl,
    table: TableId,
    kind: Kind,
    collected: &Arc<Mutex<Vec<Collected>>>,
) -> HandlerId {
    let collected = collected.clone();
    idl.on_change(table, kind, move |idl, row, tracked| {
        let change = collect(idl, kind, row, tracked);
        let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
        collected.push(change);
    })
}

#[pymethods]
impl Watch {
    /// Takes the changes since the last call.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<Py<Change>>> {
        let mut collected = self
            .collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut *collected);
        drop(collected);
        let client = self.client.bind(py);
        taken
            .into_iter()
            .map(|change| Change::new(client, change))
            .collect()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        Python::attach(|py| {
            self.client.get().try_with(py, |state| {
                for handler in &self.handlers {
                    state.client.idl_mut().remove_handler(*handler);
                }
            });
        });
    }
}

fn collect(idl: &Idl, kind: Kind, row: RowId, tracked: &Tracked) -> Collected {
    let read = |id| {
        idl.read(
            row,
            Column {
                table: row.table,
                id,
            },
        )
    };
    let changed = tracked.updated().filter_map(|id| {
        let old = tracked.old(id)?.clone();
        Some((id, old, read(id)?))
    });
    let changed = match kind {
        Kind::Modify => changed.collect(),
        Kind::Insert | Kind::Delete => Vec::new(),
    };
    let last = match kind {
        Kind::Delete => idl
            .held_columns(row.table)
            .filter_map(|id| Some((id, read(id)?)))
            .collect(),
        Kind::Insert | Kind::Modify => Vec::new(),
    };
    Collected {
        kind,
        row,
        seqno: tracked.seqnos[kind as usize],
        changed,
        last,
    }
}

/// One row that was inserted, updated or deleted.
#[pyclass(frozen, module = "corvid")]
pub(crate) struct Change {
    client: Py<Client>,
    row: Py<Row>,
    kind: Kind,
    table: TableId,
    changed: Vec<(ColumnId, Datum, Datum)>,
}

impl Change {
    pub(crate) fn new(client: &Bound<'_, Client>, change: Collected) -> PyResult<Py<Change>> {
        let (py, owner) = (client.py(), client.clone().unbind());
        let row = match change.kind {
            Kind::Delete => Row::deleted(py, &owner, change.row, change.last)?,
            Kind::Insert | Kind::Modify => Row::object(py, &owner, change.row)?,
        };
        let change = Change {
            row,
            client: owner,
            kind: change.kind,
            table: change.row.table,
            changed: change.changed,
        };
        Py::new(py, change)
    }

    fn name(&self, id: ColumnId) -> &str {
        let table = self.table;
        self.client.get().schema.names(Column { table, id }).1
    }

    fn to_python(&self, py: Python<'_>, id: ColumnId, datum: Datum) -> PyResult<Py<PyAny>> {
        let (schema, table) = (&self.client.get().schema, self.table);
        let column_type = schema.column_type(Column { table, id });
        Value::of_past(datum).to_python(py, &self.client, column_type)
    }

    /// The elements of a column that one of two values has and the other one has not, in the other
    /// one's place.
    fn difference(&self, py: Python<'_>, column: &str, is_added: bool) -> PyResult<Py<PyAny>> {
        let table = self.table;
        let key = self.client.get().schema.column_key(py, table, column)?;
        let changed = self.changed.iter().find(|(id, _, _)| *id == key.id);
        let mut elements = Datum::empty();
        if let Some((_, old, new)) = changed {
            let mut put = |key: AtomRef<'_>, value: Option<AtomRef<'_>>| {
                elements.insert(key.to_owned(), value.map(AtomRef::to_owned));
            };
            diff::changes(old, new, &mut |change| match change {
                diff::Change::Added(key, value) if is_added => put(key, value),
                diff::Change::Removed(key, value) if !is_added => put(key, value),
                diff::Change::Replaced(key, old, new) => {
                    put(key, Some(if is_added { new } else { old }));
                }
                _ => {}
            });
        }
        self.to_python(py, key.id, elements)
    }
}

#[pymethods]
impl Change {
    /// "insert", "update" or "delete".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Insert => "insert",
            Kind::Modify => "update",
            Kind::Delete => "delete",
        }
    }

    #[getter]
    fn row(&self, py: Python<'_>) -> Py<Row> {
        self.row.clone_ref(py)
    }

    #[getter]
    fn table(&self) -> &str {
        self.client.get().schema.table_name(self.table)
    }

    /// The names of the columns that changed.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, self.changed.iter().map(|(id, _, _)| self.name(*id)))
    }

    /// The columns that changed, with their values before.
    #[getter]
    fn old<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let old = PyDict::new(py);
        for (id, before, _) in &self.changed {
            old.set_item(self.name(*id), self.to_python(py, *id, before.clone())?)?;
        }
        Ok(old)
    }

    /// The elements that came into a column.
    fn added(&self, py: Python<'_>, column: &str) -> PyResult<Py<PyAny>> {
        self.difference(py, column, true)
    }

    /// The elements that went from a column.
    fn removed(&self, py: Python<'_>, column: &str) -> PyResult<Py<PyAny>> {
        self.difference(py, column, false)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let row = self.row.bind(py).repr()?;
        Ok(format!("<{} of {row}>", self.kind()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(&self.row)
    }
}
