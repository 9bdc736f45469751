//! The class of a table's rows, with a descriptor for each column.
//!
//! Without descriptors Python looks for an attribute, makes an exception when it finds none, and
//! only then calls `__getattr__`, which costs several times what the read of the column costs.

use corvid::data::Arc;
use corvid::{Column, TableId};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::ovs::row::LiveRow;
use crate::row::Row;
use crate::schema::Schema;

/// A column as an attribute of the rows of a table. A class of the program's own may serve several
/// tables and schemas, so the name decides; the column is remembered for those that came first.
#[pyclass(frozen, module = "corvid._native")]
pub(crate) struct ColumnAttribute {
    name: String,
    schema: Arc<corvid::Schema>,
    column: Column,
}

impl ColumnAttribute {
    /// The column of this name in the table of a row.
    fn column_of(&self, row: &Row) -> PyResult<Column> {
        let schema = &row.client.get().schema;
        if Arc::ptr_eq(&self.schema, &schema.schema) && self.column.table == row.id.table {
            return Ok(self.column);
        }
        let found = schema.find_column(row.id.table, &self.name);
        found.ok_or_else(|| {
            let text = format!("the table has no column {}", self.name);
            PyAttributeError::new_err(text)
        })
    }
}

#[pymethods]
impl ColumnAttribute {
    fn __get__(
        slf: &Bound<'_, Self>,
        row: Option<&Bound<'_, PyAny>>,
        _class: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let Some(row) = row else {
            // Of the class.
            return Ok(slf.clone().into_any().unbind());
        };
        let this = slf.get();
        // First: most rows of programs that read a lot are such ones, and a cast costs a walk
        // over the classes.
        if let Ok(row) = row.cast::<LiveRow>() {
            let column = this.column_of(row.as_super().get())?;
            return LiveRow::read_column(row, column, &this.name);
        }
        let of_row = row.cast::<Row>()?.get();
        of_row.read(row.py(), this.column_of(of_row)?)
    }

    fn __set__(&self, row: &Bound<'_, PyAny>, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let of_row = row.cast::<Row>()?.get();
        let column = self.column_of(of_row)?;
        match row.cast::<LiveRow>() {
            Ok(row) => LiveRow::write_column(row, column, &self.name, object),
            Err(_) => of_row.write(column, object),
        }
    }

    fn __delete__(&self, _row: &Bound<'_, PyAny>) -> PyResult<()> {
        let text = format!("column {} cannot be deleted", self.name);
        Err(PyAttributeError::new_err(text))
    }

    fn __repr__(&self) -> String {
        format!("<column {}>", self.name)
    }
}

/// Whether an attribute of two classes is one, or neither has it.
fn is_same(class: &Bound<'_, PyType>, other: &Bound<'_, PyType>, name: &str) -> PyResult<bool> {
    Ok(match (class.getattr_opt(name)?, other.getattr_opt(name)?) {
        (Some(one), Some(other)) => one.is(&other),
        (None, None) => true,
        _ => false,
    })
}

/// Attributes for the columns of a table that a class has none for.
fn missing_attributes(
    class: &Bound<'_, PyType>,
    schema: &Schema,
    table: TableId,
) -> PyResult<Vec<ColumnAttribute>> {
    let mut missing = Vec::new();
    for (id, column) in schema.schema.table(table).iter() {
        let name = column.name.as_str();
        if !id.is_standard() && !name.starts_with("__") && !class.hasattr(name)? {
            missing.push(ColumnAttribute {
                name: name.to_owned(),
                schema: Arc::clone(&schema.schema),
                column: Column { table, id },
            });
        }
    }
    Ok(missing)
}

/// The class of a table's rows.
pub(crate) struct RowClass {
    class: Py<PyType>,
    /// Whether an object is made without arguments, which come by [`Row::pass`].
    is_plain: bool,
}

impl RowClass {
    /// A class of the library, derived of `base`, with an attribute for each column of the table
    /// for which `base` has none.
    pub(crate) fn derive(
        base: &Bound<'_, PyType>,
        schema: &Schema,
        table: TableId,
    ) -> PyResult<RowClass> {
        let py = base.py();
        let members = PyDict::new(py);
        for name in ["__doc__", "__module__", "__qualname__"] {
            members.set_item(name, base.getattr(name)?)?;
        }
        members.set_item("__slots__", PyTuple::empty(py))?;
        for attribute in missing_attributes(base, schema, table)? {
            members.set_item(attribute.name.clone(), Py::new(py, attribute)?)?;
        }
        let class = base.get_type().call1((base.name()?, (base,), members))?;
        RowClass::of(class.cast_into::<PyType>()?)
    }

    /// A class of the program. It stays the class of its rows, and gets an attribute for each
    /// column of the table for which it has none. A class that takes none works all the same.
    pub(crate) fn extend(
        class: &Bound<'_, PyType>,
        schema: &Schema,
        table: TableId,
    ) -> PyResult<RowClass> {
        for attribute in missing_attributes(class, schema, table)? {
            let name = attribute.name.clone();
            if class
                .setattr(name, Py::new(class.py(), attribute)?)
                .is_err()
            {
                break;
            }
        }
        RowClass::of(class.clone())
    }

    fn of(class: Bound<'_, PyType>) -> PyResult<RowClass> {
        let py = class.py();
        let metaclass = class.get_type();
        let is_called_as_usual = is_same(&metaclass, &py.get_type::<PyType>(), "__call__")?;
        let of_row = py.get_type::<Row>();
        let is_made_as_usual =
            is_same(&class, &of_row, "__new__")? && is_same(&class, &of_row, "__init__")?;
        Ok(RowClass {
            is_plain: is_called_as_usual && is_made_as_usual,
            class: class.unbind(),
        })
    }

    /// The class itself.
    pub(crate) fn class<'py>(&self, py: Python<'py>) -> Bound<'py, PyType> {
        self.class.bind(py).clone()
    }

    /// Whether a call without arguments makes a row from what [`Row::pass`] has stored.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> RowClass {
        RowClass {
            class: self.class.clone_ref(py),
            is_plain: self.is_plain,
        }
    }

    /// For the collector of Python.
    pub(crate) fn as_py(&self) -> &Py<PyType> {
        &self.class
    }
}
