//! A typed replica: the client, the structs of its rows, and how they follow the client's changes.
//!
//! All columns alert in the core, so that the handlers of the core tell of every change. This file
//! knows the columns that do not alert (`omit_alert`) and subtracts their changes from the change
//! number.
//!
//! Invariant: between calls, every live row of the replica that the program may see has a struct,
//! whose members show the replica. References are addresses, so a row that refers to one that came
//! or went is filled again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use corvid::data::{AtomRef, Change, ColumnType, diff};
use corvid::fork::Lock;
use corvid::polled;
use corvid::{
    Class, Column, ColumnId, Condition, Datum, Idl, IndexColumn, IndexId, Kind, RowId, Setup,
    TableId, Tracked, TxnId, Uuid,
};

use super::class::{ColumnLayout, Layout, corvid_idl_row, corvid_idl_table};
use super::column_type::OwnedType;
use super::record::{Record, State as RowState};
use super::rows;
use super::shown::ShownRows;
use super::synthetic::Due;
use super::tls;
use crate::error::{Failure, Outcome, corvid_error, report};

/// How a column is replicated.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mode {
    pub(crate) is_monitored: bool,
    pub(crate) alerts: bool,
    pub(crate) is_tracked: bool,
    pub(crate) writes_changed_only: bool,
}

impl Mode {
    pub(crate) const MONITOR: Mode = Mode {
        is_monitored: true,
        alerts: true,
        is_tracked: false,
        writes_changed_only: false,
    };
}

/// A change as the core told it.
struct Event {
    kind: Kind,
    row: RowId,
    columns: Vec<ColumnId>,
}

/// One table.
pub(crate) struct Table {
    /// The handle that rows point to. Its address is fixed.
    pub(crate) handle: Box<corvid_idl_table>,
    pub(crate) modes: Vec<Mode>,
    pub(crate) is_needed: bool,
    pub(crate) slots: Vec<Option<Box<Record>>>,
    free: Vec<usize>,
    pub(crate) by_uuid: Map<Uuid, usize>,
    shown: ShownRows,
}

// SAFETY: the handle is written once, before it is shown, and only read after that. The shown rows
// are structs of the records that the table owns.
unsafe impl Send for Table {}

/// An index, made with the client.
pub(crate) struct IndexPlan {
    pub(crate) table: usize,
    pub(crate) columns: Vec<IndexColumn>,
    pub(crate) id: Option<IndexId>,
}

/// A column that refers to a row: its table, the UUID of its row, its number.
type Source = (usize, Uuid, usize);

/// The columns that refer to a row, there or not, by the table and UUID of that row.
type Referrers = Map<(usize, Uuid), BTreeSet<Source>>;

/// Keys come from the server, which is trusted with everything else.
pub(crate) type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The changes of a table in their order, and the place of each.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) order: Vec<Uuid>,
    pub(crate) places: Map<Uuid, usize>,
}

/// The state that the lock protects.
pub(crate) struct State {
    pub(crate) layout: Arc<Layout>,
    pub(crate) tables: Vec<Table>,
    pub(crate) setup: Setup,
    pub(crate) remote: Option<String>,
    /// Types of the server's columns that the program asked for, with the types of the core. There
    /// is one for each column, and another one for each change of it by a conversion.
    pub(crate) server_types: Vec<((usize, usize), ColumnType, OwnedType)>,
    /// Whether the server may tell of changes of its databases.
    pub(crate) is_change_aware: bool,
    /// Whether a write of a column that alerts fails its transaction.
    pub(crate) writes_only_silent: bool,
    /// Made when it is needed first, since the modes of columns are fixed with it.
    pub(crate) client: Option<polled::Client>,
    /// Conditions that were set before.
    pub(crate) conditions: Vec<(TableId, Condition)>,
    pub(crate) indexes: Vec<IndexPlan>,
    events: Arc<Mutex<Vec<Event>>>,
    /// Updates that do not alert, as counted in the core's change number.
    silent: u64,
    referrers: Referrers,
    /// Rows that are gone, with their tables and slots.
    dead: Vec<(usize, usize)>,
    /// Rows whose synthetic columns are to be computed, by table and slot.
    changed: Vec<(usize, usize)>,
    /// Structs of such rows that are to be freed.
    freed: Vec<Due>,
    /// Strings and arrays that members of rows pointed to before they were filled again. The
    /// program may read them until the next run.
    retired: Vec<Box<[u64]>>,
    /// Columns that the open transaction wrote: table, UUID, column.
    pub(crate) written: BTreeSet<(usize, Uuid, usize)>,
    pub(crate) inserted: HashSet<(usize, Uuid)>,
    pub(crate) hidden: Vec<(usize, Uuid)>,
    /// The open transaction, and its handle.
    pub(crate) txn: Option<(TxnId, usize)>,
    /// The changes of each table while the program walks over them, and their places.
    pub(crate) walks: Vec<Walk>,
}

/// A replica, shared by its handle and those of what was made of it.
pub(crate) struct Cell {
    pub(crate) state: Lock<Option<State>>,
}

impl Cell {
    pub(crate) fn with<R>(
        &self,
        work: impl FnOnce(&mut State) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut state = self
            .state
            .lock()
            .map_err(|error| Failure::locking("replica", error))?;
        let Some(present) = &mut *state else {
            return Err(Failure::new(
                corvid_error::CORVID_ERR_HANDLE,
                "the replica was destroyed",
            ));
        };
        let outcome = work(present);
        // Look-ups change no row, and classes without synthetic columns have no code.
        if present.changed.is_empty() && present.freed.is_empty() {
            return outcome;
        }
        let due = present.due();
        // Code of the program may call the library, so the lock is free by then.
        drop(state);
        due.into_iter().for_each(Due::run);
        outcome
    }
}

impl Table {
    /// Look-ups and walks do not find a struct any more. It stays until it is freed.
    pub(crate) fn take_out_of_sight(&mut self, slot: usize, state: RowState) {
        if let Some(record) = &mut self.slots[slot] {
            record.state = state;
            if let Some(core_slot) = record.core_slot.take() {
                self.shown.remove(core_slot, record.row());
            }
        }
    }
}

impl State {
    pub(crate) fn new(layout: Layout, monitors_everything: bool) -> State {
        let tables = layout.tables.iter().map(|table| Table {
            handle: Box::new(corvid_idl_table {
                class_: std::ptr::without_provenance(table.class),
                idl: std::ptr::null_mut(),
            }),
            modes: vec![
                if monitors_everything {
                    Mode::MONITOR
                } else {
                    Mode::default()
                };
                table.columns.len()
            ],
            is_needed: monitors_everything,
            slots: Vec::new(),
            free: Vec::new(),
            by_uuid: Map::default(),
            shown: ShownRows::default(),
        });
        State {
            tables: tables.collect(),
            layout: Arc::new(layout),
            setup: Setup {
                credentials: Some(tls::shared()),
                ..Setup::default()
            },
            remote: None,
            server_types: Vec::new(),
            is_change_aware: true,
            writes_only_silent: false,
            client: None,
            conditions: Vec::new(),
            indexes: Vec::new(),
            events: Arc::default(),
            silent: 0,
            referrers: Map::default(),
            dead: Vec::new(),
            changed: Vec::new(),
            freed: Vec::new(),
            retired: Vec::new(),
            written: BTreeSet::new(),
            inserted: HashSet::new(),
            hidden: Vec::new(),
            txn: None,
            walks: Vec::new(),
        }
    }

    /// The client. Making it fixes the modes of columns.
    pub(crate) fn client(&mut self) -> Result<&mut polled::Client, Failure> {
        if self.client.is_none() {
            self.client = Some(self.make_client()?);
        }
        let client = self.client.as_mut();
        let client = client.ok_or_else(|| Failure::none("there is no client"))?;
        client.check_process()?;
        Ok(client)
    }

    fn make_client(&mut self) -> Result<polled::Client, Failure> {
        let mut class = Class::new(self.layout.schema.clone());
        class.set_strict(false);
        let mut monitored = Vec::new();
        for (table, layout) in self.tables.iter().zip(&self.layout.tables) {
            if table.is_needed {
                class.add_table(layout.table);
            }
            for (mode, column) in table.modes.iter().zip(&layout.columns) {
                if !mode.is_monitored {
                    continue;
                }
                class.add_column(column.column);
                let drops_equal = mode.writes_changed_only || !mode.alerts;
                class.set_write_changed_only(column.column, drops_equal);
                if mode.is_tracked {
                    class.track(column.column);
                }
            }
            monitored.push(layout.table);
        }
        for plan in &mut self.indexes {
            let table = self.layout.tables[plan.table].table;
            let made = class.add_index(table, "", plan.columns.clone());
            match made {
                Ok(id) => plan.id = Some(id),
                // Without it the rest of the replica works.
                Err(error) => {
                    let failure = Failure::argument(error.to_string());
                    report("corvid_idl_index_create", &failure);
                }
            }
        }
        let limit = |error: String| Failure::new(corvid_error::CORVID_ERR_LIMIT, error);
        let mut client =
            polled::Client::new(class, None).map_err(|error| limit(error.to_string()))?;
        client.set_credentials(self.setup.credentials.clone());
        client.set_leader_only(self.setup.is_leader_only);
        client.set_probe_interval(self.setup.probe_interval);
        client.set_lock(self.setup.lock.as_deref())?;
        for table in monitored {
            for kind in [Kind::Insert, Kind::Modify, Kind::Delete] {
                let events = self.events.clone();
                client
                    .idl_mut()
                    .on_change(table, kind, move |_, row, change| {
                        collect(&events, kind, row, change);
                    });
            }
        }
        for condition in mem::take(&mut self.conditions) {
            client.set_condition(condition)?;
        }
        let (now_ms, is_shuffled) = (client.now_ms(), self.setup.is_shuffled);
        let session = client.idl_mut().session();
        session.set_shuffle_remotes(is_shuffled);
        session.set_change_aware(self.is_change_aware);
        if let Some(remote) = &self.remote {
            let is_persistent = self.setup.is_persistent;
            let session = client.idl_mut().session();
            session.set_remote(now_ms, remote, is_persistent);
        }
        Ok(client)
    }

    /// The code of the program that is due.
    fn due(&mut self) -> Vec<Due> {
        let mut due = mem::take(&mut self.freed);
        for (table, slot) in mem::take(&mut self.changed) {
            let code = self.layout.tables[table].computed;
            let record = self.tables[table].slots[slot].as_mut();
            if let (Some(code), Some(record)) = (code, record) {
                due.push(Due::Parse {
                    row: record.row(),
                    code,
                    is_parsed: record.is_parsed,
                });
                (record.is_due, record.is_parsed) = (false, true);
            }
        }
        due
    }

    /// The change number without the updates that do not alert.
    pub(crate) fn seqno(&self) -> u64 {
        let seqno = self
            .client
            .as_ref()
            .map_or(0, |client| client.change_seqno());
        seqno - self.silent
    }

    /// Runs the client, and brings the structs up to date.
    pub(crate) fn run(&mut self, cell: &Arc<Cell>) -> Outcome {
        if self.txn.is_some() {
            return Err(corvid::Misuse::TransactionOpen.into());
        }
        if !self.is_tracking() {
            self.free_gone();
        }
        self.retired.clear();
        let run = self.client()?.run();
        let events = mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        run?;
        self.follow(cell, events);
        // Values from before this run: the program has not read any since it began.
        self.retired.clear();
        Ok(())
    }

    pub(crate) fn is_tracking(&self) -> bool {
        let mut modes = self.tables.iter().flat_map(|table| &table.modes);
        modes.any(|mode| mode.is_tracked)
    }

    /// Frees the structs of rows that are gone.
    pub(crate) fn free_gone(&mut self) {
        let mut addresses = Vec::new();
        for (number, slot) in mem::take(&mut self.dead) {
            let table = &mut self.tables[number];
            // A row that came back has its struct again.
            let is_dead = |record: &Record| record.state == RowState::Dead;
            if table.slots[slot].as_deref().is_some_and(is_dead)
                && let Some(record) = table.slots[slot].take()
            {
                if table.by_uuid.get(&record.uuid) == Some(&slot) {
                    table.by_uuid.remove(&record.uuid);
                }
                table.free.push(slot);
                addresses.push((number, record));
            }
        }
        rows::forget(addresses.iter().map(|(_, record)| record.row().addr()));
        for (table, record) in addresses {
            if let Some(code) = self.layout.tables[table].computed
                && record.is_parsed
            {
                self.freed.push(Due::Free { record, code });
            }
        }
    }

    /// Brings the structs up to date with the changes of the rows.
    fn follow(&mut self, cell: &Arc<Cell>, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let layout = self.layout.clone();
        let number_of = |id: TableId| layout.tables.iter().position(|table| table.table == id);
        let mut whole = Vec::new();
        let mut parts: BTreeSet<Source> = BTreeSet::new();
        let mut moved = Vec::new();
        let mut made = Vec::new();
        for event in events {
            let Some(table) = number_of(event.row.table) else {
                continue;
            };
            let uuid = event.row.uuid;
            match event.kind {
                Kind::Insert => {
                    made.extend(self.show(table, uuid));
                    whole.push((table, uuid));
                    moved.push((table, uuid));
                }
                Kind::Modify => {
                    let columns = &layout.tables[table].columns;
                    let mut is_silent = true;
                    for (number, column) in columns.iter().enumerate() {
                        if event.columns.contains(&column.column.id) {
                            is_silent &= !self.tables[table].modes[number].alerts;
                            parts.insert((table, uuid, number));
                        }
                    }
                    self.silent += u64::from(is_silent);
                }
                Kind::Delete => {
                    self.remove(table, uuid);
                    moved.push((table, uuid));
                    // It may have changed before, in this run.
                    whole.push((table, uuid));
                }
            }
        }
        // Rows that came and went within one update are told of as changes. Each has its struct
        // before one is filled, because they may refer to one another.
        for (number, table) in layout.tables.iter().enumerate() {
            let Some(client) = &self.client else { break };
            let gone: Vec<Uuid> = client
                .changes(table.table)
                .iter()
                .filter(|change| change.is_new && change.is_deleted)
                .map(|change| change.uuid)
                .filter(|uuid| !self.tables[number].by_uuid.contains_key(uuid))
                .collect();
            for uuid in gone {
                made.extend(self.show(number, uuid));
                self.remove(number, uuid);
                whole.push((number, uuid));
            }
        }
        rows::remember(cell, made);
        for (table, uuid) in whole {
            self.fill_row(table, uuid);
        }
        // Columns that refer to a row whose struct came or went.
        for target in moved {
            parts.extend(self.referrers.get(&target).into_iter().flatten());
        }
        for (table, uuid, column) in parts {
            self.fill(table, uuid, column);
        }
    }

    /// Gives a row a struct, or its former one again. Returns a new struct's place.
    pub(crate) fn show(&mut self, number: usize, uuid: Uuid) -> Option<rows::New> {
        if let Some(&slot) = self.tables[number].by_uuid.get(&uuid) {
            self.reveal(number, slot);
            return None;
        }
        let table = &mut self.tables[number];
        let layout = &self.layout.tables[number];
        let record = Box::new(Record::new(layout, uuid, &raw const *table.handle));
        let address = record.row().addr();
        let slot = match table.free.pop() {
            Some(slot) => slot,
            None => {
                table.slots.push(None);
                table.slots.len() - 1
            }
        };
        table.slots[slot] = Some(record);
        table.by_uuid.insert(uuid, slot);
        self.reveal(number, slot);
        Some(rows::New {
            address,
            table: number,
            slot,
        })
    }

    /// Shows a row that the core has.
    fn reveal(&mut self, number: usize, slot: usize) {
        let id = self.layout.tables[number].table;
        let table = &mut self.tables[number];
        let Some(record) = &mut table.slots[slot] else {
            return;
        };
        record.state = RowState::Live;
        let row = RowId {
            table: id,
            uuid: record.uuid,
        };
        if let Some(former) = record.core_slot.take() {
            table.shown.remove(former, record.row());
        }
        // A row that came and went within one run is not in the core.
        record.core_slot = self.client.as_ref().and_then(|client| client.slot(row));
        if let Some(core_slot) = record.core_slot {
            table.shown.insert(core_slot, row.uuid, record.row());
        }
    }

    /// Takes a row out of sight. Its struct stays for a while.
    pub(crate) fn remove(&mut self, number: usize, uuid: Uuid) {
        let table = &mut self.tables[number];
        let Some(&slot) = table.by_uuid.get(&uuid) else {
            return;
        };
        table.take_out_of_sight(slot, RowState::Dead);
        if let Some(record) = &mut table.slots[slot] {
            for (place, datum) in mem::take(&mut record.references) {
                let column = &self.layout.tables[number].columns[place];
                let source = (number, uuid, place);
                // The column is linked to nothing any more.
                let nothing = Datum::empty();
                link(&mut self.referrers, column, source, &datum, &nothing);
            }
        }
        self.dead.push((number, slot));
    }

    /// Fills all columns of a row's struct that the replica holds.
    pub(crate) fn fill_row(&mut self, table: usize, uuid: Uuid) {
        if let Some(&slot) = self.tables[table].by_uuid.get(&uuid) {
            self.fill_slot(table, slot, None);
        }
    }

    /// Fills a column of a row's struct.
    pub(crate) fn fill(&mut self, table: usize, uuid: Uuid, column: usize) {
        if let Some(&slot) = self.tables[table].by_uuid.get(&uuid) {
            self.fill_slot(table, slot, Some(column));
        }
    }

    /// Fills one column, or all that the replica holds, from the replica.
    fn fill_slot(&mut self, number: usize, slot: usize, only: Option<usize>) {
        let State {
            layout,
            tables,
            client,
            referrers,
            inserted,
            retired,
            changed,
            ..
        } = self;
        let Some(client) = client else { return };
        let Some(mut record) = tables[number].slots[slot].take() else {
            return;
        };
        let (own, uuid) = (record.row(), record.uuid);
        let id = RowId {
            table: layout.tables[number].table,
            uuid,
        };
        let view = client.view(id);
        let is_inserted = !inserted.is_empty() && inserted.contains(&(number, uuid));
        // A row that is gone shows what it held last, also rows that went with it. Their structs
        // stay as long as its own.
        let is_gone = record.state == RowState::Dead;
        let resolve = |table: usize, target: Uuid| {
            if (table, target) == (number, uuid) {
                return Some(own);
            }
            let table = &tables[table];
            let record = table.slots[*table.by_uuid.get(&target)?].as_ref()?;
            let is_shown = match record.state {
                RowState::Live => true,
                RowState::Dead => is_gone,
                RowState::Hidden => false,
            };
            is_shown.then(|| record.row())
        };
        let columns = &layout.tables[number].columns;
        for place in only.map_or(0..columns.len(), |only| only..only + 1) {
            let column = &columns[place];
            if !tables[number].modes[place].is_monitored && !is_inserted {
                continue;
            }
            let read;
            let held = view.and_then(|view| view.get(column.column));
            let datum = match held {
                Some(datum) => datum,
                None => {
                    let Some(found) = client.read(id, column.column) else {
                        continue;
                    };
                    read = found;
                    &read
                }
            };
            let former = record.fill(place, column, datum, &resolve);
            if !former.is_empty() {
                retired.push(former);
            }
            if column.has_references() && record.state != RowState::Dead {
                let mut kept = record.references.iter_mut();
                let old = match kept.find(|(number, _)| *number == place) {
                    Some((_, old)) => mem::replace(old, datum.clone()),
                    None => {
                        record.references.push((place, datum.clone()));
                        Datum::empty()
                    }
                };
                link(referrers, column, (number, uuid, place), &old, datum);
            }
        }
        if layout.tables[number].computed.is_some() && !record.is_due {
            record.is_due = true;
            changed.push((number, slot));
        }
        tables[number].slots[slot] = Some(record);
    }

    /// Returns the structs to the replica's contents after a transaction has ended.
    pub(crate) fn roll_back(&mut self) {
        self.txn = None;
        for (table, uuid) in mem::take(&mut self.hidden) {
            // The core has put the row back by now, perhaps into another slot.
            if let Some(&slot) = self.tables[table].by_uuid.get(&uuid) {
                self.reveal(table, slot);
            }
        }
        let inserted = mem::take(&mut self.inserted);
        for &(table, uuid) in &inserted {
            self.remove(table, uuid);
        }
        for (table, uuid, column) in mem::take(&mut self.written) {
            if !inserted.contains(&(table, uuid)) {
                self.fill(table, uuid, column);
            }
        }
    }

    /// The columns in the core, of a layout's numbers.
    pub(crate) fn column(&self, (table, column): (usize, usize)) -> Column {
        self.layout.tables[table].columns[column].column
    }

    /// The struct of a shown row that the core has found in one of its slots.
    pub(crate) fn shown(
        &self,
        number: usize,
        found: (RowId, usize),
    ) -> Option<*mut corvid_idl_row> {
        let (row, slot) = found;
        let shown = self.tables[number].shown.get(slot, row.uuid);
        shown.or_else(|| self.find(number, row.uuid))
    }

    /// The struct of a row that is shown.
    pub(crate) fn find(&self, table: usize, uuid: Uuid) -> Option<*mut corvid_idl_row> {
        let table = &self.tables[table];
        let record = table.slots[*table.by_uuid.get(&uuid)?].as_ref()?;
        (record.state == RowState::Live).then(|| record.row())
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let records = self.tables.iter().flat_map(|table| &table.slots).flatten();
        rows::forget(records.map(|record| record.row().addr()));
        for (table, layout) in self.tables.iter().zip(&self.layout.tables) {
            let records = table
                .slots
                .iter()
                .flatten()
                .filter(|record| record.is_parsed);
            for (record, code) in records.zip(layout.computed.iter().cycle()) {
                code.unparse(record.row());
            }
        }
    }
}

/// Records which rows a column refers to now. The cost follows the change, except for maps whose
/// values are references.
fn link(
    referrers: &mut Referrers,
    column: &ColumnLayout,
    source: Source,
    old: &Datum,
    new: &Datum,
) {
    let elements = [Some(column.key), column.value];
    let mut record = |atoms: [Option<AtomRef<'_>>; 2], is_there: bool| {
        for (element, atom) in elements.iter().zip(atoms) {
            let table = element.and_then(|element| element.target);
            let (Some(table), Some(target)) = (table, atom.and_then(AtomRef::as_uuid)) else {
                continue;
            };
            if is_there {
                referrers.entry((table, target)).or_default().insert(source);
            } else {
                unlink(referrers, (table, target), source);
            }
        }
    };
    for is_there in [false, true] {
        diff::changes(old, new, &mut |change| match change {
            Change::Added(key, value) if is_there => record([Some(key), value], true),
            Change::Removed(key, value) if !is_there => record([Some(key), value], false),
            Change::Replaced(_, old, new) => {
                record([None, Some(if is_there { new } else { old })], is_there);
            }
            _ => {}
        });
    }
    // Another pair of a map may have the reference that one lost.
    if column.value.is_some_and(|value| value.target.is_some()) {
        for (key, value) in new {
            record([Some(key), value], true);
        }
    }
}

fn unlink(referrers: &mut Referrers, target: (usize, Uuid), source: Source) {
    if let Some(sources) = referrers.get_mut(&target) {
        sources.remove(&source);
        if sources.is_empty() {
            referrers.remove(&target);
        }
    }
}

fn collect(events: &Mutex<Vec<Event>>, kind: Kind, row: RowId, change: &Tracked) {
    let columns = match kind {
        Kind::Modify => change.updated().collect(),
        Kind::Insert | Kind::Delete => Vec::new(),
    };
    let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
    events.push(Event { kind, row, columns });
}

/// The client that is there, for reading.
pub(crate) fn idl(state: &State) -> Result<&Idl, Failure> {
    let client = state.client.as_ref();
    let client = client.ok_or_else(|| Failure::none("the replica has not run yet"))?;
    Ok(client.idl())
}
