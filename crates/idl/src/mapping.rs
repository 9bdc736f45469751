//! Maps the columns of a server's schema to positions in the replica's rows, which follow the
//! client's schema (docs/spec/idl.md 1.8, 1.12).
//!
//! The replica keeps data in the server's form. A set stays a set even if the client's schema says
//! scalar, because the server's differences apply to that form. Columns whose atoms have another
//! type than in the client's schema are left out, because the client could not interpret them.

use std::collections::BTreeSet;

use corvid_data::{Arc, BaseType, ColumnId, ColumnType, Datum, TableId};
use corvid_session::{Columns, Plan};

use crate::class::Class;
use crate::replica::Layout;

/// The position of a column.
#[derive(Debug)]
pub(crate) struct MappedColumn {
    /// The column's position in the replica's rows.
    pub(crate) place: usize,
    /// The column's id in the client's schema.
    pub(crate) id: ColumnId,
    /// The server's type, without limits: the values that the server sends have passed its limits.
    pub(crate) wire_type: ColumnType,
}

/// The positions of a table's columns.
#[derive(Debug)]
pub(crate) struct MappedTable {
    pub(crate) table: TableId,
    /// Indexed by the server's [`ColumnId`].
    columns: Vec<Option<MappedColumn>>,
    /// A row with all columns at their defaults.
    pub(crate) defaults: Box<[Datum]>,
    /// Columns that have a position in rows but that the server lacks.
    missing: Vec<(ColumnId, usize)>,
}

/// A value for a column of a row.
#[derive(Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) place: usize,
    /// The column's id in the client's schema.
    pub(crate) id: ColumnId,
    /// `None` for a column that the server lacks.
    pub(crate) wire_type: Option<&'a ColumnType>,
    pub(crate) value: Datum,
}

impl MappedTable {
    pub(crate) fn column(&self, server: ColumnId) -> Option<&MappedColumn> {
        self.columns.get(usize::from(server.0))?.as_ref()
    }

    /// The columns that the server sent of a row, with their positions in the replica.
    pub(crate) fn cells(&self, columns: Columns) -> Vec<Cell<'_>> {
        let cell = |(server, value)| {
            let column = self.column(server)?;
            Some(Cell {
                place: column.place,
                id: column.id,
                wire_type: Some(&column.wire_type),
                value,
            })
        };
        columns.into_iter().filter_map(cell).collect()
    }

    /// The cells of a whole row: the columns that the server sent, and the defaults of the others.
    pub(crate) fn all_cells(&self, columns: Columns) -> Vec<Cell<'_>> {
        let mut cells = self.cells(columns);
        let is_sent: BTreeSet<ColumnId> = cells.iter().map(|cell| cell.id).collect();
        let default = |place: usize, id, wire_type| Cell {
            place,
            id,
            wire_type,
            value: self.defaults[place].clone(),
        };
        let unsent = self.columns.iter().flatten();
        let unsent = unsent.filter(|column| !is_sent.contains(&column.id));
        cells
            .extend(unsent.map(|column| default(column.place, column.id, Some(&column.wire_type))));
        let missing = self.missing.iter();
        cells.extend(missing.map(|&(id, place)| default(place, id, None)));
        cells
    }
}

/// The positions of everything in one plan.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) plan: Arc<Plan>,
    /// Indexed by the server's [`TableId`].
    tables: Vec<Option<MappedTable>>,
}

impl Mapping {
    /// Columns that are left out are named in `complaints`.
    pub(crate) fn new(
        plan: Arc<Plan>,
        class: &Class,
        layouts: &[Layout],
        complaints: &mut Vec<String>,
    ) -> Mapping {
        let mut tables = Vec::new();
        for (server_id, server) in plan.schema().iter() {
            let id = class.schema.table_id(&server.name);
            let (Some(id), Some(monitored)) = (id, plan.columns(server_id)) else {
                tables.push(None);
                continue;
            };
            let (table, layout) = (class.schema.table(id), &layouts[usize::from(id.0)]);
            let mut mapped = MappedTable {
                table: id,
                columns: Vec::new(),
                defaults: layout.defaults.clone(),
                missing: Vec::new(),
            };
            mapped.columns.resize_with(server.columns().len(), || None);
            for &server_column in monitored {
                let column = server.column(server_column);
                let own = table.column_id(&column.name).filter(|id| !id.is_standard());
                let place = own.and_then(|own| Some((own, layout.place(own)?)));
                // The client's schema lacks the column, or no row stores it.
                let Some((own, place)) = place else { continue };
                if !is_readable(&column.column_type, &table.column(own).column_type) {
                    complaints.push(format!(
                        "column {} of table {} has another type in the database; it is left out",
                        column.name, table.name
                    ));
                    continue;
                }
                // The server leaves out columns that have its own default, which may differ from
                // the client's.
                mapped.defaults[place] = Datum::default_for(&column.column_type);
                mapped.columns[usize::from(server_column.0)] = Some(MappedColumn {
                    place,
                    id: own,
                    wire_type: without_limits(&column.column_type),
                });
            }
            let modes = &class.tables[usize::from(id.0)].modes;
            let known: BTreeSet<ColumnId> = mapped
                .columns
                .iter()
                .flatten()
                .map(|column| column.id)
                .collect();
            for (own, mode) in (0u16..).map(ColumnId).zip(modes) {
                let place = layout.place(own).filter(|_| mode.is_monitored);
                if let Some(place) = place.filter(|_| !known.contains(&own)) {
                    mapped.missing.push((own, place));
                }
            }
            tables.push(Some(mapped));
        }
        Mapping { plan, tables }
    }

    pub(crate) fn table(&self, server: TableId) -> Option<&MappedTable> {
        self.tables.get(usize::from(server.0))?.as_ref()
    }
}

fn is_readable(server: &ColumnType, own: &ColumnType) -> bool {
    let atom = |base: &Option<BaseType>| base.as_ref().map(|base| base.atom);
    server.key.atom == own.key.atom && atom(&server.value) == atom(&own.value)
}

fn without_limits(column_type: &ColumnType) -> ColumnType {
    ColumnType {
        min: 0,
        max: if column_type.is_composite() {
            ColumnType::UNLIMITED
        } else {
            1
        },
        ..column_type.clone()
    }
}
