//! Loading a log into memory: several threads decode transactions, and the calling thread applies them in order.
//!
//! Invariant: the result equals that of applying the log's good records to an empty database, one after the other, up to the first damage;
//! a record that fails in its middle changes nothing. The caller knows where the bytes come from, and what damage means for the file.

use corvid_data::{HashSeed, UuidSource, WireError};
use corvid_engine::{BulkLoad, Database};
use corvid_log::split::BATCH_BYTES;
use corvid_log::{Cause, Damage, Extent, Feed, Load, Source};

use super::decoding::{Decoding, Outcome};

/// The number of records that are prepared together before they are applied.
const LOOK_AHEAD: usize = 8;

/// The content of a log.
#[derive(Debug)]
pub(super) struct LoadedLog {
    pub(super) database: Database,
    pub(super) extent: Extent,
    /// Why loading ended before the end of the log.
    pub(super) damage: Option<Damage>,
}

/// A long record cannot be applied in pieces: the log must be read again, in whole records.
struct Irregular;

/// Loads the log that `open` opens, twice if necessary. `uuids` generates identities of commits; `fresh` makes a generator of row versions for
/// each thread.
///
/// # Errors
/// Errors of `open`, or of record 0, with the name `file`.
pub(super) fn load<S: Source + Send, U: UuidSource + Send>(
    file: &str,
    workers: usize,
    mut open: impl FnMut() -> Result<S, WireError>,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
    fresh: impl Fn() -> U + Sync,
) -> Result<LoadedLog, WireError> {
    let begin = |source: S| Load::open(source).map_err(|damage| damage.to_wire(file));
    let load = begin(open()?)?;
    if let Ok(loaded) = finish(load, workers, |feed| feed, seed, uuids, &fresh) {
        return Ok(loaded);
    }
    let load = begin(open()?)?;
    match finish(load, workers, Feed::whole_records, seed, uuids, &fresh) {
        Ok(loaded) => Ok(loaded),
        Err(Irregular) => unreachable!("whole records are not taken in pieces"),
    }
}

fn finish<S: Source + Send, U: UuidSource + Send>(
    load: Load<S>,
    workers: usize,
    how: impl FnOnce(Feed<S>) -> Feed<S>,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
    fresh: &(impl Fn() -> U + Sync),
) -> Result<LoadedLog, Irregular> {
    let schema = load.schema().clone();
    // One thread alone loads a small file in less than a millisecond, which is less than starting others takes.
    let is_small = load
        .bytes_left()
        .is_some_and(|left| left <= 2 * BATCH_BYTES as u64);
    let workers = if is_small { 0 } else { workers };
    let (feed, extent) = load.into_feed();
    let database = Database::new(schema, seed);
    let decoding = Decoding::new(how(feed), &database, workers);
    let mut loaded = LoadedLog {
        database,
        extent,
        damage: None,
    };
    std::thread::scope(|scope| {
        for number in 0..workers {
            let worker = || decoding.work(&mut fresh());
            let thread = std::thread::Builder::new().name(format!("load{number}"));
            // If a thread cannot be created, the others do its work.
            let _ = thread.spawn_scoped(scope, worker);
        }
        let outcome = apply(&mut loaded, &decoding, &mut fresh(), uuids);
        decoding.close();
        outcome
    })?;
    Ok(loaded)
}

/// Applies what comes out of the decoding, up to the end of the log.
fn apply<S: Source>(
    loaded: &mut LoadedLog,
    decoding: &Decoding<S>,
    versions: &mut dyn UuidSource,
    uuids: &mut dyn UuidSource,
) -> Result<(), Irregular> {
    let mut fill = None;
    loop {
        match decoding.next(versions) {
            Outcome::Transactions(decoded) => {
                let count = decoded.transactions.len();
                let mut mistakes = 0;
                let mut transactions = decoded.transactions.into_iter();
                while let Some((prepared, end)) = transactions.next() {
                    let rest = transactions.as_slice();
                    if rest.len().is_multiple_of(LOOK_AHEAD) {
                        let next = rest.iter().take(LOOK_AHEAD);
                        mistakes += loaded.database.prefetch(next.map(|(prepared, _)| prepared));
                    }
                    match loaded.database.load_prepared(prepared, uuids) {
                        Ok(()) => loaded.extent.accept(end),
                        Err(error) => return loaded.end(Some(Cause::rejected(error))),
                    }
                }
                decoding.learn(mistakes, count);
                if let Some(cause) = decoded.damage {
                    return loaded.end(Some(cause));
                }
            }
            Outcome::Fill => {
                let empty = Database::new(
                    loaded.database.schema().clone(),
                    loaded.database.hash_seed(),
                );
                fill = Some(BulkLoad::new(std::mem::replace(
                    &mut loaded.database,
                    empty,
                )));
            }
            Outcome::Rows(table, rows) => {
                let fill: &mut BulkLoad = fill.as_mut().ok_or(Irregular)?;
                fill.add(table, rows).map_err(|_| Irregular)?;
            }
            Outcome::Filled(end) => {
                let fill = fill.take().ok_or(Irregular)?;
                loaded.database = fill.finish().map_err(|_| Irregular)?;
                loaded.extent.accept(end);
            }
            Outcome::Irregular => return Err(Irregular),
            Outcome::End(error) => return loaded.end(error.map(Cause::Read)),
        }
    }
}

impl LoadedLog {
    #[allow(clippy::unnecessary_wraps)] // the last step of a caller that may fail otherwise
    fn end(&mut self, cause: Option<Cause>) -> Result<(), Irregular> {
        self.damage = cause.map(|cause| self.extent.damage(cause));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
