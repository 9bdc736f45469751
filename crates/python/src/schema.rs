//! A schema, and the columns of its tables.

use corvid::data::{Arc, BaseType, ColumnSchema, ColumnType};
use corvid::json::Value;
use corvid::{Column as ColumnKey, TableId};
use pyo3::prelude::*;

use crate::error;

/// A database schema.
#[pyclass(frozen, module = "corvid")]
#[derive(Clone)]
pub(crate) struct Schema {
    pub(crate) schema: Arc<corvid::Schema>,
}

/// A column of a schema.
#[pyclass(frozen, module = "corvid", get_all)]
pub(crate) struct Column {
    /// Its name.
    name: String,
    /// In words: "set of up to 3 strings".
    r#type: String,
    is_map: bool,
    is_set: bool,
    is_optional: bool,
    is_mutable: bool,
    /// The table that its elements or keys refer to.
    key_table: Option<String>,
    /// The table that its values refer to.
    value_table: Option<String>,
}

#[pymethods]
impl Schema {
    #[new]
    fn new(py: Python<'_>, json: &str) -> PyResult<Schema> {
        let value = Value::parse(json.as_bytes())
            .map_err(|e| error::schema(py, format!("the schema is not JSON: {e}")))?;
        let schema = corvid::Schema::from_json(&value)
            .map_err(|e| error::schema(py, format!("invalid schema: {e}")))?;
        Ok(Schema {
            schema: Arc::new(schema),
        })
    }

    /// A schema without tables.
    #[staticmethod]
    fn empty(py: Python<'_>, name: &str) -> PyResult<Schema> {
        let mut json = Vec::from(br#"{"tables":{},"version":"0.0.0","name":"#);
        corvid::json::write::string(&mut json, name.as_bytes());
        json.push(b'}');
        Schema::new(py, &String::from_utf8_lossy(&json))
    }

    #[getter]
    fn name(&self) -> &str {
        self.schema.name.as_str()
    }

    #[getter]
    fn version(&self) -> &str {
        &self.schema.version
    }

    /// The names of the tables.
    fn tables(&self) -> Vec<&str> {
        let tables = self.schema.tables().iter();
        tables.map(|table| table.name.as_str()).collect()
    }

    /// The columns of a table.
    fn columns(&self, py: Python<'_>, table: &str) -> PyResult<Vec<Column>> {
        let id = self.table_id(py, table)?;
        let columns = self.schema.table(id).columns().iter();
        Ok(columns.map(Column::of).collect())
    }
}

impl Schema {
    pub(crate) fn table_id(&self, py: Python<'_>, name: &str) -> PyResult<TableId> {
        let id = self.schema.table_id(name);
        id.ok_or_else(|| {
            let database = &self.schema.name;
            error::schema(py, format!("database {database} has no table {name}"))
        })
    }

    pub(crate) fn column_key(
        &self,
        py: Python<'_>,
        table: TableId,
        name: &str,
    ) -> PyResult<ColumnKey> {
        self.find_column(table, name).ok_or_else(|| {
            let table = &self.schema.table(table).name;
            error::schema(py, format!("table {table} has no column {name}"))
        })
    }

    pub(crate) fn find_column(&self, table: TableId, name: &str) -> Option<ColumnKey> {
        let id = self.schema.table(table).column_id(name)?;
        (!id.is_standard()).then_some(ColumnKey { table, id })
    }

    pub(crate) fn table_name(&self, table: TableId) -> &str {
        self.schema.table(table).name.as_str()
    }

    pub(crate) fn column(&self, key: ColumnKey) -> &ColumnSchema {
        self.schema.table(key.table).column(key.id)
    }

    pub(crate) fn column_type(&self, key: ColumnKey) -> &ColumnType {
        &self.column(key).column_type
    }

    /// The names of a column's table and of the column.
    pub(crate) fn names(&self, key: ColumnKey) -> (&str, &str) {
        (self.table_name(key.table), self.column(key).name.as_str())
    }
}

impl Column {
    fn of(column: &ColumnSchema) -> Column {
        let column_type = &column.column_type;
        let target = |base: &BaseType| {
            let reference = base.reference.as_ref()?;
            Some(reference.table_name.to_string())
        };
        Column {
            name: column.name.to_string(),
            r#type: column_type.english(),
            is_map: column_type.is_map(),
            is_set: !column_type.is_map() && column_type.max > 1,
            is_optional: column_type.is_optional_scalar(),
            is_mutable: column.mutable,
            key_table: target(&column_type.key),
            value_table: column_type.value.as_ref().and_then(target),
        }
    }
}
