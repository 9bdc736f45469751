//! A copy of a replica that is updated only by event handlers, to compare with the replica.

use std::sync::{Arc, Mutex, MutexGuard};

use corvid_data::{Datum, TableId};
use corvid_idl::track::Kind;
use corvid_idl::{Column, Idl, RowId, Tracked};

use crate::random::Contents;

/// The changes that handlers received.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Copy>>);

#[derive(Default)]
struct Copy {
    rows: Contents,
    epoch: u64,
    /// Calls of handlers. An update calls them once per changed row, however often it changed.
    calls: u64,
}

impl Heard {
    /// Registers handlers for every table.
    pub(crate) fn listen(&self, idl: &mut Idl) {
        let tables: Vec<TableId> = idl.schema().iter().map(|(table, _)| table).collect();
        for table in tables {
            for kind in [Kind::Delete, Kind::Insert, Kind::Modify] {
                let heard = self.clone();
                idl.on_change(table, kind, move |idl, row, change| {
                    heard.hear(idl, kind, row, change);
                });
            }
        }
    }

    fn copy(&self) -> MutexGuard<'_, Copy> {
        self.0.lock().expect("no handler has panicked")
    }

    fn hear(&self, idl: &Idl, kind: Kind, row: RowId, change: &Tracked) {
        assert_eq!(
            idl.open_txn(),
            None,
            "handlers see what the server has told"
        );
        let mut copy = self.copy();
        copy.forget_older(idl);
        copy.calls += 1;
        let key = (row.table, row.uuid);
        let now = columns(idl, row);
        match kind {
            Kind::Insert => {
                let is_first = copy.rows.insert(key, now).is_none();
                assert!(is_first, "a row comes once");
            }
            Kind::Delete => {
                assert_eq!(idl.row(row.table, row.uuid), None);
                let before = copy.rows.remove(&key).expect("a row goes once");
                assert_eq!(before.len(), now.len());
            }
            Kind::Modify => {
                let before = copy.rows.get_mut(&key).expect("a row that came");
                assert!(change.updated().next().is_some(), "a column changed");
                for column in change.updated() {
                    let at = usize::from(column.0);
                    assert_eq!(Some(&before[at]), change.old(column));
                    assert_ne!(before[at], now[at], "it changed");
                    before[at] = now[at].clone();
                }
            }
        }
    }

    /// The contents according to the handlers' calls, and the number of calls.
    pub(crate) fn contents(&self, idl: &Idl) -> (Contents, u64) {
        let mut copy = self.copy();
        copy.forget_older(idl);
        (copy.rows.clone(), copy.calls)
    }
}

impl Copy {
    /// Starts over if rows were dropped silently and sent anew.
    fn forget_older(&mut self, idl: &Idl) {
        if self.epoch != idl.resync_epoch() {
            self.epoch = idl.resync_epoch();
            self.rows.clear();
        }
    }
}

fn columns(idl: &Idl, row: RowId) -> Vec<Datum> {
    let table = row.table;
    let ids = idl.schema().table(table).iter().map(|(id, _)| id);
    ids.map(|id| {
        idl.read(row, Column { table, id })
            .expect("a row, or its remains")
    })
    .collect()
}
