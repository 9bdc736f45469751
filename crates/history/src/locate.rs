//! From a moment to a position: which commit is the last one at that moment.
//!
//! The clock may have been set back, so dates need not be in order. The commit at a time is then
//! the last one that is not later.

use std::cmp::Ordering;

use corvid_engine::Database;

use crate::ReadAt;
use crate::commit::{Commit, CommitId};
use crate::commits::Limit;
use crate::error::HistoryError;
use crate::moment::Moment;
use crate::records::Heading;
use crate::scan::date_of;
use crate::segment::Kind;
use crate::timeline::{Position, Timeline};

/// Returns the database at a position of a timeline.
pub type StateAt<'s, F> =
    &'s mut dyn FnMut(&Timeline<F>, Position) -> Result<Database, HistoryError>;

impl<F: ReadAt> Timeline<F> {
    /// The position at a moment. `shown` is the moment as the user spelled it, and `date` shows
    /// times in messages.
    ///
    /// # Errors
    /// The moment is before the history, there is no such commit, or a file is damaged.
    pub fn locate(
        &self,
        moment: &Moment,
        shown: &str,
        date: &dyn Fn(i64) -> String,
    ) -> Result<Position, HistoryError> {
        let found = match moment {
            Moment::Back(count) => self.back(*count)?,
            Moment::Time(time_ms) => self.at_time(*time_ms)?,
            Moment::Commit(prefix) => self.commit_named(prefix, shown)?,
        };
        match found {
            Some(position) => Ok(position),
            None => Err(self.nothing_at(moment, shown, date)?),
        }
    }

    /// Where the history begins: the contents of the oldest file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn beginning(&self) -> Result<Position, HistoryError> {
        self.base(0)
    }

    /// Where it ends.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn end(&self) -> Result<Position, HistoryError> {
        self.last(self.parts().len() - 1)
    }

    /// Compares the state after each file's last commit with the contents that the next file begins
    /// with, and describes the differences for people. `state_at` is [`Timeline::state_at`], with
    /// what it needs.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn discontinuities(&self, state_at: StateAt<'_, F>) -> Result<Vec<String>, HistoryError> {
        let mut problems = Vec::new();
        for part in 1..self.parts().len() {
            let before = state_at(self, self.last(part - 1)?)?;
            let after = state_at(self, self.base(part)?)?;
            if !before.schema().same_as(after.schema()) {
                continue;
            }
            let rows = crate::diff::diff(&before, &after).0.len();
            if rows > 0 {
                problems.push(format!(
                    "commits are missing before {}: {rows} rows are not as {} left them",
                    self.parts()[part].name(),
                    self.parts()[part - 1].name()
                ));
            }
        }
        Ok(problems)
    }

    /// The position after the last commit of a file that the next one does not have.
    fn last(&self, part: usize) -> Result<Position, HistoryError> {
        match self.count(part)? {
            0 => self.base(part),
            count => self.nth(part, count),
        }
    }

    /// When the history begins, ms since the Unix epoch, if it says so.
    ///
    /// # Errors
    /// The oldest file is damaged.
    pub fn first_ms(&self) -> Result<Option<i64>, HistoryError> {
        Ok(self.parts()[0]
            .index()?
            .dates_ms
            .map(|(first_ms, _)| first_ms))
    }

    /// The contents that a file begins with.
    pub(crate) fn base(&self, part: usize) -> Result<Position, HistoryError> {
        let file = &self.parts()[part];
        let index = file.index()?;
        let (place, end) = match index.identity.kind {
            Kind::Clustered => (self.commits(part)?.base(), 0),
            Kind::Standalone => {
                let contents = index.records - index.transactions;
                let mut records = file.records(None)?;
                let mut end = 0;
                for _ in 0..contents {
                    let heading = records.next().map_err(|error| file.error(error))?;
                    end = heading.map_or(end, |heading| heading.end);
                }
                (contents - 1, end)
            }
        };
        Ok(Position { part, place, end })
    }

    /// The position before the last `count` commits; `None` if there are fewer.
    fn back(&self, count: u64) -> Result<Option<Position>, HistoryError> {
        let mut left = count;
        for part in (0..self.parts().len()).rev() {
            let total = self.count(part)?;
            // The contents of a file are the state before its first commit. After a conversion that
            // is not the state after the last commit of the file before it.
            match left.cmp(&total) {
                Ordering::Less => return self.nth(part, total - left).map(Some),
                Ordering::Equal => return self.base(part).map(Some),
                Ordering::Greater => left -= total,
            }
        }
        Ok(None)
    }

    /// Number of commits of a file that the next one does not have.
    fn count(&self, part: usize) -> Result<u64, HistoryError> {
        let file = &self.parts()[part];
        let index = file.index()?;
        match (index.identity.kind, self.limit(part)?) {
            (Kind::Standalone, Limit::Offset(end)) => {
                // The frames know how many records precede.
                let after = index
                    .frames
                    .partition_point(|frame| frame.text_offset <= end);
                let frame = after.checked_sub(1).map(|at| &index.frames[at]);
                let mut count = frame.map_or(0, |frame| frame.record);
                if let Some((frame, first)) =
                    frame.and_then(|frame| Some((frame, frame.first_record?)))
                {
                    let start = (frame.text_offset + u64::from(first), frame.record);
                    let mut records = file.records_at(start, Some(end.max(start.0)))?;
                    while records.next().map_err(|error| file.error(error))?.is_some() {
                        count += 1;
                    }
                }
                Ok(count.saturating_sub(index.records - index.transactions))
            }
            (Kind::Standalone, _) => Ok(index.transactions),
            (Kind::Clustered, _) => {
                let mut count = 0;
                let mut commits = self.commits(part)?;
                while commits.next()?.is_some() {
                    count += 1;
                }
                Ok(count)
            }
        }
    }

    /// The position after the first `count` commits of a file.
    fn nth(&self, part: usize, count: u64) -> Result<Position, HistoryError> {
        let file = &self.parts()[part];
        let index = file.index()?;
        let mut position = None;
        match index.identity.kind {
            Kind::Standalone => {
                let number = index.records - index.transactions + count - 1;
                let heading = self.record(part, number)?;
                position = heading.map(|heading| (heading.number, heading.end));
            }
            Kind::Clustered => {
                let mut commits = self.commits(part)?;
                for _ in 0..count {
                    let next = commits.next()?;
                    position = next.map(|commit| (commit.place, commit.end));
                }
            }
        }
        let (place, end) =
            position.ok_or_else(|| file.error("it has fewer records than its index says"))?;
        Ok(Position { part, place, end })
    }

    /// The record of a number in a standalone file, or the last one before it.
    fn record(&self, part: usize, number: u64) -> Result<Option<Heading>, HistoryError> {
        let file = &self.parts()[part];
        let index = file.index()?;
        let after = index.frames.partition_point(|frame| frame.record <= number);
        // Of frames in which no record begins, the record's number is that of the next one.
        let frames = index.frames[..after].iter().rev();
        let frame = frames
            .filter(|frame| frame.records > 0)
            .find(|frame| frame.record <= number);
        let start = frame.map_or((0, 0), |frame| {
            let first = u64::from(frame.first_record.unwrap_or(0));
            (frame.text_offset + first, frame.record)
        });
        let mut found = None;
        let mut records = file.records_at(start, None)?;
        while let Some(heading) = records.next().map_err(|error| file.error(error))? {
            found = Some(heading);
            if heading.number >= number {
                break;
            }
        }
        Ok(found)
    }

    /// The last commit that is not later; `None` if all are.
    fn at_time(&self, time_ms: i64) -> Result<Option<Position>, HistoryError> {
        for part in (0..self.parts().len()).rev() {
            let index = self.parts()[part].index()?;
            if index.frame_before(time_ms).is_none() {
                continue;
            }
            let found = match index.identity.kind {
                Kind::Standalone => self.record_at(part, time_ms)?,
                Kind::Clustered => {
                    // A conversion has no date. It counts as made just before the next commit, so
                    // that a time before an upgrade never gives what came after it.
                    let mut is_before = false;
                    self.last_commit(part, |commit| {
                        if commit.schema.is_some() {
                            return false;
                        }
                        if let Some(date_ms) = commit.transaction.and_then(date_of) {
                            is_before = date_ms <= time_ms;
                        }
                        is_before
                    })?
                }
            };
            if found.is_some() {
                return Ok(found);
            }
            // Not a commit, but what the file begins with.
            let base = self.base(part)?;
            if self
                .base_ms(part)?
                .is_some_and(|base_ms| base_ms <= time_ms)
            {
                return Ok(Some(base));
            }
        }
        Ok(None)
    }

    /// When the contents of a file were written.
    fn base_ms(&self, part: usize) -> Result<Option<i64>, HistoryError> {
        let mut commits = self.commits(part)?;
        Ok(commits.contents()?.and_then(date_of))
    }

    /// The last record of a standalone file that is not later, and that the next file does not
    /// have; the contents count as well.
    fn record_at(&self, part: usize, time_ms: i64) -> Result<Option<Position>, HistoryError> {
        let file = &self.parts()[part];
        let index = file.index()?;
        let limit = match self.limit(part)? {
            Limit::Offset(end) => Some(end),
            _ => None,
        };
        let may_have =
            |dates_ms: Option<(i64, i64)>| dates_ms.is_some_and(|(least, _)| least <= time_ms);
        for frame in index.frames.iter().rev() {
            let Some(first) = frame.first_record.filter(|_| may_have(frame.dates_ms)) else {
                continue;
            };
            let start = (frame.text_offset + u64::from(first), frame.record);
            if limit.is_some_and(|limit| start.0 >= limit) {
                continue;
            }
            let mut records = file.records_at(start, limit)?;
            let mut found = None;
            for _ in 0..frame.records {
                let Some(heading) = records.next().map_err(|error| file.error(error))? else {
                    break;
                };
                let body = records.body().map_err(|error| file.error(error))?;
                if heading.number > 0 && date_of(body).is_some_and(|date_ms| date_ms <= time_ms) {
                    found = Some(heading);
                }
            }
            if let Some(heading) = found {
                if heading.number < index.records - index.transactions {
                    return self.base(part).map(Some);
                }
                return Ok(Some(Position {
                    part,
                    place: heading.number,
                    end: heading.end,
                }));
            }
        }
        Ok(None)
    }

    /// The last commit of a file for which `is_it` holds.
    fn last_commit(
        &self,
        part: usize,
        mut is_it: impl FnMut(&Commit<'_>) -> bool,
    ) -> Result<Option<Position>, HistoryError> {
        let mut found = None;
        let mut commits = self.commits(part)?;
        while let Some(commit) = commits.next()? {
            if is_it(&commit) {
                found = Some(Position {
                    part,
                    place: commit.place,
                    end: commit.end,
                });
            }
        }
        Ok(found)
    }

    /// The commit whose id begins with `prefix`.
    fn commit_named(&self, prefix: &str, shown: &str) -> Result<Option<Position>, HistoryError> {
        let mut found: Option<Position> = None;
        for part in (0..self.parts().len()).rev() {
            let (count, in_part) = self.named_in(part, prefix)?;
            if count > 1 || found.is_some() && in_part.is_some() {
                let problem = format!("\"{shown}\" is the beginning of several commits' ids");
                return Err(HistoryError::Moment(problem));
            }
            found = found.or(in_part);
            // A whole id names one commit only.
            if found.is_some() && prefix.len() >= corvid_data::Uuid::TEXT_LEN {
                break;
            }
        }
        Ok(found)
    }

    /// How many commits of a file have an id that begins with `prefix`, and the last of them.
    fn named_in(
        &self,
        part: usize,
        prefix: &str,
    ) -> Result<(usize, Option<Position>), HistoryError> {
        let mut count = 0;
        let file = &self.parts()[part];
        let numbers = file.transactions_named(prefix)?;
        let limit = match (file.beginning()?.kind, self.limit(part)?) {
            _ if numbers.as_ref().is_some_and(Vec::is_empty) => return Ok((0, None)),
            (Kind::Standalone, Limit::Offset(end)) => Some(end),
            (Kind::Standalone, _) => Some(u64::MAX),
            // Whether an entry was superseded is known to a pass over the file only.
            (Kind::Clustered, _) => None,
        };
        let (Some(numbers), Some(limit)) = (numbers, limit) else {
            let last = self.last_commit(part, |commit| {
                let is_it = commit.id.begins_with(prefix);
                count += usize::from(is_it);
                is_it
            })?;
            return Ok((count, last));
        };
        let index = file.index()?;
        let mut last = None;
        for number in numbers {
            let number = index.records - index.transactions + number;
            let heading = self.record(part, number)?;
            let heading = heading.filter(|heading| heading.number == number);
            let heading = heading.ok_or_else(|| file.error("a record of its index is missing"))?;
            if CommitId::Hash(heading.sha1).begins_with(prefix) && heading.start < limit {
                count += 1;
                last = Some(Position {
                    part,
                    place: number,
                    end: heading.end,
                });
            }
        }
        Ok((count, last))
    }

    fn nothing_at(
        &self,
        moment: &Moment,
        shown: &str,
        date: &dyn Fn(i64) -> String,
    ) -> Result<HistoryError, HistoryError> {
        let begins = match self.first_ms()? {
            Some(first_ms) => format!("the history begins at {}", date(first_ms)),
            None => "the history does not go back so far".to_owned(),
        };
        Ok(HistoryError::Moment(match moment {
            Moment::Commit(_) => format!("\"{shown}\": there is no such commit; {begins}"),
            Moment::Back(_) | Moment::Time(_) => {
                format!("\"{shown}\" is before the history; {begins}")
            }
        }))
    }
}
