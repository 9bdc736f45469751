//! Values of columns as Python objects, and back.
//!
//! | column | Python |
//! |---|---|
//! | one element | `int`, `float`, `bool`, `str`, `uuid.UUID`, a `Row` for a reference |
//! | one or none | the same or `None` |
//! | a set | `frozenset` |
//! | a map | `dict` |
//!
//! A reference to a row that is not replicated is left out; where one element must be there, it is
//! `None`. Values of the past have all of theirs.

use std::collections::BTreeSet;

use corvid::data::{AtomRef, BaseType, ColumnType, DatumBuilder, Reference};
use corvid::idl::Idl;
use corvid::{Atom, Column, Datum, Real, RowId, Str, TableId, Uuid};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyMapping, PyString};

use crate::client::Client;
use crate::error::Mismatch;
use crate::row::Row;

/// A value of a column that was read under the lock of its client.
pub(crate) struct Value {
    datum: Datum,
    /// References to rows that are not there.
    absent: BTreeSet<(TableId, Uuid)>,
}

impl Value {
    /// Looks the references of a value up. Costs nothing for columns without references.
    pub(crate) fn new(idl: &Idl, column_type: &ColumnType, datum: Datum) -> Value {
        let mut absent = BTreeSet::new();
        let mut look_up = |base: Option<&BaseType>, uuid: Option<Uuid>| {
            if let (Some(table), Some(uuid)) = (base.and_then(target), uuid)
                && idl.row(table, uuid).is_none()
            {
                absent.insert((table, uuid));
            }
        };
        let value_type = column_type.value.as_ref();
        if target(&column_type.key).is_some() || value_type.and_then(target).is_some() {
            for (key, value) in &datum {
                look_up(Some(&column_type.key), key.as_uuid());
                look_up(value_type, value.and_then(AtomRef::as_uuid));
            }
        }
        Value { datum, absent }
    }

    /// A value of the past: the rows that it refers to may be gone, and are told of all the same.
    pub(crate) fn of_past(datum: Datum) -> Value {
        let absent = BTreeSet::new();
        Value { datum, absent }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.datum.is_empty()
    }

    /// The Python object.
    pub(crate) fn to_python(
        &self,
        py: Python<'_>,
        client: &Py<Client>,
        column_type: &ColumnType,
    ) -> PyResult<Py<PyAny>> {
        let atom = |atom: AtomRef<'_>, base: &BaseType| self.atom(py, client, atom, base);
        if let Some(value_type) = &column_type.value {
            // Filled as a dict, which does not call the methods that refuse changes.
            let dict = map_class(py)?.call0()?.cast_into::<PyDict>()?;
            self.fill(&dict, column_type, value_type, atom)?;
            return Ok(dict.into_any().unbind());
        }
        if column_type.max == 1 {
            let object = self.first(column_type, atom)?;
            return Ok(object.unwrap_or_else(|| py.None()));
        }
        let objects = self.elements(column_type, atom)?;
        Ok(PyFrozenSet::new(py, objects)?.into_any().unbind())
    }

    /// Adds the pairs of a map, without those of rows that are not there.
    pub(crate) fn fill(
        &self,
        dict: &Bound<'_, PyDict>,
        column_type: &ColumnType,
        value_type: &BaseType,
        atom: impl Fn(AtomRef<'_>, &BaseType) -> PyResult<Option<Py<PyAny>>>,
    ) -> PyResult<()> {
        for (key, value) in &self.datum {
            let value = value.map_or(Ok(None), |value| atom(value, value_type))?;
            if let (Some(key), Some(value)) = (atom(key, &column_type.key)?, value) {
                dict.set_item(key, value)?;
            }
        }
        Ok(())
    }

    /// The first element, unless it is a row that is not there.
    pub(crate) fn first(
        &self,
        column_type: &ColumnType,
        atom: impl Fn(AtomRef<'_>, &BaseType) -> PyResult<Option<Py<PyAny>>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let only = self.datum.first();
        only.map_or(Ok(None), |only| atom(only, &column_type.key))
    }

    /// The elements, without rows that are not there.
    pub(crate) fn elements(
        &self,
        column_type: &ColumnType,
        atom: impl Fn(AtomRef<'_>, &BaseType) -> PyResult<Option<Py<PyAny>>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let mut objects = Vec::with_capacity(self.datum.len());
        for key in self.datum.keys() {
            objects.extend(atom(key, &column_type.key)?);
        }
        Ok(objects)
    }

    /// The rows that the elements of a set refer to, without those that are not there.
    pub(crate) fn rows(
        &self,
        py: Python<'_>,
        client: &Py<Client>,
        table: TableId,
    ) -> PyResult<Vec<Py<Row>>> {
        let uuids = self.datum.keys().filter_map(AtomRef::as_uuid);
        let rows = uuids.map(|uuid| RowId { table, uuid });
        let there = rows.filter(|row| !self.absent.contains(&(row.table, row.uuid)));
        let there: Vec<RowId> = there.collect();
        client.get().rows.objects(py, client, &there)
    }

    /// An element; `None`: a row that is not there.
    pub(crate) fn atom(
        &self,
        py: Python<'_>,
        client: &Py<Client>,
        atom: AtomRef<'_>,
        base: &BaseType,
    ) -> PyResult<Option<Py<PyAny>>> {
        if let (AtomRef::Uuid(uuid), Some(table)) = (atom, target(base)) {
            if self.absent.contains(&(table, uuid)) {
                return Ok(None);
            }
            let row = Row::object(py, client, RowId { table, uuid })?;
            return Ok(Some(row.into_any()));
        }
        atom_to_python(py, atom).map(Some)
    }
}

pub(crate) fn target(base: &BaseType) -> Option<TableId> {
    base.reference
        .as_ref()
        .map(|reference: &Reference| reference.table)
}

pub(crate) fn atom_to_python(py: Python<'_>, atom: AtomRef<'_>) -> PyResult<Py<PyAny>> {
    Ok(match atom {
        AtomRef::Integer(integer) => integer.into_pyobject(py)?.into_any().unbind(),
        AtomRef::Real(real) => PyFloat::new(py, real.get()).into_any().unbind(),
        AtomRef::Boolean(boolean) => PyBool::new(py, boolean).to_owned().into_any().unbind(),
        AtomRef::String(text) => PyString::new(py, text.as_str()).into_any().unbind(),
        AtomRef::Uuid(uuid) => uuid_to_python(py, uuid)?.unbind(),
    })
}

static UUID: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

fn uuid_class<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    let class = UUID.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("uuid")?.getattr("UUID")?.unbind())
    })?;
    Ok(class.bind(py))
}

static MAP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A dict that refuses changes.
fn map_class<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    let class = MAP.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("corvid.maps")?.getattr("Map")?.unbind())
    })?;
    Ok(class.bind(py))
}

/// A `uuid.UUID`.
pub(crate) fn uuid_to_python(py: Python<'_>, uuid: Uuid) -> PyResult<Bound<'_, PyAny>> {
    let keywords = PyDict::new(py);
    keywords.set_item("int", u128::from_be_bytes(uuid.0))?;
    uuid_class(py)?.call((), Some(&keywords))
}

/// A UUID from a `uuid.UUID`, a `Row`, or its text.
pub(crate) fn uuid_of(object: &Bound<'_, PyAny>) -> PyResult<Uuid> {
    if let Ok(row) = object.cast::<Row>() {
        return Ok(row.get().id.uuid);
    }
    if object.is_instance(uuid_class(object.py())?)? {
        let number: u128 = object.getattr("int")?.extract()?;
        return Ok(Uuid(number.to_be_bytes()));
    }
    let text: Option<Uuid> = object
        .cast::<PyString>()
        .ok()
        .and_then(|text| Uuid::parse(text.to_cow().ok()?.as_bytes()));
    text.ok_or_else(|| mismatch("a row or a UUID", object))
}

/// A value for a column; a [`Mismatch`] says in words what is wrong with it.
pub(crate) fn datum_of(object: &Bound<'_, PyAny>, column_type: &ColumnType) -> PyResult<Datum> {
    let mut datum = DatumBuilder::new();
    if let Some(value_type) = &column_type.value {
        let mut push = |key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>| {
            let value = atom_of(value, value_type)?;
            datum.push(atom_of(key, &column_type.key)?, Some(value));
            Ok::<(), PyErr>(())
        };
        if let Ok(dict) = object.cast::<PyDict>() {
            for (key, value) in dict.iter() {
                push(&key, &value)?;
            }
        } else {
            let map = object.cast::<PyMapping>();
            let map = map.map_err(|_| mismatch("a mapping", object))?;
            for item in map.items()?.iter() {
                let (key, value) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
                push(&key, &value)?;
            }
        }
    } else if is_collection(object) && column_type.max > 1 {
        for element in object.try_iter()? {
            datum.push(atom_of(&element?, &column_type.key)?, None);
        }
    } else if !(object.is_none() && column_type.min == 0) {
        datum.push(atom_of(object, &column_type.key)?, None);
    }
    datum
        .finish()
        .map_err(|error| Mismatch::new_err(error.to_string()))
}

/// Whether an object stands for several elements.
fn is_collection(object: &Bound<'_, PyAny>) -> bool {
    !object.is_instance_of::<PyString>()
        && !object.is_instance_of::<Row>()
        && object.hasattr("__iter__").unwrap_or(false)
}

/// An element, a key or a value.
pub(crate) fn atom_of(object: &Bound<'_, PyAny>, base: &BaseType) -> PyResult<Atom> {
    use corvid::data::AtomType;
    let is_bool = object.is_instance_of::<PyBool>();
    match base.atom {
        AtomType::Integer if object.is_instance_of::<PyInt>() && !is_bool => {
            let integer: Result<i64, _> = object.extract();
            let integer = integer.map_err(|_| mismatch("an integer of 64 bits", object))?;
            Ok(Atom::Integer(integer))
        }
        AtomType::Integer => Err(mismatch("an int", object)),
        AtomType::Real if !is_bool => {
            let real: Option<f64> = object.extract().ok();
            let real = real.and_then(Real::new);
            Ok(Atom::Real(
                real.ok_or_else(|| mismatch("a finite float", object))?,
            ))
        }
        AtomType::Real => Err(mismatch("a float", object)),
        AtomType::Boolean if is_bool => Ok(Atom::Boolean(object.extract()?)),
        AtomType::Boolean => Err(mismatch("a bool", object)),
        AtomType::String => {
            let text = object.cast::<PyString>();
            let text = text.map_err(|_| mismatch("a str", object))?.to_cow()?;
            // No message can carry it, so a server would close the connection.
            if text.contains('\0') {
                return Err(mismatch("a str without NUL", object));
            }
            let text = Str::from_utf8(text.as_bytes());
            text.map(Atom::String)
                .map_err(|error| Mismatch::new_err(error.to_string()))
        }
        AtomType::Uuid => {
            if let (Some(reference), Ok(row)) = (&base.reference, object.cast::<Row>())
                && row.get().table_name() != reference.table_name.as_str()
            {
                let table = &reference.table_name;
                return Err(mismatch(&format!("a row of table {table}"), object));
            }
            uuid_of(object).map(Atom::Uuid)
        }
    }
}

fn mismatch(expected: &str, object: &Bound<'_, PyAny>) -> PyErr {
    let class = object.get_type();
    let class = class.name().map_or_else(
        |_| "an object".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    let shown = object.repr().map_or_else(
        |_| String::new(),
        |shown| shown.to_string_lossy().chars().take(60).collect(),
    );
    Mismatch::new_err(format!("expected {expected}, not {shown} of type {class}"))
}

/// The outcome of reading a column.
pub(crate) enum Read {
    /// Its value.
    Value(Value),
    /// The replica does not hold the column.
    NotReplicated,
    /// The row is not there.
    Gone,
}

/// The value of a column under the lock of its client.
pub(crate) fn read(idl: &Idl, row: RowId, column: Column) -> Read {
    if !idl.is_known(row, column) {
        return Read::NotReplicated;
    }
    match idl.read(row, column) {
        Some(datum) => Read::Value(Value::new(idl, &idl.column(column).column_type, datum)),
        None => Read::Gone,
    }
}
