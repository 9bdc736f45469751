//! Transactions: at most one is open, any number are outstanding.
//!
//! The end of a transaction, by commit or abort, returns the replica to the server's contents. A committed change then comes as an update,
//! before the status becomes [`Status::Success`].

use corvid_data::{Atom, ColumnId, Datum, TableId, Uuid, WireError};

use super::{Closed, Idl};
use crate::class::Column;
use crate::row::RowId;
use crate::txn::compose::compose;
use crate::txn::reply::Verdict;
use crate::txn::{
    Checks, Element, Finished, Misuse, OpenTxn, Refused, RowState, Status, TouchedRow, TxnId,
};

/// Beginning and ending.
impl Idl {
    /// Opens a transaction.
    ///
    /// # Errors
    /// One is open.
    pub fn begin(&mut self) -> Result<TxnId, Misuse> {
        if self.open.is_some() {
            return Err(Misuse::TransactionOpen);
        }
        self.last_txn += 1;
        let id = TxnId(self.last_txn);
        self.open = Some(OpenTxn::new(id));
        Ok(id)
    }

    /// The open transaction.
    #[must_use]
    pub fn open_txn(&self) -> Option<TxnId> {
        self.open.as_ref().map(|open| open.id)
    }

    /// Sends the changes of the open transaction. [`Idl::status`] is its status from then on.
    ///
    /// # Errors
    /// None is open.
    pub fn commit(&mut self) -> Result<Status, Misuse> {
        let mut open = self.open.take().ok_or(Misuse::NoTransaction)?;
        let verdict = self.send(&open);
        let status = verdict.status;
        open.roll_back(&mut self.replica);
        self.metrics.count(status);
        self.close(open.id, verdict);
        Ok(status)
    }

    fn send(&mut self, open: &OpenTxn) -> Verdict {
        if !self.client.is_monitoring() {
            return Verdict::of(Status::TryAgain);
        }
        if self.client.lock_name().is_some() && !self.client.has_lock() {
            return Verdict::of(Status::NotLocked);
        }
        // After the reasons that another attempt may cure, as from a server. Nothing is sent: the
        // rest of a transaction is not what the program asked for.
        if let Some(error) = &open.refused {
            return Verdict::refused(error);
        }
        Verdict::of(self.send_composed(open))
    }

    fn send_composed(&mut self, open: &OpenTxn) -> Status {
        let composed = compose(open, &self.replica, self.client.lock_name());
        if !composed.has_updates {
            return Status::Unchanged;
        }
        match self.client.transact(&composed.operations) {
            Some(request) => {
                self.outstanding
                    .insert(request, (open.id, composed.expected));
                Status::Incomplete
            }
            None => Status::TryAgain,
        }
    }

    /// Aborts the open transaction. A transaction that was sent cannot be aborted any more: the server may still commit it.
    pub fn abort(&mut self, txn: TxnId) {
        if self.open_txn() == Some(txn) {
            if let Some(mut open) = self.open.take() {
                open.roll_back(&mut self.replica);
                self.metrics.count(Status::Aborted);
                self.close(txn, Verdict::of(Status::Aborted));
            }
        } else if let Some(closed) = self.closed.get_mut(&txn)
            && closed.verdict.status == Status::Incomplete
        {
            closed.is_abandoned = true;
            closed.verdict = Verdict::of(Status::Aborted);
        }
    }

    fn close(&mut self, txn: TxnId, verdict: Verdict) {
        let closed = Closed {
            verdict,
            is_abandoned: false,
        };
        self.closed.insert(txn, closed);
    }

    /// Drops the record of a transaction; aborts it if it is open.
    pub fn forget(&mut self, txn: TxnId) {
        if self.open_txn() == Some(txn) {
            self.abort(txn);
        }
        self.closed.remove(&txn);
        let (client, outstanding) = (&mut self.client, &mut self.outstanding);
        outstanding.retain(|request, (id, _)| {
            if *id == txn {
                client.forget_request(*request);
            }
            *id != txn
        });
    }

    /// Takes the record of a transaction that is no longer open.
    pub fn finish(&mut self, txn: TxnId) -> Option<Finished> {
        let verdict = self.closed.remove(&txn)?.verdict;
        self.forget(txn);
        Some(Finished {
            status: verdict.status,
            error: verdict.error,
            refused: verdict.refused,
            counter: verdict.counter,
            inserted: verdict.inserted,
        })
    }

    /// The status of a transaction; `None` without a record of it.
    #[must_use]
    pub fn status(&self, txn: TxnId) -> Option<Status> {
        if self.open_txn() == Some(txn) {
            return Some(Status::Uncommitted);
        }
        Some(self.closed.get(&txn)?.verdict.status)
    }

    /// Why a transaction failed, as the JSON of the first result that is an error.
    #[must_use]
    pub fn txn_error(&self, txn: TxnId) -> Option<&str> {
        self.closed.get(&txn)?.verdict.error.as_deref()
    }

    /// Why a transaction failed, as a value to be matched.
    #[must_use]
    pub fn txn_refused(&self, txn: TxnId) -> Option<&Refused> {
        self.closed.get(&txn)?.verdict.refused.as_ref()
    }

    /// The UUID that the server gave a row which a transaction inserted, once that has succeeded.
    #[must_use]
    pub fn inserted_uuid(&self, txn: TxnId, row: RowId) -> Option<Uuid> {
        let verdict = &self.closed.get(&txn)?.verdict;
        verdict.inserted.get(&row.uuid).copied()
    }

    /// The new value of a transaction's counter, once the transaction has succeeded.
    #[must_use]
    pub fn incremented_to(&self, txn: TxnId) -> Option<i64> {
        self.closed.get(&txn)?.verdict.counter
    }

    /// The number of transactions that were sent and are not answered.
    #[must_use]
    pub fn outstanding_count(&self) -> usize {
        self.outstanding.len()
    }
}

/// The changes of the open transaction so far.
impl Idl {
    /// The rows that the open transaction inserts, changes or deletes, in the order in which it
    /// touched them; none without one.
    pub fn touched_rows(&self) -> impl Iterator<Item = RowId> + '_ {
        let open = self.open.iter();
        let touched = open.flat_map(|open| {
            let rows = open.order.iter();
            rows.filter_map(|row| Some((row, open.rows.get(row)?)))
        });
        let is_changed = |touched: &TouchedRow| match touched.state {
            RowState::Existing => !touched.columns.is_empty(),
            RowState::Inserted { .. } | RowState::Deleted(_) => true,
            RowState::Vanished => false,
        };
        let changed = touched.filter(move |(_, touched)| is_changed(touched));
        changed.map(|(row, _)| *row)
    }

    /// The columns of an existing row that the open transaction has changed.
    pub fn written_columns(&self, row: RowId) -> impl Iterator<Item = ColumnId> + '_ {
        let touched = self.open.as_ref().and_then(|open| open.rows.get(&row));
        touched
            .into_iter()
            .flat_map(|touched| touched.columns.keys().copied())
    }
}

/// Changes by the open transaction.
impl Idl {
    fn opened(&mut self) -> Result<&mut OpenTxn, Misuse> {
        self.open.as_mut().ok_or(Misuse::NoTransaction)
    }

    /// Inserts a row with all columns at their defaults. It goes by `uuid` in this transaction only, unless `is_persistent` asks the
    /// server to use it; draw it at random.
    ///
    /// # Errors
    /// No transaction is open, or the UUID is in use.
    pub fn insert(
        &mut self,
        table: TableId,
        uuid: Uuid,
        is_persistent: bool,
    ) -> Result<RowId, Misuse> {
        let open = self.open.as_mut().ok_or(Misuse::NoTransaction)?;
        open.insert(&mut self.replica, table, uuid, is_persistent)
    }

    /// Inserts a row with all columns at their defaults, which goes by a UUID of this client's own until the server gives it another
    /// ([`Idl::inserted_uuid`]).
    ///
    /// # Errors
    /// No transaction is open.
    pub fn insert_new(&mut self, table: TableId) -> Result<RowId, Misuse> {
        loop {
            let uuid = self.provisional.next();
            match self.insert(table, uuid, false) {
                Err(Misuse::UuidInUse) => {}
                other => return other,
            }
        }
    }

    /// Deletes a row. Of a table that is not a root this only hides it here: the server deletes it when the last strong reference goes.
    ///
    /// # Errors
    /// No transaction is open, or the row is not there.
    pub fn delete(&mut self, row: RowId) -> Result<(), Misuse> {
        let open = self.open.as_mut().ok_or(Misuse::NoTransaction)?;
        open.delete(&mut self.replica, row)
    }

    /// Writes a column as a whole. Earlier changes of its elements are gone; later ones change what was written.
    ///
    /// # Errors
    /// No transaction is open, the row is not there, the column is immutable or not held, or the value does not fit it.
    pub fn write(&mut self, row: RowId, column: Column, value: Datum) -> Result<(), Misuse> {
        check_table(row, column)?;
        let open = self.open.as_mut().ok_or(Misuse::NoTransaction)?;
        open.write(&mut self.replica, row, column.id, value)
    }

    /// Changes one element of a set, an optional value or a map. Other clients may change other elements at the same time. Returns whether
    /// the column changed.
    ///
    /// # Errors
    /// As [`Idl::write`].
    pub fn change_element(
        &mut self,
        row: RowId,
        column: Column,
        element: &Element,
    ) -> Result<bool, Misuse> {
        check_table(row, column)?;
        let open = self.open.as_mut().ok_or(Misuse::NoTransaction)?;
        open.change_element(&mut self.replica, row, column.id, element)
    }

    /// Adds a value to a set.
    ///
    /// # Errors
    /// As [`Idl::write`].
    pub fn add_value(&mut self, row: RowId, column: Column, value: Atom) -> Result<bool, Misuse> {
        self.change_element(row, column, &Element::Add(value))
    }

    /// Removes a value from a set.
    ///
    /// # Errors
    /// As [`Idl::write`].
    pub fn remove_value(
        &mut self,
        row: RowId,
        column: Column,
        value: Atom,
    ) -> Result<bool, Misuse> {
        self.change_element(row, column, &Element::Remove(value))
    }

    /// Sets the value at a key of a map.
    ///
    /// # Errors
    /// As [`Idl::write`].
    pub fn set_key(
        &mut self,
        row: RowId,
        column: Column,
        key: Atom,
        value: Atom,
    ) -> Result<bool, Misuse> {
        self.change_element(row, column, &Element::Set(key, value))
    }

    /// Removes a key from a map.
    ///
    /// # Errors
    /// As [`Idl::write`].
    pub fn remove_key(&mut self, row: RowId, column: Column, key: Atom) -> Result<bool, Misuse> {
        self.change_element(row, column, &Element::RemoveKey(key))
    }

    /// Commits only if a column still holds what it holds here; else the status becomes [`Status::TryAgain`]. Call it before writing the
    /// column: for a column that was written or is new it has no effect.
    ///
    /// # Errors
    /// No transaction is open, the row is not there, or the value of the column is not known.
    pub fn verify(&mut self, row: RowId, column: Column) -> Result<(), Misuse> {
        check_table(row, column)?;
        let open = self.open.as_mut().ok_or(Misuse::NoTransaction)?;
        open.verify(&self.replica, row, column.id)
    }

    /// Adds one to an integer at the end of the transaction, if anything else changes or if `is_forced`. The sum is
    /// [`Idl::incremented_to`].
    ///
    /// # Errors
    /// No transaction is open, the row is not there, the column is no integer, or this is the second increment.
    pub fn increment(&mut self, row: RowId, column: Column, is_forced: bool) -> Result<(), Misuse> {
        check_table(row, column)?;
        let open = self.open.as_mut().ok_or(Misuse::NoTransaction)?;
        open.increment(&self.replica, row, column.id, is_forced)
    }

    /// Adds a line to the comment that the server logs.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn add_comment(&mut self, text: &str) -> Result<(), Misuse> {
        let open = self.opened()?;
        if !open.comment.is_empty() {
            open.comment.push('\n');
        }
        open.comment.push_str(text);
        Ok(())
    }

    /// Has the server execute the transaction and roll it back (a dry run); reported as success.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn set_dry_run(&mut self) -> Result<(), Misuse> {
        self.opened()?.is_dry_run = true;
        Ok(())
    }

    /// Refuses changes from now on, or accepts them again.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn set_read_only(&mut self, is_read_only: bool) -> Result<(), Misuse> {
        self.opened()?.is_read_only = is_read_only;
        Ok(())
    }

    /// Leaves the constraints of the schema to the server in the open transaction: limits,
    /// enumerations, numbers of elements, immutable columns. Writes of values that break one
    /// succeed, and the transaction ends as [`Status::Error`] with the server's words. For
    /// interfaces whose calls cannot fail. The server's schema counts, which may be newer than the
    /// client's.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn leave_checks_to_server(&mut self) -> Result<(), Misuse> {
        self.opened()?.checks = Checks::Server;
        Ok(())
    }

    /// Makes the open transaction fail: its commit sends nothing and ends as [`Status::Error`] with
    /// this error; the first one counts. For interfaces whose calls cannot fail, when a change
    /// cannot be made part of the transaction.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn refuse(&mut self, error: WireError) -> Result<(), Misuse> {
        self.opened()?.refused.get_or_insert(error);
        Ok(())
    }

    /// Adds an operation (RFC 7047 5.2) behind all others. The replica does not show its effects before the server's update.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn add_operation(&mut self, operation: &corvid_json::Value) -> Result<(), Misuse> {
        self.opened()?.raw.push(operation.to_bytes());
        Ok(())
    }
}

fn check_table(row: RowId, column: Column) -> Result<(), Misuse> {
    if row.table == column.table {
        Ok(())
    } else {
        Err(Misuse::WrongTable)
    }
}
