//! New files in place of the present one: compactions, by request or for growth, and the file of a conversion. One at a time.
//!
//! The database continues meanwhile. It requests a new file while nothing is pending. When the file holds nearly everything, it requests
//! the swap, and appends to the new file from then on. No commit waits for more than the swap.

use super::{DatabaseService, Now};
use crate::message::{Control, Event, ToDatabase};
use crate::storage::Content;
use corvid_log::storage::{RewriteNumber, RewriteStage, StorageRequest, StoreError};

/// The purpose of a new file.
#[derive(Debug)]
pub(super) enum Purpose {
    /// A compaction, for these requests.
    Compaction(Vec<Option<u64>>),
    /// Another schema.
    Conversion,
}

/// A new file that is being written.
#[derive(Debug)]
pub(super) struct Rewriting {
    number: RewriteNumber,
    purpose: Purpose,
    /// From here on it cannot be given up.
    is_swapping: bool,
    is_in_place: bool,
}

/// The new file, and the compactions that wait for one.
#[derive(Debug, Default)]
pub(super) struct Rewrites {
    last: u64,
    current: Option<Rewriting>,
    /// Compactions requested during another rewrite. Commits up to their request must be compacted too, so they begin anew after it.
    wanted: Vec<Option<u64>>,
    /// The file has grown, and its compaction waits until nothing is pending.
    is_queued: bool,
}

impl Rewrites {
    /// Whether a swap is under way.
    pub(super) fn is_swapping(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.is_swapping)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.wanted.is_empty()
    }
}

impl DatabaseService {
    /// Compacts the file, while nothing is pending. An event answers when a crash cannot bring the old file back.
    pub(super) fn compact(&mut self, now: Now, token: Option<u64>) {
        if token.is_none() {
            self.rewrites.is_queued = false;
        }
        if self.model.cluster().is_some() && !self.model.is_relay() {
            self.compact_cluster(token);
            return;
        }
        if self.growth.is_none() {
            self.outputs.events.push(Event::Compacted(token, Ok(())));
            return;
        }
        self.rewrites.wanted.push(token);
        if self.rewrites.current.is_some() {
            return;
        }
        let tokens = std::mem::take(&mut self.rewrites.wanted);
        let content = Content {
            snapshot: self.database.snapshot(),
            comment: "compacting database online",
            date_ms: now.wall_ms,
            is_diff: self.column_diff,
            with_tail: true,
        };
        self.rewrite(Purpose::Compaction(tokens), content);
    }

    /// Begins a new file; there must be no other.
    pub(super) fn rewrite(&mut self, purpose: Purpose, content: Content) -> RewriteNumber {
        assert!(
            self.rewrites.current.is_none() && self.pending.is_empty(),
            "a new file begins while nothing is pending, and alone"
        );
        self.rewrites.last += 1;
        let number = RewriteNumber(self.rewrites.last);
        self.rewrites.current = Some(Rewriting {
            number,
            purpose,
            is_swapping: false,
            is_in_place: false,
        });
        self.outputs
            .stores
            .push(StorageRequest::Rewrite(number, Box::new(content)));
        number
    }

    /// Whether growth alone may have the file compacted: nothing under way makes a compaction unnecessary.
    pub(super) fn may_compact(&self) -> bool {
        let is_free = self.rewrites.is_idle() && !self.rewrites.is_queued;
        is_free && self.conversion.is_none() && !self.is_removed
    }

    /// Compacts the file if it has grown enough.
    pub(super) fn compact_if_due(&mut self, now: Now) {
        let is_due = self.growth.is_some_and(|growth| growth.is_due(now.mono_ms));
        if is_due && self.may_compact() {
            self.rewrites.is_queued = true;
            self.handle(now, ToDatabase::Control(Control::Compact(None)));
        }
    }

    /// Gives up a compaction, which must not be swapping: a conversion makes it unnecessary, or the database is removed.
    pub(super) fn give_up_compaction(&mut self) {
        assert!(!self.rewrites.is_swapping(), "a swap is waited for");
        let current = self.rewrites.current.take();
        if let Some(Rewriting {
            number,
            purpose: Purpose::Compaction(tokens),
            ..
        }) = current
        {
            self.rewrites.wanted.extend(tokens);
            self.outputs.stores.push(StorageRequest::Abandon(number));
        }
    }

    /// Answers all requests for a compaction.
    pub(super) fn answer_compactions(&mut self, result: &Result<(), StoreError>) {
        for token in std::mem::take(&mut self.rewrites.wanted) {
            let event = Event::Compacted(token, result.clone());
            self.outputs.events.push(event);
        }
    }

    /// A new file has reached a stage, or has failed.
    pub(super) fn rewrite_advanced(
        &mut self,
        now: Now,
        number: RewriteNumber,
        outcome: Result<RewriteStage, StoreError>,
    ) {
        let Some(current) = &mut self.rewrites.current else {
            return;
        };
        if current.number != number {
            return;
        }
        match outcome {
            Ok(RewriteStage::Written) => match current.purpose {
                Purpose::Compaction(_) => self.swap_rewrite(),
                Purpose::Conversion => self.conversion_written(now),
            },
            Ok(RewriteStage::InPlace(size)) => {
                current.is_in_place = true;
                self.storage_error = None;
                let chance = self.chance();
                if let Some(growth) = &mut self.growth {
                    growth.rewritten(size, now.mono_ms, chance);
                }
            }
            Ok(RewriteStage::Lasting) => self.rewrite_ended(now, Ok(())),
            Err(error) => {
                let chance = self.chance();
                if let Some(growth) = &mut self.growth {
                    growth.failed(now.mono_ms, chance);
                }
                self.rewrite_ended(now, Err(error));
            }
        }
    }

    fn rewrite_ended(&mut self, now: Now, result: Result<(), StoreError>) {
        let Some(Rewriting {
            purpose,
            is_in_place,
            ..
        }) = self.rewrites.current.take()
        else {
            return;
        };
        match purpose {
            Purpose::Compaction(tokens) => {
                let asked_since = std::mem::replace(&mut self.rewrites.wanted, tokens);
                self.answer_compactions(&result);
                self.rewrites.wanted = asked_since;
            }
            // Once the new file is in place, memory must match it, even if a crash might still bring the old one back: after such a failure
            // nothing is appended to either.
            Purpose::Conversion if is_in_place => self.finish_conversion(now, Ok(())),
            Purpose::Conversion => self.finish_conversion(now, result),
        }
        self.compact_wanted(now);
        // The conversion may have waited for the swap.
        self.advance_conversion(now);
        self.resume(now);
    }

    /// Begins the compaction that was asked for during another rewrite.
    pub(super) fn compact_wanted(&mut self, now: Now) {
        if let Some(token) = self.rewrites.wanted.pop() {
            self.handle(now, ToDatabase::Control(Control::Compact(token)));
        }
    }

    /// Begins the new file of a conversion, which makes a compaction unnecessary.
    pub(super) fn rewrite_for_conversion(&mut self, content: Content) {
        self.give_up_compaction();
        self.rewrite(Purpose::Conversion, content);
    }

    /// Appends to the new file of the conversion.
    pub(super) fn extend_rewrite(&mut self, records: Vec<Vec<u8>>) {
        if let Some(current) = &self.rewrites.current {
            let extension = StorageRequest::Extend(current.number, records);
            self.outputs.stores.push(extension);
        }
    }

    /// Requests that the new file replace the present one.
    pub(super) fn swap_rewrite(&mut self) {
        if let Some(current) = &mut self.rewrites.current {
            current.is_swapping = true;
            self.outputs
                .stores
                .push(StorageRequest::Swap(current.number));
        }
    }

    /// Gives up the new file of a conversion, if there is one.
    pub(super) fn abandon_rewrite(&mut self) {
        let is_conversion =
            |current: &mut Rewriting| matches!(current.purpose, Purpose::Conversion);
        if let Some(current) = self.rewrites.current.take_if(is_conversion) {
            self.outputs
                .stores
                .push(StorageRequest::Abandon(current.number));
        }
    }

    /// A random number.
    pub(super) fn chance(&mut self) -> u64 {
        let bytes = self.uuids.fresh().0;
        let mut half = [0; 8];
        half.copy_from_slice(&bytes[..8]);
        u64::from_le_bytes(half)
    }
}
