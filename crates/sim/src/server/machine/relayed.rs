//! A server whose database is a relay. The relay's thread, which is not part of the machine, has
//! the connection to the source.
//!
//! Invariant: `_Server` lists the database from the start. The server serves it from the moment it
//! has its initial contents. Called by the simulation of whole clusters.

use corvid_consensus::member::Absence;
use corvid_data::HashSeed;
use corvid_service::frontend::shard_of;
use corvid_service::member::Contents;
use corvid_service::message::ToShard;
use corvid_service::server_db::ServerRow;
use corvid_service::{Model, Now, ServedDatabases, server_db};
use std::sync::{Arc, PoisonError};

use super::{Content, Machine, SERVER, STORED};
use crate::world::disk::SimDisk;

/// The row of a relay that has not reached its source.
const NOT_CONNECTED: ServerRow = ServerRow {
    model: "relay",
    is_connected: false,
    is_leader: false,
};

impl Machine {
    /// Starts a server with a relay of a database of this name. The disk always stays empty.
    pub(crate) fn start_relay(now: Now, seed: u64, disk: &SimDisk, name: &str) -> Machine {
        let mut directory = ServedDatabases::default();
        directory.insert_absent(name, Absence::Joining);
        let mut machine = Machine::bare(now, seed, disk, HashSeed::new(seed), directory);
        machine.update_server_db(server_db::insert_without_schema(name, NOT_CONNECTED));
        machine
    }

    /// Serves the relay with its initial contents, as the main thread does.
    pub(crate) fn serve_relay(&mut self, now: Now, contents: Contents) {
        let Contents {
            database,
            applied,
            eid,
            recorded,
        } = contents;
        let schema = database.schema().clone();
        self.serve(
            now,
            Content {
                database,
                model: Model::relay(applied, eid),
                file: None,
                history: true,
                recorded,
                row: None,
            },
        );
        let mut directory = ServedDatabases::default();
        directory.insert(server_db::NAME, SERVER);
        directory.insert_clustered(&schema.name, STORED, None);
        let directory = Arc::new(directory);
        self.post_to_shards(|| ToShard::ServedDatabases(directory.clone()));
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let notified = locks.set_relay(Some(STORED), |_| true);
        drop(locks);
        for session in notified {
            let inbox = &mut self.shards[usize::from(shard_of(session))].inbox;
            inbox.push_back(ToShard::LockNotifications(session));
        }
        let reason = Arc::from("connected to storage");
        let epoch = self.epochs.advance();
        self.post_to_shards(|| ToShard::DisconnectUnaware(Arc::clone(&reason), epoch));
        self.update_server_db(server_db::update_schema(&schema));
    }

    /// Shows the state of the relay in `_Server`, as the main thread does.
    pub(crate) fn show_relay(&mut self, name: &str, row: ServerRow) {
        self.update_server_db(server_db::update_row(name, row));
    }

    /// Whether the relay's database is served and every shard knows it.
    pub(crate) fn is_served(&self) -> bool {
        let is_news = |message: &ToShard| matches!(message, ToShard::ServedDatabases(_));
        let mut shards = self.shards.iter();
        self.databases.contains_key(&STORED) && shards.all(|shard| !shard.inbox.iter().any(is_news))
    }

    /// Whether `_Server` shows its only other database as connected.
    pub(crate) fn shows_connected(&self) -> bool {
        let database = self.databases[&SERVER].pump.service().database();
        let mut rows = database.schema().iter().flat_map(|(id, table)| {
            let connected = table.column_named(b"connected");
            database.rows(id).filter_map(move |row| {
                let cell = row.columns.get(usize::from(connected?.0))?;
                Some(cell.to_json(false).as_bool() == Some(true))
            })
        });
        rows.next() == Some(true)
    }
}
