//! Fetches columns on demand.

use corvid_data::{ColumnId, TableId, Uuid};

use super::{Idl, IdlLogMessage};
use crate::class::Column;
use crate::fetch::{FetchError, FetchId, FetchOutcome, Scope, select};
use crate::row::RowId;

impl Idl {
    /// Fetches a column of one row. Needs no transaction, and is not part of an open one.
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn fetch_row(&mut self, row: RowId, column: Column) -> Result<FetchId, FetchError> {
        let is_new = self.open.as_ref().is_some_and(|open| open.is_new(row));
        if is_new || self.row(row.table, row.uuid).is_none() || row.table != column.table {
            return Err(FetchError::RowGone);
        }
        self.fetch(Scope::Row(row.table, row.uuid), vec![column.id])
    }

    /// Fetches a column of all rows.
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn fetch_column(&mut self, column: Column) -> Result<FetchId, FetchError> {
        self.fetch(Scope::Column(column.table, column.id), vec![column.id])
    }

    /// Fetches every on-demand column of a table.
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn fetch_table(&mut self, table: TableId) -> Result<FetchId, FetchError> {
        let columns = self.replica.class.schema.table(table).iter();
        let columns = columns.map(|(id, _)| id).collect();
        self.fetch(Scope::Table(table), columns)
    }

    fn fetch(&mut self, scope: Scope, columns: Vec<ColumnId>) -> Result<FetchId, FetchError> {
        let (Scope::Row(table, _) | Scope::Column(table, _) | Scope::Table(table)) = scope;
        let (mut wanted, mut missing) = (Vec::new(), Vec::new());
        for id in columns {
            if !self.replica.mode(table, id).is_on_demand {
                continue;
            }
            let is_there = self.server_column(Column { table, id }).is_some();
            if is_there {
                wanted.push(id);
            } else {
                missing.push(id);
            }
        }
        if !self.client.is_monitoring() {
            return Err(FetchError::NotConnected);
        }
        for id in missing {
            let name = &self.column(Column { table, id }).name;
            let table = &self.replica.class.schema.table(table).name;
            let text = format!("column {name} of table {table} is not in the database");
            self.log.push(IdlLogMessage::Column(text));
        }
        if wanted.is_empty() {
            return Err(FetchError::NotOnDemand);
        }
        let operation = select(&self.replica, &scope, &wanted);
        let request = self.client.transact(&operation);
        let request = request.ok_or(FetchError::NotConnected)?;
        Ok(self.fetches.begun(request, scope, wanted))
    }

    /// Whether fetches of this row, for any column, are pending.
    #[must_use]
    pub fn is_row_fetch_pending(&self, row: RowId) -> bool {
        self.fetches.is_pending(&Scope::Row(row.table, row.uuid))
    }

    /// Whether fetches of this column in all rows are pending.
    #[must_use]
    pub fn is_column_fetch_pending(&self, column: Column) -> bool {
        self.fetches
            .is_pending(&Scope::Column(column.table, column.id))
    }

    /// Whether fetches of the whole table are pending.
    #[must_use]
    pub fn is_table_fetch_pending(&self, table: TableId) -> bool {
        self.fetches.is_pending(&Scope::Table(table))
    }

    /// How a fetch ended. A final outcome is returned once; after that, `None`.
    pub fn take_fetch_outcome(&mut self, fetch: FetchId) -> Option<FetchOutcome> {
        self.fetches.take_outcome(fetch)
    }

    /// Whether a column of a row was fetched since the replica last received the row.
    #[must_use]
    pub fn is_fetched(&self, row: RowId, column: Column) -> bool {
        let watch = &self.replica.watches[usize::from(row.table.0)];
        let cell: (Uuid, ColumnId) = (row.uuid, column.id);
        row.table == column.table && watch.fetched.contains(&cell)
    }
}
