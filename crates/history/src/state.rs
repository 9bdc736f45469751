//! The database as it was at a position.
//!
//! One pass from the contents of the file that has the position. The memory is that of the state: a
//! standalone file's contents are inserted while they are read, in runs of rows. Of a member's file
//! the text of the snapshot is in memory too.

use corvid_data::{Arc, HashSeed, Schema, UuidSource};
use corvid_engine::{BulkLoad, Database, RowBuilder};
use corvid_log::cluster::TransactionReader;
use corvid_log::{Feed, Job, Load, Source};

use crate::ReadAt;
use crate::commit::Commit;
use crate::commits::{Check, Commits, Limit, parse_schema};
use crate::error::HistoryError;
use crate::part::Part;
use crate::segment::Kind;
use crate::timeline::{Position, Timeline};

impl<F: ReadAt> Timeline<F> {
    /// The database at a position, under the schema that it had then. `uuids` generates row
    /// versions.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn state_at(
        &self,
        position: Position,
        seed: HashSeed,
        uuids: &mut dyn UuidSource,
    ) -> Result<Database, HistoryError> {
        let part = &self.parts()[position.part];
        match part.identity()?.kind {
            Kind::Standalone => standalone(part, position.end, seed, uuids),
            Kind::Clustered => clustered(part, position.place, seed, uuids),
        }
    }
}

impl<F: ReadAt> Timeline<F> {
    /// The schema that the database had at a position. Rows are not read; in a member's file all
    /// entries are.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn schema_at(&self, position: Position) -> Result<Arc<Schema>, HistoryError> {
        let part = &self.parts()[position.part];
        let mut commits = self.commits(position.part)?;
        let mut schema = commits.schema().clone();
        if part.beginning()?.kind == Kind::Standalone {
            return Ok(schema);
        }
        while let Some(commit) = commits.next()? {
            if commit.place > position.place {
                break;
            }
            if let Some(text) = commit.schema {
                schema = Arc::new(parse_schema(text).map_err(|error| part.error(error))?);
            }
        }
        Ok(schema)
    }
}

/// The text of a file up to an offset.
struct TextBefore<'t> {
    text: &'t dyn ReadAt,
    offset: u64,
    end: u64,
}

impl Source for TextBefore<'_> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        let left = self.end.saturating_sub(self.offset);
        let length = usize::try_from(left).map_or(room.len(), |left| left.min(room.len()));
        if length == 0 {
            return Ok(0);
        }
        let got = self.text.read_at(&mut room[..length], self.offset)?;
        self.offset += got as u64;
        Ok(got)
    }

    fn bytes_left(&self) -> Option<u64> {
        Some(self.end.saturating_sub(self.offset))
    }
}

/// Why a load ended.
enum Ended {
    /// The long record cannot be read in pieces.
    Irregular,
    Failed(HistoryError),
}

/// Loads a standalone file up to the record that ends at `end`.
fn standalone<F: ReadAt>(
    part: &Part<F>,
    end: u64,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
) -> Result<Database, HistoryError> {
    let begin = || {
        let source = TextBefore {
            text: part.text(),
            offset: 0,
            end,
        };
        Load::open(source).map_err(|damage| part.error(damage.report(part.name())))
    };
    match pieces(part, begin()?, |feed| feed, seed, uuids) {
        Ok(database) => Ok(database),
        Err(Ended::Failed(error)) => Err(error),
        Err(Ended::Irregular) => match pieces(part, begin()?, Feed::whole_records, seed, uuids) {
            Ok(database) => Ok(database),
            Err(Ended::Failed(error)) => Err(error),
            Err(Ended::Irregular) => Err(part.error("its contents cannot be read")),
        },
    }
}

fn pieces<'t, F>(
    part: &Part<F>,
    load: Load<TextBefore<'t>>,
    how: impl FnOnce(Feed<TextBefore<'t>>) -> Feed<TextBefore<'t>>,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
) -> Result<Database, Ended>
where
    F: ReadAt,
{
    let schema = load.schema().clone();
    let mut database = Database::new(schema.clone(), seed);
    let builder = RowBuilder::new(&database);
    let (feed, _) = load.into_feed();
    let mut feed = how(feed);
    let mut filling: Option<BulkLoad> = None;
    let failed = |error: &dyn ToString| Ended::Failed(part.error(error.to_string()));
    while let Some(job) = feed.job() {
        match job {
            Job::Fill => filling = Some(BulkLoad::new(Database::new(schema.clone(), seed))),
            Job::Rows(text) => {
                let (Some(bulk), Some(rows)) = (&mut filling, text.decode(&schema)) else {
                    return Err(Ended::Irregular);
                };
                let mut built = Vec::with_capacity(rows.len());
                for row in rows {
                    built.push(builder.row(row, uuids).ok_or(Ended::Irregular)?);
                }
                bulk.add(text.table, built).map_err(|_| Ended::Irregular)?;
            }
            Job::Filled { .. } => {
                let bulk = filling.take().ok_or(Ended::Irregular)?;
                database = bulk.finish().map_err(|_| Ended::Irregular)?;
            }
            Job::Records(records) => {
                let decoded = records.decode(&schema, |recorded| recorded);
                for (recorded, end) in decoded.transactions {
                    database.load(recorded, uuids).map_err(|error| {
                        failed(&format_args!(
                            "the record that ends at offset {end} cannot be used: {error}"
                        ))
                    })?;
                }
                if let Some(cause) = decoded.damage {
                    let damage = corvid_log::Extent::default().damage(cause);
                    return Err(failed(&damage.to_wire(part.name())));
                }
            }
            Job::Irregular => return Err(Ended::Irregular),
            Job::End(None) => break,
            Job::End(Some(error)) => return Err(failed(&error.to_wire(part.name()))),
        }
    }
    Ok(database)
}

/// Loads a member's file up to the entry at `last`.
fn clustered<F: ReadAt>(
    part: &Part<F>,
    last: u64,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
) -> Result<Database, HistoryError> {
    let mut commits = Commits::open(part, Limit::Index(last), Check::Wanted)?;
    let mut database = Database::new(commits.schema().clone(), seed);
    let mut reader = TransactionReader::default();
    if let Some(contents) = commits.contents()? {
        let schema = database.schema().clone();
        let recorded = reader
            .read(contents, &schema)
            .map_err(|error| part.error(error))?;
        database
            .load(recorded, uuids)
            .map_err(|error| part.error(error))?;
    }
    while let Some(commit) = commits.next()? {
        apply(&mut database, &mut reader, &commit, seed, uuids)
            .map_err(|error| HistoryError::record(part.name(), commit.start, &error))?;
    }
    Ok(database)
}

/// Applies an entry: a transaction, a conversion, or another schema with all its rows.
fn apply(
    database: &mut Database,
    reader: &mut TransactionReader,
    commit: &Commit<'_>,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
) -> Result<(), corvid_data::WireError> {
    if let Some(schema) = commit.schema {
        let schema = parse_schema(schema)
            .map_err(|error| corvid_data::WireError::new(corvid_data::Tag::SyntaxError, error))?;
        let schema = Arc::new(schema);
        *reader = TransactionReader::default();
        *database = match commit.transaction {
            Some(_) => Database::new(schema, seed),
            None => database.convert(schema, uuids)?,
        };
    }
    if let Some(transaction) = commit.transaction {
        let schema = database.schema().clone();
        database.load(reader.read(transaction, &schema)?, uuids)?;
    }
    Ok(())
}
