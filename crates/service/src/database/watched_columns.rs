//! Columns of this database that configure the server's remotes: reported when the server begins to watch them and whenever they change;
//! and the rows behind them, which show the status of the remotes.

use corvid_data::Delta;
use corvid_engine::Database;

use super::{DatabaseService, Now};
use crate::message::Event;
use crate::remote_rows::{RemoteColumn, RemoteRows};
use crate::remote_status::{RemoteStatuses, WriteBack, write_back};

/// One watched column.
pub(super) struct WatchedColumn {
    /// The remote's text, `db:DB,TABLE,COLUMN`.
    pub(super) name: String,
    table_name: String,
    column_name: String,
    /// Only a column of strings may be watched.
    texts_only: bool,
    /// The column, or why the present schema has none.
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
        // A column that does not exist now may come with a conversion.
        self.watched_columns.push(watched);
        self.outputs.events.push(Event::ColumnWatched(name, found));
    }

    /// Reports watched columns that a commit changed. Costs nothing unless the commit touched their tables.
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

    /// Reports watched columns that differ from the last report, after commits were undone.
    pub(super) fn report_remotes_again(&mut self) {
        for watched in &mut self.watched_columns {
            self.outputs
                .events
                .extend(watched.change_event(&self.database));
        }
    }

    /// Writes the status of remotes to the rows behind watched columns. The rows of a backup are copies and are not changed.
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
                self.transact_as_server(now, &params);
            }
        }
    }

    /// Finds watched columns again under a new schema. A column that has become unusable is reported once.
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
    /// Finds the column in the present schema.
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
