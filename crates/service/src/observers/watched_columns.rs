//! Columns of this database that configure the server's remotes: reported when the server begins to
//! watch them and whenever they change; and the rows that they refer to, which show the status of
//! the remotes.

use corvid_data::Delta;
use corvid_engine::Database;

use crate::message::Event;
use crate::remote_rows::{RemoteColumn, RemoteRows};
use crate::remote_status::{RemoteStatuses, WriteBack, write_back};

/// The watched columns, with the remotes that were last reported.
#[derive(Default)]
pub(crate) struct WatchedColumns(Vec<WatchedColumn>);

/// One watched column.
struct WatchedColumn {
    /// The remote's text, `db:DB,TABLE,COLUMN`.
    name: String,
    table_name: String,
    column_name: String,
    /// Only a column of strings may be watched.
    texts_only: bool,
    /// The column, or why the present schema has none.
    column: Result<RemoteColumn, String>,
    reported: RemoteRows,
}

impl WatchedColumns {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Watches a column of `database` from now on, in place of another one of this name. Returns
    /// the first report.
    pub(crate) fn watch(
        &mut self,
        name: String,
        table: &str,
        column_name: &str,
        texts_only: bool,
        database: &Database,
    ) -> Event {
        self.unwatch(&name);
        let mut watched = WatchedColumn {
            name: name.clone(),
            table_name: table.to_owned(),
            column_name: column_name.to_owned(),
            texts_only,
            column: Err(String::new()),
            reported: RemoteRows::new(),
        };
        watched.column = watched.find(database);
        watched.reported = watched.read(database);
        let found = watched.column.as_ref().map(|_| watched.reported.clone());
        let found = found.map_err(String::clone);
        // A column that does not exist now may come with a conversion.
        self.0.push(watched);
        Event::ColumnWatched(name, found)
    }

    /// Ends the watch of the column with this name.
    pub(crate) fn unwatch(&mut self, name: &str) {
        self.0.retain(|watched| watched.name != name);
    }

    /// Ends all watches.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The columns that a commit changed. Costs nothing unless the commit touched their tables.
    pub(super) fn changed_by<'a>(
        &'a mut self,
        delta: &'a Delta,
        database: &'a Database,
    ) -> impl Iterator<Item = Event> + 'a {
        self.0.iter_mut().filter_map(move |watched| {
            let column = watched.column.as_ref().ok()?;
            let mut changes = delta.changes.iter();
            let is_touched = changes.any(|change| column.depends_on(change.table));
            is_touched.then(|| watched.change_event(database)).flatten()
        })
    }

    /// The columns that differ from the last report.
    pub(super) fn changed<'a>(
        &'a mut self,
        database: &'a Database,
    ) -> impl Iterator<Item = Event> + 'a {
        let columns = self.0.iter_mut();
        columns.filter_map(move |watched| watched.change_event(database))
    }

    /// Finds the columns again under the schema of `database`. A column that has become unusable is
    /// reported once.
    pub(crate) fn rebind<'a>(
        &'a mut self,
        database: &'a Database,
    ) -> impl Iterator<Item = Event> + 'a {
        self.0.iter_mut().flat_map(move |watched| {
            let column = watched.find(database);
            let problem = column.as_ref().err().cloned();
            let is_new = problem != watched.column.as_ref().err().cloned();
            watched.column = column;
            let changed = watched.change_event(database);
            let problem = problem.filter(|_| is_new);
            changed.into_iter().chain(problem.map(Event::ColumnLost))
        })
    }

    /// The transactions that write the status of remotes to the rows that the columns refer to.
    pub(crate) fn write_back(
        &self,
        database: &Database,
        statuses: &RemoteStatuses,
    ) -> Vec<WriteBack> {
        let columns = self.0.iter();
        let columns = columns.filter_map(|watched| watched.column.as_ref().ok());
        columns
            .map(|column| write_back(database, column, statuses))
            .collect()
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
