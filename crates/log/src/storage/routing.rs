//! Which orders are carried out at once and which are left to the disk thread.
//!
//! Invariant: records are written in the order of their positions, by one thread at a time. While the disk thread has something to do that
//! takes long (a sync, putting a file in place), and while the disk is slow, everything goes its way, so the database never waits for the
//! disk. The records of one batch go one way: were the first written at once and failed, what went behind it to the disk thread would be
//! written although the database undoes it.

use std::sync::Arc;

use super::{DiskTask, LogPosition, Published, RewriteStage, StorageReply, StorageRequest};
use crate::disk::Disk;

/// Where a batch of orders goes.
#[derive(Debug)]
pub enum Route {
    /// Ordinary records to be written at once, together.
    Now(Vec<StorageRequest>),
    /// One order for the disk thread.
    Disk(StorageRequest),
    /// One order about a new file: [`StorageRequest::Rewrite`], [`StorageRequest::Extend`], [`StorageRequest::Swap`] or [`StorageRequest::Abandon`].
    Rewrite(StorageRequest),
}

/// What the disk thread has yet to answer.
#[derive(Debug)]
pub struct Routing {
    file: Arc<Published>,
    awaited: Option<LogPosition>,
    is_swapping: bool,
}

impl Routing {
    /// Of a file just opened: the disk thread begins with [`super::DiskTask::SyncExisting`].
    #[must_use]
    pub fn new(file: Arc<Published>) -> Routing {
        Routing {
            file,
            awaited: Some(LogPosition::OPENING),
            is_swapping: false,
        }
    }

    /// Sends each order its way.
    pub fn route(&mut self, stores: Vec<StorageRequest>) -> Vec<Route> {
        let is_record =
            |store: &StorageRequest| matches!(store, StorageRequest::Append { durable: false, .. });
        // Asked once: the disk thread may find the disk slow or quick meanwhile, and a batch goes one way.
        let may_write = self.may_write();
        if may_write && !stores.is_empty() && stores.iter().all(is_record) {
            return vec![Route::Now(stores)];
        }
        let mut routes = Vec::new();
        let mut records = Vec::new();
        // Records in front of a durable one are left to the disk thread as well: it writes and syncs all of them together. So are those
        // in front of a swap, for those behind it are.
        let is_quick = |store: &StorageRequest| {
            !matches!(
                store,
                StorageRequest::Append { durable: true, .. } | StorageRequest::Swap(_)
            )
        };
        let all_quick = stores.iter().all(is_quick);
        for store in stores {
            match store {
                StorageRequest::Append { position, .. } => {
                    if all_quick && may_write {
                        records.push(store);
                    } else {
                        self.awaited = Some(position);
                        routes.push(Route::Disk(store));
                    }
                }
                // Its failure may have been the disk thread's. It comes before the records that go with it: they are of later commits.
                StorageRequest::Recover => routes.push(Route::Disk(store)),
                // No record comes before the beginning of a new file; the other two do not concern the present one.
                StorageRequest::Rewrite(..)
                | StorageRequest::Extend(..)
                | StorageRequest::Abandon(_) => {
                    routes.push(Route::Rewrite(store));
                }
                StorageRequest::Swap(_) => {
                    self.is_swapping = true;
                    routes.push(Route::Rewrite(store));
                }
            }
        }
        if !records.is_empty() {
            routes.push(Route::Now(records));
        }
        routes
    }

    /// Takes note of an order that came of records that were to be written at once, and is left to the disk thread.
    pub fn left_to_disk<D: Disk>(&mut self, order: &DiskTask<D>) {
        if let DiskTask::Truncate(position, _) = order {
            self.awaited = Some(*position);
        }
    }

    /// Takes note of an answer of the disk thread, on its way to the database.
    pub fn answered(&mut self, answer: &StorageReply) {
        match answer {
            StorageReply::Stored(position, _) if self.awaited == Some(*position) => {
                self.awaited = None;
            }
            StorageReply::Rewrite(_, Ok(RewriteStage::InPlace(_)) | Err(_)) => {
                self.is_swapping = false;
            }
            _ => {}
        }
    }

    /// Whether the disk thread has nothing to do that takes long, and writing does not either.
    fn may_write(&self) -> bool {
        self.awaited.is_none() && !self.is_swapping && self.file.is_quick()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::RewriteNumber;

    fn append(position: u64) -> StorageRequest {
        StorageRequest::Append {
            position: LogPosition(position),
            record: Vec::new(),
            durable: false,
        }
    }

    fn shown(routes: &[Route]) -> Vec<String> {
        let name = |store: &StorageRequest| match store {
            StorageRequest::Append { position, .. } => position.0.to_string(),
            StorageRequest::Extend(..) => "extend".to_owned(),
            StorageRequest::Swap(_) => "swap".to_owned(),
            other => format!("{other:?}"),
        };
        let show = |route: &Route| match route {
            Route::Now(stores) => {
                let names: Vec<String> = stores.iter().map(name).collect();
                format!("now {}", names.join(" "))
            }
            Route::Disk(store) => format!("disk {}", name(store)),
            Route::Rewrite(store) => format!("rewrite {}", name(store)),
        };
        routes.iter().map(show).collect()
    }

    fn idle() -> Routing {
        let file = Arc::new(Published::default());
        file.set(0, true);
        let mut routing = Routing::new(file);
        routing.answered(&StorageReply::Stored(LogPosition::OPENING, Ok(())));
        routing
    }

    #[test]
    fn records_on_both_sides_of_a_swap_go_the_same_way() {
        let swap = StorageRequest::Swap(RewriteNumber(1));
        let routes = idle().route(vec![append(1), swap, append(2)]);
        assert_eq!(shown(&routes), ["disk 1", "rewrite swap", "disk 2"]);
    }

    #[test]
    fn records_on_both_sides_of_an_extension_are_written_together() {
        let extend = StorageRequest::Extend(RewriteNumber(1), Vec::new());
        let routes = idle().route(vec![append(1), extend, append(2)]);
        assert_eq!(shown(&routes), ["rewrite extend", "now 1 2"]);
    }

    #[test]
    fn nothing_is_written_at_once_while_the_disk_is_slow() {
        let mut routing = idle();
        let file = routing.file.clone();
        file.set(0, false);
        assert_eq!(shown(&routing.route(vec![append(1)])), ["disk 1"]);
        file.set(0, true);
        assert_eq!(shown(&routing.route(vec![append(2)])), ["disk 2"]);
        routing.answered(&StorageReply::Stored(LogPosition(2), Ok(())));
        assert_eq!(shown(&routing.route(vec![append(3)])), ["now 3"]);
    }
}
