//! The rows of a table that a filter selects, in the order of a column: texts in their natural
//! order, so that `net2` comes before `net10`. Orders are kept, and each change of a row moves that
//! row alone, so paging through a table sorts it once.
//!
//! The first page of an order selects its rows among all ([`select`]), and a thread of the database
//! makes the order meanwhile ([`work`]). Both read the rows in pieces. Between two pieces the
//! replica takes updates, and a [`ledger`] notes the rows that change.
//!
//! An order that is there is brought up to date from the changes that the client has tracked: by a
//! page that is read, and before these changes are cleared ([`Orders::catch_up`]).

mod ledger;
mod order;
mod select;
#[cfg(test)]
mod tests;
mod work;

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use corvid::data::{ColumnId, Datum, TableId, Uuid};
use corvid::{Column, Idl, RowId, RowView};
use corvid_filter::Where;

use super::contents::Contents;
use super::{Open, PAGE_TIMEOUT, natural};
use crate::filter;
use ledger::Ledger;
use order::Order;
use select::{PIECE, Selection};

pub(super) use work::run;
use work::{Job, Work};

/// The number of orders that are kept for one database.
const ORDERS_MAX: usize = 8;

/// The rows of all orders that are kept, except that one of them may have more alone.
const ROWS_MAX: usize = 1_500_000;

/// An order that no page has used for so long is not kept up to date.
const UNUSED: Duration = Duration::from_secs(60);

/// Tables with more rows are shown in the order of the replica unless a viewer sorts them.
pub(crate) const SORTED_ROWS_MAX: usize = 20_000;

/// A page that ends among the first rows is selected if its order is not there. Others wait for the
/// order.
const FIRST_MAX: usize = 5000;

/// Rows that are moved in an order while the replica takes no updates.
const CHANGED_ROWS_MAX: usize = 64;

/// UUIDs in order, in runs of eight kilobytes.
type Runs = corvid::data::Runs<Uuid, 512>;

/// The value of the rows of a table that are sorted by their UUIDs.
static NO_VALUE: Datum = Datum::empty();

/// The order that a viewer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    /// The column.
    pub(crate) column: ColumnId,
    /// The largest value first.
    pub(crate) is_descending: bool,
}

/// The table, the filter and the column of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The table.
    pub(crate) table: TableId,
    /// The text of the filter.
    pub(crate) filter: String,
    /// The order; `None`: that of UUIDs.
    pub(crate) sort: Option<Sort>,
}

/// The orders of a database, with a signal for those that wait for them.
#[derive(Default)]
pub(crate) struct OrderBook {
    orders: Mutex<Orders>,
    /// Notified when work is wanted or done, and when a selection ends.
    has_changed: Condvar,
}

/// The orders that are kept or made.
#[derive(Default)]
pub(crate) struct Orders {
    /// Orders that are kept, the last used at the end.
    kept: VecDeque<KeptOrder>,
    /// Orders to be made. One that is not kept any more is not made.
    queue: VecDeque<Job>,
    /// The changes while pages are selected.
    selections: Vec<Arc<Mutex<Ledger>>>,
    /// The number of jobs that have ended.
    ended: u64,
    /// The thread is to end.
    is_over: bool,
}

/// An order that is kept.
struct KeptOrder {
    key: Key,
    state: Arc<Mutex<State>>,
    /// The number of its rows when it was used last.
    rows: usize,
    used: Instant,
}

/// How far an order is.
#[derive(Default)]
enum State {
    /// It is not there.
    #[default]
    Missing,
    /// The thread makes it, or will.
    Made(Arc<Work>, Ledger),
    /// It is there.
    Ready(Order),
    /// It could not be made, which no page has told yet.
    Failed,
}

impl State {
    /// Why the order could not be made, once: the next page has it made anew.
    fn take_failure(&mut self) -> Option<String> {
        let has_failed = matches!(self, State::Failed);
        has_failed.then(|| {
            *self = State::Missing;
            "the rows could not be put in order: read the page again".to_owned()
        })
    }
}

/// A page of an order.
pub(crate) struct Page {
    /// The rows.
    pub(crate) uuids: Vec<Uuid>,
    /// The number of rows of the order, or a number that it is not below.
    pub(crate) selected: usize,
    /// The number is exact.
    pub(crate) is_counted: bool,
    /// The rows are known. If not, the order is being made.
    pub(crate) is_ready: bool,
}

/// The next step of a page after a look at its order.
enum Step<T> {
    /// The page is made.
    Shown(T),
    /// The order has rows left to be moved, or has become unusable.
    Again,
    /// The page is selected among this number of slots. The ledger notes what changes.
    Select(Selection, usize, Option<Arc<Mutex<Ledger>>>),
    /// The page needs the order.
    Wait,
    /// The rows are still arriving, and there are too many of them.
    Late,
}

impl OrderBook {
    pub(super) fn lock(&self) -> MutexGuard<'_, Orders> {
        locked(&self.orders)
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.has_changed.notify_all();
    }

    /// Waits until another job than the first `ended` ones has ended, or until `end`.
    fn wait_for_job(&self, ended: u64, end: Instant) {
        let left = end.saturating_duration_since(Instant::now());
        let is_waiting = |orders: &mut Orders| orders.ended == ended;
        let waited = self
            .has_changed
            .wait_timeout_while(self.lock(), left, is_waiting);
        drop(waited);
    }
}

impl Orders {
    /// The place for an order, which is missing at first.
    fn place(&mut self, key: &Key) -> Arc<Mutex<State>> {
        let place = self.kept.iter().position(|kept| kept.key == *key);
        let mut kept = match place.and_then(|place| self.kept.remove(place)) {
            Some(kept) => kept,
            None => KeptOrder {
                key: key.clone(),
                state: Arc::default(),
                rows: 0,
                used: Instant::now(),
            },
        };
        kept.used = Instant::now();
        let state = kept.state.clone();
        self.kept.push_back(kept);
        while self.kept.len() > ORDERS_MAX {
            self.kept.pop_front();
        }
        state
    }

    /// Notes the number of rows of an order, and forgets those that are too many.
    fn used(&mut self, key: &Key, rows: usize) {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.key == *key) {
            kept.rows = rows;
        }
        let all = |orders: &VecDeque<KeptOrder>| orders.iter().map(|kept| kept.rows).sum::<usize>();
        while self.kept.len() > 1 && all(&self.kept) > ROWS_MAX {
            self.kept.pop_front();
        }
    }

    /// Whether an order is kept.
    fn has(&self, state: &Arc<Mutex<State>>) -> bool {
        self.kept.iter().any(|kept| Arc::ptr_eq(&kept.state, state))
    }

    /// Brings all orders up to date. Called with the replica before its tracked changes are
    /// cleared.
    pub(super) fn catch_up(&mut self, idl: &Idl) {
        for ledger in &self.selections {
            locked(ledger).note(idl);
        }
        self.kept.retain(|kept| {
            let mut state = locked(&kept.state);
            let is_of_use = kept.used.elapsed() < UNUSED
                && match &mut *state {
                    State::Missing => false,
                    State::Failed => true,
                    State::Made(_, ledger) => ledger.note(idl),
                    State::Ready(order) => {
                        order.note(idl) && order.move_changed(idl, CHANGED_ROWS_MAX)
                    }
                };
            match &mut *state {
                _ if !is_of_use => *state = State::Missing,
                State::Ready(order) => order.clear(),
                State::Made(_, ledger) => ledger.clear(),
                State::Missing | State::Failed => {}
            }
            is_of_use
        });
    }

    /// Forgets the orders of a table. Its changes are not tracked any more.
    pub(crate) fn forget(&mut self, table: TableId) {
        self.kept.retain(|kept| kept.key.table != table);
        for ledger in &self.selections {
            let mut ledger = locked(ledger);
            if ledger.table() == table {
                ledger.lose();
            }
        }
    }
}

impl Open {
    /// Calls `show` with the replica and the rows of an order at these places. If the order is not
    /// there, the rows are selected, or the call waits for the order, which the thread makes. If
    /// that takes long, the page has no rows.
    ///
    /// # Errors
    /// The filter is malformed, or the order could not be made.
    pub(crate) fn with_order<T>(
        &self,
        key: &Key,
        places: &Range<usize>,
        show: impl FnOnce(&Idl, &Page) -> T,
    ) -> Result<T, String> {
        let end = Instant::now() + PAGE_TIMEOUT;
        let mut show = Some(show);
        let mut shown = |idl: &Idl, page: &Page| show.take().map(|show| show(idl, page));
        while Instant::now() < end {
            let ended = self.orders().ended;
            let step = self
                .client
                .read(|idl| self.step(idl, key, places, &mut shown));
            match step? {
                Step::Shown(Some(shown)) => return Ok(shown),
                Step::Shown(None) | Step::Again => {}
                Step::Select(selection, slots, ledger) => {
                    let selecting = Selecting { open: self, ledger };
                    let mut selection = selection;
                    selection.read_all(slots, &|look| self.client.read(|idl| look(idl)));
                    let found = self.client.read(|idl| {
                        let page = selecting.finish(idl, selection, key, places)?;
                        shown(idl, &page)
                    });
                    if let Some(found) = found {
                        return Ok(found);
                    }
                }
                Step::Wait => self.order_book.wait_for_job(ended, end),
                Step::Late => break,
            }
        }
        let late = |idl: &Idl| {
            let page = Page {
                uuids: Vec::new(),
                selected: 0,
                is_counted: false,
                is_ready: false,
            };
            shown(idl, &page)
        };
        let shown = self.client.read(late);
        shown.ok_or_else(|| "the page is made already".to_owned())
    }

    /// Looks at an order.
    fn step<T>(
        &self,
        idl: &Idl,
        key: &Key,
        places: &Range<usize>,
        show: &mut dyn FnMut(&Idl, &Page) -> Option<T>,
    ) -> Result<Step<Option<T>>, String> {
        let table = key.table;
        let sort = key.sort();
        let rows = idl.row_count(table);
        let end = places.end.min(rows);
        let slots = idl.slot_count(table);
        let parse = || filter::parse_named(idl, &self.naming, table, &key.filter);
        if !self.looks.is_tracked(table) {
            let (filter, _) = parse()?;
            return Ok(match end <= FIRST_MAX {
                true => Step::Select(Selection::new(table, filter, sort, end), slots, None),
                false => Step::Late,
            });
        }
        let place = self.orders().place(key);
        let mut state = locked(&place);
        if let Some(failure) = state.take_failure() {
            return Err(failure);
        }
        if let State::Ready(order) = &mut *state
            && !(order.note(idl) && order.move_changed(idl, CHANGED_ROWS_MAX))
        {
            *state = State::Missing;
        }
        if let State::Missing = &*state {
            let (filter, named) = parse()?;
            let work = Work {
                table,
                filter,
                sort,
                slots,
            };
            let ledger = Ledger::new(idl, table, sort, &named);
            *state = match rows <= PIECE {
                true => State::Ready(work.at_once(idl, ledger)),
                false => State::Made(Arc::new(work), ledger),
            };
            if let State::Made(work, _) = &*state {
                let job = Job {
                    key: key.clone(),
                    state: place.clone(),
                    work: work.clone(),
                };
                drop(state);
                self.queue(job);
                state = locked(&place);
            }
        }
        Ok(match &*state {
            // The order may have been made, or have failed, since its job was queued.
            State::Missing | State::Failed => Step::Again,
            State::Ready(order) if !order.is_complete() => Step::Again,
            State::Ready(order) => {
                let page = order.page(places.clone());
                drop(state);
                self.orders().used(key, page.selected);
                Step::Shown(show(idl, &page))
            }
            State::Made(..) if end > FIRST_MAX => Step::Wait,
            State::Made(work, _) => {
                let filter = work.filter.clone();
                drop(state);
                let (_, named) = parse()?;
                let ledger = Ledger::since(idl, table, sort, &named);
                let ledger = Arc::new(Mutex::new(ledger));
                self.orders().selections.push(ledger.clone());
                let selection = Selection::new(table, filter, sort, end);
                Step::Select(selection, slots, Some(ledger))
            }
        })
    }
}

/// A page that is being selected.
struct Selecting<'o> {
    open: &'o Open,
    /// The changes meanwhile; `None` if changes of the table are not tracked.
    ledger: Option<Arc<Mutex<Ledger>>>,
}

impl Selecting<'_> {
    /// The page, unless too much has changed.
    fn finish(
        &self,
        idl: &Idl,
        selection: Selection,
        key: &Key,
        places: &Range<usize>,
    ) -> Option<Page> {
        let Some(ledger) = &self.ledger else {
            let nothing = Ledger::since(idl, key.table, key.sort(), &[]);
            return selection.finish(idl, &nothing, places.clone());
        };
        let mut ledger = locked(ledger);
        if !ledger.note(idl) {
            return None;
        }
        selection.finish(idl, &ledger, places.clone())
    }
}

impl Drop for Selecting<'_> {
    fn drop(&mut self) {
        if let Some(ledger) = &self.ledger {
            let mut orders = self.open.orders();
            orders
                .selections
                .retain(|other| !Arc::ptr_eq(other, ledger));
            self.open.order_book.has_changed.notify_all();
        }
    }
}

/// The rows of an earlier moment that a filter selects, in order.
pub(crate) fn of_past(
    contents: Contents<'_>,
    filter: Option<&Where>,
    sort: Option<Sort>,
    places: Range<usize>,
) -> Page {
    let sort = sort.unwrap_or(Sort::BY_UUID);
    let selected = contents
        .uuids()
        .filter(|uuid| filter.is_none_or(|filter| filter::holds(filter, contents, *uuid)));
    let mut keyed: Vec<(Datum, Uuid)> = selected
        .map(|uuid| match sort.column {
            ColumnId::UUID => (NO_VALUE.clone(), uuid),
            column => (contents.value(uuid, column), uuid),
        })
        .collect();
    keyed.sort_unstable_by(|one, other| sort.compare((&one.0, one.1), (&other.0, other.1)));
    let page = keyed.iter().skip(places.start).take(places.len());
    Page {
        uuids: page.map(|(_, uuid)| *uuid).collect(),
        selected: keyed.len(),
        is_counted: true,
        is_ready: true,
    }
}

/// Whether a filter holds for a row.
fn is_selected(filter: Option<&Where>, view: RowView<'_>) -> bool {
    filter.is_none_or(|filter| filter::holds_for(filter, view))
}

impl Key {
    fn sort(&self) -> Sort {
        self.sort.unwrap_or(Sort::BY_UUID)
    }
}

impl Sort {
    const BY_UUID: Sort = Sort {
        column: ColumnId::UUID,
        is_descending: false,
    };

    /// The value by which a row is sorted.
    fn value<'v>(&self, view: RowView<'v>) -> &'v Datum {
        let column = Column {
            table: view.id().table,
            id: self.column,
        };
        match self.column {
            ColumnId::UUID => &NO_VALUE,
            _ => view.get(column).unwrap_or(&NO_VALUE),
        }
    }

    /// The same of a row that may have been deleted.
    fn value_of(&self, idl: &Idl, table: TableId, uuid: Uuid) -> Datum {
        let id = self.column;
        let value = match id {
            ColumnId::UUID => None,
            _ => idl.read(RowId { table, uuid }, Column { table, id }),
        };
        value.unwrap_or_default()
    }

    /// Compares two rows. Those with equal values are in the order of their UUIDs, so that pages do
    /// not overlap.
    fn compare(
        self,
        (one, one_uuid): (&Datum, Uuid),
        (other, other_uuid): (&Datum, Uuid),
    ) -> Ordering {
        let by_uuid = || one_uuid.cmp(&other_uuid);
        match (self.column, self.is_descending) {
            (ColumnId::UUID, false) => by_uuid(),
            (ColumnId::UUID, true) => by_uuid().reverse(),
            (_, false) => compare(one, other).then_with(by_uuid),
            (_, true) => compare(other, one).then_with(by_uuid),
        }
    }
}

/// Compares values; an empty one comes last.
fn compare(one: &Datum, other: &Datum) -> Ordering {
    match (one.first(), other.first()) {
        (Some(first), Some(other_first)) => {
            let by_first = natural::atoms(first, other_first);
            by_first.then_with(|| compare_elements(one, other))
        }
        (first, other_first) => first.is_none().cmp(&other_first.is_none()),
    }
}

/// Compares values element by element, maps with their values.
fn compare_elements(one: &Datum, other: &Datum) -> Ordering {
    let mut pairs = one.iter().zip(other.iter());
    let order = pairs.find_map(|((key, value), (other_key, other_value))| {
        let by_value = || match (value, other_value) {
            (Some(value), Some(other)) => natural::atoms(value, other),
            _ => Ordering::Equal,
        };
        let order = natural::atoms(key, other_key).then_with(by_value);
        (order != Ordering::Equal).then_some(order)
    });
    order.unwrap_or_else(|| one.len().cmp(&other.len()))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
