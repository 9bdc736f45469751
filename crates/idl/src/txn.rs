//! The open transaction: rows changed in place, and the data needed to restore them
//! (docs/spec/idl.md 1.15, 2, 3).
//!
//! While a transaction is open, the replica shows its view: inserted rows exist, deleted ones do
//! not, and written columns have their new values, also in indexes. Rolling back restores the
//! committed view exactly. The real change arrives as an update.
//!
//! Changes of single elements need no list of their own. A column keeps its value from before the
//! transaction, and the client sends the difference between that and the current value. The table
//! of docs/spec/idl.md 3.2 follows from this:
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
//! Comparing two data skips the memory that they share, so the cost follows the change.
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
//! // Only this element is sent, not the others.
//! idl.add_value(ann, tags, Atom::String("owls".into()))?;
//! assert_eq!(idl.write(ann, age, Datum::empty()).is_err(), true, "one number, says the schema");
//! assert_eq!(idl.begin(), Err(Misuse::TransactionOpen), "one at a time");
//! match idl.commit()? {
//!     Status::Unchanged => {}                     // nothing was sent
//!     Status::Incomplete => {}                    // sent: ask `idl.status(txn)` after each event
//!     Status::TryAgain => {}                      // as here, without a connection
//!     status => panic!("{}", status.name()),
//! }
//! // Final statuses: success, error (see `idl.txn_error(txn)`), try again, not locked.
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

/// The id of a transaction. Ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u64);

/// The status of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The transaction is open.
    Uncommitted,
    /// The transaction changed nothing, so nothing was sent.
    Unchanged,
    /// The transaction was sent. The reply has not arrived, or the replica does not show the
    /// committed change yet.
    Incomplete,
    /// The program aborted the transaction.
    Aborted,
    /// The server committed the transaction, and the replica shows it, unless the connection was
    /// lost first.
    Success,
    /// The transaction was not committed, or its outcome is unknown, for a temporary reason. Once
    /// [`crate::Idl::change_seqno`] differs from its value before the commit, build the transaction
    /// again from the replica's new contents.
    TryAgain,
    /// The client does not hold its lock.
    NotLocked,
    /// The server refused the transaction; [`crate::Idl::txn_refused`] gives the reason.
    Error,
}

impl Status {
    /// The status's name in a program's messages.
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
    /// The final status.
    pub status: Status,
    /// For [`Status::Error`]: the first result that is an error, as JSON.
    pub error: Option<String>,
    /// For [`Status::Error`]: the same error as a value to match.
    pub refused: Option<Refused>,
    /// The new value of the incremented counter, if the transaction had one.
    pub counter: Option<i64>,
    pub(crate) inserted: BTreeMap<Uuid, Uuid>,
}

impl Finished {
    /// The id, on the server, of the row that the transaction inserted as `row`; `None` if the
    /// transaction inserted no such row or failed.
    #[must_use]
    pub fn inserted(&self, row: RowId) -> Option<RowId> {
        let uuid = *self.inserted.get(&row.uuid)?;
        Some(RowId { uuid, ..row })
    }
}

/// An invalid call. The call changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Misuse {
    /// The call needs an open transaction.
    #[error("no transaction is open")]
    NoTransaction,
    /// The call is not allowed while a transaction is open.
    #[error("a transaction is open")]
    TransactionOpen,
    /// The transaction was declared read-only.
    #[error("the transaction is read-only")]
    ReadOnly,
    /// The row does not exist, or no longer exists.
    #[error("there is no such row")]
    RowGone,
    /// The column belongs to another table.
    #[error("the column belongs to another table")]
    WrongTable,
    /// The replica does not hold the column, or its value has not been fetched.
    #[error("the column is not replicated")]
    NotReplicated,
    /// The column may be written only in new rows.
    #[error("the column is immutable")]
    Immutable,
    /// The datum's type is not the column's type.
    #[error("the value has another type than the column")]
    WrongType,
    /// The datum violates a constraint of the column.
    #[error("{0}")]
    Constraint(WireError),
    /// The transaction or the replica already has a row with this UUID.
    #[error("the UUID is in use in this transaction")]
    UuidInUse,
    /// A transaction can increment only one column.
    #[error("the transaction increments a column already")]
    SecondIncrement,
    /// A server would refuse a clause of the condition. The previous condition stays in force.
    #[error(transparent)]
    Condition(#[from] RefusedClause),
    /// A server would refuse a lock with this name.
    #[error("{0:?} cannot name a lock: use letters, digits and _, and begin with no digit")]
    LockName(String),
    /// This process was forked from the one that connected the client.
    #[error("the client belongs to the parent of this process: connect anew after a fork")]
    Forked,
}

/// A transaction's changes of one row.
#[derive(Debug)]
pub(crate) struct TouchedRow {
    pub(crate) state: RowState,
    pub(crate) columns: BTreeMap<ColumnId, TouchedColumn>,
    /// Columns whose values on the server must not have changed.
    pub(crate) verified: BTreeSet<ColumnId>,
    /// Written columns of a new row for which rows have no position.
    pub(crate) unstored: BTreeMap<ColumnId, Datum>,
}

/// Whether a touched row existed and whether it does now.
#[derive(Debug)]
pub(crate) enum RowState {
    /// The row existed and still does.
    Existing,
    /// The row is new. If `is_persistent`, the server keeps its UUID.
    Inserted { is_persistent: bool },
    /// The row existed; these were its contents.
    Deleted(Row),
    /// The row was inserted and deleted again.
    Vanished,
}

/// A transaction's changes of one column of an existing row.
#[derive(Debug)]
pub(crate) struct TouchedColumn {
    /// The value before the transaction.
    pub(crate) base: Datum,
    /// The column was written as a whole, not only by elements.
    pub(crate) is_whole: bool,
}

/// The open transaction.
#[derive(Debug)]
pub(crate) struct OpenTxn {
    pub(crate) id: TxnId,
    pub(crate) rows: BTreeMap<RowId, TouchedRow>,
    /// Rows in the order in which they were first touched.
    pub(crate) order: Vec<RowId>,
    pub(crate) comment: String,
    pub(crate) is_dry_run: bool,
    pub(crate) is_read_only: bool,
    pub(crate) checks: Checks,
    /// The first change that could not become part of the transaction. The commit reports it.
    pub(crate) refused: Option<WireError>,
    pub(crate) increment: Option<Increment>,
    /// Raw operations as JSON.
    pub(crate) raw: Vec<Vec<u8>>,
}

/// Which side checks written values against the schema's constraints: limits, enumerations, numbers
/// of elements, immutable columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// The client: the call that writes a value fails.
    Here,
    /// The server: it refuses the transaction. Its schema applies, which may be newer than the
    /// client's.
    Server,
}

/// A counter to increment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Increment {
    pub(crate) row: RowId,
    pub(crate) column: ColumnId,
    /// Increment even if nothing else changes.
    pub(crate) is_forced: bool,
}

/// A change of one element of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// Add a value to a set.
    Add(Atom),
    /// Remove a value from a set.
    Remove(Atom),
    /// Set the value at a key of a map.
    Set(Atom, Atom),
    /// Remove a key from a map.
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
            // A server would refuse the duplicate. The client refuses at once, because the replica
            // cannot show two rows with one UUID.
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
        // The server would find no row to increment, and the transaction would fail.
        if self.increment.is_some_and(|increment| increment.row == row) {
            self.increment = None;
        }
        let layout = replica.layout(row.table);
        let touched = self.touch(row, RowState::Existing);
        touched.unstored.clear();
        // A rollback restores the row as it was before the transaction, so the base values go back
        // into it.
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
            // Rows have no position for the column, so the value is kept here until the insert is
            // composed.
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
            // The base stays that of the first change. A rollback restores it, and the commit
            // compares with it.
            let column = column.or_insert(TouchedColumn {
                base: old,
                is_whole: true,
            });
            // A whole write outranks earlier element changes: the commit sends the value instead of
            // mutations.
            column.is_whole = true;
        }
        Ok(())
    }

    /// Changes one element of a column. Returns whether the column changed.
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
            // All columns of a new row are known, even those that are not replicated.
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
        // A column that this transaction has written shows its own value, which the server cannot
        // confirm.
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

    /// The value of a column before the transaction, which is the last one that the server sent.
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

    /// Restores all rows to their state before the transaction.
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

/// Checks whether a datum may be written to a column, including references and the number of
/// elements. Its type and characters are checked even if the server checks the constraints: no
/// message can carry another type.
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

/// Whether an atom is a string with a NUL, which no message can carry. A server closes the
/// connection at such a string, so the client would retry the transaction forever.
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

/// Applies `element`. Returns whether the datum changed.
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
