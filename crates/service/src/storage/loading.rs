//! From the pieces of a file ([`Feed`]) to the rows of a database: decoding, which any thread may
//! do, and applying, which one thread does.
//!
//! Invariant: the result equals applying the good records to the database one by one, up to the
//! first damage. A record that fails halfway changes nothing. Called when a database is opened; the
//! caller distributes the jobs over threads, or calls [`run`]. Nothing here knows files or threads,
//! or what damage means for the file.

use std::sync::atomic::{AtomicBool, Ordering};

use corvid_data::{Arc, Row, Schema, TableId, UuidSource};
use corvid_engine::{BulkLoad, Database, Prepared, RowBuilder};
use corvid_log::feed::{Decoded, Records};
use corvid_log::{Cause, Damage, Extent, Feed, Job, ReadError, Source};

use crate::once::{RecordedCommits, RecordedIn};

/// Number of records whose rows are prefetched together before they are applied.
const LOOK_AHEAD: usize = 8;

/// The database loaded from a log, and how far the log was good.
#[derive(Debug)]
pub struct Loaded {
    /// The rows.
    pub database: Database,
    /// The good part of the log.
    pub extent: Extent,
    /// Why loading stopped before the end of the log; `None` if it did not.
    pub damage: Option<Damage>,
    /// The last commits that the good records name.
    pub recorded: RecordedCommits,
}

/// A long record cannot be applied in pieces: the log must be read again in whole records
/// ([`Feed::whole_records`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Irregular;

/// The outcome of one job.
#[derive(Debug)]
pub enum Outcome {
    /// Decoded transactions, in order, each with what its record says about commits.
    Transactions(Decoded<(Prepared, RecordedIn)>),
    /// A long record begins; its rows follow.
    Fill,
    /// Rows of the long record.
    Rows(TableId, Vec<Arc<Row>>),
    /// The long record ends at this offset, and says this about commits.
    Filled(u64, RecordedIn),
    /// The long record cannot be applied in pieces.
    Irregular,
    /// The log has ended, or cannot be read further for this reason.
    End(Option<ReadError>),
}

/// Decodes jobs, on any thread.
#[derive(Debug)]
pub struct Decoder {
    schema: Arc<Schema>,
    rows: RowBuilder,
    /// Whether guessing which rows are new still saves time.
    guesses: AtomicBool,
}

impl Decoder {
    /// A decoder for the tables of `database`.
    #[must_use]
    pub fn new(database: &Database) -> Decoder {
        Decoder {
            schema: Arc::clone(database.schema()),
            rows: RowBuilder::new(database),
            guesses: AtomicBool::new(true),
        }
    }

    /// Executes a job. `reuse` takes back the buffers of decoded records.
    pub fn decode(
        &self,
        job: Job,
        versions: &mut dyn UuidSource,
        reuse: impl FnOnce(Records),
    ) -> Outcome {
        match job {
            Job::Records(records) => {
                let guesses = self.guesses.load(Ordering::Relaxed);
                let decoded = records.decode(&self.schema, |recorded| {
                    let named = RecordedIn::of(&recorded);
                    (self.rows.prepare(recorded, guesses, versions), named)
                });
                reuse(records);
                Outcome::Transactions(decoded)
            }
            Job::Fill => Outcome::Fill,
            Job::Rows(text) => {
                let rows = text.decode(&self.schema).and_then(|rows| {
                    rows.into_iter()
                        .map(|row| self.rows.row(row, versions))
                        .collect()
                });
                rows.map_or(Outcome::Irregular, |rows| Outcome::Rows(text.table, rows))
            }
            Job::Filled { end, comment } => {
                let named = RecordedIn::of_rows(comment.as_deref().unwrap_or_default());
                Outcome::Filled(end, named)
            }
            Job::Irregular => Outcome::Irregular,
            Job::End(error) => Outcome::End(error),
        }
    }

    /// Records for how many of these transactions a row was wrongly guessed to be new. If it was
    /// more than half, later rows are not guessed.
    fn learn(&self, mistakes: usize, transactions: usize) {
        if 2 * mistakes > transactions {
            self.guesses.store(false, Ordering::Relaxed);
        }
    }
}

impl Loaded {
    /// Starts with `database`, to which nothing of the log has been applied.
    #[must_use]
    pub fn new(database: Database, extent: Extent) -> Loaded {
        Loaded {
            database,
            extent,
            damage: None,
            recorded: RecordedCommits::default(),
        }
    }

    /// Applies the outcomes that `next` yields in the order of the log, up to its end. `uuids`
    /// generates the ids of commits.
    ///
    /// # Errors
    /// [`Irregular`]; the content is unusable then.
    pub fn apply(
        &mut self,
        decoder: &Decoder,
        mut next: impl FnMut() -> Outcome,
        uuids: &mut dyn UuidSource,
    ) -> Result<(), Irregular> {
        let mut fill = None;
        loop {
            match next() {
                Outcome::Transactions(decoded) => {
                    if let Some(cause) = self.apply_transactions(decoder, decoded, uuids) {
                        self.damage = Some(self.extent.damage(cause));
                        return Ok(());
                    }
                }
                Outcome::Fill => {
                    // The bulk load takes the database. If the record turns out to be damaged, the
                    // feed reports it as irregular, and this content is discarded.
                    let schema = self.database.schema().clone();
                    let empty = Database::new(schema, self.database.hash_seed());
                    fill = Some(BulkLoad::new(std::mem::replace(&mut self.database, empty)));
                }
                Outcome::Rows(table, rows) => {
                    let fill: &mut BulkLoad = fill.as_mut().ok_or(Irregular)?;
                    fill.add(table, rows).map_err(|_| Irregular)?;
                }
                Outcome::Filled(end, named) => {
                    let fill = fill.take().ok_or(Irregular)?;
                    self.database = fill.finish().map_err(|_| Irregular)?;
                    // Only now is the record whole: the extent must never end inside it.
                    self.extent.accept(end);
                    self.recorded.append(named);
                }
                Outcome::Irregular => return Err(Irregular),
                Outcome::End(error) => {
                    let cause = error.map(Cause::Read);
                    self.damage = cause.map(|cause| self.extent.damage(cause));
                    return Ok(());
                }
            }
        }
    }

    /// Applies transactions up to the first that fails. Returns the reason why it stopped early.
    fn apply_transactions(
        &mut self,
        decoder: &Decoder,
        decoded: Decoded<(Prepared, RecordedIn)>,
        uuids: &mut dyn UuidSource,
    ) -> Option<Cause> {
        let count = decoded.transactions.len();
        let mut mistakes = 0;
        let mut transactions = decoded.transactions.into_iter();
        while let Some(((prepared, named), end)) = transactions.next() {
            let rest = transactions.as_slice();
            if rest.len().is_multiple_of(LOOK_AHEAD) {
                let next = rest.iter().take(LOOK_AHEAD);
                mistakes += self
                    .database
                    .prefetch(next.map(|((prepared, _), _)| prepared));
            }
            match self.database.load_prepared(prepared, uuids) {
                // Only now: the extent never includes a record that was rejected.
                Ok(()) => {
                    self.extent.accept(end);
                    self.recorded.append(named);
                }
                Err(error) => return Some(Cause::rejected(error)),
            }
        }
        decoder.learn(mistakes, count);
        decoded.damage
    }
}

/// Decodes and applies everything, in this thread.
///
/// # Errors
/// [`Irregular`]: read the log again, in whole records.
pub fn run<S: Source>(
    mut feed: Feed<S>,
    database: Database,
    uuids: &mut dyn UuidSource,
    versions: &mut dyn UuidSource,
) -> Result<Loaded, Irregular> {
    let decoder = Decoder::new(&database);
    let mut loaded = Loaded::new(database, Extent::default());
    let next = || {
        let job = feed.job().unwrap_or(Job::End(None));
        decoder.decode(job, versions, |records| feed.reuse(records))
    };
    loaded.apply(&decoder, next, uuids)?;
    Ok(loaded)
}
