//! Maps one schema to another: the target of each table and column, and how its data are converted
//! (docs/spec/protocol.md 4.15).
//!
//! Derived from the two schemas alone; never changes. Tables and columns are matched by name. Only
//! [`crate::convert`] uses it. Rows are arguments of its functions.

use corvid_data::{
    Arc, BaseType, ColumnDiff, ColumnId, ColumnType, Datum, Row, Schema, TableId, TableSchema,
    WireError,
};

use crate::layout::Layout;

/// The tables and columns of one schema, matched with those of another.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    old: Arc<Schema>,
    new: Arc<Schema>,
    /// For each table of the new schema, in order: its source.
    tables: Box<[Option<TableMapping>]>,
    /// For each table of the old schema, in order: its target.
    targets: Box<[Option<TableId>]>,
    /// For each table of the new schema, in order: whether a column refers to it strongly in the
    /// new schema and did not in the old one.
    unguarded: Box<[bool]>,
}

/// The source of a table's rows.
#[derive(Clone, Debug)]
struct TableMapping {
    table: TableId,
    /// For each column of the new table, in order; `None` if the column is new.
    columns: Box<[Option<ColumnSource>]>,
}

/// The source of a column's values.
#[derive(Clone, Copy, Debug)]
struct ColumnSource {
    column: ColumnId,
    /// The types differ, so values must be converted.
    differs: bool,
}

impl Mapping {
    pub(crate) fn new(old: &Arc<Schema>, new: &Arc<Schema>) -> Mapping {
        let tables: Box<[Option<TableMapping>]> = new
            .tables()
            .iter()
            .map(|table| {
                let source = old.table_id(&table.name)?;
                Some(TableMapping {
                    table: source,
                    columns: column_sources(old.table(source), table),
                })
            })
            .collect();
        let targets = old
            .tables()
            .iter()
            .map(|table| new.table_id(&table.name))
            .collect();
        let mut mapping = Mapping {
            old: Arc::clone(old),
            new: Arc::clone(new),
            unguarded: vec![false; tables.len()].into(),
            tables,
            targets,
        };
        mapping.unguarded = mapping.find_unguarded();
        mapping
    }

    /// The table of the old schema with the rows of a new table.
    pub(crate) fn source_of(&self, table: TableId) -> Option<TableId> {
        self.of(table).map(|found| found.table)
    }

    /// The table of the new schema for the rows of an old table.
    pub(crate) fn target_of(&self, table: TableId) -> Option<TableId> {
        self.targets[usize::from(table.0)]
    }

    /// Whether the old schema allows clients to delete rows of this new table while a column names
    /// them that refers to them strongly in the new schema.
    pub(crate) fn is_unguarded(&self, table: TableId) -> bool {
        self.unguarded[usize::from(table.0)]
    }

    /// The columns of a row of the new `table`, converted from a row of its source. New columns
    /// have their defaults.
    ///
    /// # Errors
    /// The first datum that does not fit its new type.
    pub(crate) fn columns(
        &self,
        table: TableId,
        layout: &Layout,
        row: &Row,
    ) -> Result<Box<[Datum]>, WireError> {
        let mut columns = layout.defaults.clone();
        for (column, source) in self.sources(table) {
            columns[usize::from(column.0)] = self.read(table, column, source, row)?;
        }
        Ok(columns)
    }

    /// The columns of `row` that `diffs` names and that the new `table` has.
    ///
    /// # Errors
    /// The first datum that does not fit its new type.
    pub(crate) fn changed_columns(
        &self,
        table: TableId,
        row: &Row,
        diffs: &[ColumnDiff],
    ) -> Result<Vec<(ColumnId, Datum)>, WireError> {
        let is_changed = |source: ColumnSource| {
            diffs
                .binary_search_by_key(&source.column, |diff| diff.column)
                .is_ok()
        };
        self.sources(table)
            .filter(|(_, source)| is_changed(*source))
            .map(|(column, source)| Ok((column, self.read(table, column, source, row)?)))
            .collect()
    }

    fn of(&self, table: TableId) -> Option<&TableMapping> {
        self.tables[usize::from(table.0)].as_ref()
    }

    /// The columns of a new table that have a source.
    fn sources(&self, table: TableId) -> impl Iterator<Item = (ColumnId, ColumnSource)> + '_ {
        let columns = self.of(table).into_iter().flat_map(|found| &found.columns);
        (0u16..)
            .map(ColumnId)
            .zip(columns)
            .filter_map(|(column, source)| Some((column, (*source)?)))
    }

    fn read(
        &self,
        table: TableId,
        column: ColumnId,
        source: ColumnSource,
        row: &Row,
    ) -> Result<Datum, WireError> {
        let datum = &row.columns[usize::from(source.column.0)];
        if !source.differs {
            return Ok(datum.clone());
        }
        let Some(from) = self.source_of(table) else {
            return Ok(datum.clone());
        };
        let from = &self.old.table(from).column(source.column).column_type;
        datum.convert(from, &self.new.table(table).column(column).column_type)
    }

    fn find_unguarded(&self) -> Box<[bool]> {
        let mut unguarded = self.unguarded.clone();
        let layouts = Layout::of_schema(&self.new);
        for ((table, _), layout) in self.new.iter().zip(&layouts) {
            for reference in &layout.strong {
                // If the old column refers weakly or not at all, the old schema lets clients delete
                // the target while the column names it.
                let source = self.source_type(table, reference.column);
                let halves = [
                    (reference.key, source.map(|found| &found.key)),
                    (
                        reference.value,
                        source.and_then(|found| found.value.as_ref()),
                    ),
                ];
                for (target, before) in halves {
                    if let Some(target) = target
                        && !before.is_some_and(|before| self.guards(before, target))
                    {
                        unguarded[usize::from(target.0)] = true;
                    }
                }
            }
        }
        unguarded
    }

    /// The type, in the old schema, of the source of a new column.
    fn source_type(&self, table: TableId, column: ColumnId) -> Option<&ColumnType> {
        let found = self.of(table)?;
        let source = found.columns[usize::from(column.0)]?;
        Some(
            &self
                .old
                .table(found.table)
                .column(source.column)
                .column_type,
        )
    }

    /// Whether `base` of the old schema refers strongly to the table that is `target` in the new
    /// schema.
    fn guards(&self, base: &BaseType, target: TableId) -> bool {
        base.reference.as_ref().is_some_and(|reference| {
            reference.ref_type == corvid_data::RefType::Strong
                && self.target_of(reference.table) == Some(target)
        })
    }
}

fn column_sources(old: &TableSchema, new: &TableSchema) -> Box<[Option<ColumnSource>]> {
    new.columns()
        .iter()
        .map(|new_column| {
            let column = old.column_id(&new_column.name)?;
            let (from, to) = (&old.column(column).column_type, &new_column.column_type);
            Some(ColumnSource {
                column,
                differs: !holds_same_values(from, to),
            })
        })
        .collect()
}

/// Whether two types have the same values. The targets of references are not compared: only the
/// commit uses them, and tables may have other numbers in the new schema.
fn holds_same_values(from: &ColumnType, to: &ColumnType) -> bool {
    let same_base = |a: &BaseType, b: &BaseType| {
        a.atom == b.atom && a.enumeration == b.enumeration && a.bounds == b.bounds
    };
    let same_value = match (&from.value, &to.value) {
        (None, None) => true,
        (Some(a), Some(b)) => same_base(a, b),
        _ => false,
    };
    same_value && same_base(&from.key, &to.key) && from.min == to.min && from.max == to.max
}
