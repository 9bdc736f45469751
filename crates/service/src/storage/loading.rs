//! From the pieces of a file ([`Feed`]) to the rows of a database: decoding, which any thread may do, and applying, which one does.
//!
//! Invariant: the result equals that of applying the good records to the database, one after the other, up to the first damage; a record that
//! fails in its middle changes nothing. Called when a database is opened; the caller distributes the jobs over threads, or calls [`run`].
//! It knows neither files nor threads, and not what damage means for the file.

use std::sync::atomic::{AtomicBool, Ordering};

use corvid_data::{Arc, Row, Schema, TableId, UuidSource};
use corvid_engine::{BulkLoad, Database, Prepared, RowBuilder};
use corvid_log::feed::{Decoded, Records};
use corvid_log::{Cause, Damage, Extent, Feed, Job, ReadError, Source};

/// The number of records that are prepared together before they are applied.
const LOOK_AHEAD: usize = 8;

/// The content of a log.
#[derive(Debug)]
pub struct Loaded {
    /// The rows.
    pub database: Database,
    /// How far the log is good.
    pub extent: Extent,
    /// Why loading ended before the end of the log.
    pub damage: Option<Damage>,
}

/// A long record cannot be applied in pieces: the log must be read again, in whole records ([`Feed::whole_records`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Irregular;

/// The outcome of one job.
#[derive(Debug)]
pub enum Outcome {
    /// Transactions.
    Transactions(Decoded<Prepared>),
    /// A long record begins.
    Fill,
    /// Rows of it.
    Rows(TableId, Vec<Arc<Row>>),
    /// It ends at this offset.
    Filled(u64),
    /// It cannot be applied in pieces.
    Irregular,
    /// The log ends.
    End(Option<ReadError>),
}

/// Decodes jobs, on any thread.
#[derive(Debug)]
pub struct Decoder {
    schema: Arc<Schema>,
    rows: RowBuilder,
    /// Whether guessing which rows are new saves time.
    guesses: AtomicBool,
}

impl Decoder {
    /// For the tables of `database`.
    #[must_use]
    pub fn new(database: &Database) -> Decoder {
        Decoder {
            schema: Arc::clone(database.schema()),
            rows: RowBuilder::new(database),
            guesses: AtomicBool::new(true),
        }
    }

    /// Carries out a job. `reuse` takes back the memory of decoded records.
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
                    self.rows.prepare(recorded, guesses, versions)
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
            Job::Filled(end) => Outcome::Filled(end),
            Job::Irregular => Outcome::Irregular,
            Job::End(error) => Outcome::End(error),
        }
    }

    /// Records how many of the rows of so many transactions were wrongly guessed to be new. When most were, later rows are not guessed.
    fn learn(&self, mistakes: usize, transactions: usize) {
        if 2 * mistakes > transactions {
            self.guesses.store(false, Ordering::Relaxed);
        }
    }
}

impl Loaded {
    /// Nothing of the log has been applied to `database` yet.
    #[must_use]
    pub fn new(database: Database, extent: Extent) -> Loaded {
        Loaded {
            database,
            extent,
            damage: None,
        }
    }

    /// Applies the outcomes that `next` yields in the order of the log, up to its end. `uuids` generates identities of commits.
    ///
    /// # Errors
    /// See [`Irregular`]; the content is of no use then.
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
                    let schema = self.database.schema().clone();
                    let empty = Database::new(schema, self.database.hash_seed());
                    fill = Some(BulkLoad::new(std::mem::replace(&mut self.database, empty)));
                }
                Outcome::Rows(table, rows) => {
                    let fill: &mut BulkLoad = fill.as_mut().ok_or(Irregular)?;
                    fill.add(table, rows).map_err(|_| Irregular)?;
                }
                Outcome::Filled(end) => {
                    let fill = fill.take().ok_or(Irregular)?;
                    self.database = fill.finish().map_err(|_| Irregular)?;
                    self.extent.accept(end);
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

    /// Applies transactions up to the first that cannot be.
    fn apply_transactions(
        &mut self,
        decoder: &Decoder,
        decoded: Decoded<Prepared>,
        uuids: &mut dyn UuidSource,
    ) -> Option<Cause> {
        let count = decoded.transactions.len();
        let mut mistakes = 0;
        let mut transactions = decoded.transactions.into_iter();
        while let Some((prepared, end)) = transactions.next() {
            let rest = transactions.as_slice();
            if rest.len().is_multiple_of(LOOK_AHEAD) {
                let next = rest.iter().take(LOOK_AHEAD);
                mistakes += self.database.prefetch(next.map(|(prepared, _)| prepared));
            }
            match self.database.load_prepared(prepared, uuids) {
                Ok(()) => self.extent.accept(end),
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
/// See [`Irregular`].
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
