//! The past of the database: readings of its history, and queries of its contents at a moment.
//!
//! Invariant: a reading is used under the lock of its client alone.

use std::sync::{Mutex, PoisonError};

use corvid::{Error, HistoryQuestion, HistoryReading, polled};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::client::{Client, State};
use crate::error;

/// A reading of the history, or a query of a moment, under way.
#[pyclass(frozen, weakref, module = "corvid._native")]
pub(crate) struct History {
    client: Py<Client>,
    reading: Mutex<HistoryReading>,
}

/// A page as Python takes it: its lines, the date that it has reached, and the part of the history
/// that has been read.
type Page = (Vec<String>, Option<i64>, f64);

impl History {
    /// Begins to read. Reading and members go by their names.
    pub(crate) fn read(
        client: &Bound<'_, Client>,
        read: &str,
        members: Vec<(String, String)>,
        newest: Option<usize>,
    ) -> PyResult<History> {
        let mut question = HistoryQuestion::named(read);
        for (name, text) in members {
            question = question.member(&name, &text);
        }
        if let Some(newest) = newest {
            question = question.newest(newest);
        }
        History::begin(client, |client| client.read_history(&question))
    }

    /// Begins a query. The operations are JSON.
    pub(crate) fn select(
        client: &Bound<'_, Client>,
        moment: &str,
        operations: &str,
    ) -> PyResult<History> {
        History::begin(client, |client| client.select_at(moment, operations))
    }

    fn begin(
        client: &Bound<'_, Client>,
        begin: impl FnOnce(&polled::Client) -> Result<HistoryReading, Error>,
    ) -> PyResult<History> {
        let py = client.py();
        let begun = client.get().with(py, |state| begin(&state.client));
        Ok(History {
            client: client.clone().unbind(),
            reading: Mutex::new(begun.map_err(|error| error::history(py, &error))?),
        })
    }

    /// Does something under the lock of the client.
    fn act<R>(
        &self,
        state: &mut State,
        act: impl FnOnce(&mut HistoryReading, &mut State) -> R,
    ) -> R {
        let reading = self.reading.lock();
        act(&mut reading.unwrap_or_else(PoisonError::into_inner), state)
    }
}

#[pymethods]
impl History {
    /// Whether nothing comes any more.
    #[getter]
    fn is_over(&self, py: Python<'_>) -> bool {
        let client = self.client.get();
        client.with(py, |state| self.act(state, |reading, _| reading.is_over()))
    }

    /// Whether `take` has something to do.
    fn is_ready(&self, py: Python<'_>) -> bool {
        self.client.get().with(py, |state| {
            self.act(state, |reading, state| reading.is_ready(&state.client))
        })
    }

    /// Takes the next page, or asks for it: `None` then, and at the end.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Page>> {
        let page = self.client.get().with(py, |state| {
            self.act(state, |reading, state| reading.take(&mut state.client))
        });
        let page = page.map_err(|error| error::history(py, &error))?;
        Ok(page.map(|page| {
            let lines = page.lines.iter();
            let lines = lines.map(|line| String::from_utf8_lossy(line).into_owned());
            (lines.collect(), page.at_ms, page.done)
        }))
    }

    /// Ends it, also at the server. Nothing is awaited.
    fn cancel(&self, py: Python<'_>) {
        // In a forked child there is nothing to end.
        self.client.get().try_with(py, |state| {
            self.act(state, |reading, state| {
                if !reading.is_over() {
                    reading.cancel(&mut state.client);
                    state.client.flush();
                }
            });
        });
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}
