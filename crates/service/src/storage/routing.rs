//! Which orders are carried out at once and which are left to the disk thread.
//!
//! Invariant: records are written in the order of their tickets, by one thread at a time. While the disk thread has something to do that
//! takes long (a sync, putting a file in place), everything goes its way, so the database never waits for the disk.

use super::committer::OPENING;
use crate::message::{RewriteStage, Store, Ticket, ToDatabase};

/// Where a batch of orders goes.
#[derive(Debug)]
pub enum Route {
    /// Ordinary records to be written at once, together.
    Now(Vec<Store>),
    /// One order for the disk thread.
    Disk(Store),
    /// One order about a new file: [`Store::Rewrite`], [`Store::Extend`], [`Store::Swap`] or [`Store::Abandon`].
    Rewrite(Store),
}

/// What the disk thread has yet to answer.
#[derive(Debug)]
pub struct Routing {
    awaited: Option<Ticket>,
    is_swapping: bool,
}

impl Default for Routing {
    /// Of a file just opened: the disk thread begins with [`super::Order::Settle`].
    fn default() -> Routing {
        Routing {
            awaited: Some(OPENING),
            is_swapping: false,
        }
    }
}

impl Routing {
    /// Sends each order its way.
    pub fn route(&mut self, stores: Vec<Store>) -> Vec<Route> {
        let mut routes = Vec::new();
        let mut records = Vec::new();
        // Records in front of a durable one are left to the disk thread as well: it writes and syncs all of them together.
        let is_quick = |store: &Store| !matches!(store, Store::Append { durable: true, .. });
        let all_quick = stores.iter().all(is_quick);
        for store in stores {
            match store {
                Store::Append { ticket, .. } => {
                    if all_quick && self.is_idle() {
                        records.push(store);
                    } else {
                        self.awaited = Some(ticket);
                        routes.push(Route::Disk(store));
                    }
                }
                // Its failure may have been the disk thread's. It comes before the records that go with it: they are of later commits.
                Store::Recover => routes.push(Route::Disk(store)),
                Store::Rewrite(..) | Store::Extend(..) | Store::Abandon(_) => {
                    flush(&mut records, &mut routes);
                    routes.push(Route::Rewrite(store));
                }
                Store::Swap(_) => {
                    flush(&mut records, &mut routes);
                    self.is_swapping = true;
                    routes.push(Route::Rewrite(store));
                }
            }
        }
        flush(&mut records, &mut routes);
        routes
    }

    /// Takes note of an answer of the disk thread, on its way to the database.
    pub fn answered(&mut self, answer: &ToDatabase) {
        match answer {
            ToDatabase::Stored(ticket, _) if self.awaited == Some(*ticket) => self.awaited = None,
            ToDatabase::Rewrite(_, Ok(RewriteStage::InPlace(_)) | Err(_)) => {
                self.is_swapping = false;
            }
            _ => {}
        }
    }

    fn is_idle(&self) -> bool {
        self.awaited.is_none() && !self.is_swapping
    }
}

fn flush(records: &mut Vec<Store>, routes: &mut Vec<Route>) {
    if !records.is_empty() {
        routes.push(Route::Now(std::mem::take(records)));
    }
}
