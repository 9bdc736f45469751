//! New files in place of the present one: compactions, by request or for growth, and the file of a
//! conversion. One at a time.
//!
//! The database continues meanwhile. It requests a new file while nothing is pending. When the file
//! holds nearly everything, it requests the swap, and appends to the new file from then on. No
//! commit waits for more than the swap.
//!
//! Invariant: each request for a compaction is answered once, when a crash cannot bring back a file
//! without the commits before it.

use std::sync::Arc;

use corvid_engine::Snapshot;
use corvid_log::storage::{RewriteNumber, RewriteStage, RowProgress, StorageRequest, StoreError};

use super::super::Now;
use super::DatabaseFile;
use crate::barrier::{Activity, UnderWay};
use crate::message::Event;
use crate::once::RecordedCommits;
use crate::storage::Content;

/// The purpose of a new file.
#[derive(Debug)]
enum Purpose {
    /// A compaction, for these requests.
    Compaction(Vec<Option<u64>>),
    /// Another schema.
    Conversion,
}

/// A new file that is being written.
#[derive(Debug)]
struct Rewriting {
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
    /// Compactions requested during another rewrite. Commits up to their request must be compacted
    /// too, so they begin anew after it.
    wanted: Vec<Option<u64>>,
    /// The file has grown, and its compaction waits until nothing is pending.
    is_queued: bool,
}

/// The meaning of a stage of a new file to the database.
#[derive(Debug)]
pub(in super::super) enum Progress {
    /// Further stages follow, or the file was given up.
    UnderWay,
    /// The new file of the conversion holds everything that it was given.
    Written,
    /// The compaction has ended; these events answer its requests.
    Compacted(Vec<Event>),
    /// The new file of the conversion is in place, or has failed.
    Converted(Result<(), StoreError>),
}

impl Rewrites {
    pub(super) fn report_activity(&self, activity: &mut Activity) {
        activity.report(UnderWay::NewFile, !self.is_idle());
        activity.report(UnderWay::QueuedCompaction, self.is_queued);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.wanted.is_empty()
    }

    /// Checks the new file, if there is one.
    pub(super) fn check(&self) {
        if let Some(current) = &self.current {
            assert_eq!(current.number.0, self.last, "the last one begun is written");
            assert!(
                current.is_swapping || !current.is_in_place,
                "a file is in place because that was asked for"
            );
            if let Purpose::Compaction(tokens) = &current.purpose {
                assert!(!tokens.is_empty(), "a compaction was asked for");
            }
        }
    }
}

impl DatabaseFile {
    /// Whether a new file is being put in place.
    pub(in super::super) fn is_swapping(&self) -> bool {
        let current = self.rewrites.current.as_ref();
        current.is_some_and(|current| current.is_swapping)
    }

    /// A compaction for growth waits from now on until nothing is pending.
    pub(in super::super) fn queue_compaction(&mut self) {
        self.rewrites.is_queued = true;
    }

    /// A compaction for growth waits no longer.
    pub(in super::super) fn end_queued_compaction(&mut self) {
        self.rewrites.is_queued = false;
    }

    /// Begins a compaction, while nothing is pending, or has it wait for the end of another new
    /// file. `None` requests it for growth. Returns the event that answers it at once if there is
    /// no file.
    pub(in super::super) fn compact(
        &mut self,
        now: Now,
        token: Option<u64>,
        snapshot: impl FnOnce() -> (Snapshot, RecordedCommits),
    ) -> Option<Event> {
        if self.growth.is_none() {
            return Some(Event::compacted(token, Ok(())));
        }
        self.rewrites.wanted.push(token);
        if self.rewrites.current.is_some() {
            return None;
        }
        let tokens = std::mem::take(&mut self.rewrites.wanted);
        let (snapshot, recorded) = snapshot();
        let content = Content {
            progress: Arc::new(RowProgress::new(snapshot.rows_count())),
            snapshot,
            recorded,
            comment: "compacting database online",
            date_ms: now.wall_ms,
            is_diff: self.is_diff,
            with_tail: true,
        };
        self.begin(Purpose::Compaction(tokens), content);
        None
    }

    /// Begins the new file of a conversion, while nothing is pending. It makes a compaction
    /// unnecessary.
    pub(in super::super) fn begin_conversion(&mut self, now: Now, snapshot: Snapshot) {
        self.give_up_compaction();
        let content = Content {
            progress: Arc::new(RowProgress::new(snapshot.rows_count())),
            snapshot,
            // A restarted server cannot tell what became of transactions before the conversion, nor
            // of those during it whose rows the new schema does not have: their records are gone.
            recorded: RecordedCommits::default(),
            comment: "converted by ovsdb-server",
            date_ms: now.wall_ms,
            is_diff: self.is_diff,
            with_tail: false,
        };
        self.begin(Purpose::Conversion, content);
    }

    fn begin(&mut self, purpose: Purpose, content: Content) {
        assert!(
            self.rewrites.current.is_none(),
            "one new file is written at a time"
        );
        self.rewrites.last += 1;
        let number = RewriteNumber(self.rewrites.last);
        self.rewrites.current = Some(Rewriting {
            number,
            purpose,
            is_swapping: false,
            is_in_place: false,
        });
        self.requests
            .push(StorageRequest::Rewrite(number, Box::new(content)));
    }

    /// Gives up a compaction, which must not be swapping: a conversion makes it unnecessary, or the
    /// database is removed. Its requests wait for [`DatabaseFile::answer_compactions`].
    pub(in super::super) fn give_up_compaction(&mut self) {
        assert!(!self.is_swapping(), "a swap is waited for");
        let current = self.rewrites.current.take();
        if let Some(Rewriting {
            number,
            purpose: Purpose::Compaction(tokens),
            ..
        }) = current
        {
            self.rewrites.wanted.extend(tokens);
            self.requests.push(StorageRequest::Abandon(number));
        }
    }

    /// Answers all requests for a compaction that wait.
    pub(in super::super) fn answer_compactions(
        &mut self,
        result: &Result<(), StoreError>,
    ) -> Vec<Event> {
        let wanted = std::mem::take(&mut self.rewrites.wanted);
        answers(wanted, result)
    }

    /// Takes a request for a compaction that has waited for the end of another new file.
    pub(in super::super) fn take_wanted(&mut self) -> Option<Option<u64>> {
        self.rewrites.wanted.pop()
    }

    /// A new file has reached a stage, or has failed.
    pub(in super::super) fn advance(
        &mut self,
        now: Now,
        number: RewriteNumber,
        outcome: Result<RewriteStage, StoreError>,
        chance: impl FnOnce() -> u64,
    ) -> Progress {
        let current = self.rewrites.current.as_mut();
        let Some(current) = current.filter(|current| current.number == number) else {
            return Progress::UnderWay;
        };
        if let Ok(stage) = &outcome {
            let has_reached = match stage {
                RewriteStage::Written => !current.is_swapping,
                // Commits are appended to the new file from here on.
                RewriteStage::InPlace(_) => current.is_swapping && !current.is_in_place,
                RewriteStage::Lasting => current.is_in_place,
            };
            assert!(
                has_reached,
                "a new file is written, put in place when that is asked for, and then lasting"
            );
        }
        match outcome {
            Ok(RewriteStage::Written) if matches!(current.purpose, Purpose::Conversion) => {
                Progress::Written
            }
            Ok(RewriteStage::Written) => {
                self.swap();
                Progress::UnderWay
            }
            Ok(RewriteStage::InPlace(size)) => {
                current.is_in_place = true;
                // The new file was written as a whole, so the error of the old one is over.
                self.error = None;
                let chance = chance();
                if let Some(growth) = &mut self.growth {
                    growth.rewritten(size, now.mono_ms, chance);
                }
                Progress::UnderWay
            }
            Ok(RewriteStage::Lasting) => self.end(Ok(())),
            Err(error) => {
                let chance = chance();
                if let Some(growth) = &mut self.growth {
                    growth.failed(now.mono_ms, chance);
                }
                self.end(Err(error))
            }
        }
    }

    /// The new file is lasting, or has failed.
    fn end(&mut self, result: Result<(), StoreError>) -> Progress {
        let Some(ended) = self.rewrites.current.take() else {
            return Progress::UnderWay;
        };
        match ended.purpose {
            // Those requested since then stay: commits up to their request must be compacted too.
            Purpose::Compaction(tokens) => Progress::Compacted(answers(tokens, &result)),
            // Once the new file is in place, memory must match it, even if a crash might still
            // bring the old one back: after such a failure nothing is appended to either.
            Purpose::Conversion if ended.is_in_place => Progress::Converted(Ok(())),
            Purpose::Conversion => Progress::Converted(result),
        }
    }

    /// Appends to the new file of the conversion.
    pub(in super::super) fn extend(&mut self, records: Vec<Vec<u8>>) {
        // From the swap on, commits are appended: an extension would come between two of them.
        assert!(
            !self.is_swapping(),
            "a new file is extended before it is put in place"
        );
        if let Some(current) = &self.rewrites.current {
            let extension = StorageRequest::Extend(current.number, records);
            self.requests.push(extension);
        }
    }

    /// Requests that the new file replace the present one. From here on it cannot be given up.
    pub(in super::super) fn swap(&mut self) {
        if let Some(current) = &mut self.rewrites.current {
            assert!(!current.is_swapping, "a new file is put in place once");
            current.is_swapping = true;
            self.requests.push(StorageRequest::Swap(current.number));
        }
    }

    /// Gives up the new file of a conversion, if there is one.
    pub(in super::super) fn abandon_conversion(&mut self) {
        let is_conversion =
            |current: &mut Rewriting| matches!(current.purpose, Purpose::Conversion);
        if let Some(current) = self.rewrites.current.take_if(is_conversion) {
            // After a crash the file might have the new schema, and the commits since the old one.
            assert!(
                !current.is_swapping,
                "a file that is being put in place is not given up"
            );
            self.requests.push(StorageRequest::Abandon(current.number));
        }
    }
}

fn answers(tokens: Vec<Option<u64>>, result: &Result<(), StoreError>) -> Vec<Event> {
    let tokens = tokens.into_iter();
    tokens
        .map(|token| Event::compacted(token, result.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use corvid_data::{Arc, HashSeed, Schema};
    use corvid_engine::Database;
    use corvid_json::Value;
    use corvid_log::storage::FileSize;

    use super::*;
    use crate::message::ControlAnswer;
    use crate::storage::{FileState, Growth};

    const SIZE: FileSize = FileSize { base: 1, end: 1 };

    fn file() -> DatabaseFile {
        let state = FileState {
            records: 2,
            size: SIZE,
        };
        DatabaseFile::new(Some(Growth::new(state, 0, 0)), true)
    }

    fn snapshot() -> Snapshot {
        let schema = Value::parse(br#"{"name":"D","tables":{}}"#).expect("JSON");
        let schema = Schema::from_json(&schema).expect("a schema");
        Database::new(Arc::new(schema), HashSeed::FIXED).snapshot()
    }

    fn advance(file: &mut DatabaseFile, number: u64, stage: RewriteStage) -> Progress {
        file.advance(Now::default(), RewriteNumber(number), Ok(stage), || 0)
    }

    fn contents() -> (Snapshot, RecordedCommits) {
        (snapshot(), RecordedCommits::default())
    }

    fn tokens(events: &[Event]) -> Vec<Option<u64>> {
        let token = |event: &Event| match event {
            Event::Answered(token, ControlAnswer::Compacted(Ok(()))) => Some(*token),
            Event::Compacted(Ok(())) => None,
            other => panic!("{other:?}"),
        };
        events.iter().map(token).collect()
    }

    #[test]
    fn compactions_requested_during_another_begin_anew_after_it() {
        let mut file = file();
        let compact = |file: &mut DatabaseFile, token| {
            let answer = file.compact(Now::default(), Some(token), contents);
            assert!(answer.is_none());
        };
        compact(&mut file, 1);
        compact(&mut file, 2);
        assert!(matches!(
            advance(&mut file, 1, RewriteStage::Written),
            Progress::UnderWay
        ));
        assert!(file.is_swapping());
        advance(&mut file, 1, RewriteStage::InPlace(SIZE));
        let Progress::Compacted(events) = advance(&mut file, 1, RewriteStage::Lasting) else {
            panic!("the compaction has ended");
        };
        assert_eq!(tokens(&events), [Some(1)]);
        assert!(!file.rewrites.is_idle(), "one is wanted");
        assert_eq!(file.take_wanted(), Some(Some(2)));
        assert!(file.rewrites.is_idle());
    }

    #[test]
    fn a_conversion_answers_the_compaction_that_it_makes_unnecessary() {
        let mut file = file();
        assert!(file.compact(Now::default(), Some(1), contents).is_none());
        file.begin_conversion(Now::default(), snapshot());
        let stale = advance(&mut file, 1, RewriteStage::Lasting);
        assert!(matches!(stale, Progress::UnderWay), "it was given up");
        let written = advance(&mut file, 2, RewriteStage::Written);
        assert!(matches!(written, Progress::Written));
        file.swap();
        advance(&mut file, 2, RewriteStage::InPlace(SIZE));
        let failure = StoreError {
            details: "sync".to_owned(),
            io_error: String::new(),
        };
        let failed = file.advance(Now::default(), RewriteNumber(2), Err(failure), || 0);
        assert!(
            matches!(failed, Progress::Converted(Ok(()))),
            "memory matches the file that is in place"
        );
        assert_eq!(tokens(&file.answer_compactions(&Ok(()))), [Some(1)]);
    }

    #[test]
    fn a_failed_append_leaves_no_record_behind() {
        let mut file = file();
        let first = file.take_position();
        file.requests.push(StorageRequest::Append {
            position: first,
            record: vec![b'x'; 10].into(),
            durable: false,
        });
        let error = StoreError {
            details: "disk".to_owned(),
            io_error: String::new(),
        };
        file.undo([10].into_iter(), &error);
        assert!(matches!(file.requests[..], [StorageRequest::Recover]));
        assert_eq!(file.error(), Some(&error));
        assert!(file.take_position() > first, "positions only grow");
    }
}
