//! Builds the database of a cluster member: the snapshot in its file, then the committed entries
//! (docs/spec/distribution.md 1.3).
//!
//! ```text
//! [S,T] snapshot   [null,T] [null,T]    [S,null]    [null,T]    [S,T]               [null,T]
//! a feed of rows and transactions       convert     a feed      a new database, a feed
//! ```
//!
//! Invariant: an entry that does not apply fails the database, because the members' contents would
//! differ from there on. (The reference logs it and continues.) Called when a member's file is
//! opened and when a peer's snapshot is installed. The caller runs each feed, with threads or with
//! [`super::loading::run`].

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_data::{Arc, HashSeed, Schema, Tag, UuidSource, WireError};
use corvid_engine::Database;
use corvid_json::{Kind, Reader, Value};
use corvid_log::cluster::{BodyLocation, Index, SnapshotBody, StoredEntry};
use corvid_log::{Feed, Source};

use super::loading::{Irregular, Loaded};
use crate::once::RecordedCommits;

/// Why the database of a member cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLoadError {
    /// The entry that does not apply; `None` for the snapshot.
    pub index: Option<Index>,
    /// The reason.
    pub error: WireError,
}

impl From<MemberLoadError> for WireError {
    /// The error as the server's log words it.
    fn from(failure: MemberLoadError) -> WireError {
        match failure.index {
            None => failure.error,
            Some(index) => WireError::new(
                Tag::OvsdbError,
                format!(
                    "committed entry {index} does not apply, so this member's contents would differ from those of the others: {}",
                    failure.error
                ),
            ),
        }
    }
}

/// The database of a member, and the commits that its snapshot names.
#[derive(Debug)]
pub struct LoadedMember {
    /// Schema and rows, after the entries.
    pub database: Database,
    /// The last commits in the snapshot.
    pub recorded: RecordedCommits,
}

/// Loads the snapshot at `body` and applies `entries`, which are committed. `open` yields the
/// body's bytes from the start; it is called twice if the rows cannot be applied in pieces. `run`
/// decodes and applies a feed.
///
/// # Errors
/// The snapshot or an entry does not apply.
pub fn load_member<S: Source>(
    body: BodyLocation,
    entries: &[StoredEntry],
    mut open: impl FnMut() -> Result<S, WireError>,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
    mut run: impl FnMut(Feed<S>, Database, &mut dyn UuidSource) -> Result<Loaded, Irregular>,
) -> Result<LoadedMember, MemberLoadError> {
    let mut recorded = RecordedCommits::default();
    let mut stages = stages(entries)?.into_iter();
    let first = stages.next().unwrap_or_default();
    let in_snapshot = |error| MemberLoadError { index: None, error };
    let mut load = |is_whole: bool| {
        let rows = open().and_then(|source| SnapshotBody::open(source, body));
        let mut rows = rows.map_err(in_snapshot)?;
        let comment = rows
            .comment()
            .map_err(|error| in_snapshot(error.to_wire("snapshot")))?;
        recorded = RecordedCommits::of_snapshot(&comment.unwrap_or_default());
        let schema = Arc::clone(rows.schema());
        let database = Database::new(Arc::clone(&schema), seed);
        let feed = Feed::of_member(schema, Some(rows), first.texts());
        let feed = if is_whole { feed.whole_records() } else { feed };
        Ok(run(feed, database, &mut *uuids))
    };
    // In pieces first, so that decoding can be spread over threads. An unusual snapshot is read
    // once more, in whole records.
    let loaded = match load(false)? {
        Ok(loaded) => loaded,
        Err(Irregular) => load(true)?.unwrap_or_else(|Irregular| {
            unreachable!("whole records are not applied in pieces");
        }),
    };
    // The snapshot's rows count as the first transaction.
    let mut database = first.finish(loaded, 1)?;
    for stage in stages {
        let Some((index, schema)) = stage.schema.clone() else {
            continue;
        };
        let failed = |error| MemberLoadError {
            index: Some(index),
            error,
        };
        // The transactions of the earlier stage have been applied: a conversion changes the rows as
        // of this entry.
        database = if stage.is_conversion {
            let converted = database.convert(schema, uuids);
            converted.map_err(failed)?
        } else {
            Database::new(schema, seed)
        };
        let feed = Feed::of_member(Arc::clone(database.schema()), None, stage.texts());
        let Ok(loaded) = run(feed, database, &mut *uuids) else {
            unreachable!("transactions are not applied in pieces");
        };
        database = stage.finish(loaded, 0)?;
    }
    Ok(LoadedMember { database, recorded })
}

/// Consecutive entries under one schema.
#[derive(Debug, Default)]
struct Stage {
    /// The schema, with the entry that introduces it; `None` for the snapshot's schema.
    schema: Option<(Index, Arc<Schema>)>,
    /// The rows of the previous stage are converted; otherwise they are dropped.
    is_conversion: bool,
    transactions: Vec<(Index, Bytes)>,
}

impl Stage {
    fn texts(&self) -> VecDeque<Bytes> {
        self.transactions
            .iter()
            .map(|(_, text)| text.clone())
            .collect()
    }

    /// The database at the end of the stage. `before`: transactions in the feed that no entry
    /// holds.
    fn finish(&self, loaded: Loaded, before: u64) -> Result<Database, MemberLoadError> {
        let Some(damage) = loaded.damage else {
            return Ok(loaded.database);
        };
        // The snapshot's rows precede the entries and belong to none of them.
        let place = damage.record.checked_sub(before);
        let entry = place.and_then(|place| self.transactions.get(usize::try_from(place).ok()?));
        Err(MemberLoadError {
            index: entry.map(|(index, _)| *index),
            error: damage.to_wire("snapshot"),
        })
    }
}

/// Splits entries into stages by schema.
fn stages(entries: &[StoredEntry]) -> Result<Vec<Stage>, MemberLoadError> {
    let mut stages = vec![Stage::default()];
    for entry in entries {
        let Some((_, data)) = &entry.commit else {
            continue;
        };
        let failed = |error| MemberLoadError {
            index: Some(entry.index),
            error,
        };
        let (schema, transaction) = halves(data).ok_or_else(|| {
            let details = "an entry's data is not an array of a schema and a transaction";
            failed(WireError::new(Tag::SyntaxError, details))
        })?;
        if let Some(schema) = schema {
            let json = Value::parse(&schema)
                .map_err(|error| failed(WireError::new(Tag::SyntaxError, error.to_string())))?;
            let schema = Schema::from_json(&json).map_err(failed)?;
            stages.push(Stage {
                schema: Some((entry.index, Arc::new(schema))),
                is_conversion: transaction.is_none(),
                transactions: Vec::new(),
            });
        }
        if let (Some(transaction), Some(stage)) = (transaction, stages.last_mut()) {
            stage.transactions.push((entry.index, transaction));
        }
    }
    Ok(stages)
}

/// The schema and the transaction in an entry's data; `None` for a half that is `null`.
fn halves(data: &Bytes) -> Option<(Option<Bytes>, Option<Bytes>)> {
    let mut reader = Reader::trusted(data);
    reader.begin_array().ok()?;
    let mut half = || -> Option<Option<Bytes>> {
        if !reader.next_element().ok()? {
            return None;
        }
        let is_null = reader.peek().ok()? == Kind::Null;
        let text = reader.skip().ok()?;
        Some((!is_null).then(|| data.slice_ref(text)))
    };
    let (schema, transaction) = (half()?, half()?);
    (!reader.next_element().ok()?).then_some((schema, transaction))
}

#[cfg(test)]
mod tests;
