//! Schemas from JSON and back: every error of docs/spec/protocol.md 3.5, and the canonical form of
//! 3.4.
//!
//! Parsing goes top down. The rules that need all tables are applied at the end: the root set, the
//! targets of references, the silent adjustments of docs/spec/protocol.md 3.3. Of several errors,
//! the first in name order is reported.

use corvid_json::{Object, Value};

use crate::members::{Kinds, Members, Subject, is_id};
use crate::schema::{ColumnId, ColumnSchema, Schema, TableSchema};
use crate::{ColumnType, RefType, Str, Tag, WireError};

/// Limit on the tables of a schema and on the columns of a table: ids are 16 bits wide, and the
/// highest ones are the standard columns.
const NAMES_MAX: usize = 65_000;

impl Schema {
    /// Parses and validates a database schema.
    ///
    /// # Errors
    /// Those of docs/spec/protocol.md 3.5.
    pub fn from_json(json: &Value) -> Result<Schema, WireError> {
        let mut members = Members::parse(Subject::DatabaseSchema, json)?;
        let name = members.required("name", Kinds::ID)?;
        let version = members.optional("version", Kinds::STRING)?;
        let cksum = members.optional("cksum", Kinds::STRING)?;
        let tables_json = members.required("tables", Kinds::OBJECT)?;
        members.finish()?;
        let version = match version {
            Some(version) => {
                let version = text_of(version);
                if !is_version(version.as_bytes()) {
                    return Err(WireError::syntax_value(
                        json,
                        format!("schema version \"{version}\" not in format x.y.z"),
                    ));
                }
                version
            }
            None => String::new(),
        };
        let mut tables = Vec::new();
        for (table, table_json) in named_members(json, tables_json)? {
            tables.push(TableSchema::from_json(table, table_json)?);
        }
        apply_root_rule(&mut tables);
        let mut schema = Schema::from_parts(
            Str::new(&text_of(name)),
            version,
            cksum.map(text_of).unwrap_or_default(),
            tables,
        );
        schema.resolve_references()?;
        Ok(schema)
    }

    /// Parses a schema, as [`Schema::from_json`] does, from a file: errors begin with the file's
    /// name.
    ///
    /// # Errors
    /// Those of [`Schema::from_json`], with details `failed to parse "FILE" as ovsdb schema: ...`.
    pub fn from_json_of(file: &str, json: &Value) -> Result<Schema, WireError> {
        Schema::from_json(json).map_err(|mut error| {
            let reason = &error.details;
            error.details = format!("failed to parse \"{file}\" as ovsdb schema: {reason}");
            error
        })
    }

    /// The canonical form, as `get_schema`, `_Server` and the database file show it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let default_is_root = self.tables().iter().all(|table| table.is_root);
        let tables = self
            .tables()
            .iter()
            .map(|table| {
                let json = table.to_json(default_is_root);
                (table.name.as_str().into(), json)
            })
            .collect();
        let mut object = Object::new();
        object.insert("name".into(), Value::string(self.name.as_str()));
        if !self.version.is_empty() {
            object.insert("version".into(), Value::string(&self.version));
        }
        if !self.cksum.is_empty() {
            object.insert("cksum".into(), Value::string(&self.cksum));
        }
        object.insert("tables".into(), Value::Object(tables));
        Value::Object(object)
    }

    /// Whether both have the same canonical form, including name, version and cksum
    /// (docs/spec/protocol.md 3.4).
    #[must_use]
    pub fn same_as(&self, other: &Schema) -> bool {
        self.to_json() == other.to_json()
    }

    /// Checks that no column is ephemeral, as clustered databases require (docs/spec/protocol.md
    /// 3.3).
    ///
    /// # Errors
    /// `Table T column C is ephemeral but clustered databases do not support ephemeral columns.`
    pub fn check_clustered(&self) -> Result<(), WireError> {
        for table in self.tables() {
            if let Some(column) = table.columns().iter().find(|column| !column.persistent) {
                return Err(WireError::new(
                    Tag::SyntaxError,
                    format!(
                        "Table {} column {} is ephemeral but clustered databases do not support ephemeral columns.",
                        table.name, column.name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Makes every ephemeral column persistent, as clustered databases require. Returns the tables
    /// and columns that were changed.
    pub fn make_clustered(&mut self) -> Vec<(Str, Str)> {
        let (tables, _) = self.parts_mut();
        let mut changed = Vec::new();
        for table in tables {
            let name = table.name.clone();
            for column in table.columns_mut().iter_mut() {
                if !std::mem::replace(&mut column.persistent, true) {
                    changed.push((name.clone(), column.name.clone()));
                }
            }
        }
        changed
    }

    /// Finds the tables of all references, then adjusts columns (docs/spec/protocol.md 3.3).
    /// Columns with weak references become mutable. Columns with strong references to a table that
    /// is not a root become persistent.
    fn resolve_references(&mut self) -> Result<(), WireError> {
        let (tables, by_name) = self.parts_mut();
        let roots: Vec<bool> = tables.iter().map(|table| table.is_root).collect();
        for column in tables.iter_mut().flat_map(TableSchema::columns_mut) {
            let ColumnSchema {
                name,
                column_type,
                mutable,
                persistent,
            } = column;
            let bases = [
                (Some(&mut column_type.key), "key"),
                (column_type.value.as_mut(), "value"),
            ];
            for (base, part) in bases {
                let Some(reference) = base.and_then(|base| base.reference.as_mut()) else {
                    continue;
                };
                let Some(&target) = by_name.get(reference.table_name.as_bytes()) else {
                    return Err(WireError::new(
                        Tag::SyntaxError,
                        format!(
                            "column {name} {part} refers to undefined table {}",
                            reference.table_name
                        ),
                    ));
                };
                reference.table = target;
                match reference.ref_type {
                    RefType::Weak => *mutable = true,
                    RefType::Strong => *persistent |= !roots[usize::from(target.0)],
                }
            }
        }
        Ok(())
    }
}

impl TableSchema {
    fn from_json(name: &str, json: &Value) -> Result<TableSchema, WireError> {
        let mut members = Members::parse(Subject::TableSchema(name), json)?;
        let columns_json = members.required("columns", Kinds::OBJECT)?;
        let mutable = members.optional("mutable", Kinds::BOOLEAN)?;
        let max_rows = members.optional("maxRows", Kinds::INTEGER)?;
        let is_root = members.optional("isRoot", Kinds::BOOLEAN)?;
        let indexes = members.optional("indexes", Kinds::ARRAY)?;
        members.finish()?;
        let max_rows = match max_rows.and_then(Value::as_integer) {
            Some(..=0) => {
                return Err(WireError::syntax_value(json, "maxRows must be at least 1"));
            }
            Some(rows) => u32::try_from(rows).unwrap_or(u32::MAX),
            None => u32::MAX,
        };
        if columns_json.as_object().is_none_or(Object::is_empty) {
            return Err(WireError::syntax_value(
                json,
                "table must have at least one column",
            ));
        }
        let mut columns = Vec::new();
        for (column, column_json) in named_members(json, columns_json)? {
            columns.push(ColumnSchema::from_json(column, column_json)?);
        }
        let mut table = TableSchema::new(Str::new(name), columns);
        table.mutable = mutable.and_then(Value::as_bool).unwrap_or(true);
        table.is_root = is_root.and_then(Value::as_bool).unwrap_or(false);
        table.max_rows = max_rows;
        for index in indexes.and_then(Value::as_array).unwrap_or_default() {
            let columns = table.index_columns(index)?;
            table.check_index(&columns, json)?;
            table.indexes.push(columns);
        }
        Ok(table)
    }

    /// Parses a list of distinct column names.
    fn index_columns(&self, json: &Value) -> Result<Vec<ColumnId>, WireError> {
        let malformed = || WireError::syntax_value(json, "array of distinct column names expected");
        let mut columns = Vec::new();
        for name in json.as_array().ok_or_else(malformed)? {
            let Value::String(name) = name else {
                return Err(malformed());
            };
            let shown = String::from_utf8_lossy(name);
            let column = self.column_id(&shown).ok_or_else(|| {
                WireError::syntax_value(json, format!("{shown} is not a valid column name"))
            })?;
            if columns.contains(&column) {
                return Err(malformed());
            }
            columns.push(column);
        }
        Ok(columns)
    }

    fn check_index(&self, columns: &[ColumnId], table_json: &Value) -> Result<(), WireError> {
        if columns.is_empty() {
            return Err(WireError::syntax_value(
                table_json,
                "index must have at least one column",
            ));
        }
        for &id in columns {
            let column = self.column(id);
            if id != ColumnId::UUID && !column.persistent {
                return Err(WireError::syntax_value(
                    table_json,
                    format!(
                        "ephemeral columns (such as {}) may not be indexed",
                        column.name
                    ),
                ));
            }
        }
        Ok(())
    }

    fn to_json(&self, default_is_root: bool) -> Value {
        let mut object = Object::new();
        if !self.mutable {
            object.insert("mutable".into(), Value::Bool(false));
        }
        if self.is_root != default_is_root {
            object.insert("isRoot".into(), Value::Bool(self.is_root));
        }
        let columns = self
            .columns()
            .iter()
            .map(|column| (column.name.as_str().into(), column.to_json()))
            .collect();
        object.insert("columns".into(), Value::Object(columns));
        if self.max_rows != u32::MAX {
            object.insert("maxRows".into(), Value::Integer(self.max_rows.into()));
        }
        if !self.indexes.is_empty() {
            let index = |columns: &Vec<ColumnId>| {
                let name = |&id: &ColumnId| Value::string(self.column(id).name.as_str());
                Value::Array(columns.iter().map(name).collect())
            };
            let indexes = self.indexes.iter().map(index).collect();
            object.insert("indexes".into(), Value::Array(indexes));
        }
        Value::Object(object)
    }
}

impl ColumnSchema {
    fn from_json(name: &str, json: &Value) -> Result<ColumnSchema, WireError> {
        let mut members = Members::parse(Subject::Column(name), json)?;
        let mutable = members.optional("mutable", Kinds::BOOLEAN)?;
        let ephemeral = members.optional("ephemeral", Kinds::BOOLEAN)?;
        let column_type = members.required("type", Kinds::STRING.or(Kinds::OBJECT))?;
        members.finish()?;
        Ok(ColumnSchema {
            name: Str::new(name),
            column_type: ColumnType::from_json(column_type)?,
            mutable: mutable.and_then(Value::as_bool).unwrap_or(true),
            persistent: !ephemeral.and_then(Value::as_bool).unwrap_or(false),
        })
    }

    /// The canonical form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        if !self.mutable {
            object.insert("mutable".into(), Value::Bool(false));
        }
        if !self.persistent {
            object.insert("ephemeral".into(), Value::Bool(true));
        }
        object.insert("type".into(), self.column_type.to_json());
        Value::Object(object)
    }
}

/// If no table of a schema is a root, all are (docs/spec/protocol.md 3.2).
fn apply_root_rule(tables: &mut [TableSchema]) {
    if tables.iter().any(|table| table.is_root) {
        return;
    }
    for table in tables {
        table.is_root = true;
    }
}

/// The members of `json`, which are tables or columns of `whole`, with their checked names.
fn named_members<'a>(
    whole: &Value,
    json: &'a Value,
) -> Result<Vec<(&'a str, &'a Value)>, WireError> {
    let mut named = Vec::new();
    for (name, value) in json.as_object().into_iter().flatten() {
        if name.starts_with(b"_") {
            return Err(WireError::syntax_value(
                whole,
                "names beginning with \"_\" are reserved",
            ));
        }
        match std::str::from_utf8(name) {
            Ok(name) if is_id(name.as_bytes()) => named.push((name, value)),
            _ => return Err(WireError::syntax_value(whole, "name must be a valid id")),
        }
    }
    if named.len() > NAMES_MAX {
        return Err(WireError::new(
            Tag::SyntaxError,
            format!("more than {NAMES_MAX} tables or columns"),
        ));
    }
    Ok(named)
}

fn text_of(json: &Value) -> String {
    match json {
        Value::String(text) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}

/// Whether `version` is `x.y.z`. Blanks and a sign before each number are allowed, as in the
/// reference (docs/spec/protocol.md 3.1).
fn is_version(version: &[u8]) -> bool {
    let mut rest = version;
    for part in 0..3 {
        if part > 0 {
            match rest.strip_prefix(b".") {
                Some(after) => rest = after,
                None => return false,
            }
        }
        while let [b' ' | b'\t'..=b'\r', after @ ..] = rest {
            rest = after;
        }
        if let [b'+' | b'-', after @ ..] = rest {
            rest = after;
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return false;
        }
        rest = &rest[digits..];
    }
    rest.is_empty()
}
