//! Opens a database file after a start, with the server's own code.

use corvid_data::HashSeed;
use corvid_log::storage::FileSize;
use std::fmt;

use corvid_data::uuid::UuidSource;
use corvid_engine::Database;
use corvid_log::load::Cause;
use corvid_log::salvage::{self, Bytes};
use corvid_log::{Damage, DiskFile, Ending, Load, Magic, ReadError, Rot, Source, ending};
use corvid_service::once::{RecordedCommits, RecordedIn};
use corvid_service::storage::FileState;

use crate::world::disk::Handle;

/// The content of a file.
pub(crate) struct Opened {
    pub(crate) database: Database,
    pub(crate) state: FileState,
    /// The last commits that the records name.
    pub(crate) recorded: RecordedCommits,
    /// The damage that follows the good part.
    pub(crate) damage: Option<Damage>,
    /// Number of whole records after the damage. The server saves a salvage copy before it cuts
    /// them off.
    pub(crate) records_behind: u64,
}

/// The reason why a file is not opened.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The file has no schema.
    NoSchema(Damage),
    /// The disk failed to read the file; a later attempt may succeed.
    Unreadable(String),
    /// Bytes that were complete have changed.
    Rotten(Damage, Rot),
}

/// The bytes of an open file, in order.
pub(crate) struct FileSource<'f> {
    pub(crate) file: &'f Handle,
    pub(crate) offset: u64,
}

impl Source for FileSource<'_> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        let got = self.file.read_at(room, self.offset);
        let got = got.map_err(|fault| fault.text)?;
        self.offset += got as u64;
        Ok(got)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoSchema(damage) => f.write_str(&damage.report("a.db")),
            Refusal::Unreadable(reason) => f.write_str(reason),
            Refusal::Rotten(damage, rot) => write!(f, "{}: {rot:?}", damage.report("a.db")),
        }
    }
}

impl Bytes for FileSource<'_> {
    fn read_at(&mut self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        let got = self.file.read_at(room, offset);
        got.map_err(|fault| fault.text)
    }
}

/// Reads the whole file.
///
/// # Errors
/// The file must not be written to.
pub(crate) fn open(
    file: &Handle,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
) -> Result<Opened, Refusal> {
    let source = || FileSource { file, offset: 0 };
    let mut load = Load::open(source()).map_err(refusal)?;
    let mut database = Database::new(load.schema().clone(), seed);
    let mut recorded = RecordedCommits::default();
    let damage = loop {
        match load.next_transaction() {
            Ok(None) => break None,
            Ok(Some(transaction)) => {
                let named = RecordedIn::of(&transaction);
                if let Err(error) = database.apply_recorded(transaction, uuids) {
                    break Some(load.reject(error));
                }
                recorded.append(named);
            }
            Err(damage) => break Some(damage),
        }
    };
    let mut records_behind = 0;
    if let Some(damage) = &damage {
        if matches!(damage.cause, Cause::Read(ReadError::Source { .. })) {
            return Err(refusal(damage.clone()));
        }
        let judged = ending::judge(source(), damage).map_err(Refusal::Unreadable)?;
        if let Ending::Rotten(rot) = judged {
            return Err(Refusal::Rotten(damage.clone(), rot));
        }
        let behind = salvage::records_behind(source(), Magic::Standalone, damage.offset);
        records_behind = behind.map_err(Refusal::Unreadable)?;
        assert!(
            records_behind == 0 || judged == Ending::Doubtful(records_behind),
            "the server would cut off {records_behind} records without a copy"
        );
    }
    let size = FileSize {
        base: load.base_bytes(),
        end: load.good_end(),
    };
    let state = FileState {
        records: load.records(),
        size,
    };
    Ok(Opened {
        database,
        state,
        recorded,
        damage,
        records_behind,
    })
}

fn refusal(damage: Damage) -> Refusal {
    match damage.cause {
        Cause::Read(ReadError::Source { reason, .. }) => Refusal::Unreadable(reason),
        _ => Refusal::NoSchema(damage),
    }
}
