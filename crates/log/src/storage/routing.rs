//! Decides which requests the holder of the database executes inline and which it leaves to the
//! disk thread.
//!
//! Invariant: records are written in the order of their positions, by one thread at a time. While
//! the disk thread has a slow task (a sync, a swap), or the disk is slow, every request goes to the
//! disk thread. So the database never waits for the disk. The records of one batch go to one
//! thread. Otherwise, if the first were written inline and failed, the disk thread would still
//! write the later ones, although the database undoes them.

use std::sync::Arc;

use super::{DiskTask, FileStatus, LogPosition, RewriteStage, StorageReply, StorageRequest};
use crate::disk::Disk;

/// The destination of requests.
#[derive(Debug)]
pub enum Route {
    /// Ordinary records to be written inline, together.
    Inline(Vec<StorageRequest>),
    /// A request for the disk thread.
    DiskThread(StorageRequest),
    /// A request about a new file, for the rewrite thread: [`StorageRequest::Rewrite`],
    /// [`StorageRequest::Extend`], [`StorageRequest::Swap`] or [`StorageRequest::Abandon`].
    RewriteThread(StorageRequest),
}

/// Tracks the disk thread's tasks that have no reply yet.
#[derive(Debug)]
pub struct Routing {
    file: Arc<FileStatus>,
    unanswered: Option<LogPosition>,
    is_swapping: bool,
}

impl Routing {
    /// Starts with a file just opened: the first task of the disk thread is
    /// [`super::DiskTask::SyncExisting`].
    #[must_use]
    pub fn new(file: Arc<FileStatus>) -> Routing {
        Routing {
            file,
            unanswered: Some(LogPosition::OPENING),
            is_swapping: false,
        }
    }

    /// Chooses the destination of each request.
    pub fn route(&mut self, requests: Vec<StorageRequest>) -> Vec<Route> {
        let is_record = |request: &StorageRequest| {
            matches!(request, StorageRequest::Append { durable: false, .. })
        };
        // Read once: the disk thread may change the answer while this runs, and a batch goes to one
        // thread.
        let may_write = self.may_write();
        if may_write && !requests.is_empty() && requests.iter().all(is_record) {
            return vec![Route::Inline(requests)];
        }
        let mut routes = Vec::new();
        let mut records = Vec::new();
        // Example: Append 1, Append 2 (durable). Writing 1 inline would save nothing, because the
        // disk thread writes and syncs both together. Records before a swap go to the disk thread
        // too: the records after it must, because a swap may hold the lock for long, and a batch
        // goes to one thread.
        let is_quick = |request: &StorageRequest| {
            !matches!(
                request,
                StorageRequest::Append { durable: true, .. } | StorageRequest::Swap(_)
            )
        };
        let all_quick = requests.iter().all(is_quick);
        for request in requests {
            match request {
                StorageRequest::Append { position, .. } => {
                    if all_quick && may_write {
                        records.push(request);
                    } else {
                        self.unanswered = Some(position);
                        routes.push(Route::DiskThread(request));
                    }
                }
                // `Recover` goes to the disk thread because the failed append may have been there.
                // It comes before the records of this call, which belong to later commits.
                StorageRequest::Recover => routes.push(Route::DiskThread(request)),
                // These may overtake the records of this call. A rewrite starts only when no record
                // is pending, and the other two do not touch the present file.
                StorageRequest::Rewrite(..)
                | StorageRequest::Extend(..)
                | StorageRequest::Abandon(_) => {
                    routes.push(Route::RewriteThread(request));
                }
                StorageRequest::Swap(_) => {
                    // Until the swap is answered, the disk thread may hold the lock for long. No
                    // record is written inline.
                    self.is_swapping = true;
                    routes.push(Route::RewriteThread(request));
                }
            }
        }
        if !records.is_empty() {
            routes.push(Route::Inline(records));
        }
        routes
    }

    /// Records that an inline write has failed and that its cleanup is left to the disk thread.
    pub fn observe_deferral<D: Disk>(&mut self, order: &DiskTask<D>) {
        if let DiskTask::Truncate(position, ..) = order {
            self.unanswered = Some(*position);
        }
    }

    /// Records a reply of the disk thread just before it is delivered to the database.
    pub fn observe_reply(&mut self, reply: &StorageReply) {
        if let (StorageReply::Appended(position, _), Some(last)) = (reply, self.unanswered) {
            assert!(
                *position <= last,
                "the disk thread answers what it was asked"
            );
        }
        match reply {
            StorageReply::Appended(position, _) if self.unanswered == Some(*position) => {
                self.unanswered = None;
            }
            StorageReply::Rewrite(_, Ok(RewriteStage::InPlace(_)) | Err(_)) => {
                self.is_swapping = false;
            }
            _ => {}
        }
    }

    /// Whether the disk thread has no slow task and writing is quick too.
    fn may_write(&self) -> bool {
        self.unanswered.is_none() && !self.is_swapping && self.file.is_quick()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::RewriteNumber;

    fn append(position: u64) -> StorageRequest {
        StorageRequest::Append {
            position: LogPosition(position),
            record: Vec::new().into(),
            durable: false,
        }
    }

    fn shown(routes: &[Route]) -> Vec<String> {
        let name = |request: &StorageRequest| match request {
            StorageRequest::Append { position, .. } => position.0.to_string(),
            StorageRequest::Extend(..) => "extend".to_owned(),
            StorageRequest::Swap(_) => "swap".to_owned(),
            other => format!("{other:?}"),
        };
        let show = |route: &Route| match route {
            Route::Inline(requests) => {
                let names: Vec<String> = requests.iter().map(name).collect();
                format!("inline {}", names.join(" "))
            }
            Route::DiskThread(request) => format!("disk {}", name(request)),
            Route::RewriteThread(request) => format!("rewrite {}", name(request)),
        };
        routes.iter().map(show).collect()
    }

    fn idle() -> Routing {
        let file = Arc::new(FileStatus::default());
        file.set(0, true);
        let mut routing = Routing::new(file);
        routing.observe_reply(&StorageReply::Appended(LogPosition::OPENING, Ok(())));
        routing
    }

    #[test]
    fn records_before_and_after_a_swap_go_to_the_disk_thread() {
        let swap = StorageRequest::Swap(RewriteNumber(1));
        let routes = idle().route(vec![append(1), swap, append(2)]);
        assert_eq!(shown(&routes), ["disk 1", "rewrite swap", "disk 2"]);
    }

    #[test]
    fn records_before_and_after_an_extension_are_written_together() {
        let extend = StorageRequest::Extend(RewriteNumber(1), Vec::new());
        let routes = idle().route(vec![append(1), extend, append(2)]);
        assert_eq!(shown(&routes), ["rewrite extend", "inline 1 2"]);
    }

    #[test]
    fn slow_disk_prevents_inline_writes() {
        let mut routing = idle();
        let file = routing.file.clone();
        file.set(0, false);
        assert_eq!(shown(&routing.route(vec![append(1)])), ["disk 1"]);
        file.set(0, true);
        assert_eq!(shown(&routing.route(vec![append(2)])), ["disk 2"]);
        routing.observe_reply(&StorageReply::Appended(LogPosition(2), Ok(())));
        assert_eq!(shown(&routing.route(vec![append(3)])), ["inline 3"]);
    }
}
