//! Indexes: look-ups and ranges.

use corvid::{Column, Datum, IndexColumn, IndexId, Key, RowId};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::client::{Client, rows_of};
use crate::error;
use crate::row::Row;

/// The rows of a table in the order of some of its columns.
#[pyclass(frozen, module = "corvid")]
pub(crate) struct Index {
    client: Py<Client>,
    id: IndexId,
    columns: Vec<Column>,
}

impl Index {
    pub(crate) fn add(
        client: &Bound<'_, Client>,
        table: &str,
        names: &[String],
    ) -> PyResult<Index> {
        let (py, native) = (client.py(), client.get());
        let table = native.schema.table_id(py, table)?;
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let (name, is_descending) = match name.strip_prefix('-') {
                Some(name) => (name, true),
                None => (name.as_str(), false),
            };
            let column = native.schema.column_key(py, table, name)?;
            columns.push((column, is_descending));
        }
        let of_index = columns.iter().map(|(column, is_descending)| {
            if *is_descending {
                IndexColumn::descending(*column)
            } else {
                IndexColumn::ascending(*column)
            }
        });
        let of_index = of_index.collect();
        let added = native.with(py, |state| {
            state.client.idl_mut().add_index(table, "", of_index)
        });
        Ok(Index {
            client: client.clone().unbind(),
            id: added.map_err(|error| error::usage(py, error.to_string()))?,
            columns: columns.into_iter().map(|(column, _)| column).collect(),
        })
    }

    /// A key's values, one for each column; a lone value needs no tuple.
    fn values(&self, object: &Bound<'_, PyAny>) -> PyResult<Vec<Datum>> {
        let (py, client) = (object.py(), self.client.get());
        let schema = &client.schema;
        let objects: Vec<Bound<'_, PyAny>> = if self.columns.len() == 1 {
            vec![object.clone()]
        } else {
            object.extract()?
        };
        if objects.len() != self.columns.len() {
            let text = format!(
                "a key of this index has {} values, not {}",
                self.columns.len(),
                objects.len()
            );
            return Err(error::usage(py, text));
        }
        let pairs = self.columns.iter().zip(objects);
        let data = pairs.map(|(column, object)| {
            client
                .rows
                .datum_of(&object, schema.column_type(*column))
                .map_err(|e| error::conversion(py, e, schema.names(*column), None))
        });
        data.collect()
    }

    fn key(&self, idl: &corvid::Idl, values: Vec<Datum>) -> Key {
        let mut key = idl.key(self.id);
        for (column, value) in self.columns.iter().zip(values) {
            key.set(*column, value);
        }
        key
    }
}

#[pymethods]
impl Index {
    fn __len__(&self, py: Python<'_>) -> usize {
        let client = self.client.get();
        client.with(py, |state| state.client.idl().index_len(self.id))
    }

    /// The first row with this key.
    fn get(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<Row>>> {
        let py = key.py();
        let values = self.values(key)?;
        let found = self.client.get().with(py, |state| {
            let idl = state.client.idl();
            idl.find(&self.key(idl, values))
        });
        found
            .map(|row| Row::object(py, &self.client, row))
            .transpose()
    }

    /// The rows from one key to another, both included, in the order of the index; `None` is
    /// without bound.
    #[pyo3(signature = (from_key=None, to_key=None))]
    fn range(
        &self,
        py: Python<'_>,
        from_key: Option<&Bound<'_, PyAny>>,
        to_key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Py<Row>>> {
        let from_values = from_key.map(|key| self.values(key)).transpose()?;
        let to_values = to_key.map(|key| self.values(key)).transpose()?;
        let rows: Vec<RowId> = self.client.get().with(py, |state| {
            let idl = state.client.idl();
            let from_key = from_values.map(|values| self.key(idl, values));
            let to_key = to_values.map(|values| self.key(idl, values));
            let rows = idl.range_of(self.id, from_key.as_ref(), to_key.as_ref());
            rows.collect()
        });
        rows_of(self.client.bind(py), &rows)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}
