//! The changes of a client for `Idl.notify`: of all tables, in the order of the server's messages.
//!
//! Deletions are collected always, because the object of a deleted row takes its last values; the
//! others only when somebody wants them.

use std::sync::{Arc, Mutex, PoisonError};

use corvid::HandlerId;
use corvid::TableId;
use corvid::track::Kind;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::change::{Collected, handler};
use crate::client::Client;
use crate::row::Row;

/// "create", "update" or "delete"; the row; for an update, a row with the old values of the changed
/// columns.
type Event = (&'static str, Py<Row>, Option<Py<Row>>);

/// The changes of all tables.
#[pyclass(frozen, module = "corvid._native")]
pub(crate) struct Events {
    client: Py<Client>,
    collected: Arc<Mutex<Vec<Collected>>>,
    /// Handlers of insertions and modifications; none while nobody wants them.
    wanted: Mutex<Vec<HandlerId>>,
}

impl Events {
    fn watch(&self, py: Python<'_>, kinds: &[Kind]) -> Vec<HandlerId> {
        let native = self.client.get();
        native.with(py, |state| {
            let idl = state.client.idl_mut();
            let tables = (0u16..).map(TableId).take(idl.schema().tables().len());
            let pairs = tables.flat_map(|table| kinds.iter().map(move |kind| (table, *kind)));
            let pairs: Vec<(TableId, Kind)> = pairs.collect();
            let add = |(table, kind)| handler(idl, table, kind, &self.collected);
            pairs.into_iter().map(add).collect()
        })
    }
}

#[pymethods]
impl Events {
    #[new]
    fn new(py: Python<'_>, client: Py<Client>) -> Events {
        let events = Events {
            client,
            collected: Arc::default(),
            wanted: Mutex::default(),
        };
        events.watch(py, &[Kind::Delete]);
        events
    }

    /// Whether insertions and modifications are collected from now on.
    fn set_wanted(&self, py: Python<'_>, is_wanted: bool) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.is_empty() == is_wanted {
            let handlers = std::mem::take(&mut *wanted);
            drop(wanted);
            let handlers = if is_wanted {
                self.watch(py, &[Kind::Insert, Kind::Modify])
            } else {
                self.client.get().with(py, |state| {
                    for handler in handlers {
                        state.client.idl_mut().remove_handler(handler);
                    }
                });
                Vec::new()
            };
            *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = handlers;
        }
    }

    /// Takes the changes since the last call.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<Event>> {
        let mut collected = self.collected.lock();
        let mut taken = std::mem::take(&mut **collected.as_mut().unwrap_or_else(|e| e.get_mut()));
        drop(collected);
        // Handlers are called table by table. The change number of each change says when it was.
        taken.sort_by_key(|change| change.seqno);
        let (client, rows) = (&self.client, &self.client.get().rows);
        let mut events = Vec::with_capacity(taken.len());
        for change in taken {
            events.push(match change.kind {
                Kind::Insert => ("create", rows.object(py, client, change.row)?, None),
                Kind::Delete => {
                    let row = rows.deleted(py, client, change.row, change.last)?;
                    ("delete", row, None)
                }
                Kind::Modify => {
                    let former = change.changed.into_iter();
                    let former = former.map(|(id, former, _)| (id, former)).collect();
                    let row = rows.object(py, client, change.row)?;
                    let updates = rows.former(py, client, change.row, former)?;
                    ("update", row, Some(updates))
                }
            });
        }
        Ok(events)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}
