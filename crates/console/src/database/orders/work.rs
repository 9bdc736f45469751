//! Makes orders in the thread of a database that is there for them, one after the other.
//!
//! The rows are read in pieces, and sorted while nothing is locked. Rows that change meanwhile are
//! left out, and enter the order as if they had changed later ([`super::ledger`]).

use std::collections::HashSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use corvid::Idl;
use corvid::data::{Datum, TableId, Uuid};
use corvid_filter::Where;

use super::ledger::Ledger;
use super::order::Order;
use super::select::pieces;
use super::{Key, Runs, Sort, State, is_selected, locked};
use crate::database::Open;

/// How long an order waits for pages that are being selected, which use the same processor.
const SELECTION_TIMEOUT: Duration = Duration::from_millis(250);

/// An order to be made.
pub(super) struct Work {
    pub(super) table: TableId,
    pub(super) filter: Option<Where>,
    pub(super) sort: Sort,
    /// The slots that had rows when the work began. Rows that come later have changed.
    pub(super) slots: usize,
}

/// Work, and where the order is put.
pub(super) struct Job {
    pub(super) key: Key,
    pub(super) state: Arc<Mutex<State>>,
    pub(super) work: Arc<Work>,
}

/// Access to the replica, for a while in which it takes no updates.
pub(super) type Hold<'h> = dyn FnMut(&mut dyn FnMut(&Idl)) + 'h;

/// The thread's body.
pub(in crate::database) fn run(open: &Open) {
    while let Some(job) = open.next_job() {
        let mut hold = |look: &mut dyn FnMut(&Idl)| open.client.read(|idl| look(idl));
        let made = job.attempt(&mut hold, &|| open.orders().has(&job.state));
        let mut orders = open.orders();
        if let Some(rows) = made {
            orders.used(&job.key, rows);
        }
        orders.ended += 1;
        open.order_book.has_changed.notify_all();
    }
}

impl Open {
    /// Leaves a job to the thread.
    pub(super) fn queue(&self, job: Job) {
        let mut orders = self.orders();
        let mut queue = std::mem::take(&mut orders.queue);
        queue.retain(|job| orders.has(&job.state));
        queue.push_back(job);
        orders.queue = queue;
        self.order_book.has_changed.notify_all();
    }

    /// Waits for a job; `None` ends the thread.
    fn next_job(&self) -> Option<Job> {
        let mut orders = self.orders();
        let mut since = None;
        loop {
            if orders.is_over {
                return None;
            }
            let left = match orders.queue.is_empty() {
                true => Duration::MAX,
                false => {
                    let since: &mut Instant = since.get_or_insert_with(Instant::now);
                    SELECTION_TIMEOUT.saturating_sub(since.elapsed())
                }
            };
            if (orders.selections.is_empty() || left.is_zero())
                && let Some(job) = orders.queue.pop_front()
            {
                return Some(job);
            }
            let has_changed = &self.order_book.has_changed;
            orders = match left {
                Duration::MAX => has_changed
                    .wait(orders)
                    .unwrap_or_else(PoisonError::into_inner),
                left => {
                    let waited = has_changed.wait_timeout(orders, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Job {
    /// As [`Job::make`]. A panic fails this order only: the thread makes others, and pages that
    /// wait for this one are told.
    pub(super) fn attempt(
        &self,
        hold: &mut Hold<'_>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<usize> {
        let made = catch_unwind(AssertUnwindSafe(|| self.make(hold, is_wanted)));
        made.unwrap_or_else(|_| {
            let mut state = locked(&self.state);
            match &*state {
                // Somebody else's order by now.
                State::Made(current, _) if !Arc::ptr_eq(current, &self.work) => {}
                State::Ready(_) => {}
                _ => *state = State::Failed,
            }
            None
        })
    }

    /// Makes the order, unless it is not wanted any more or too much changes meanwhile. Returns the
    /// number of its rows.
    pub(super) fn make(&self, hold: &mut Hold<'_>, is_wanted: &dyn Fn() -> bool) -> Option<usize> {
        let work = &self.work;
        let mut keyed = Vec::new();
        for piece in pieces(work.slots) {
            if !is_wanted() {
                return None;
            }
            hold(&mut |idl| work.read(idl, piece.clone(), &mut keyed));
        }
        let mut left_out = None;
        hold(&mut |idl| left_out = self.end_reading(idl));
        let left_out = left_out?;
        keyed.retain(|(_, uuid)| !left_out.contains(uuid));
        drop(left_out);
        if !is_wanted() {
            return None;
        }
        let rows = work.sorted(keyed);
        let mut state = locked(&self.state);
        *state = match std::mem::take(&mut *state) {
            State::Made(current, ledger) if Arc::ptr_eq(&current, work) => {
                State::Ready(work.order(rows, ledger))
            }
            other => other,
        };
        match &*state {
            State::Ready(order) => Some(order.len()),
            _ => None,
        }
    }

    /// All pieces have been read. Returns the rows to be left out; `None` if the changes meanwhile
    /// are not known.
    fn end_reading(&self, idl: &Idl) -> Option<HashSet<Uuid>> {
        let mut state = locked(&self.state);
        match &mut *state {
            State::Made(current, ledger) if Arc::ptr_eq(current, &self.work) => {
                if ledger.note(idl) {
                    return Some(ledger.end_reading());
                }
                *state = State::Missing;
                None
            }
            _ => None,
        }
    }
}

impl Work {
    /// Reads a piece of the rows.
    fn read(&self, idl: &Idl, slots: Range<usize>, keyed: &mut Vec<(Datum, Uuid)>) {
        for view in idl.views_in(self.table, slots) {
            if is_selected(self.filter.as_ref(), view) {
                keyed.push((self.sort.value(view).clone(), view.uuid()));
            }
        }
    }

    fn sorted(&self, mut keyed: Vec<(Datum, Uuid)>) -> Runs {
        let sort = self.sort;
        keyed.sort_unstable_by(|one, other| sort.compare((&one.0, one.1), (&other.0, other.1)));
        Runs::of_sorted(keyed.into_iter().map(|(_, uuid)| uuid))
    }

    fn order(&self, rows: Runs, ledger: Ledger) -> Order {
        Order::new(self.table, self.filter.clone(), self.sort, rows, ledger)
    }

    /// Makes the order of a small table while the replica takes no updates.
    pub(super) fn at_once(&self, idl: &Idl, mut ledger: Ledger) -> Order {
        let mut keyed = Vec::new();
        self.read(idl, 0..self.slots, &mut keyed);
        let left_out = ledger.end_reading();
        keyed.retain(|(_, uuid)| !left_out.contains(uuid));
        let mut order = self.order(self.sorted(keyed), ledger);
        order.move_changed(idl, usize::MAX);
        order
    }
}
