//! The replica: the rows of all tables as the server last sent them, and their changes
//! (docs/spec/idl.md 1.9 to 1.11, 5).
//!
//! Invariants. An update is checked as a whole before any of it is applied, so the rows always show
//! one moment of the server. While no transaction is open, they are exactly what the server sent.
//! An open transaction changes them in place and restores them at its end ([`crate::txn`]). Change
//! numbers never decrease, and no recorded one is above [`Replica::seqno`].

use std::collections::BTreeSet;

use corvid_data::{Arc, ColumnId, Datum, TableId, Uuid};
use corvid_session::{Plan, RowChange, TableUpdates, Update};

use crate::class::{Class, Mode};
use crate::index::{Index, IndexId, IndexSpec};
use crate::mapping::{Cell, MappedTable, Mapping};
use crate::references::{ReferenceColumn, Referrers};
use crate::row::Row;
use crate::table::Table;
use crate::track::{Kind, TrackList};

/// How rows are replaced when the server sends all of them again, as a server without history does
/// after each reconnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resync {
    /// The new rows are compared with the old ones, and only the differences are reported.
    #[default]
    Difference,
    /// The old rows and the tracked changes are dropped silently, and every new row counts as
    /// inserted. The reference's libraries do this.
    Reload,
}

/// The positions of a table's columns in its rows.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Indexed by [`ColumnId`]; `None` for columns that have no position.
    places: Vec<Option<usize>>,
    pub(crate) defaults: Box<[Datum]>,
    pub(crate) references: Vec<ReferenceColumn>,
}

impl Layout {
    fn new(class: &Class, id: TableId) -> Layout {
        let (table, modes) = (
            class.schema.table(id),
            &class.tables[usize::from(id.0)].modes,
        );
        let mut layout = Layout {
            places: Vec::new(),
            defaults: Box::default(),
            references: Vec::new(),
        };
        let mut defaults = Vec::new();
        for (column, mode) in table.columns().iter().zip(modes) {
            if !mode.is_stored() {
                layout.places.push(None);
                continue;
            }
            let place = defaults.len();
            defaults.push(Datum::default_for(&column.column_type));
            let reference = ReferenceColumn::new(place, &column.column_type);
            layout.references.extend(reference);
            layout.places.push(Some(place));
        }
        layout.defaults = defaults.into();
        layout
    }

    /// An empty index of this table.
    fn index(&self, spec: &IndexSpec) -> Index {
        let places = spec.columns.iter();
        let places = places.filter_map(|column| self.place(column.column.id));
        Index::new(spec.clone(), places.collect())
    }

    pub(crate) fn place(&self, column: ColumnId) -> Option<usize> {
        self.places.get(usize::from(column.0)).copied().flatten()
    }
}

/// The state of a table apart from its rows.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) track: TrackList,
    /// Changes are not tracked for now, although the class tracks columns of the table.
    pub(crate) is_paused: bool,
    /// The changes of the current update, if the table has handlers.
    pub(crate) latest: Option<TrackList>,
    /// The change numbers of the last insertion, modification and deletion.
    pub(crate) seqnos: [u64; 3],
    /// Cells whose values were fetched.
    pub(crate) fetched: BTreeSet<(Uuid, ColumnId)>,
}

/// The replica.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) class: Class,
    pub(crate) layouts: Vec<Layout>,
    pub(crate) tables: Vec<Table>,
    pub(crate) watches: Vec<Watch>,
    /// `None` if no changes are tracked.
    referrers: Option<Referrers>,
    mapping: Option<Mapping>,
    resync: Resync,
    /// Increments with every visible change.
    pub(crate) seqno: u64,
    /// Increments whenever rows are dropped silently.
    pub(crate) epoch: u64,
    /// Rows inserted, changed and deleted so far, by [`Kind`].
    pub(crate) changes: [u64; 3],
}

impl Replica {
    pub(crate) fn new(class: Class, resync: Resync) -> Replica {
        let ids = (0u16..).map(TableId).take(class.tables.len());
        let layouts: Vec<Layout> = ids.map(|id| Layout::new(&class, id)).collect();
        let table = |(class, layout): (&crate::class::TableClass, &Layout)| {
            let mut table = Table::default();
            for spec in &class.indexes {
                table.add_index(layout.index(spec));
            }
            table
        };
        let tables = class.tables.iter().zip(&layouts).map(table).collect();
        let tracks = class.tables.iter().any(crate::class::TableClass::tracks);
        Replica {
            watches: layouts.iter().map(|_| Watch::default()).collect(),
            layouts,
            tables,
            referrers: tracks.then(Referrers::default),
            class,
            mapping: None,
            resync,
            seqno: 0,
            epoch: 0,
            changes: [0; 3],
        }
    }

    pub(crate) fn set_resync(&mut self, resync: Resync) {
        self.resync = resync;
    }

    /// Builds an index that the class has accepted, over the existing rows.
    pub(crate) fn add_index(&mut self, id: IndexId) {
        let number = usize::from(id.table.0);
        let spec = self.class.tables[number]
            .indexes
            .get(usize::from(id.number));
        if let Some(spec) = spec {
            let index = self.layouts[number].index(spec);
            self.tables[number].add_index(index);
        }
    }

    pub(crate) fn table(&self, id: TableId) -> &Table {
        &self.tables[usize::from(id.0)]
    }

    pub(crate) fn table_mut(&mut self, id: TableId) -> &mut Table {
        &mut self.tables[usize::from(id.0)]
    }

    pub(crate) fn layout(&self, id: TableId) -> &Layout {
        &self.layouts[usize::from(id.0)]
    }

    pub(crate) fn mode(&self, table: TableId, column: ColumnId) -> Mode {
        self.class.tables[usize::from(table.0)].modes[usize::from(column.0)]
    }

    fn tracks(&self, table: TableId) -> bool {
        let number = usize::from(table.0);
        self.class.tables[number].tracks() && !self.watches[number].is_paused
    }

    /// The arcs, if changes are tracked.
    pub(crate) fn referrers(&self) -> Option<&Referrers> {
        self.referrers.as_ref()
    }

    /// The plan of the server that sent the last update.
    pub(crate) fn plan(&self) -> Option<&Arc<Plan>> {
        self.mapping.as_ref().map(|mapping| &mapping.plan)
    }

    /// Applies an update from the session. On error nothing has changed, and the contents must be
    /// fetched anew.
    pub(crate) fn apply(
        &mut self,
        update: Update,
        complaints: &mut Vec<String>,
    ) -> Result<(), String> {
        let is_known = self
            .plan()
            .is_some_and(|known| Arc::ptr_eq(known, &update.plan));
        let mapping = match self.mapping.take().filter(|_| is_known) {
            Some(mapping) => mapping,
            None => Mapping::new(update.plan.clone(), &self.class, &self.layouts, complaints),
        };
        let is_fresh = update.clear && self.resync == Resync::Reload;
        // All checks come before the first change: a rejected update leaves the rows of one moment.
        // New contents need no check, because they do not depend on the rows.
        let checked = if update.clear {
            Ok(())
        } else {
            self.check(&update.updates, &mapping)
        };
        if checked.is_ok() {
            if is_fresh {
                self.clear();
            }
            let mut changed = Vec::new();
            if update.clear {
                self.replace(update.updates, &mapping, &mut changed);
            } else {
                self.follow(update.updates, &mapping, &mut changed);
            }
            // Incremented for every monitor reply, even if no row differs: programs wait for the
            // initial contents through this number.
            self.seqno += u64::from(update.is_reply);
            // Comes last, when the arcs of all rows are up to date.
            self.mark_referrers(changed);
        }
        self.mapping = Some(mapping);
        checked
    }

    /// Checks that each row to insert is missing and each row to change or delete exists.
    fn check(&self, updates: &TableUpdates, mapping: &Mapping) -> Result<(), String> {
        for update in &updates.tables {
            let Some(mapped) = mapping.table(update.table) else {
                continue;
            };
            let table = self.table(mapped.table);
            for row in &update.rows {
                let is_insert = matches!(row.change, RowChange::Insert(_));
                if table.contains(row.uuid) == is_insert {
                    let name = &self.class.schema.table(mapped.table).name;
                    let problem = if is_insert {
                        "inserted twice"
                    } else {
                        "missing"
                    };
                    return Err(format!("row {} of table {name} is {problem}", row.uuid));
                }
            }
        }
        Ok(())
    }

    /// Applies checked changes.
    fn follow(&mut self, updates: TableUpdates, mapping: &Mapping, changed: &mut Vec<Uuid>) {
        for update in updates.tables {
            let Some(mapped) = mapping.table(update.table) else {
                continue;
            };
            for row in update.rows {
                match row.change {
                    RowChange::Insert(columns) => {
                        self.insert(row.uuid, columns, mapped, changed);
                    }
                    RowChange::Delete => self.delete(mapped.table, row.uuid, changed),
                    RowChange::Diff(columns) => {
                        let cells = mapped.cells(columns);
                        self.modify(mapped.table, row.uuid, cells, changed, |datum, cell| {
                            // Cannot fail, because the type has no limits.
                            let wire_type = cell.wire_type;
                            wire_type.is_some_and(|ty| datum.apply_diff(&cell.value, ty).is_ok())
                        });
                    }
                    RowChange::Replace(columns) => {
                        let cells = mapped.cells(columns);
                        self.modify(mapped.table, row.uuid, cells, changed, replace_value);
                    }
                }
            }
        }
    }

    /// Makes the listed rows the only rows, and reports only the differences.
    fn replace(&mut self, updates: TableUpdates, mapping: &Mapping, changed: &mut Vec<Uuid>) {
        // The rows to keep, per table; `None` for tables that were empty, which lose no row.
        let mut kept: Vec<Option<BTreeSet<Uuid>>> = vec![Some(BTreeSet::new()); self.tables.len()];
        for update in updates.tables {
            let Some(mapped) = mapping.table(update.table) else {
                continue;
            };
            if self.table(mapped.table).len() == 0 {
                kept[usize::from(mapped.table.0)] = None;
            }
            for row in update.rows {
                let RowChange::Insert(columns) = row.change else {
                    continue;
                };
                if let Some(kept) = &mut kept[usize::from(mapped.table.0)] {
                    kept.insert(row.uuid);
                }
                if self.table(mapped.table).contains(row.uuid) {
                    let cells = mapped.all_cells(columns);
                    self.modify(mapped.table, row.uuid, cells, changed, replace_value);
                } else {
                    self.insert(row.uuid, columns, mapped, changed);
                }
            }
        }
        for (id, kept) in (0u16..).map(TableId).zip(kept) {
            let Some(kept) = kept else { continue };
            if kept.len() < self.table(id).len() {
                let rows = self.table(id).iter().map(|row| row.uuid);
                let gone: Vec<Uuid> = rows.filter(|uuid| !kept.contains(uuid)).collect();
                for uuid in gone {
                    self.delete(id, uuid, changed);
                }
            }
        }
        // Nothing tells whether fetched values have changed since the last connection.
        self.forget_fetched();
    }

    /// Drops all rows, and the tracked changes too.
    fn clear(&mut self) {
        for (table, watch) in self.tables.iter_mut().zip(&mut self.watches) {
            let rows: Vec<Uuid> = table.iter().map(|row| row.uuid).collect();
            for uuid in rows {
                table.remove(uuid);
            }
            watch.track.clear();
            if let Some(latest) = &mut watch.latest {
                latest.clear();
            }
            watch.fetched.clear();
        }
        if let Some(referrers) = &mut self.referrers {
            referrers.clear();
        }
        self.seqno += 1;
        self.epoch += 1;
    }

    /// Resets all fetched columns to their defaults.
    fn forget_fetched(&mut self) {
        for place in 0..self.tables.len() {
            for (uuid, column) in std::mem::take(&mut self.watches[place].fetched) {
                let layout = &self.layouts[place];
                let slot = self.tables[place].slot(uuid);
                if let (Some(slot), Some(at)) = (slot, layout.place(column)) {
                    let default = layout.defaults[at].clone();
                    self.tables[place].set(slot, at, default);
                }
            }
        }
    }

    fn insert(
        &mut self,
        uuid: Uuid,
        columns: corvid_session::Columns,
        mapped: &MappedTable,
        changed: &mut Vec<Uuid>,
    ) {
        let mut row = Row {
            uuid,
            columns: mapped.defaults.clone(),
        };
        let id = mapped.table;
        let (mut tracked, mut latest) = (Vec::new(), Vec::new());
        let is_heard = self.watches[usize::from(id.0)].latest.is_some();
        let tracks = self.tracks(id);
        for (column, datum) in columns {
            let Some(column) = mapped.column(column) else {
                continue;
            };
            let mode = self.mode(id, column.id);
            let is_heard = is_heard && mode.alerts;
            let is_tracked = mode.is_tracked && tracks;
            if (is_tracked || is_heard) && datum != row.columns[column.place] {
                tracked.extend(is_tracked.then_some(column.id));
                latest.extend(is_heard.then_some(column.id));
            }
            row.columns[column.place] = datum;
        }
        if let Some(referrers) = &mut self.referrers {
            referrers.inserted(id, &row, &self.layouts[usize::from(id.0)].references);
        }
        self.table_mut(id).insert(row);
        self.seqno += 1;
        let seqno = self.seqno;
        let watch = &mut self.watches[usize::from(id.0)];
        watch.seqnos[Kind::Insert as usize] = seqno;
        self.changes[Kind::Insert as usize] += 1;
        if let Some(list) = &mut watch.latest {
            list.inserted(uuid, seqno, latest.into_iter());
        }
        if tracks {
            watch.track.inserted(uuid, seqno, tracked.into_iter());
            changed.push(uuid);
        }
    }

    fn delete(&mut self, id: TableId, uuid: Uuid, changed: &mut Vec<Uuid>) {
        let Some(row) = self.table_mut(id).remove(uuid) else {
            return;
        };
        if let Some(referrers) = &mut self.referrers {
            referrers.deleted(id, &row, &self.layouts[usize::from(id.0)].references);
            // Rows that refer to this one are listed as changed even if this table is not tracked.
            if !self.watches[usize::from(id.0)].is_paused {
                changed.push(uuid);
            }
        }
        self.seqno += 1;
        let (seqno, tracks) = (self.seqno, self.tracks(id));
        let watch = &mut self.watches[usize::from(id.0)];
        watch.seqnos[Kind::Delete as usize] = seqno;
        self.changes[Kind::Delete as usize] += 1;
        if let Some(list) = &mut watch.latest {
            list.deleted(row.clone(), seqno);
        }
        let first = (uuid, ColumnId(0));
        // If the row comes back, it comes without its fetched values.
        let fetched: Vec<_> = (watch.fetched.range(first..))
            .take_while(|(other, _)| *other == uuid)
            .copied()
            .collect();
        for cell in fetched {
            watch.fetched.remove(&cell);
        }
        if tracks {
            watch.track.deleted(row, seqno);
        }
    }

    /// Changes columns of an existing row; `set` returns whether it changed the column.
    fn modify(
        &mut self,
        id: TableId,
        uuid: Uuid,
        cells: Vec<Cell<'_>>,
        changed: &mut Vec<Uuid>,
        mut set: impl FnMut(&mut Datum, Cell<'_>) -> bool,
    ) {
        let number = usize::from(id.0);
        let modes = &self.class.tables[number].modes;
        let layout = &self.layouts[number];
        let references = &layout.references;
        let is_heard = self.watches[number].latest.is_some();
        let is_paused = self.watches[number].is_paused;
        let is_followed = |place: usize| {
            self.referrers.is_some() && references.iter().any(|at| at.place == place)
        };
        let table = &mut self.tables[number];
        let Some(slot) = table.slot(uuid) else { return };
        let places: Vec<usize> = cells.iter().map(|cell| cell.place).collect();
        let (mut is_changed, mut alerts, mut olds) = (false, false, Vec::new());
        table.change(slot, &places, |held| {
            for cell in cells {
                let (place, column) = (cell.place, cell.id);
                let mode = modes[usize::from(column.0)];
                let datum = &mut held[place];
                // The old value is cloned only if someone needs it. Otherwise the datum is not
                // shared, and changes in place.
                let is_heard = is_heard && mode.alerts;
                let is_tracked = mode.is_tracked && !is_paused;
                let is_kept = is_tracked || is_heard || is_followed(place);
                let old = is_kept.then(|| datum.clone());
                if set(datum, cell) {
                    is_changed = true;
                    alerts |= mode.alerts;
                    olds.extend(old.map(|old| (place, column, mode, old)));
                }
            }
        });
        if let (Some(referrers), Some(row)) = (&mut self.referrers, table.at(slot)) {
            for (at, _, _, old) in &olds {
                let place = references.iter().find(|place| place.place == *at);
                if let Some(place) = place {
                    referrers.changed(id, row, *place, old, references);
                }
            }
        }
        // Changes of columns without alerts do not wake the program.
        self.seqno += u64::from(alerts);
        let watch = &mut self.watches[number];
        if alerts {
            watch.seqnos[Kind::Modify as usize] = self.seqno;
        }
        self.changes[Kind::Modify as usize] += u64::from(is_changed);
        if let Some(list) = &mut watch.latest {
            let heard = olds.iter().filter(|(_, _, mode, _)| mode.alerts);
            let mut heard = heard
                .map(|(_, column, _, old)| (*column, old.clone()))
                .peekable();
            if heard.peek().is_some() {
                list.modified(uuid, self.seqno, heard);
            }
        }
        let mut tracked = olds
            .into_iter()
            .filter(|(_, _, mode, _)| mode.is_tracked && !is_paused)
            .map(|(_, column, _, old)| (column, old))
            .peekable();
        if tracked.peek().is_some() {
            watch.track.modified(uuid, self.seqno, tracked);
            changed.push(uuid);
        }
    }

    /// Lists the rows that refer to changed rows, directly or through others, as modified. Each row
    /// is visited once.
    fn mark_referrers(&mut self, changed: Vec<Uuid>) {
        let Some(referrers) = &self.referrers else {
            return;
        };
        let mut visited: BTreeSet<Uuid> = changed.iter().copied().collect();
        let mut queue = changed;
        while let Some(target) = queue.pop() {
            for (table, uuid) in referrers.of(target) {
                if !visited.insert(uuid) {
                    continue;
                }
                let number = usize::from(table.0);
                // A row with changes of its own is listed already and keeps its entry. The walk
                // continues through untracked rows, because tracked ones may refer to them.
                let is_listed =
                    self.tracks(table) && self.watches[number].track.get(uuid).is_none();
                if is_listed {
                    let watch = &mut self.watches[number];
                    (watch.track).modified(uuid, self.seqno, std::iter::empty());
                    watch.seqnos[Kind::Modify as usize] = self.seqno;
                }
                queue.push(uuid);
            }
        }
    }

    /// Sets a fetched column of a row. Returns false if the row or the column does not exist.
    pub(crate) fn set_fetched(
        &mut self,
        id: TableId,
        uuid: Uuid,
        column: ColumnId,
        value: Datum,
    ) -> bool {
        let number = usize::from(id.0);
        let layout = &self.layouts[number];
        let slot = self.tables[number].slot(uuid);
        let (Some(slot), Some(at)) = (slot, layout.place(column)) else {
            return false;
        };
        let Some(old) = self.tables[number].set(slot, at, value) else {
            return false;
        };
        if let (Some(referrers), Some(row)) = (&mut self.referrers, self.tables[number].at(slot)) {
            let places = &layout.references;
            if let Some(place) = places.iter().find(|place| place.place == at) {
                referrers.changed(id, row, *place, &old, places);
            }
        }
        self.watches[number].fetched.insert((uuid, column));
        true
    }
}

/// Sets a column. Returns whether that changed it.
fn replace_value(datum: &mut Datum, cell: Cell<'_>) -> bool {
    let is_new = *datum != cell.value;
    if is_new {
        *datum = cell.value;
    }
    is_new
}
