//! The open transaction: rows changed in place, and what is needed to put them back (docs/spec/idl.md 1.15, 2, 3).
//!
//! While it is open, the replica shows the transaction's view: inserted rows are there, deleted ones are not, written columns have their
//! new values, also in indexes. Rolling it back restores the committed view exactly; the real change arrives as an update.
//!
//! Changes of single elements need no list of their own: a column keeps its value from before the transaction, and what is sent is the
//! difference between that and the present one. This gives the table of docs/spec/idl.md 3.2 by itself:
//!
//! ```text
//! before   done                          now      sent
//! {}       set k=1, remove k             {}       nothing
//! {k:1}    set k=2, set k=1              {k:1}    nothing
//! {k:1}    remove k, set k=3             {k:3}    delete [k], insert [k,3]
//! {x}      add x                         {x}      nothing
//! {x}      remove x, add x, remove x     {}       delete [x]
//! ```
//!
//! Two data that share memory are compared without being walked, so this costs what changed.
//!
//! ```
//! use corvid_data::{Arc, Atom, Datum, Schema};
//! use corvid_idl::{Class, Idl, Misuse, Status};
//! use corvid_json::Value;
//!
//! let schema = br#"{"name":"Zoo","version":"1.0.0","tables":{"Keeper":{"isRoot":true,"columns":{
//!     "name":{"type":"string"},"age":{"type":"integer"},"photo":{"type":"string"},
//!     "tags":{"type":{"key":"string","min":0,"max":"unlimited"}}}}}}"#;
//! let schema = Arc::new(Schema::from_json(&Value::parse(schema).unwrap()).unwrap());
//! let class = Class::everything(schema);
//! let (age, tags) = (class.column("Keeper", "age")?, class.column("Keeper", "tags")?);
//! let mut idl = Idl::new(class, 1);
//!
//! let txn = idl.begin()?;
//! let ann = idl.insert_new(age.table)?;
//! idl.write(ann, age, Datum::one(Atom::Integer(40)))?;
//! idl.add_value(ann, tags, Atom::String("owls".into()))?;          // one element; the others are not sent
//! assert_eq!(idl.write(ann, age, Datum::empty()).is_err(), true, "one number, says the schema");
//! assert_eq!(idl.begin(), Err(Misuse::TransactionOpen), "one at a time");
//! match idl.commit()? {
//!     Status::Unchanged => {}                     // nothing was sent
//!     Status::Incomplete => {}                    // sent: ask `idl.status(txn)` when something has happened
//!     Status::TryAgain => {}                      // as here, without a connection
//!     status => panic!("{}", status.name()),
//! }
//! // In the end: success, error (`idl.txn_error(txn)` in the words of the server), try again, not locked.
//! assert_eq!(idl.status(txn), Some(Status::TryAgain));
//! assert_eq!(idl.row(ann.table, ann.uuid), None, "put back: what the server accepts comes as a change");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod compose;
pub mod refused;
pub(crate) mod reply;

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::{Atom, AtomRef, ColumnId, ColumnType, Datum, TableId, Uuid, WireError};
use corvid_session::RefusedClause;
use thiserror::Error;

pub use refused::Refused;

use crate::replica::Replica;
use crate::row::{Row, RowId};

/// A transaction; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u64);

/// The status of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is open.
    Uncommitted,
    /// There was nothing to send.
    Unchanged,
    /// It was sent; the answer is not there yet, or the replica does not show yet what was committed.
    Incomplete,
    /// It was given up before it was committed.
    Aborted,
    /// It was committed, and the replica shows it, unless the connection was lost first.
    Success,
    /// It was not committed, or that is unknown, for a temporary reason. When [`crate::Idl::change_seqno`] differs from what it was before
    /// the commit, make the transaction again, from what the replica then shows.
    TryAgain,
    /// The lock is not held.
    NotLocked,
    /// It was refused; [`crate::Idl::txn_refused`] says why.
    Error,
}

impl Status {
    /// Its name in messages of programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::Uncommitted => "uncommitted",
            Status::Unchanged => "unchanged",
            Status::Incomplete => "incomplete",
            Status::Aborted => "aborted",
            Status::Success => "success",
            Status::TryAgain => "try again",
            Status::NotLocked => "not locked",
            Status::Error => "error",
        }
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// In one word.
    pub status: Status,
    /// For [`Status::Error`]: the first result that is one, as JSON.
    pub error: Option<String>,
    /// For [`Status::Error`]: the same as a value to be matched.
    pub refused: Option<Refused>,
    /// The new value of the incremented counter.
    pub counter: Option<i64>,
    pub(crate) inserted: BTreeMap<Uuid, Uuid>,
}

impl Finished {
    /// The row as the server knows it that was inserted under this handle, if the transaction succeeded.
    #[must_use]
    pub fn inserted(&self, row: RowId) -> Option<RowId> {
        let uuid = *self.inserted.get(&row.uuid)?;
        Some(RowId { uuid, ..row })
    }
}

/// A call that makes no sense where it is made. Nothing has changed by it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Misuse {
    /// It needs an open transaction.
    #[error("no transaction is open")]
    NoTransaction,
    /// It needs that none is open.
    #[error("a transaction is open")]
    TransactionOpen,
    /// The transaction was declared to read only.
    #[error("the transaction is read-only")]
    ReadOnly,
    /// The row is not there, or no longer.
    #[error("there is no such row")]
    RowGone,
    /// The column belongs to another table.
    #[error("the column belongs to another table")]
    WrongTable,
    /// The replica does not hold the column, or not yet.
    #[error("the column is not replicated")]
    NotReplicated,
    /// The column may only be written in new rows.
    #[error("the column is immutable")]
    Immutable,
    /// The datum has another type.
    #[error("the value has another type than the column")]
    WrongType,
    /// The datum breaks a constraint of the column.
    #[error("{0}")]
    Constraint(WireError),
    /// The transaction has a row of this UUID already.
    #[error("the UUID is in use in this transaction")]
    UuidInUse,
    /// A transaction increments at most one column.
    #[error("the transaction increments a column already")]
    SecondIncrement,
    /// A server would refuse a clause of the condition. The condition in force stays.
    #[error(transparent)]
    Condition(#[from] RefusedClause),
    /// A server would refuse to queue a client for a lock of this name.
    #[error("{0:?} cannot name a lock: use letters, digits and _, and begin with no digit")]
    LockName(String),
    /// The client was connected by the process that this one was forked from.
    #[error("the client belongs to the parent of this process: connect anew after a fork")]
    Forked,
}

/// A transaction's changes of one row.
#[derive(Debug)]
pub(crate) struct TouchedRow {
    pub(crate) state: RowState,
    pub(crate) columns: BTreeMap<ColumnId, TouchedColumn>,
    /// Columns that must still hold what they held.
    pub(crate) verified: BTreeSet<ColumnId>,
    /// Written columns of a new row that rows have no place for.
    pub(crate) unstored: BTreeMap<ColumnId, Datum>,
}

/// Whether a touched row is there.
#[derive(Debug)]
pub(crate) enum RowState {
    /// It was, and is.
    Existing,
    /// It is new; with the UUID that it has here, if so wished.
    Inserted { is_persistent: bool },
    /// It was; this is what it held.
    Deleted(Row),
    /// It was new.
    Vanished,
}

/// A transaction's changes of one column of an existing row.
#[derive(Debug)]
pub(crate) struct TouchedColumn {
    /// The value from before the transaction.
    pub(crate) base: Datum,
    /// It was written as a whole, not by elements only.
    pub(crate) is_whole: bool,
}

/// The open transaction.
#[derive(Debug)]
pub(crate) struct OpenTxn {
    pub(crate) id: TxnId,
    pub(crate) rows: BTreeMap<RowId, TouchedRow>,
    /// Rows as they were first touched.
    pub(crate) order: Vec<RowId>,
    pub(crate) comment: String,
    pub(crate) is_dry_run: bool,
    pub(crate) is_read_only: bool,
    pub(crate) checks: Checks,
    /// The first change that could not be made part of the transaction. The commit reports it.
    pub(crate) refused: Option<WireError>,
    pub(crate) increment: Option<Increment>,
    /// Operations as JSON.
    pub(crate) raw: Vec<Vec<u8>>,
}

/// The side that checks written values against the constraints of the schema: limits, enumerations,
/// numbers of elements, immutable columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// The call that writes a value fails.
    Here,
    /// The server refuses the transaction. Its schema counts, which may be newer than the client's.
    Server,
}

/// A counter to be incremented.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Increment {
    pub(crate) row: RowId,
    pub(crate) column: ColumnId,
    /// Even if nothing else changes.
    pub(crate) is_forced: bool,
}

/// An element that a partial change puts into a column or takes from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// Put into a set.
    Add(Atom),
    /// Taken from a set.
    Remove(Atom),
    /// A pair of a map.
    Set(Atom, Atom),
    /// Taken from a map.
    RemoveKey(Atom),
}

impl OpenTxn {
    pub(crate) fn new(id: TxnId) -> OpenTxn {
        OpenTxn {
            id,
            rows: BTreeMap::new(),
            order: Vec::new(),
            comment: String::new(),
            is_dry_run: false,
            is_read_only: false,
            checks: Checks::Here,
            refused: None,
            increment: None,
            raw: Vec::new(),
        }
    }

    fn check_writable(&self) -> Result<(), Misuse> {
        if self.is_read_only {
            return Err(Misuse::ReadOnly);
        }
        Ok(())
    }

    pub(crate) fn is_new(&self, row: RowId) -> bool {
        self.rows
            .get(&row)
            .is_some_and(|touched| matches!(touched.state, RowState::Inserted { .. }))
    }

    fn touch(&mut self, row: RowId, state: RowState) -> &mut TouchedRow {
        let order = &mut self.order;
        self.rows.entry(row).or_insert_with(|| {
            order.push(row);
            TouchedRow {
                state,
                columns: BTreeMap::new(),
                verified: BTreeSet::new(),
                unstored: BTreeMap::new(),
            }
        })
    }

    pub(crate) fn insert(
        &mut self,
        replica: &mut Replica,
        table: TableId,
        uuid: Uuid,
        is_persistent: bool,
    ) -> Result<RowId, Misuse> {
        self.check_writable()?;
        let row = RowId { table, uuid };
        if self.rows.contains_key(&row) {
            return Err(Misuse::UuidInUse);
        }
        if replica.table(table).contains(uuid) {
            // For the server to refuse; here nothing could be shown beside the row that is there.
            return Err(Misuse::UuidInUse);
        }
        let columns = replica.layout(table).defaults.clone();
        replica.table_mut(table).insert(Row { uuid, columns });
        self.touch(row, RowState::Inserted { is_persistent });
        Ok(row)
    }

    pub(crate) fn delete(&mut self, replica: &mut Replica, row: RowId) -> Result<(), Misuse> {
        self.check_writable()?;
        let mut held = (replica.table_mut(row.table).remove(row.uuid)).ok_or(Misuse::RowGone)?;
        if self.increment.is_some_and(|increment| increment.row == row) {
            self.increment = None;
        }
        let layout = replica.layout(row.table);
        let touched = self.touch(row, RowState::Existing);
        touched.unstored.clear();
        for (column, before) in std::mem::take(&mut touched.columns) {
            if let Some(place) = layout.place(column) {
                held.columns[place] = before.base;
            }
        }
        touched.state = match touched.state {
            RowState::Inserted { .. } => RowState::Vanished,
            _ => RowState::Deleted(held),
        };
        Ok(())
    }

    pub(crate) fn write(
        &mut self,
        replica: &mut Replica,
        row: RowId,
        column: ColumnId,
        value: Datum,
    ) -> Result<(), Misuse> {
        self.check_writable()?;
        let slot = replica.table(row.table).slot(row.uuid);
        let slot = slot.ok_or(Misuse::RowGone)?;
        let is_new = self.is_new(row);
        let schema = replica.class.schema.table(row.table).column(column);
        if !schema.mutable && !is_new && self.checks == Checks::Here {
            return Err(Misuse::Immutable);
        }
        check(&value, &schema.column_type, self.checks)?;
        let Some(place) = replica.layout(row.table).place(column) else {
            if !is_new {
                return Err(Misuse::NotReplicated);
            }
            let touched = self.touch(row, RowState::Existing);
            touched.unstored.insert(column, value);
            return Ok(());
        };
        let mode = replica.mode(row.table, column);
        let held = replica.table(row.table).at(slot);
        let is_equal = held.is_some_and(|held| held.columns[place] == value);
        if is_equal && !is_new && mode.drops_equal_writes() {
            return Ok(());
        }
        let old = replica.table_mut(row.table).set(slot, place, value);
        if let (Some(old), false) = (old, is_new) {
            let touched = self.touch(row, RowState::Existing);
            let column = touched.columns.entry(column);
            let column = column.or_insert(TouchedColumn {
                base: old,
                is_whole: true,
            });
            column.is_whole = true;
        }
        Ok(())
    }

    /// Changes one element of a column; whether that changed anything.
    pub(crate) fn change_element(
        &mut self,
        replica: &mut Replica,
        row: RowId,
        column: ColumnId,
        element: &Element,
    ) -> Result<bool, Misuse> {
        self.check_writable()?;
        let slot = replica.table(row.table).slot(row.uuid);
        let slot = slot.ok_or(Misuse::RowGone)?;
        let is_new = self.is_new(row);
        let schema = replica.class.schema.table(row.table).column(column);
        if !schema.mutable && !is_new && self.checks == Checks::Here {
            return Err(Misuse::Immutable);
        }
        check_element(element, &schema.column_type, self.checks)?;
        let Some(place) = replica.layout(row.table).place(column) else {
            if !is_new {
                return Err(Misuse::NotReplicated);
            }
            // Of a new row everything is known, also a column that is not replicated.
            let default = Datum::default_for(&schema.column_type);
            let touched = self.touch(row, RowState::Existing);
            let value = touched.unstored.entry(column).or_insert(default);
            return Ok(apply(element, value));
        };
        let (base, is_changed) = replica
            .table_mut(row.table)
            .change(slot, &[place], |columns| {
                let base = columns[place].clone();
                let is_changed = apply(element, &mut columns[place]);
                (base, is_changed)
            })
            .ok_or(Misuse::RowGone)?;
        if is_changed && !is_new {
            let touched = self.touch(row, RowState::Existing);
            touched.columns.entry(column).or_insert(TouchedColumn {
                base,
                is_whole: false,
            });
        }
        Ok(is_changed)
    }

    pub(crate) fn verify(
        &mut self,
        replica: &Replica,
        row: RowId,
        column: ColumnId,
    ) -> Result<(), Misuse> {
        if !replica.table(row.table).contains(row.uuid) {
            return Err(Misuse::RowGone);
        }
        let mode = replica.mode(row.table, column);
        let watch = &replica.watches[usize::from(row.table.0)];
        let is_known = mode.is_monitored || watch.fetched.contains(&(row.uuid, column));
        if self.is_new(row) {
            return Ok(());
        }
        if !is_known {
            return Err(Misuse::NotReplicated);
        }
        let touched = self.touch(row, RowState::Existing);
        if !touched.columns.contains_key(&column) {
            touched.verified.insert(column);
        }
        Ok(())
    }

    pub(crate) fn increment(
        &mut self,
        replica: &Replica,
        row: RowId,
        column: ColumnId,
        is_forced: bool,
    ) -> Result<(), Misuse> {
        self.check_writable()?;
        if !replica.table(row.table).contains(row.uuid) {
            return Err(Misuse::RowGone);
        }
        let schema = replica.class.schema.table(row.table).column(column);
        let column_type = &schema.column_type;
        if !column_type.is_scalar() || column_type.key.atom != corvid_data::AtomType::Integer {
            return Err(Misuse::WrongType);
        }
        if self.increment.is_some() {
            return Err(Misuse::SecondIncrement);
        }
        self.increment = Some(Increment {
            row,
            column,
            is_forced,
        });
        Ok(())
    }

    /// The value of a column before the transaction, which is the server's last known value.
    pub(crate) fn committed<'a>(
        &'a self,
        replica: &'a Replica,
        row: RowId,
        column: ColumnId,
    ) -> Option<&'a Datum> {
        let place = replica.layout(row.table).place(column)?;
        if let Some(touched) = self.rows.get(&row) {
            match &touched.state {
                RowState::Inserted { .. } | RowState::Vanished => return None,
                RowState::Deleted(held) => return Some(&held.columns[place]),
                RowState::Existing => {}
            }
            if let Some(touched) = touched.columns.get(&column) {
                return Some(&touched.base);
            }
        }
        Some(&replica.table(row.table).get(row.uuid)?.columns[place])
    }

    /// Puts everything back.
    pub(crate) fn roll_back(&mut self, replica: &mut Replica) {
        for (row, touched) in std::mem::take(&mut self.rows) {
            match touched.state {
                RowState::Vanished => {}
                RowState::Inserted { .. } => {
                    replica.table_mut(row.table).remove(row.uuid);
                }
                RowState::Deleted(held) => replica.table_mut(row.table).insert(held),
                RowState::Existing => {
                    let Some(slot) = replica.table(row.table).slot(row.uuid) else {
                        continue;
                    };
                    for (column, before) in touched.columns {
                        if let Some(place) = replica.layout(row.table).place(column) {
                            let table = replica.table_mut(row.table);
                            table.set(slot, place, before.base);
                        }
                    }
                }
            }
        }
    }
}

/// Whether a datum may be written to a column, references and limits of the number of elements
/// included. Its type and characters are checked in any case: no message can carry another type.
fn check(datum: &Datum, column_type: &ColumnType, checks: Checks) -> Result<(), Misuse> {
    let is_typed = datum.iter().all(|(key, value)| {
        key.atom_type() == column_type.key.atom
            && value.map(AtomRef::atom_type) == column_type.value.as_ref().map(|base| base.atom)
    });
    if !is_typed {
        return Err(Misuse::WrongType);
    }
    if checks == Checks::Here && !column_type.admits(datum.len()) {
        return Err(Misuse::Constraint(WireError::new(
            corvid_data::Tag::ConstraintViolation,
            column_type.count_problem(datum.len()),
        )));
    }
    let mut atoms = datum.iter().flat_map(|(key, value)| [Some(key), value]);
    if atoms.any(|atom| atom.is_some_and(has_nul)) {
        return Err(nul());
    }
    match checks {
        Checks::Here => column_type.check(datum).map_err(Misuse::Constraint),
        Checks::Server => Ok(()),
    }
}

fn check_element(
    element: &Element,
    column_type: &ColumnType,
    checks: Checks,
) -> Result<(), Misuse> {
    let (key, value) = match element {
        Element::Add(key) | Element::Remove(key) if !column_type.is_map() => (key, None),
        Element::RemoveKey(key) if column_type.is_map() => (key, None),
        Element::Set(key, value) if column_type.is_map() => (key, Some(value)),
        _ => return Err(Misuse::WrongType),
    };
    let typed = [
        Some((key, &column_type.key)),
        value.zip(column_type.value.as_ref()),
    ];
    for (atom, base) in typed.into_iter().flatten() {
        if atom.as_ref().atom_type() != base.atom {
            return Err(Misuse::WrongType);
        }
        if has_nul(atom.as_ref()) {
            return Err(nul());
        }
        let is_added = !matches!(element, Element::Remove(_) | Element::RemoveKey(_));
        if is_added && checks == Checks::Here {
            base.check(atom.as_ref()).map_err(Misuse::Constraint)?;
        }
    }
    Ok(())
}

/// Whether an atom is a text that no message can carry: a server closes the connection at it, so the transaction would be tried for ever.
fn has_nul(atom: AtomRef<'_>) -> bool {
    atom.as_string().is_some_and(|text| text.contains('\0'))
}

fn nul() -> Misuse {
    let details = "a string of a database has no NUL character";
    Misuse::Constraint(WireError::new(
        corvid_data::Tag::ConstraintViolation,
        details,
    ))
}

/// Whether the datum changed.
fn apply(element: &Element, datum: &mut Datum) -> bool {
    match element {
        Element::Add(key) => datum.insert(key.clone(), None),
        Element::Remove(key) | Element::RemoveKey(key) => datum.remove(key.as_ref()),
        Element::Set(key, value) => {
            let is_news = datum.get(key.as_ref()) != Some(value.as_ref());
            if is_news {
                datum.replace(key.clone(), value.clone());
            }
            is_news
        }
    }
}
