//! `show`: records as a tree along the references that keep rows alive.

use std::collections::BTreeSet;

use corvid_data::{
    AtomType, BaseType, ColumnId, ColumnType, Datum, RefType, TableId, TableSchema, Uuid, text,
};
use corvid_json::shown;

use super::{Context, Output};
use crate::contents::is_row;
use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::grammar::{names, record};

/// Limit on the depth of the tree.
const DEPTH_MAX: usize = 50;

pub(super) fn show(context: &mut Context<'_>, invocation: &Invocation) -> Result<Output, Failure> {
    let schema = context.contents.schema();
    let tops = match invocation.args.as_slice() {
        [] => schema
            .iter()
            .filter(|(_, table)| table.is_root)
            .map(|(id, _)| id)
            .collect(),
        [table, ..] => vec![names::table(schema, table)?],
    };
    let mut tree = Tree {
        context,
        out: String::new(),
        seen: BTreeSet::new(),
    };
    for table in tops {
        let mut rows = match invocation.args.get(1) {
            None => tree.all(table)?,
            Some(word) => record::get(&mut tree.context.contents, table, word, false)?
                .into_iter()
                .map(|row| (String::new(), row))
                .collect(),
        };
        rows.sort();
        for (_, row) in rows {
            tree.row(table, row, 0)?;
        }
    }
    Ok(Output::Text(tree.out))
}

/// The tree under construction.
struct Tree<'t, 'c> {
    context: &'t mut Context<'c>,
    out: String,
    /// The rows that are printed already; they appear again without their contents.
    seen: BTreeSet<(TableId, Uuid)>,
}

impl Tree<'_, '_> {
    /// All rows of a table with their names; their columns are read in one request.
    fn all(&mut self, table: TableId) -> Result<Vec<(String, Uuid)>, Failure> {
        let schema = self.context.contents.schema().table(table);
        let columns: Vec<ColumnId> = schema.iter().map(|(id, _)| id).collect();
        let rows = self.context.contents.rows(table, &[], &columns)?;
        rows.into_iter()
            .map(|row| Ok((self.name(table, row)?, row)))
            .collect()
    }

    /// Prints a row and, below it, its columns and the rows that it keeps alive.
    fn row(&mut self, table: TableId, row: Uuid, depth: usize) -> Result<(), Failure> {
        if depth > DEPTH_MAX {
            return Ok(());
        }
        let schema = self.context.contents.schema().table(table);
        let columns: Vec<ColumnId> = schema.iter().map(|(id, _)| id).collect();
        if !self.seen.contains(&(table, row)) {
            self.context
                .contents
                .rows(table, &[is_row(row)], &columns)?;
        }
        let name = self.name(table, row)?;
        self.line(depth, &format!("{} {name}", schema.name));
        if !self.seen.insert((table, row)) {
            return Ok(());
        }
        let mut children = Vec::new();
        for id in columns {
            let column = schema.column(id);
            let value = self.context.contents.read(table, row, id)?;
            if value.is_default(&column.column_type) || &*column.name == "name" {
                continue;
            }
            let owned = owned(&column.column_type, &value);
            if owned.is_empty() {
                let shown = self.value(&column.column_type, &value)?;
                self.line(depth + 1, &format!("{}: {shown}", column.name));
            }
            children.extend(owned);
        }
        let mut named = Vec::new();
        for (table, row) in children {
            named.push((table, self.name(table, row)?, row));
        }
        named.sort();
        for (table, _, row) in named {
            self.row(table, row, depth + 1)?;
        }
        Ok(())
    }

    /// A value in one line; rows that it refers to by their names.
    fn value(&mut self, column_type: &ColumnType, value: &Datum) -> Result<String, Failure> {
        let Some(reference) = &column_type.key.reference else {
            let mut shown = String::new();
            text::write_datum(&mut shown, value, column_type);
            return Ok(shown);
        };
        let rows = value.keys().filter_map(corvid_data::AtomRef::as_uuid);
        let names = rows.map(|row| self.name(reference.table, row));
        Ok(names.collect::<Result<Vec<_>, _>>()?.join(", "))
    }

    /// The name of a row: its column `name`, else the beginning of its UUID.
    fn name(&mut self, table: TableId, row: Uuid) -> Result<String, Failure> {
        let schema = self.context.contents.schema().table(table);
        let named = match name_column(schema) {
            Some(column) => self.context.contents.read(table, row, column)?,
            None => Datum::empty(),
        };
        Ok(label(&named, row))
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.out.push_str(&"    ".repeat(depth));
        // A newline in a value must not look like another line of the tree.
        self.out.push_str(&shown::line(text));
        self.out.push('\n');
    }
}

/// The column that names the rows of a table for people.
pub(super) fn name_column(table: &TableSchema) -> Option<ColumnId> {
    let id = table.column_id("name")?;
    let column_type = &table.column(id).column_type;
    (column_type.key.atom == AtomType::String && !column_type.is_map()).then_some(id)
}

/// A row as people name it.
pub(super) fn label(name: &Datum, row: Uuid) -> String {
    match name.as_string() {
        Some(name) if !name.is_empty() => name.to_string(),
        _ => String::from_utf8_lossy(&row.to_text()[..8]).into_owned(),
    }
}

/// The rows that a value keeps alive.
fn owned(column_type: &ColumnType, value: &Datum) -> Vec<(TableId, Uuid)> {
    let target = |base: &BaseType| {
        let reference = base.reference.as_ref()?;
        (reference.ref_type == RefType::Strong).then_some(reference.table)
    };
    if let Some(table) = target(&column_type.key) {
        let rows = value.keys().filter_map(corvid_data::AtomRef::as_uuid);
        return rows.map(|row| (table, row)).collect();
    }
    match column_type.value.as_ref().and_then(target) {
        None => Vec::new(),
        Some(table) => {
            let rows = value.values().filter_map(corvid_data::AtomRef::as_uuid);
            rows.map(|row| (table, row)).collect()
        }
    }
}
