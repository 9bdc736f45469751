//! Columns of this database that configure the server's remotes: read when asked, reported again when they change; and the rows
//! behind them, which show how the remotes stand.

use corvid_data::Delta;
use corvid_engine::Database;

use super::{DatabaseService, Now};
use crate::message::Event;
use crate::remote_rows::{RemoteColumn, RemoteRows};
use crate::remote_status::{RemoteStatuses, WriteBack, write_back};

/// One followed column.
pub(super) struct Followed {
    /// The remote's text, `db:DB,TABLE,COLUMN`.
    pub(super) name: String,
    table_name: String,
    column_name: String,
    /// `None` while the schema has no such column.
    column: Option<RemoteColumn>,
    reported: RemoteRows,
}

impl DatabaseService {
    pub(super) fn follow(
        &mut self,
        name: String,
        table: &str,
        column_name: &str,
        texts_only: bool,
    ) {
        self.followed.retain(|followed| followed.name != name);
        let column = RemoteColumn::find(&self.database, &name, table, column_name);
        let column = column.and_then(|column| {
            if !texts_only || column.holds_texts() {
                return Ok(column);
            }
            Err(format!(
                "\"{name}\": table \"{table}\" column \"{column_name}\" is not string or set of strings"
            ))
        });
        let found = column.map(|column| {
            let reported = column.read(&self.database);
            self.followed.push(Followed {
                name: name.clone(),
                table_name: table.to_owned(),
                column_name: column_name.to_owned(),
                column: Some(column),
                reported: reported.clone(),
            });
            reported
        });
        self.outputs.events.push(Event::Followed(name, found));
    }

    /// Reports followed columns that a commit changed. Costs nothing unless it touched their tables.
    pub(super) fn report_remotes(&mut self, delta: &Delta) {
        for followed in &mut self.followed {
            let Some(column) = &followed.column else {
                continue;
            };
            if delta
                .changes
                .iter()
                .any(|change| column.depends_on(change.table))
            {
                self.outputs.events.extend(followed.news(&self.database));
            }
        }
    }

    /// Reports followed columns that differ from what was last reported, after commits were undone.
    pub(super) fn report_remotes_again(&mut self) {
        for followed in &mut self.followed {
            self.outputs.events.extend(followed.news(&self.database));
        }
    }

    /// Makes the rows behind followed columns show how their remotes stand. Those of a backup are copies and stay so.
    pub(super) fn show_status(&mut self, now: Now, statuses: &RemoteStatuses) {
        if self.is_backup() {
            return;
        }
        let columns = self
            .followed
            .iter()
            .filter_map(|followed| followed.column.as_ref());
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

    /// Finds followed columns again under a new schema.
    pub(super) fn follow_again(&mut self) {
        for followed in &mut self.followed {
            let (table, column) = (&followed.table_name, &followed.column_name);
            followed.column =
                RemoteColumn::find(&self.database, &followed.name, table, column).ok();
            self.outputs.events.extend(followed.news(&self.database));
        }
    }
}

impl Followed {
    /// The event that reports a change, if there is one.
    fn news(&mut self, database: &Database) -> Option<Event> {
        let remotes = self
            .column
            .as_ref()
            .map(|column| column.read(database))
            .unwrap_or_default();
        (remotes != self.reported).then(|| {
            self.reported.clone_from(&remotes);
            Event::RemotesChanged(self.name.clone(), remotes)
        })
    }
}
