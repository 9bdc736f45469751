//! Columns of this database that configure the server's remotes: read when asked, reported again when they change; and the rows
//! behind them, which show how the remotes stand.

use corvid_data::Delta;
use corvid_engine::Database;

use super::{DatabaseService, Now};
use crate::message::Event;
use crate::remote_rows::{RemoteColumn, RemoteRows};
use crate::remote_status::{RemoteStatuses, WriteBack, write_back};

/// One followed column.
pub(super) struct WatchedColumn {
    /// The remote's text, `db:DB,TABLE,COLUMN`.
    pub(super) name: String,
    table_name: String,
    column_name: String,
    /// Only a column of strings will do.
    texts_only: bool,
    /// Why there is none while the schema has no such column.
    column: Result<RemoteColumn, String>,
    reported: RemoteRows,
}

impl DatabaseService {
    pub(super) fn watch_column(
        &mut self,
        name: String,
        table: &str,
        column_name: &str,
        texts_only: bool,
    ) {
        self.watched_columns.retain(|watched| watched.name != name);
        let mut watched = WatchedColumn {
            name: name.clone(),
            table_name: table.to_owned(),
            column_name: column_name.to_owned(),
            texts_only,
            column: Err(String::new()),
            reported: RemoteRows::new(),
        };
        watched.column = watched.find(&self.database);
        watched.reported = watched.read(&self.database);
        let found = watched.column.as_ref().map(|_| watched.reported.clone());
        let found = found.map_err(String::clone);
        // A column that is not there now may come with a conversion.
        self.watched_columns.push(watched);
        self.outputs.events.push(Event::ColumnWatched(name, found));
    }

    /// Reports followed columns that a commit changed. Costs nothing unless it touched their tables.
    pub(super) fn report_remotes(&mut self, delta: &Delta) {
        for watched in &mut self.watched_columns {
            let Ok(column) = &watched.column else {
                continue;
            };
            if delta
                .changes
                .iter()
                .any(|change| column.depends_on(change.table))
            {
                self.outputs
                    .events
                    .extend(watched.change_event(&self.database));
            }
        }
    }

    /// Reports followed columns that differ from what was last reported, after commits were undone.
    pub(super) fn report_remotes_again(&mut self) {
        for watched in &mut self.watched_columns {
            self.outputs
                .events
                .extend(watched.change_event(&self.database));
        }
    }

    /// Makes the rows behind followed columns show how their remotes stand. Those of a backup are copies and stay so.
    pub(super) fn show_status(&mut self, now: Now, statuses: &RemoteStatuses) {
        if !self.model.accepts_server_writes() {
            return;
        }
        let columns = self
            .watched_columns
            .iter()
            .filter_map(|watched| watched.column.as_ref().ok());
        let all: Vec<WriteBack> = columns
            .map(|column| write_back(&self.database, column, statuses))
            .collect();
        for write_back in all {
            let missing = write_back.without_status.map(Event::NoStatusColumn);
            self.outputs.events.extend(missing);
            let missing = write_back.without_target.map(Event::NoTarget);
            self.outputs.events.extend(missing);
            if let Some(params) = write_back.params {
                self.transact_internally(now, &params);
            }
        }
    }

    /// Finds followed columns again under a new schema. A column that has become unusable is reported once.
    pub(super) fn rebind_watched_columns(&mut self) {
        for watched in &mut self.watched_columns {
            let column = watched.find(&self.database);
            let problem = column.as_ref().err().cloned();
            let is_new = problem != watched.column.as_ref().err().cloned();
            watched.column = column;
            self.outputs
                .events
                .extend(watched.change_event(&self.database));
            let problem = problem.filter(|_| is_new);
            self.outputs.events.extend(problem.map(Event::ColumnLost));
        }
    }
}

impl WatchedColumn {
    /// Looks for the column in the schema as it is now.
    fn find(&self, database: &Database) -> Result<RemoteColumn, String> {
        let (name, table, column) = (&self.name, &self.table_name, &self.column_name);
        let found = RemoteColumn::find(database, name, table, column)?;
        if self.texts_only && !found.holds_texts() {
            return Err(format!(
                "\"{name}\": table \"{table}\" column \"{column}\" is not string or set of strings"
            ));
        }
        Ok(found)
    }

    /// The remotes that the column names now.
    fn read(&self, database: &Database) -> RemoteRows {
        let column = self.column.as_ref();
        column.map_or_else(|_| RemoteRows::new(), |column| column.read(database))
    }

    /// The event that reports a change, if there is one.
    fn change_event(&mut self, database: &Database) -> Option<Event> {
        let remotes = self.read(database);
        (remotes != self.reported).then(|| {
            self.reported.clone_from(&remotes);
            Event::RemotesChanged(self.name.clone(), remotes)
        })
    }
}
