//! Opens a database file after a start, with the code that the server opens it with.

use corvid_data::uuid::UuidSource;
use corvid_engine::Database;
use corvid_log::{Damage, DiskFile, Load, Source};
use corvid_service::message::FileSize;
use corvid_service::storage::FileState;

use super::disk::Handle;

/// A file's content.
pub(super) struct Opened {
    pub(super) database: Database,
    pub(super) state: FileState,
    /// What is wrong with the rest.
    pub(super) damage: Option<Damage>,
}

struct FileSource<'f> {
    file: &'f Handle,
    offset: u64,
}

impl Source for FileSource<'_> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        let got = self.file.read_at(room, self.offset);
        let got = got.map_err(|fault| fault.text)?;
        self.offset += got as u64;
        Ok(got)
    }
}

/// Reads the whole file.
///
/// # Errors
/// It has no schema.
pub(super) fn open(file: &Handle, uuids: &mut dyn UuidSource) -> Result<Opened, Damage> {
    let mut load = Load::open(FileSource { file, offset: 0 })?;
    let mut database = Database::new(load.schema().clone());
    let damage = loop {
        match load.next_transaction() {
            Ok(None) => break None,
            Ok(Some(recorded)) => {
                if let Err(error) = database.replay(recorded, uuids) {
                    break Some(load.reject(error));
                }
            }
            Err(damage) => break Some(damage),
        }
    };
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
        damage,
    })
}
