//! Event handlers: callbacks of the program for the rows that an update changed.
//!
//! Handlers run after an update of the server has been applied as a whole, so they see one moment
//! of the database. They never nest: a handler gets a shared reference to the client, so it can
//! neither begin a transaction nor handle input. A handler that wants to change something records
//! that, or sends it over a channel. The program makes the change after [`Idl::handle`] has
//! returned.
//!
//! Handlers are independent of [`Idl::changes`]: they get the changes of one update, and do not
//! clear the tracked changes. Every column that is replicated with alerts counts, tracked or not.
//! Changes of referenced rows do not count.
//!
//! Cost: none for tables without handlers. For other tables, the changed columns' old values are
//! kept until the calls have returned.

use std::sync::Mutex;

use corvid_data::TableId;

use crate::idl::Idl;
use crate::row::RowId;
use crate::track::{Kind, TrackList, Tracked};
use crate::typed::Row;

/// The id of a registered handler. Ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId(u64);

type Call = Box<dyn FnMut(&Idl, RowId, &Tracked) + Send>;

struct Handler {
    id: HandlerId,
    table: TableId,
    kind: Kind,
    /// Never locked. The mutex makes the closure, which only its owner may call, shareable between
    /// threads.
    call: Mutex<Call>,
}

/// The handlers of a client, in the order in which they are called.
#[derive(Default)]
pub(crate) struct Handlers {
    entries: Vec<Handler>,
    last: u64,
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handlers")
            .field("count", &self.entries.len())
            .finish()
    }
}

/// Event handlers.
///
/// ```
/// # fn watch<Device: corvid_idl::typed::Row + Send + 'static>(idl: &mut corvid_idl::Idl) {
/// use corvid_idl::Idl;
/// use std::sync::mpsc;
///
/// let (sender, arrivals) = mpsc::channel();
/// idl.on_insert(move |_: &Idl, device: Device| drop(sender.send(device)));
/// idl.on_delete(|_: &Idl, device: Device| println!("{} went", device.uuid()));
/// // After the next updates, `arrivals.try_iter()` yields the inserted devices.
/// # }
/// ```
impl Idl {
    /// Calls `handler` for each inserted row of a table. Rows of the initial contents count if the
    /// handler is registered before they arrive; rows that already exist do not.
    pub fn on_insert<R: Row>(
        &mut self,
        mut handler: impl FnMut(&Idl, R) + Send + 'static,
    ) -> HandlerId {
        self.on_change(R::TABLE, Kind::Insert, move |idl, row, _| {
            handler(idl, R::of(row));
        })
    }

    /// Calls `handler` for each changed row of a table, with the changed columns and their previous
    /// values ([`Tracked::is_updated`], [`Tracked::old`]).
    pub fn on_update<R: Row>(
        &mut self,
        mut handler: impl FnMut(&Idl, R, &Tracked) + Send + 'static,
    ) -> HandlerId {
        self.on_change(R::TABLE, Kind::Modify, move |idl, row, change| {
            handler(idl, R::of(row), change);
        })
    }

    /// Calls `handler` for each row of a table that is deleted, or that a condition no longer
    /// selects. During the call the row still reads as before.
    pub fn on_delete<R: Row>(
        &mut self,
        mut handler: impl FnMut(&Idl, R) + Send + 'static,
    ) -> HandlerId {
        self.on_change(R::TABLE, Kind::Delete, move |idl, row, _| {
            handler(idl, R::of(row));
        })
    }

    /// Calls `handler` for each change of one kind, for programs that use names instead of types.
    /// See [`Idl::on_insert`], [`Idl::on_update`] and [`Idl::on_delete`].
    pub fn on_change(
        &mut self,
        table: TableId,
        kind: Kind,
        handler: impl FnMut(&Idl, RowId, &Tracked) + Send + 'static,
    ) -> HandlerId {
        self.handlers.last += 1;
        let id = HandlerId(self.handlers.last);
        self.handlers.entries.push(Handler {
            id,
            table,
            kind,
            call: Mutex::new(Box::new(handler)),
        });
        let latest = &mut self.replica.watches[usize::from(table.0)].latest;
        latest.get_or_insert_with(TrackList::default);
        id
    }

    /// Removes a handler. Returns false if it had been removed before.
    pub fn remove_handler(&mut self, id: HandlerId) -> bool {
        let entries = &mut self.handlers.entries;
        let Some(place) = entries.iter().position(|handler| handler.id == id) else {
            return false;
        };
        let table = entries.remove(place).table;
        if entries.iter().all(|handler| handler.table != table) {
            // Without handlers, updates of this table collect nothing.
            self.replica.watches[usize::from(table.0)].latest = None;
        }
        true
    }

    /// Calls the handlers for the changes of the last update: handler by handler, and for each the
    /// rows in the order of their first change.
    pub(crate) fn call_handlers(&mut self) {
        if self.handlers.entries.is_empty() {
            return;
        }
        // Handlers get `&Idl`, so they are moved out of it during the calls.
        let mut entries = std::mem::take(&mut self.handlers.entries);
        let mut calls = 0;
        for handler in &mut entries {
            let latest = &self.replica.watches[usize::from(handler.table.0)].latest;
            let changes = latest.iter().flat_map(TrackList::entries);
            let call = handler.call.get_mut();
            let call = call.unwrap_or_else(std::sync::PoisonError::into_inner);
            for change in changes.filter(|change| is_of_kind(change, handler.kind)) {
                let (table, uuid) = (handler.table, change.uuid);
                call(self, RowId { table, uuid }, change);
                calls += 1;
            }
        }
        self.handlers.entries = entries;
        self.metrics.events += calls;
        for latest in self
            .replica
            .watches
            .iter_mut()
            .filter_map(|watch| watch.latest.as_mut())
        {
            latest.clear();
        }
    }
}

/// Whether a row's net change in one update is of this kind. A row that was inserted and deleted
/// within the update is of no kind.
fn is_of_kind(change: &Tracked, kind: Kind) -> bool {
    match (change.is_new, change.is_deleted) {
        (true, true) => false,
        (true, false) => kind == Kind::Insert,
        (false, true) => kind == Kind::Delete,
        (false, false) => kind == Kind::Modify,
    }
}
