//! The tables that somebody looks at, and only these have rows in the replica.
//!
//! A look makes the condition of a table true. It becomes false again some time after the last look
//! ([`IDLE`], or `--idle`), unless a viewer's event stream holds a [`Lease`]. Changes of a table
//! are reported from the moment when its condition is in force: rows that arrive with it do not
//! count as changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use corvid::data::TableId;
use corvid::{Condition, Idl};
use corvid_net::clock;

use super::{Open, PAGE_TIMEOUT, hub};

/// How long a table is monitored after the last look, if the command line does not say.
pub(crate) const IDLE: Duration = Duration::from_secs(120);

/// A table with more rows is not read only for the names of its rows.
const NAMED_ROWS_MAX: u64 = 2000;

/// The looks at all tables.
pub(crate) struct Looks {
    of_tables: Mutex<Vec<Look>>,
    /// How long a table is monitored after the last look.
    idle: Duration,
}

#[derive(Clone, Copy)]
struct Look {
    phase: Phase,
    last: Instant,
    /// Event streams that are open.
    viewers: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The condition is false.
    Idle,
    /// The condition becomes true with this number.
    Arriving(u64),
    /// The rows are there.
    Watched,
}

impl Looks {
    pub(crate) fn new(tables: usize, idle: Duration) -> Looks {
        let look = Look {
            phase: Phase::Idle,
            last: Instant::now(),
            viewers: 0,
        };
        Looks {
            of_tables: Mutex::new(vec![look; tables]),
            idle,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Look>> {
        self.of_tables
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether changes of the table are changes, and not the arrival of its rows. Called with the
    /// replica after each update.
    pub(crate) fn reports(&self, idl: &mut Idl, table: TableId) -> bool {
        let look = &mut self.lock()[usize::from(table.0)];
        match look.phase {
            Phase::Idle => false,
            Phase::Watched => true,
            Phase::Arriving(promise) => {
                if idl.condition_seqno() >= promise {
                    look.phase = Phase::Watched;
                    idl.set_tracking(table, true);
                }
                false
            }
        }
    }

    /// Whether all changes of the table from now on will be tracked.
    pub(crate) fn is_tracked(&self, table: TableId) -> bool {
        self.lock()[usize::from(table.0)].phase == Phase::Watched
    }

    /// Whether the table's rows are in the replica.
    pub(crate) fn is_watched(&self, idl: &Idl, table: TableId) -> bool {
        match self.lock()[usize::from(table.0)].phase {
            Phase::Idle => false,
            Phase::Watched => true,
            Phase::Arriving(promise) => idl.condition_seqno() >= promise,
        }
    }
}

impl Open {
    /// Begins to look at a table. Returns the number of the condition if its rows are not there.
    pub(crate) fn begin_look(&self, table: TableId) -> Option<u64> {
        let place = usize::from(table.0);
        {
            let look = &mut self.looks.lock()[place];
            look.last = Instant::now();
            match look.phase {
                Phase::Watched => return None,
                Phase::Arriving(promise) => return Some(promise),
                Phase::Idle => {}
            }
        }
        // The lock of the looks is taken within that of the client, never the other way round.
        self.client.with(|idl| {
            let look = &mut self.looks.lock()[place];
            if look.phase == Phase::Idle {
                // Rows that arrive are not listed as changes, which would cost a few times the
                // rows. The condition has no clauses that could be refused.
                idl.set_tracking(table, false);
                let set = idl.set_condition(clock::mono_ms(), table, Condition::all());
                look.phase = Phase::Arriving(set.unwrap_or(u64::MAX));
            }
            match look.phase {
                Phase::Arriving(promise) => Some(promise),
                Phase::Idle | Phase::Watched => None,
            }
        })
    }

    /// Looks at the small tables that a table refers to, because the names of their rows are shown
    /// with it. `counts` are the numbers of rows that are known.
    pub(crate) fn look_for_names(&self, table: TableId, counts: &[Option<u64>]) {
        for other in self.named_tables(table, counts) {
            self.begin_look(other);
        }
    }

    /// The small tables that a table refers to.
    pub(crate) fn named_tables(&self, table: TableId, counts: &[Option<u64>]) -> Vec<TableId> {
        let mut named = Vec::new();
        for (_, column) in self.schema.table(table).iter() {
            let column_type = &column.column_type;
            for base in [Some(&column_type.key), column_type.value.as_ref()] {
                let reference = base.and_then(|base| base.reference.as_ref());
                let Some(other) = reference.map(|reference| reference.table) else {
                    continue;
                };
                let rows = counts.get(usize::from(other.0)).copied().flatten();
                if rows.is_some_and(|rows| rows <= NAMED_ROWS_MAX) && !named.contains(&other) {
                    named.push(other);
                }
            }
        }
        named
    }

    /// Looks at a table: waits for its rows, for a while. Returns whether they are there.
    pub(crate) fn look(&self, table: TableId) -> bool {
        let Some(promise) = self.begin_look(table) else {
            return true;
        };
        if self.reach().is_err() {
            return false;
        }
        let has_arrived = |idl: &Idl| idl.has_ever_connected() && idl.condition_seqno() >= promise;
        let is_there = self
            .client
            .wait_until(Some(PAGE_TIMEOUT), has_arrived)
            .is_ok();
        if is_there {
            // The rows count as arrived before the page is made: what changes from now on is told.
            hub::distribute(self);
        }
        is_there
    }

    /// Keeps tables monitored until their leases are dropped. Does not wait for their rows.
    pub(crate) fn leases(self: &Arc<Open>, tables: &[TableId]) -> Vec<Lease> {
        let leases = tables.iter().map(|table| {
            let lease = self.lease(*table);
            self.begin_look(*table);
            lease
        });
        leases.collect()
    }

    /// Keeps a table monitored until the lease is dropped.
    pub(crate) fn lease(self: &Arc<Open>, table: TableId) -> Lease {
        self.looks.lock()[usize::from(table.0)].viewers += 1;
        Lease {
            open: self.clone(),
            table,
        }
    }

    /// Drops the rows of tables that nobody has looked at for a while.
    pub(super) fn drop_idle(&self) {
        let is_idle = |look: &Look| {
            let is_unwanted = look.viewers == 0 && look.last.elapsed() > self.looks.idle;
            look.phase != Phase::Idle && is_unwanted
        };
        if !self.looks.lock().iter().any(is_idle) {
            return;
        }
        self.client.with(|idl| {
            let mut looks = self.looks.lock();
            for (table, look) in (0..).map(TableId).zip(looks.iter_mut()) {
                let none = Condition::none();
                if is_idle(look) && idl.set_condition(clock::mono_ms(), table, none).is_ok() {
                    look.phase = Phase::Idle;
                    idl.set_tracking(table, false);
                    self.orders().forget(table);
                    self.pictures.forget(table);
                }
            }
        });
    }
}

/// An event stream that shows a table.
pub(crate) struct Lease {
    open: Arc<Open>,
    table: TableId,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let look = &mut self.open.looks.lock()[usize::from(self.table.0)];
        look.viewers = look.viewers.saturating_sub(1);
        look.last = Instant::now();
    }
}
