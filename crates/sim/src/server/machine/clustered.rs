//! A server whose database is clustered. The member, which is not part of the machine, has the
//! file.
//!
//! Invariant: events of the member reach the database in order. Called by the simulation of whole
//! clusters.

use corvid_consensus::member::ServerRow;
use corvid_log::cluster::Index;
use corvid_service::applied_index::AppliedIndex;
use corvid_service::member::Contents;
use corvid_service::message::ToDatabase;
use corvid_service::{Model, Now, member_row};

use super::{Content, Machine, SERVER, STORED};
use crate::world::disk::SimDisk;

impl Machine {
    /// Starts a server of a clustered database with the contents after a given entry. The member
    /// has the file.
    pub(crate) fn start_clustered(
        now: Now,
        seed: u64,
        disk: &SimDisk,
        contents: Contents,
        row: ServerRow,
    ) -> Machine {
        let Contents {
            database,
            applied,
            eid,
            recorded,
        } = contents;
        let name = database.schema().name.to_string();
        let served = Content {
            database,
            model: Model::clustered(applied, eid),
            file: None,
            history: true,
            recorded,
            row: Some((row, AppliedIndex::new(&name, applied))),
        };
        Machine::assemble(now, seed, disk, served)
    }

    /// Passes an event of the member to the clustered database, or the contents of a snapshot that
    /// the member has installed.
    pub(crate) fn member(&mut self, event: ToDatabase) {
        self.post(STORED, event);
    }

    /// Shows the newest state of the member in `_Server`, as the main thread does.
    pub(crate) fn show_member(&mut self, row: &ServerRow) {
        let name = self.service().database().schema().name.to_string();
        self.update_server_db(member_row::update(&name, row));
    }

    /// Checks the values that `_Server` shows for the clustered database.
    ///
    /// # Errors
    /// `_Server` does not show this row and this index.
    pub(crate) fn check_row(&self, row: &ServerRow, index: Index) -> Result<(), String> {
        let database = self.databases[&SERVER].pump.service().database();
        let rows = database.schema().iter().flat_map(|(id, table)| {
            let columns = table.columns();
            database.rows(id).map(move |row| {
                let cells = columns.iter().zip(row.columns.iter());
                let cells = cells.filter(|(column, _)| column.name.as_str() != "schema");
                let cells = cells
                    .map(|(column, datum)| format!("{}: {}", column.name, datum.to_json(false)));
                cells.collect::<Vec<_>>().join(", ")
            })
        });
        let shown: Vec<String> = rows.collect();
        let (connected, leader) = (row.is_connected, row.is_leader);
        let expected = [
            format!("connected: {connected}"),
            format!("leader: {leader}"),
            format!("index: {index}"),
            format!("{}", row.sid.0),
            "\"clustered\"".to_owned(),
        ];
        let is_shown = |shown: &String| expected.iter().all(|part| shown.contains(part));
        if shown.len() == 1 && shown.iter().all(is_shown) {
            return Ok(());
        }
        Err(format!("shows {shown:?} in `_Server`, instead of {row:?}"))
    }

    /// Whether the clustered database has handled all its inputs.
    pub(crate) fn has_handled_inputs(&self) -> bool {
        let served = &self.databases[&STORED];
        served.inbox.is_empty() && !served.is_left
    }

    /// Number of inputs that wait for databases, shards, the main thread and jobs.
    pub(crate) fn queued(&self) -> usize {
        let databases = self.databases.values().map(|served| served.inbox.len());
        let shards = self.shards.iter().map(|shard| shard.inbox.len());
        databases.chain(shards).sum::<usize>() + self.main.len() + self.jobs.len()
    }
}
