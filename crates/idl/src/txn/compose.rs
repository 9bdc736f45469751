//! Composes the operations that a transaction sends (docs/spec/idl.md 2.4 to 2.6, 3.3).
//!
//! Order: `assert` of the lock; a `wait` for each row with verified columns, then for tables
//! limited to one row; the touched rows in the order of their first touch, each as `delete`,
//! `update` or `insert`, then its `mutate`; the increment; the comment; the raw operations that the
//! program added; `abort` for a dry run.

use std::collections::BTreeSet;

use corvid_data::diff::{Change, Changes};
use corvid_data::{AtomRef, ColumnId, ColumnSchema, ColumnType, Datum, TableSchema, Uuid, wire};
use corvid_json::{ArrayWriter, ObjectWriter, write};

use super::{OpenTxn, RowState, TouchedRow};
use crate::replica::Replica;
use crate::row::RowId;

/// The request, and the expected shape of its reply.
#[derive(Debug, Default)]
pub(crate) struct Composed {
    /// The operations, separated by commas.
    pub(crate) operations: Vec<u8>,
    /// Some operation changes the database.
    pub(crate) has_updates: bool,
    pub(crate) expected: Expected,
}

/// The positions of the results that the client reads.
#[derive(Debug, Default, Clone)]
pub(crate) struct Expected {
    /// The number of operations sent.
    pub(crate) count: usize,
    /// The inserts: the position of each, with the row's provisional UUID.
    pub(crate) inserts: Vec<(usize, Uuid)>,
    /// The position of the increment's `mutate`; its `select` follows.
    pub(crate) increment: Option<usize>,
}

/// Composes the operations of a transaction. `lock` is the lock that the client must hold.
pub(crate) fn compose(txn: &OpenTxn, replica: &Replica, lock: Option<&str>) -> Composed {
    let names = txn.rows.iter().filter_map(|(row, touched)| {
        let is_named = matches!(
            touched.state,
            RowState::Inserted {
                is_persistent: false
            }
        );
        is_named.then_some(row.uuid)
    });
    let mut composer = Composer {
        txn,
        replica,
        names: names.collect(),
        out: Composed::default(),
    };
    // The assert comes first, so that a lost lock is reported as such, whatever else would fail.
    if let Some(lock) = lock {
        let out = composer.begin();
        ObjectWriter::new(out)
            .string("op", b"assert")
            .string("lock", lock.as_bytes())
            .end();
    }
    composer.waits();
    for row in &txn.order {
        if let Some(touched) = txn.rows.get(row) {
            composer.row(*row, touched);
        }
    }
    composer.rest();
    composer.out
}

struct Composer<'a> {
    txn: &'a OpenTxn,
    replica: &'a Replica,
    /// New rows that other operations refer to by name, because the server assigns their UUIDs.
    names: BTreeSet<Uuid>,
    out: Composed,
}

impl<'a> Composer<'a> {
    /// Begins an operation; the caller appends exactly one JSON object.
    fn begin(&mut self) -> &mut Vec<u8> {
        if self.out.expected.count > 0 {
            self.out.operations.push(b',');
        }
        self.out.expected.count += 1;
        &mut self.out.operations
    }

    fn table(&self, row: RowId) -> &'a TableSchema {
        self.replica.class.schema.table(row.table)
    }

    /// Begins `{"op":OP,"table":TABLE,"where":[["_uuid","==",ROW]]`, without the closing brace.
    fn addressed(&self, op: &str, row: RowId) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(b"{\"op\":\"");
        out.extend_from_slice(op.as_bytes());
        out.extend_from_slice(b"\",\"table\":");
        write::string(&mut out, self.table(row).name.as_bytes());
        out.extend_from_slice(b",\"where\":[[\"_uuid\",\"==\",");
        write_uuid(&mut out, row.uuid, &self.names);
        out.extend_from_slice(b"]]");
        out
    }

    /// Appends an operation that [`Composer::addressed`] began, with one more member.
    fn finish(&mut self, begun: &[u8], member: &str, json: &[u8]) {
        let out = self.begin();
        out.extend_from_slice(begun);
        if !member.is_empty() {
            out.push(b',');
            write::string(out, member.as_bytes());
            out.push(b':');
            out.extend_from_slice(json);
        }
        out.push(b'}');
    }

    fn waits(&mut self) {
        for row in &self.txn.order {
            let touched = &self.txn.rows[row];
            // The server has no value of a new row that could have changed.
            let is_there = matches!(touched.state, RowState::Existing | RowState::Deleted(_));
            if touched.verified.is_empty() || !is_there {
                continue;
            }
            let table = self.table(*row);
            let (mut columns, mut values) = (Vec::new(), Vec::new());
            let (mut list, mut object) = (
                ArrayWriter::new(&mut columns),
                ObjectWriter::new(&mut values),
            );
            for &column in &touched.verified {
                let schema = table.column(column);
                let held = self.txn.committed(self.replica, *row, column);
                write::string(list.element(), schema.name.as_bytes());
                let default = Datum::default_for(&schema.column_type);
                let held = held.unwrap_or(&default);
                let is_map = schema.column_type.is_map();
                wire::write_datum(object.member(&*schema.name), held, is_map);
            }
            list.end();
            object.end();
            let mut wait = self.addressed("wait", *row);
            wait.extend_from_slice(b",\"timeout\":0,\"until\":\"==\",\"columns\":");
            wait.extend_from_slice(&columns);
            self.finish(&wait, "rows", &[b"[", &values[..], b"]"].concat());
        }
        self.singleton_waits();
    }

    /// Before an insertion into an empty table that is limited to one row, adds a `wait` for that
    /// table to be empty. The loser of a race then retries instead of failing.
    fn singleton_waits(&mut self) {
        let schema = &self.replica.class.schema;
        for (id, table) in schema.iter().filter(|(_, table)| table.max_rows == 1) {
            let mut touched = self.txn.rows.iter().filter(|(row, _)| row.table == id);
            let is_inserted =
                |touched: &TouchedRow| matches!(touched.state, RowState::Inserted { .. });
            let had_none = !touched
                .clone()
                .any(|(_, touched)| matches!(touched.state, RowState::Deleted(_)));
            let has_new = touched.any(|(_, touched)| is_inserted(touched));
            // The replica already counts the new row, so a length of one means that the table was
            // empty.
            if has_new && had_none && self.replica.table(id).len() == 1 {
                let out = self.begin();
                out.extend_from_slice(b"{\"op\":\"wait\",\"table\":");
                write::string(out, table.name.as_bytes());
                out.extend_from_slice(b",\"where\":[],\"timeout\":0,\"until\":\"==\",\"rows\":[]}");
            }
        }
    }

    fn row(&mut self, row: RowId, touched: &TouchedRow) {
        match &touched.state {
            RowState::Vanished => {}
            // The server deletes rows of other tables with the last reference to them.
            RowState::Deleted(_) if !self.table(row).is_root => {}
            RowState::Deleted(_) => {
                let delete = self.addressed("delete", row);
                self.finish(&delete, "", b"");
                self.out.has_updates = true;
            }
            RowState::Inserted { is_persistent } => self.insert(row, touched, *is_persistent),
            RowState::Existing => self.update(row, touched),
        }
    }

    fn insert(&mut self, row: RowId, touched: &TouchedRow, is_persistent: bool) {
        let table = self.table(row);
        let mut values = Vec::new();
        let mut object = ObjectWriter::new(&mut values);
        let held = self.replica.table(row.table).get(row.uuid);
        for (id, column) in table.iter() {
            let place = self.replica.layout(row.table).place(id);
            let stored = place.and_then(|at| held.map(|held| &held.columns[at]));
            let value = touched.unstored.get(&id).or(stored);
            if let Some(value) = value.filter(|value| !value.is_default(&column.column_type)) {
                write_datum(object.member(&*column.name), value, column, &self.names);
            }
        }
        object.end();
        self.out
            .expected
            .inserts
            .push((self.out.expected.count, row.uuid));
        self.out.has_updates = true;
        let out = self.begin();
        out.extend_from_slice(b"{\"op\":\"insert\",\"table\":");
        write::string(out, table.name.as_bytes());
        if is_persistent {
            out.extend_from_slice(b",\"uuid\":");
            write::string(out, &row.uuid.to_text());
        } else {
            out.extend_from_slice(b",\"uuid-name\":\"");
            write_name(out, row.uuid);
            out.push(b'"');
        }
        out.extend_from_slice(b",\"row\":");
        out.extend_from_slice(&values);
        out.push(b'}');
    }

    fn update(&mut self, row: RowId, touched: &TouchedRow) {
        let table = self.table(row);
        let Some(held) = self.replica.table(row.table).get(row.uuid) else {
            return;
        };
        let layout = self.replica.layout(row.table);
        let now = |column: ColumnId| layout.place(column).map(|place| &held.columns[place]);
        let mut values = Vec::new();
        let mut object = ObjectWriter::new(&mut values);
        let mut has_written = false;
        for (&id, column) in touched
            .columns
            .iter()
            .filter(|(_, touched)| touched.is_whole)
        {
            let Some(value) = now(id) else { continue };
            let schema = table.column(id);
            write_datum(object.member(&*schema.name), value, schema, &self.names);
            has_written = true;
            // A write of the unchanged value is sent together with other changes. Alone it causes
            // no transaction.
            self.out.has_updates |= *value != column.base;
        }
        object.end();
        if has_written {
            let update = self.addressed("update", row);
            self.finish(&update, "row", &values);
        }
        let mut mutations = Vec::new();
        let mut list = ArrayWriter::new(&mut mutations);
        let mut has_mutations = false;
        for is_map in [true, false] {
            for (&id, column) in touched
                .columns
                .iter()
                .filter(|(_, touched)| !touched.is_whole)
            {
                let schema = table.column(id);
                let Some(value) = now(id).filter(|_| schema.column_type.is_map() == is_map) else {
                    continue;
                };
                let names = &self.names;
                has_mutations |= write_mutations(&mut list, &column.base, value, schema, names);
            }
        }
        list.end();
        if has_mutations {
            let mutate = self.addressed("mutate", row);
            self.finish(&mutate, "mutations", &mutations);
            self.out.has_updates = true;
        }
    }

    fn rest(&mut self) {
        let txn = self.txn;
        let wanted = txn.increment;
        let wanted = wanted.filter(|increment| increment.is_forced || self.out.has_updates);
        if let Some(increment) = wanted {
            let mut name = Vec::new();
            let column = self.table(increment.row).column(increment.column);
            write::string(&mut name, column.name.as_bytes());
            self.out.has_updates = true;
            self.out.expected.increment = Some(self.out.expected.count);
            let mutate = self.addressed("mutate", increment.row);
            let mutations = [b"[[", &name[..], b",\"+=\",1]]"].concat();
            self.finish(&mutate, "mutations", &mutations);
            let select = self.addressed("select", increment.row);
            self.finish(&select, "columns", &[b"[", &name[..], b"]"].concat());
        }
        let comment = &txn.comment;
        if !comment.is_empty() {
            ObjectWriter::new(self.begin())
                .string("op", b"comment")
                .string("comment", comment.as_bytes())
                .end();
        }
        for operation in &txn.raw {
            self.begin().extend_from_slice(operation);
            self.out.has_updates = true;
        }
        // The abort comes last, so that the server executes and checks everything before it.
        if txn.is_dry_run {
            ObjectWriter::new(self.begin()).string("op", b"abort").end();
        }
    }
}

/// Appends the mutations that lead from `base` to `value`. Returns whether there are any. The
/// server's `insert` leaves the value of an existing key unchanged, so a new value needs a `delete`
/// of the key first.
fn write_mutations(
    list: &mut ArrayWriter<'_>,
    base: &Datum,
    value: &Datum,
    column: &ColumnSchema,
    names: &BTreeSet<Uuid>,
) -> bool {
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    for change in Changes::new(base, value) {
        match change {
            Change::Added(key, value) => come.push((key, value)),
            Change::Removed(key, _) => gone.push(key),
            Change::Replaced(key, _, value) => {
                gone.push(key);
                come.push((key, Some(value)));
            }
        }
    }
    let mut mutation = |mutator: &[u8], argument: Vec<u8>| {
        let mut parts = ArrayWriter::new(list.element());
        write::string(parts.element(), column.name.as_bytes());
        write::string(parts.element(), mutator);
        parts.element().extend_from_slice(&argument);
        parts.end();
    };
    if !gone.is_empty() {
        let elements = gone.iter().map(|key| (*key, None));
        mutation(b"delete", elements_json(elements, false, names));
    }
    if !come.is_empty() {
        let is_map = column.column_type.is_map();
        mutation(
            b"insert",
            elements_json(come.iter().copied(), is_map, names),
        );
    }
    !gone.is_empty() || !come.is_empty()
}

fn elements_json<'a>(
    elements: impl Iterator<Item = (AtomRef<'a>, Option<AtomRef<'a>>)>,
    is_map: bool,
    names: &BTreeSet<Uuid>,
) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(if is_map { b"[\"map\"," } else { b"[\"set\"," });
    let mut list = ArrayWriter::new(&mut out);
    for (key, value) in elements {
        let out = list.element();
        match value {
            None => write_atom(out, key, names),
            Some(value) => {
                out.push(b'[');
                write_atom(out, key, names);
                out.push(b',');
                write_atom(out, value, names);
                out.push(b']');
            }
        }
    }
    list.end();
    out.push(b']');
    out
}

/// Writes a datum, with the transaction's new rows referred to by name.
fn write_datum(out: &mut Vec<u8>, datum: &Datum, column: &ColumnSchema, names: &BTreeSet<Uuid>) {
    let column_type: &ColumnType = &column.column_type;
    let is_named = |atom: AtomRef<'_>| atom.as_uuid().is_some_and(|uuid| names.contains(&uuid));
    let has_names = !names.is_empty()
        && datum
            .iter()
            .any(|(key, value)| is_named(key) || value.is_some_and(is_named));
    match datum.first() {
        Some(only) if has_names && datum.len() == 1 && !column_type.is_map() => {
            write_atom(out, only, names);
        }
        _ if has_names => out.extend(elements_json(datum.iter(), column_type.is_map(), names)),
        _ => wire::write_datum(out, datum, column_type.is_map()),
    }
}

fn write_atom(out: &mut Vec<u8>, atom: AtomRef<'_>, names: &BTreeSet<Uuid>) {
    match atom {
        AtomRef::Uuid(uuid) => write_uuid(out, uuid, names),
        atom => wire::write_atom(out, atom),
    }
}

fn write_uuid(out: &mut Vec<u8>, uuid: Uuid, names: &BTreeSet<Uuid>) {
    if names.contains(&uuid) {
        out.extend_from_slice(b"[\"named-uuid\",\"");
        write_name(out, uuid);
        out.extend_from_slice(b"\"]");
    } else {
        wire::write_atom(out, AtomRef::Uuid(uuid));
    }
}

/// The name of a new row.
fn write_name(out: &mut Vec<u8>, uuid: Uuid) {
    out.extend_from_slice(b"row");
    let text = uuid.to_text();
    out.extend(
        text.iter()
            .map(|&byte| if byte == b'-' { b'_' } else { byte }),
    );
}
