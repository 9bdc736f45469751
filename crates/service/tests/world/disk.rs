//! A database's file in memory, with the rules of the real storage: ordinary records are written at once, the rest in order by a
//! disk that answers later; after a failed append everything is refused until the database has taken note.

use std::collections::VecDeque;

use corvid_data::Arc;
use corvid_data::uuid::UuidSource;
use corvid_engine::{Database, Snapshot};
use corvid_log::{Load, Stamp, write_schema, write_snapshot};
use corvid_service::message::{Store, StoreError, Ticket};

/// Results of orders.
pub(crate) type Results = Vec<(Ticket, Result<(), StoreError>)>;

#[derive(Debug)]
pub(crate) struct Disk {
    /// What a crash would leave.
    pub(crate) file: Vec<u8>,
    /// How many appends fail from now on.
    pub(crate) failures: u32,
    /// Nothing is carried out until this is cleared.
    pub(crate) is_held: bool,
    /// Ordinary records are not written at once.
    pub(crate) is_slow: bool,
    orders: VecDeque<Store>,
    awaited: Option<Ticket>,
    failure: Option<StoreError>,
}

impl Disk {
    pub(crate) fn new(schema: &corvid_data::Schema) -> Disk {
        let mut file = Vec::new();
        write_schema(&mut file, schema);
        Disk {
            file,
            failures: 0,
            is_held: false,
            is_slow: false,
            orders: VecDeque::new(),
            awaited: None,
            failure: None,
        }
    }

    /// Takes orders; returns the results of those that are carried out at once: all, and with one write, or none.
    pub(crate) fn store(&mut self, stores: Vec<Store>) -> Results {
        let is_quick =
            |store: &Store| matches!(store, Store::Recover | Store::Append { durable: false, .. });
        let is_idle = self.awaited.is_none() && !self.is_slow && !self.is_held;
        let is_at_once = is_idle && stores.iter().all(is_quick);
        let mut done = Vec::new();
        let mut failure = None;
        for store in stores {
            match store {
                Store::Append { ticket, record, .. } if is_at_once => {
                    let result = match &failure {
                        Some(failure) => Err(StoreError::clone(failure)),
                        None => self.append(&record),
                    };
                    failure = result.clone().err();
                    done.push((ticket, result));
                }
                store => {
                    self.awaited = ticket_of(&store).or(self.awaited);
                    self.orders.push_back(store);
                }
            }
        }
        done
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.is_held && !self.orders.is_empty()
    }

    /// Carries out the next order.
    pub(crate) fn work(&mut self) -> Results {
        match self.orders.pop_front() {
            Some(store) => self.carry_out(store),
            None => Vec::new(),
        }
    }

    /// The database has heard of a result.
    pub(crate) fn answered(&mut self, ticket: Ticket) {
        if self.awaited == Some(ticket) {
            self.awaited = None;
        }
    }

    fn carry_out(&mut self, store: Store) -> Results {
        match store {
            Store::Recover => {
                self.failure = None;
                Vec::new()
            }
            Store::Append { ticket, record, .. } => {
                let result = match &self.failure {
                    Some(failure) => Err(failure.clone()),
                    None => self.append(&record),
                };
                self.failure = result.clone().err();
                vec![(ticket, result)]
            }
            Store::Replace {
                ticket, snapshot, ..
            } => {
                self.file = rewritten(&snapshot);
                vec![(ticket, Ok(()))]
            }
        }
    }

    fn append(&mut self, record: &[u8]) -> Result<(), StoreError> {
        if self.failures > 0 {
            self.failures -= 1;
            return Err(StoreError {
                details: "x.db: write failed".to_owned(),
                io_error: "No space left on device".to_owned(),
            });
        }
        self.file.extend_from_slice(record);
        Ok(())
    }

    /// The database that the file holds.
    pub(crate) fn load(&self, uuids: &mut dyn UuidSource) -> Database {
        let mut load = Load::open(&self.file[..]).expect("the file begins with a schema");
        let mut database = Database::new(Arc::clone(load.schema()));
        while let Some(recorded) = load.next_transaction().expect("the file is whole") {
            database.replay(recorded, uuids).expect("records apply");
        }
        database
    }
}

fn ticket_of(store: &Store) -> Option<Ticket> {
    match store {
        Store::Append { ticket, .. } | Store::Replace { ticket, .. } => Some(*ticket),
        Store::Recover => None,
    }
}

fn rewritten(snapshot: &Snapshot) -> Vec<u8> {
    let mut file = Vec::new();
    write_schema(&mut file, snapshot.schema());
    let stamp = Stamp {
        date_ms: 0,
        comment: "rewritten",
        is_diff: true,
        with_defaults: false,
    };
    let mut sink = |piece: &[u8]| {
        file.extend_from_slice(piece);
        Ok::<(), String>(())
    };
    let schema = snapshot.schema();
    write_snapshot(schema, &stamp, |table| snapshot.rows(table), &mut sink).expect("memory");
    file
}
