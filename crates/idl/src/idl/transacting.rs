//! Transactions: at most one is open, any number are outstanding.
//!
//! Ending a transaction, by commit or abort, returns the replica to the server's contents. A
//! committed change then arrives as an update, before the status becomes [`Status::Success`].

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
    /// A transaction is already open.
    pub fn begin(&mut self) -> Result<TxnId, Misuse> {
        if self.open.is_some() {
            return Err(Misuse::TransactionOpen);
        }
        self.last_txn += 1;
        let id = TxnId(self.last_txn);
        self.open = Some(OpenTxn::new(id));
        Ok(id)
    }

    /// The open transaction, if any.
    #[must_use]
    pub fn open_txn(&self) -> Option<TxnId> {
        self.open.as_ref().map(|open| open.id)
    }

    /// Sends the changes of the open transaction and closes it. Returns its status at once:
    /// [`Status::Incomplete`] if it was sent. From then on [`Idl::status`] returns it.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn commit(&mut self) -> Result<Status, Misuse> {
        let mut open = self.open.take().ok_or(Misuse::NoTransaction)?;
        // Sent before the rollback: the operations are composed from the values that the
        // transaction left in the replica.
        let verdict = self.send(&open);
        let status = verdict.status;
        open.roll_back(&mut self.replica);
        self.metrics.count(status);
        self.close(open.id, verdict);
        Ok(status)
    }

    fn send(&mut self, open: &OpenTxn) -> Verdict {
        // Without a monitor the replica may be out of date, and the transaction was built from it.
        if !self.client.is_monitoring() {
            return Verdict::of(Status::TryAgain);
        }
        // The server would refuse the assertion of the lock.
        if self.client.lock_name().is_some() && !self.client.has_lock() {
            return Verdict::of(Status::NotLocked);
        }
        // Checked last, as a server would: a lost connection or lock may go away with a retry, this
        // error does not. Nothing is sent, because the rest of the transaction is not what the
        // program asked for.
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

    /// Aborts the open transaction. A transaction that was already sent only loses its reply: the
    /// server may still commit it.
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

    /// Drops the record of a transaction, and aborts the transaction if it is open.
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

    /// Takes the record of a transaction that is no longer open; `None` without a record.
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

    /// Why a transaction failed: the first result that is an error, as JSON.
    #[must_use]
    pub fn txn_error(&self, txn: TxnId) -> Option<&str> {
        self.closed.get(&txn)?.verdict.error.as_deref()
    }

    /// Why a transaction failed, as a value to match.
    #[must_use]
    pub fn txn_refused(&self, txn: TxnId) -> Option<&Refused> {
        self.closed.get(&txn)?.verdict.refused.as_ref()
    }

    /// The UUID that the server gave a row that the transaction inserted, once the transaction has
    /// succeeded.
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

    /// Number of transactions that were sent and not answered yet.
    #[must_use]
    pub fn outstanding_count(&self) -> usize {
        self.outstanding.len()
    }
}

/// The changes of the open transaction so far.
impl Idl {
    /// The rows that the open transaction inserts, changes or deletes, in the order of its first
    /// access; empty without a transaction.
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

    /// Inserts a row with all columns at their defaults. `uuid` identifies it only within this
    /// transaction, unless `is_persistent` asks the server to keep the UUID. Choose it at random.
    ///
    /// # Errors
    /// No transaction is open, the transaction is read-only, or the UUID is in use.
    pub fn insert(
        &mut self,
        table: TableId,
        uuid: Uuid,
        is_persistent: bool,
    ) -> Result<RowId, Misuse> {
        let open = self.open.as_mut().ok_or(Misuse::NoTransaction)?;
        open.insert(&mut self.replica, table, uuid, is_persistent)
    }

    /// Inserts a row with all columns at their defaults. The client makes up a UUID for it, which
    /// is valid until the server assigns its own ([`Idl::inserted_uuid`]).
    ///
    /// # Errors
    /// No transaction is open, or the transaction is read-only.
    pub fn insert_new(&mut self, table: TableId) -> Result<RowId, Misuse> {
        loop {
            let uuid = self.provisional.next();
            match self.insert(table, uuid, false) {
                Err(Misuse::UuidInUse) => {}
                other => return other,
            }
        }
    }

    /// Deletes a row. If the table is not a root table, the row is only hidden from the
    /// transaction: the server deletes it with the last strong reference to it.
    ///
    /// # Errors
    /// No transaction is open, the transaction is read-only, or the row does not exist.
    pub fn delete(&mut self, row: RowId) -> Result<(), Misuse> {
        let open = self.open.as_mut().ok_or(Misuse::NoTransaction)?;
        open.delete(&mut self.replica, row)
    }

    /// Writes a column as a whole. This discards earlier changes of its elements; later ones apply
    /// to the written value.
    ///
    /// # Errors
    /// No transaction is open, the transaction is read-only, the row does not exist, the column is
    /// immutable or not replicated, or the value does not fit the column.
    pub fn write(&mut self, row: RowId, column: Column, value: Datum) -> Result<(), Misuse> {
        check_table(row, column)?;
        let open = self.open.as_mut().ok_or(Misuse::NoTransaction)?;
        open.write(&mut self.replica, row, column.id, value)
    }

    /// Changes one element of a set, an optional value or a map. Other clients may change other
    /// elements at the same time. Returns whether the column changed.
    ///
    /// # Errors
    /// Those of [`Idl::write`].
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

    /// Adds a value to a set. Returns whether the column changed.
    ///
    /// # Errors
    /// Those of [`Idl::write`].
    pub fn add_value(&mut self, row: RowId, column: Column, value: Atom) -> Result<bool, Misuse> {
        self.change_element(row, column, &Element::Add(value))
    }

    /// Removes a value from a set. Returns whether the column changed.
    ///
    /// # Errors
    /// Those of [`Idl::write`].
    pub fn remove_value(
        &mut self,
        row: RowId,
        column: Column,
        value: Atom,
    ) -> Result<bool, Misuse> {
        self.change_element(row, column, &Element::Remove(value))
    }

    /// Sets the value at a key of a map. Returns whether the column changed.
    ///
    /// # Errors
    /// Those of [`Idl::write`].
    pub fn set_key(
        &mut self,
        row: RowId,
        column: Column,
        key: Atom,
        value: Atom,
    ) -> Result<bool, Misuse> {
        self.change_element(row, column, &Element::Set(key, value))
    }

    /// Removes a key from a map. Returns whether the column changed.
    ///
    /// # Errors
    /// Those of [`Idl::write`].
    pub fn remove_key(&mut self, row: RowId, column: Column, key: Atom) -> Result<bool, Misuse> {
        self.change_element(row, column, &Element::RemoveKey(key))
    }

    /// Makes the commit depend on a column: if the server's value differs from the replica's by
    /// then, the status becomes [`Status::TryAgain`]. Call this before writing the column. It has
    /// no effect on a column that was already written or whose row is new.
    ///
    /// # Errors
    /// No transaction is open, the row does not exist, or the column's value is unknown.
    pub fn verify(&mut self, row: RowId, column: Column) -> Result<(), Misuse> {
        check_table(row, column)?;
        let open = self.open.as_mut().ok_or(Misuse::NoTransaction)?;
        open.verify(&self.replica, row, column.id)
    }

    /// Adds one to an integer column at the end of the transaction, if the transaction changes
    /// anything else or if `is_forced`. [`Idl::incremented_to`] returns the sum.
    ///
    /// # Errors
    /// No transaction is open, the transaction is read-only, the row does not exist, the column is
    /// not an integer, or the transaction already has an increment.
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

    /// Makes the transaction a dry run: the server executes it and rolls it back. The status is
    /// that of a success.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn set_dry_run(&mut self) -> Result<(), Misuse> {
        self.opened()?.is_dry_run = true;
        Ok(())
    }

    /// Makes the open transaction reject changes from now on, or accept them again.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn set_read_only(&mut self, is_read_only: bool) -> Result<(), Misuse> {
        self.opened()?.is_read_only = is_read_only;
        Ok(())
    }

    /// Leaves the checks of the schema's constraints in the open transaction to the server: limits,
    /// enumerations, numbers of elements, immutable columns. Writes of values that break a
    /// constraint succeed, and the transaction ends as [`Status::Error`] with the server's error.
    /// The server's schema applies, which may be newer than the client's. For interfaces whose
    /// calls cannot fail.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn defer_checks_to_server(&mut self) -> Result<(), Misuse> {
        self.opened()?.checks = Checks::Server;
        Ok(())
    }

    /// Makes the open transaction fail. Its commit sends nothing and ends as [`Status::Error`] with
    /// this error; only the first call counts. For interfaces whose calls cannot fail, if a change
    /// cannot become part of the transaction.
    ///
    /// # Errors
    /// No transaction is open.
    pub fn refuse(&mut self, error: WireError) -> Result<(), Misuse> {
        self.opened()?.refused.get_or_insert(error);
        Ok(())
    }

    /// Adds a raw operation (RFC 7047 5.2) after all other operations. Its effects show only with
    /// the server's update.
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
