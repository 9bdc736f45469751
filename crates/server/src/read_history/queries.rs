//! The queries. `corvid_history` does the reading; the tools use the same functions.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

use corvid_data::{HashSeed, Tag, WireError};
use corvid_engine::{Context, LockOwner, Outcome, TooLong, WorkBudget};
use corvid_history::filter::matching;
use corvid_history::{
    Bound, Event, Filter, HistoryError, Moment, Position, Range, RowChange, Timeline, json,
};
use corvid_net::clock;
use corvid_service::read_history::{CHANGES_MAX, Newest, Query, Start};
use corvid_shell::date;

use super::files::{HistorySource, ReadingFile, ReadingFiles};
use super::pager::{Pager, Unwanted};
use crate::database::open::RandomUuids;

/// Why a reading has no further answer.
enum Stopped {
    Unwanted,
    Failed(WireError),
}

impl From<Unwanted> for Stopped {
    fn from(_: Unwanted) -> Stopped {
        Stopped::Unwanted
    }
}

impl From<WireError> for Stopped {
    fn from(error: WireError) -> Stopped {
        Stopped::Failed(error)
    }
}

impl From<HistoryError> for Stopped {
    fn from(error: HistoryError) -> Stopped {
        let tag = match &error {
            HistoryError::Unusable { .. } => Tag::IoError,
            HistoryError::Moment(_) | HistoryError::Filter(_) => Tag::InvalidParameters,
        };
        Stopped::Failed(WireError::new(tag, error.to_string()))
    }
}

type History = Timeline<ReadingFile>;

/// Carries out a query. Returns the last answer.
pub(super) fn run(
    start: &Start,
    source: Option<HistorySource>,
    seed: HashSeed,
    pager: Pager,
) -> Result<Vec<u8>, WireError> {
    let pager = Rc::new(pager);
    let Some(source) = source else {
        let details = format!(
            "database {} has no file on this server, so there is no history of it here; ask a server that has one",
            start.name
        );
        return Err(WireError::new(Tag::NotSupported, details));
    };
    let outcome = open(start, source, &pager).and_then(|history| match &start.query {
        Query::Files => files(&history, &pager),
        Query::Log {
            filter,
            since,
            until,
            newest,
        } => {
            let range = range(&history, since.as_deref(), until.as_deref())?;
            log(&history, filter, range, *newest, &pager)
        }
        Query::Diff { filter, from, to } => diff(&history, filter, [from, to], seed, &pager),
        Query::Schema { at } => {
            let position = locate(&history, at)?;
            let schema = history.schema_at(position)?;
            pager.line(&schema.to_json().to_bytes())?;
            Ok(pager.last())
        }
        Query::Select { at, params } => {
            pager.answer_at_end();
            select(&history, at, params, seed)
        }
    });
    outcome.map_err(|stopped| match stopped {
        Stopped::Failed(error) => error,
        // Nobody gets this.
        Stopped::Unwanted => WireError::new(Tag::Canceled, "the reading has ended"),
    })
}

/// Opens the files, up to what the server had promised when it was asked.
fn open(start: &Start, source: HistorySource, pager: &Rc<Pager>) -> Result<History, Stopped> {
    let pages = pager.clone();
    let pause = move || {
        let paused = pages.pause();
        paused.map_err(|_| "the reading has ended".to_owned())
    };
    let files = ReadingFiles::new(source, Rc::new(pause));
    let mut history = Timeline::open(&files)?;
    history.end_at(match start.applied {
        Some(index) => Bound::Index(index.0),
        None => Bound::Offset(files.end()),
    })?;
    Ok(history)
}

/// The position at a moment. A time without a zone is one of UTC: the server does not know the
/// client's zone.
fn locate(history: &History, text: &str) -> Result<Position, Stopped> {
    let moment = parse(text)?;
    Ok(history.locate(&moment, text, &date_text)?)
}

fn parse(text: &str) -> Result<Moment, HistoryError> {
    Moment::parse(text, clock::wall_ms(), &|civil| Some(civil.utc_ms()))
}

fn date_text(ms: i64) -> String {
    let mut text = date::utc_text(ms).replace(' ', "T");
    text.push('Z');
    text
}

fn range(history: &History, since: Option<&str>, until: Option<&str>) -> Result<Range, Stopped> {
    let mut range = Range::default();
    if let Some(since) = since {
        // A time before the history is its beginning.
        let is_before = match parse(since)? {
            Moment::Time(time_ms) => history
                .first_ms()?
                .is_some_and(|first_ms| time_ms < first_ms),
            Moment::Back(_) | Moment::Commit(_) => false,
        };
        if !is_before {
            range.since = Some(locate(history, since)?);
        }
    }
    if let Some(until) = until {
        range.until = Some(locate(history, until)?);
    }
    Ok(range)
}

fn files(history: &History, pager: &Pager) -> Result<Vec<u8>, Stopped> {
    let count = history.parts().len();
    for (at, part) in history.parts().iter().enumerate() {
        let mut line = Vec::new();
        json::write_part(&mut line, part)?;
        pager.reached((at + 1) as f64 / count as f64, None);
        pager.line(&line)?;
    }
    for gap in history.gaps() {
        let mut line = Vec::new();
        json::write_gap(&mut line, gap);
        pager.line(&line)?;
    }
    Ok(pager.last())
}

/// Warns of files that are missing.
fn warn(history: &History, pager: &Pager) {
    for gap in history.gaps() {
        pager.warn(gap.clone());
    }
}

fn log(
    history: &History,
    filter: &Filter,
    range: Range,
    newest: Option<usize>,
    pager: &Pager,
) -> Result<Vec<u8>, Stopped> {
    warn(history, pager);
    let progress = Progress::of(history, range)?;
    pager.reached_byte(0, progress.total, None);
    let mut newest = newest.map(Newest::new);
    // Nobody waits for the rest. Then the walk ends early, and must not pass for a whole one.
    let is_unwanted = Cell::new(false);
    let mut event = |event: &Event<'_>| {
        pager.reached_date(event.date_ms());
        // The contents with which a history begins may be as large as a database, and are not one
        // of the last changes.
        if newest.is_some() && matches!(event, Event::Begin { .. }) {
            return ControlFlow::Continue(());
        }
        for (line, is_continued) in lines(event) {
            match &mut newest {
                Some(newest) => newest.push(line, is_continued),
                None if pager.line(&line).is_err() => is_unwanted.set(true),
                None => {}
            }
        }
        match is_unwanted.get() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    // The clock is looked at when a file is read, too, so not at each commit.
    let mut count = 0_u32;
    let mut step = |step: &corvid_history::Step<'_>| {
        count = count.wrapping_add(1);
        if count.is_multiple_of(STEPS) {
            let done = progress.at(step.part, step.end);
            pager.reached_byte(done, progress.total, step.date_ms());
            if pager.pause().is_err() {
                is_unwanted.set(true);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    history.walk_watched(filter, range, &mut event, &mut step)?;
    if is_unwanted.get() {
        return Err(Stopped::Unwanted);
    }
    if let Some(newest) = newest {
        newest
            .warning()
            .into_iter()
            .for_each(|text| pager.warn(text));
        for line in newest.into_lines() {
            pager.line(&line)?;
        }
    }
    Ok(pager.last())
}

/// Commits between two looks at the clock.
const STEPS: u32 = 16;

/// The part of a range that has been read.
struct Progress {
    /// Bytes of the range's files before each of them.
    before: Vec<u64>,
    first: usize,
    total: u64,
}

impl Progress {
    fn of(history: &History, range: Range) -> Result<Progress, Stopped> {
        let first = range.since.map_or(0, |since| since.part);
        let last = range
            .until
            .map_or(history.parts().len() - 1, |until| until.part);
        let mut progress = Progress {
            before: Vec::new(),
            first,
            total: 0,
        };
        for part in &history.parts()[first..=last.max(first)] {
            progress.before.push(progress.total);
            let length = part.text().length();
            progress.total += length.map_err(|error| WireError::new(Tag::IoError, error))?;
        }
        Ok(progress)
    }

    fn at(&self, part: usize, end: u64) -> u64 {
        let before = part.checked_sub(self.first);
        let before = before.and_then(|at| self.before.get(at)).copied();
        before.unwrap_or(0) + end
    }
}

/// The lines of an event, each with whether it continues the one before. An event with many changes
/// has several, so that no line is as long as a database.
fn lines<'e>(event: &'e Event<'e>) -> impl Iterator<Item = (Vec<u8>, bool)> + 'e {
    let changes = event.changes();
    let count = changes.len().div_ceil(CHANGES_MAX).max(1);
    (0..count).map(move |at| {
        let start = at * CHANGES_MAX;
        let end = changes.len().min(start + CHANGES_MAX);
        let mut line = Vec::new();
        json::write_event(&mut line, &event.with_changes(&changes[start..end]));
        if at > 0 {
            // The object is not empty.
            line.pop();
            line.extend_from_slice(b",\"continued\":true}");
        }
        (line, at > 0)
    })
}

fn diff(
    history: &History,
    filter: &Filter,
    [from, to]: [&str; 2],
    seed: HashSeed,
    pager: &Pager,
) -> Result<Vec<u8>, Stopped> {
    warn(history, pager);
    let (changes, tables) = changes(history, filter, [from, to], seed)?;
    let count = changes.len().max(1) as f64;
    for (at, change) in changes.iter().enumerate() {
        let mut line = Vec::new();
        json::write_change(&mut line, change);
        pager.reached(at as f64 / count, None);
        pager.line(&line)?;
    }
    for table in tables {
        pager.warn(format!(
            "table {table}: its columns differ between the two moments, so its rows are not compared"
        ));
    }
    Ok(pager.last())
}

/// The difference between two moments, and the tables that cannot be compared. The two states are
/// in memory only here.
fn changes(
    history: &History,
    filter: &Filter,
    [from, to]: [&str; 2],
    seed: HashSeed,
) -> Result<(Vec<RowChange>, Vec<String>), Stopped> {
    let mut uuids = uuids()?;
    // Both moments are looked for first: an error need not wait for a state.
    let (from, to) = (locate(history, from)?, locate(history, to)?);
    let old = history.state_at(from, seed, &mut uuids)?;
    let new = history.state_at(to, seed, &mut uuids)?;
    let (changes, tables) = corvid_history::diff(&old, &new);
    Ok((matching(filter, changes, new.schema())?, tables))
}

fn uuids() -> Result<RandomUuids, Stopped> {
    RandomUuids::new().map_err(|error| {
        let details = format!("no random numbers ({})", corvid_net::errno::text(&error));
        Stopped::Failed(WireError::new(Tag::IoError, details))
    })
}

/// A state of the past has no locks.
struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _: &str) -> bool {
        false
    }
}

/// Bytes of a result of `select_at` that may repeat selections from the same table.
const REPEATED_BYTES_MAX: usize = 16 << 20;

fn select(history: &History, at: &str, params: &[u8], seed: HashSeed) -> Result<Vec<u8>, Stopped> {
    let mut uuids = uuids()?;
    let position = locate(history, at)?;
    let mut database = history.state_at(position, seed, &mut uuids)?;
    let mut context = Context {
        elapsed_ms: 0,
        read_only: true,
        identities: &[],
        can_wait: false,
        uuids: &mut uuids,
        locks: &NoLocks,
    };
    // A short request may ask for the same table thousands of times.
    let mut budget = WorkBudget::unlimited().with_repeated_bytes(REPEATED_BYTES_MAX);
    match database.execute_within(params, &mut context, &mut budget) {
        Ok(Outcome::Done { result, .. }) => Ok(result),
        // With `can_wait: false` the engine does not block.
        Ok(Outcome::Blocked { .. }) => {
            let error = WireError::new(Tag::NotSupported, "select_at cannot wait");
            Err(Stopped::Failed(error))
        }
        Err(TooLong) => unreachable!("the steps are not limited"),
    }
}
