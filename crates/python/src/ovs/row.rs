//! A row of the drop-in for `ovs`: the base of its class `Row`.
//!
//! Invariant: a row that is there has one object. An object that was given values (`keep`) shows
//! these and no others: the last ones of a deleted row, or the old ones of changed columns.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use corvid::data::ColumnType;
use corvid::{Column, ColumnId, Datum, Element, Misuse, RowVersion};
use pyo3::exceptions::{PyAssertionError, PyAttributeError};
use pyo3::prelude::*;

use crate::client::Client;
use crate::error::Mismatch;
use crate::ovs::read_values::ReadValues;
use crate::ovs::value;
use crate::row::Row;
use crate::value::Value;

/// Python's hashes of integers are remainders of this prime.
const HASH_MODULUS: u128 = (1 << 61) - 1;

/// The longest text whose object a row keeps, bytes. Names, types and most matches are shorter.
const KEPT_TEXT_BYTES_MAX: usize = 128;

/// A row with the attributes of `ovs.db.idl.Row`.
#[pyclass(frozen, subclass, extends = Row, module = "corvid._native")]
pub(crate) struct LiveRow {
    /// Never held while the lock of the client is waited for, which gives the GIL up.
    own: Mutex<Own>,
}

/// The state of a row's object.
#[derive(Default)]
struct Own {
    /// Of a new row: the columns that have been set. Others have no value yet.
    set: Option<BTreeSet<ColumnId>>,
    read: ReadValues,
}

/// The outcome of reading a column under the lock of the client.
enum Read {
    /// The object that the last read returned is still valid.
    AsBefore,
    /// A value, with the version of the row if that says how long it holds.
    Value(Value, Option<RowVersion>),
    DeletedHere,
    Gone,
}

impl LiveRow {
    fn no_attribute(name: &str) -> PyErr {
        PyAttributeError::new_err(format!("Row instance has no attribute '{name}'"))
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_set(&self, id: ColumnId) {
        if let Some(set) = &mut self.own().set {
            set.insert(id);
        }
    }

    /// The value of a column, by its name too, as the text of an error needs it.
    pub(crate) fn read_column(
        slf: &Bound<'_, Self>,
        column: Column,
        name: &str,
    ) -> PyResult<Py<PyAny>> {
        let (py, row) = (slf.py(), slf.as_super().get());
        let client = row.client.get();
        let column_type = client.schema.column_type(column);
        let kept = match row.kept() {
            None => None,
            Some(kept) => {
                let found = kept.iter().find(|(id, _)| *id == column.id);
                Some(found.ok_or_else(|| LiveRow::no_attribute(name))?.1.clone())
            }
        };
        let is_kept = kept.is_some();
        let before = {
            let own = slf.get().own();
            if own
                .set
                .as_ref()
                .is_some_and(|set| !set.contains(&column.id))
            {
                return Err(LiveRow::no_attribute(name));
            }
            own.read.get(py, column.id).filter(|_| !is_kept)
        };
        let read = client.with(py, |state| {
            let idl = state.client.idl();
            if before
                .as_ref()
                .is_some_and(|(version, _)| idl.is_current(*version))
            {
                return Read::AsBefore;
            }
            // The version is that of the columns that the replica holds, and of no others.
            let is_versioned = !is_kept && is_immutable(column_type);
            let view = is_versioned.then(|| idl.view(row.id)).flatten();
            let held = view.and_then(|view| view.get(column)).cloned();
            let version = held
                .as_ref()
                .filter(|datum| is_short(datum))
                .and_then(|_| idl.version(row.id));
            match kept.or(held).or_else(|| idl.read(row.id, column)) {
                Some(datum) => Read::Value(Value::new(idl, column_type, datum), version),
                None if idl.is_deleted_here(row.id) => Read::DeletedHere,
                None => Read::Gone,
            }
        });
        let (value, version) = match (read, before) {
            (Read::AsBefore, Some((_, object))) => return Ok(object),
            (Read::AsBefore, None) => unreachable!("it is told of an object alone"),
            (Read::Value(value, version), _) => (value, version),
            (Read::DeletedHere, _) => {
                return Err(PyAssertionError::new_err("the transaction deletes the row"));
            }
            (Read::Gone, _) => return Err(LiveRow::no_attribute(name)),
        };
        if let Some(target) = client
            .unregistered
            .get(&column)
            .filter(|_| !value.is_empty())
        {
            let text = format!("Table {target} is not registered");
            return Err(PyAttributeError::new_err(text));
        }
        let object = value::to_python(&value, py, &row.client, column_type)?;
        if let Some(version) = version {
            let for_later = object.clone_ref(py);
            let former = slf.get().own().read.keep(version, column.id, for_later);
            drop(former);
        }
        Ok(object)
    }

    /// Writes a column, in the open transaction.
    pub(crate) fn write_column(
        slf: &Bound<'_, Self>,
        column: Column,
        name: &str,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (py, row) = (slf.py(), slf.as_super().get());
        let client = row.client.get();
        if client.read_only.contains(&column) {
            slf.call_method1("_read_only_column", (name,))?;
            return Ok(());
        }
        let is_open = client.with(py, |state| state.client.idl().open_txn().is_some());
        if !is_open {
            return Err(PyAssertionError::new_err("no transaction is open"));
        }
        let datum = match value::datum_of(object, client.schema.column_type(column)) {
            Ok(datum) => datum,
            Err(error) => return bad_value(slf, name, error),
        };
        let outcome = client.with(py, |state| {
            state.client.idl_mut().write(row.id, column, datum)
        });
        match outcome {
            Ok(()) => {
                slf.get().note_set(column.id);
                Ok(())
            }
            Err(Misuse::Immutable) => {
                // The server says what is wrong, when the transaction is committed.
                slf.call_method1("_immutable_column", (name, object))
                    .map(drop)
            }
            Err(misuse) => refused(slf, name, &misuse),
        }
    }
}

#[pymethods]
impl LiveRow {
    #[new]
    fn new(
        client: &Bound<'_, Client>,
        table: &str,
        uuid: &Bound<'_, PyAny>,
    ) -> PyResult<PyClassInitializer<LiveRow>> {
        let row = Row::of_names(client, table, uuid)?;
        let row = PyClassInitializer::from(row);
        let own = Mutex::default();
        Ok(row.add_subclass(LiveRow { own }))
    }

    /// The row is one that the open transaction inserts: columns have no value until they are set.
    fn _is_new(&self) {
        self.own().set.get_or_insert_default();
    }

    /// Whether the client holds a column of the row: it is replicated, or was fetched.
    fn _is_held(slf: &Bound<'_, Self>, name: &str) -> bool {
        let (py, row) = (slf.py(), slf.as_super().get());
        let client = row.client.get();
        row.find_column(name).is_some_and(|column| {
            let is_fetched = |idl: &corvid::Idl| idl.is_fetched(row.id, column);
            !client.read_only.contains(&column)
                || client.with(py, |state| is_fetched(state.client.idl()))
        })
    }

    /// Whether the row has values of its own, as a deleted one has.
    fn _has_own_values(slf: &Bound<'_, Self>) -> bool {
        slf.as_super().get().kept().is_some()
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        match slf.as_super().get().find_column(name) {
            Some(column) => LiveRow::read_column(slf, column, name),
            None => Err(LiveRow::no_attribute(name)),
        }
    }

    /// The value of a column without the changes of the open transaction; None of a row that is not
    /// there, or that it inserts.
    fn _committed(slf: &Bound<'_, Self>, name: &str) -> PyResult<Option<Py<PyAny>>> {
        let (py, row) = (slf.py(), slf.as_super().get());
        let client = row.client.get();
        let Some(column) = row.find_column(name) else {
            return Err(LiveRow::no_attribute(name));
        };
        let column_type = client.schema.column_type(column);
        let value = client.with(py, |state| {
            let idl = state.client.idl();
            let datum = idl.read_committed(row.id, column)?.clone();
            Some(Value::new(idl, column_type, datum))
        });
        let value = value.map(|value| value::to_python(&value, py, &row.client, column_type));
        value.transpose()
    }

    fn __setattr__(slf: &Bound<'_, Self>, name: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
        match slf.as_super().get().find_column(name) {
            Some(column) => LiveRow::write_column(slf, column, name, object),
            None => slf.call_method1("_unknown_column", (name,)).map(drop),
        }
    }

    /// Changes an element of a column: `kind` is "add", "remove", "set" or "remove_key". Returns
    /// whether that changes the column; None when the row is not there, so that only the server can
    /// change it.
    #[pyo3(signature = (kind, name, key, object=None))]
    fn _change_element(
        slf: &Bound<'_, Self>,
        kind: &str,
        name: &str,
        key: &Bound<'_, PyAny>,
        object: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<bool>> {
        let (py, row) = (slf.py(), slf.as_super().get());
        let Some(column) = row.find_column(name) else {
            slf.call_method1("_unknown_column", (name,))?;
            return Ok(Some(true));
        };
        let client = row.client.get();
        let element = match element(client, column, kind, key, object) {
            Ok(element) => element,
            Err(error) if kind == "remove" => {
                return complain(slf, "_bad_removal", name, error).map(|()| Some(true));
            }
            Err(error) => return bad_value(slf, name, error).map(|()| Some(true)),
        };
        let outcome = client.with(py, |state| {
            let idl = state.client.idl_mut();
            let is_known = idl.row(row.id.table, row.id.uuid).is_some();
            if !is_known && !idl.is_deleted_here(row.id) {
                return None;
            }
            Some(idl.change_element(row.id, column, &element))
        });
        match outcome {
            None => Ok(None),
            Some(Ok(has_changed)) => {
                slf.get().note_set(column.id);
                Ok(Some(has_changed))
            }
            Some(Err(misuse)) => refused(slf, name, &misuse).map(|()| Some(true)),
        }
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, Row>) -> bool {
        other.get().id.uuid == slf.as_super().get().id.uuid
    }

    fn __lt__(slf: &Bound<'_, Self>, other: &Bound<'_, Row>) -> bool {
        slf.as_super().get().id.uuid < other.get().id.uuid
    }

    /// That of the UUID as an integer.
    fn __hash__(slf: &Bound<'_, Self>) -> u64 {
        let number = u128::from_be_bytes(slf.as_super().get().id.uuid.0);
        u64::try_from(number % HASH_MODULUS).unwrap_or_default()
    }
}

/// Whether an object is worth its memory: a long text would be held twice, by the core and by the
/// row, for as long as the row is there.
fn is_short(datum: &Datum) -> bool {
    datum
        .as_string()
        .is_none_or(|text| text.as_str().len() <= KEPT_TEXT_BYTES_MAX)
}

/// Whether the objects of a column cannot be changed, and depend on no other row.
fn is_immutable(column_type: &ColumnType) -> bool {
    let is_one = (column_type.min, column_type.max) == (1, 1) && !column_type.is_map();
    is_one && column_type.key.reference.is_none()
}

fn element(
    client: &Client,
    column: Column,
    kind: &str,
    key: &Bound<'_, PyAny>,
    object: Option<&Bound<'_, PyAny>>,
) -> PyResult<Element> {
    let column_type = client.schema.column_type(column);
    let key = value::atom_of(key, &column_type.key)?;
    Ok(match (kind, &column_type.value, object) {
        ("set", Some(value_type), Some(object)) => {
            Element::Set(key, value::atom_of(object, value_type)?)
        }
        ("remove_key", Some(_), _) => Element::RemoveKey(key),
        ("remove", None, _) => Element::Remove(key),
        ("add", None, _) => Element::Add(key),
        _ => {
            let text = "ovsdb error: the column has no elements of this kind";
            return Err(Mismatch::new_err(text));
        }
    })
}

/// A value that does not fit is logged, and nothing changes; an exception of the program's own
/// iterator stays one.
fn bad_value(row: &Bound<'_, LiveRow>, name: &str, error: PyErr) -> PyResult<()> {
    complain(row, "_bad_value", name, error)
}

fn complain(row: &Bound<'_, LiveRow>, hook: &str, name: &str, error: PyErr) -> PyResult<()> {
    let py = row.py();
    if !error.is_instance_of::<Mismatch>(py) {
        return Err(error);
    }
    row.call_method1(hook, (name, error.value(py).to_string()))?;
    Ok(())
}

fn refused(row: &Bound<'_, LiveRow>, name: &str, misuse: &Misuse) -> PyResult<()> {
    match misuse {
        Misuse::NoTransaction | Misuse::RowGone => {
            Err(PyAssertionError::new_err(misuse.to_string()))
        }
        _ => row
            .call_method1("_bad_value", (name, misuse.to_string()))
            .map(drop),
    }
}
