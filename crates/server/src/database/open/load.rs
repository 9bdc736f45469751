//! Loads a log into memory: several threads decode transactions, and the calling thread applies
//! them in order.
//!
//! [`corvid_service::storage::loading`] decodes and applies, and holds the invariant; this file
//! adds the threads. The caller knows where the bytes come from, and what damage means for the
//! file.

use corvid_data::{HashSeed, UuidSource, WireError};
use corvid_engine::Database;
use corvid_log::split::BATCH_BYTES;
use corvid_log::{Extent, Feed, Load, Source};
use corvid_service::storage::loading::{Irregular, Loaded};

use super::decoding::Decoding;

/// Loads the log that `open` opens. A record that cannot be loaded in pieces makes a second pass
/// necessary, which reads whole records. `uuids` generates the UUIDs of commits; `fresh` makes a
/// generator of row versions for each thread.
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
) -> Result<Loaded, WireError> {
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
) -> Result<Loaded, Irregular> {
    let database = Database::new(load.schema().clone(), seed);
    let workers = useful_workers(workers, load.bytes_left());
    let (feed, extent) = load.into_feed();
    load_feed(how(feed), database, extent, workers, uuids, fresh)
}

/// The number of workers that speeds up a load. One thread alone loads a small file in less than a
/// millisecond, less than starting other threads takes.
pub(super) fn useful_workers(workers: usize, bytes_left: Option<u64>) -> usize {
    let is_small = bytes_left.is_some_and(|left| left <= 2 * BATCH_BYTES as u64);
    if is_small { 0 } else { workers }
}

/// Decodes a feed with `workers` threads while this thread applies it to `database`.
///
/// # Errors
/// See [`Irregular`].
pub(super) fn load_feed<S: Source + Send, U: UuidSource + Send>(
    feed: Feed<S>,
    database: Database,
    extent: Extent,
    workers: usize,
    uuids: &mut dyn UuidSource,
    fresh: &(impl Fn() -> U + Sync),
) -> Result<Loaded, Irregular> {
    let decoding = Decoding::new(feed, &database, workers);
    let mut loaded = Loaded::new(database, extent);
    std::thread::scope(|scope| {
        for number in 0..workers {
            let worker = || decoding.work(&mut fresh());
            let thread = std::thread::Builder::new().name(format!("load{number}"));
            // If a thread cannot be created, the others do its work.
            let _ = thread.spawn_scoped(scope, worker);
        }
        let mut versions = fresh();
        let next = || decoding.next(&mut versions);
        let outcome = loaded.apply(decoding.decoder(), next, uuids);
        decoding.close();
        outcome
    })?;
    Ok(loaded)
}

#[cfg(test)]
mod tests;
