//! Values of columns by the rules of `ovs` (docs/spec/idl.md 8.4).
//!
//! | column | Python | accepted |
//! |---|---|---|
//! | one element | `int`, `float` (of a real without fraction `int`), `bool`, `str`, `uuid.UUID`, a row for a reference | the same; a list, tuple or set of one |
//! | a set, also one of at most one | a sorted `list` | list, tuple, set, or an element alone |
//! | a map | `dict` | `dict` |
//!
//! References to rows that are not there are left out; where one element must be there, it is the
//! UUID zero.

use std::collections::BTreeMap;

use corvid::data::{AtomRef, AtomType, BaseType, ColumnType, DatumBuilder};
use corvid::{Atom, Datum, Real, Str, Uuid};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple};

use crate::client::Client;
use crate::error::Mismatch;
use crate::value::{Value, target, uuid_of, uuid_to_python};

/// Integers of this size and more have no exact float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The Python object of a value by the rules of `ovs`.
pub(crate) fn to_python(
    value: &Value,
    py: Python<'_>,
    client: &Py<Client>,
    column_type: &ColumnType,
) -> PyResult<Py<PyAny>> {
    let atom = |atom: AtomRef<'_>, base: &BaseType| match atom {
        // In JSON it is an integer, and programs compare the types.
        AtomRef::Real(real) if real.get().fract() == 0.0 && real.get().abs() <= EXACT_MAX => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it is a whole number of this size"
            )]
            let whole = real.get() as i64;
            Ok(Some(whole.into_pyobject(py)?.into_any().unbind()))
        }
        atom => value.atom(py, client, atom, base),
    };
    if let Some(value_type) = &column_type.value {
        let dict = PyDict::new(py);
        value.fill(&dict, column_type, value_type, atom)?;
        return Ok(dict.into_any().unbind());
    }
    if column_type.min == 1 && column_type.max == 1 {
        let object = value.first(column_type, atom)?;
        return object.map_or_else(|| Ok(uuid_to_python(py, Uuid([0; 16]))?.unbind()), Ok);
    }
    let list = match target(&column_type.key) {
        Some(table) => PyList::new(py, value.rows(py, client, table)?)?,
        None => PyList::new(py, value.elements(column_type, atom)?)?,
    };
    Ok(list.into_any().unbind())
}

/// A value for a column. A [`Mismatch`] has the text of the log message.
pub(crate) fn datum_of(object: &Bound<'_, PyAny>, column_type: &ColumnType) -> PyResult<Datum> {
    // Elements that are given twice are there once.
    let mut elements = BTreeMap::new();
    if let (Some(value_type), Ok(map)) = (&column_type.value, object.cast::<PyDict>()) {
        for (key, value) in map.iter() {
            let key = atom_of(&key, &column_type.key)?;
            elements.insert(key, Some(atom_of(&value, value_type)?));
        }
    } else if is_collection(object) {
        for element in object.try_iter()? {
            elements.insert(atom_of(&element?, &column_type.key)?, None);
        }
    } else {
        elements.insert(atom_of(object, &column_type.key)?, None);
    }
    let (count, min, max) = (elements.len(), column_type.min, column_type.max);
    let is_over = max != u32::MAX && count > max as usize;
    if count < min as usize || is_over {
        let text = format!("{count} values when type requires between {min} and {max}");
        return Err(mismatch(text));
    }
    let mut datum = DatumBuilder::new();
    for (key, value) in elements {
        datum.push(key, value);
    }
    datum.finish().map_err(|error| mismatch(error.to_string()))
}

/// Whether an object stands for several elements.
fn is_collection(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PySet>()
        || object.is_instance_of::<PyFrozenSet>()
}

/// An element, a key or a value.
pub(crate) fn atom_of(object: &Bound<'_, PyAny>, base: &BaseType) -> PyResult<Atom> {
    let is_bool = object.is_instance_of::<PyBool>();
    let unexpected = |name: &str| {
        let class = object.get_type();
        let class = class.repr().map_or_else(
            |_| "something else".to_owned(),
            |shown| shown.to_string_lossy().into_owned(),
        );
        mismatch(format!("expected {name}, got {class}"))
    };
    match base.atom {
        AtomType::Integer => {
            let whole = if is_bool {
                None
            } else if let Ok(float) = object.cast::<PyFloat>() {
                let float = float.value();
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "it is a whole number of this size"
                )]
                (float.fract() == 0.0 && float.abs() <= EXACT_MAX).then_some(float as i64)
            } else if object.is_instance_of::<PyInt>() {
                object.extract().ok()
            } else {
                None
            };
            whole
                .map(Atom::Integer)
                .ok_or_else(|| unexpected("integer"))
        }
        AtomType::Real => {
            let is_number = object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>();
            let real = (is_number && !is_bool).then(|| object.extract::<f64>().ok());
            let real = real.flatten().and_then(Real::new);
            real.map(Atom::Real).ok_or_else(|| unexpected("real"))
        }
        AtomType::Boolean if is_bool => Ok(Atom::Boolean(object.extract()?)),
        AtomType::Boolean => Err(unexpected("boolean")),
        AtomType::String => {
            let text = object.cast::<PyString>();
            let text = text.map_err(|_| unexpected("string"))?.to_cow()?;
            // No message can carry it, so a server would close the connection.
            if text.contains('\0') {
                return Err(mismatch("a string must not have the character NUL"));
            }
            let text = Str::from_utf8(text.as_bytes());
            text.map(Atom::String)
                .map_err(|error| mismatch(error.to_string()))
        }
        AtomType::Uuid if object.is_instance_of::<PyString>() => Err(unexpected("uuid")),
        AtomType::Uuid => {
            let uuid = uuid_of(object);
            uuid.map(Atom::Uuid).map_err(|_| unexpected("uuid"))
        }
    }
}

fn mismatch(text: impl Into<String>) -> PyErr {
    Mismatch::new_err(format!("ovsdb error: {}", text.into()))
}
