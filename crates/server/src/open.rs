//! Opening a database file: read every record, apply it, and say what is wrong with the rest.

use corvid_data::uuid::UuidSource;
use corvid_data::{Tag, Uuid, WireError};
use corvid_engine::Database;
use corvid_log::{Load, Source};
use corvid_os::errno;
use corvid_os::log_file::{self, LogFile, OpenMode};
use corvid_os::random::Random;
use corvid_os::vlog::{self, Module};
use corvid_service::message::FileSize;
use corvid_service::storage::FileState;

/// Row identities from the operating system's random source.
pub struct RandomUuids(Random);

impl RandomUuids {
    /// A source of its own for one database.
    ///
    /// # Errors
    /// There is no random source.
    pub fn new() -> std::io::Result<RandomUuids> {
        Ok(RandomUuids(Random::new()?))
    }
}

impl UuidSource for RandomUuids {
    fn fresh(&mut self) -> Uuid {
        match self.0.uuid() {
            Ok(bytes) => Uuid(bytes),
            // Identities that repeat would corrupt databases; no running Linux lets this happen.
            Err(error) => panic!("the random source failed: {error}"),
        }
    }
}

/// A file's content.
pub struct Opened {
    /// In memory.
    pub database: Database,
    /// To be appended to.
    pub file: LogFile,
    /// How large it was.
    pub state: FileState,
}

/// A file as a log source.
struct FileSource<'a>(&'a mut LogFile);

impl Source for FileSource<'_> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        self.0
            .file()
            .read(room)
            .map_err(|error| errno::text(&error))
    }
}

/// Opens a standalone database. A damaged tail is logged and left out.
///
/// # Errors
/// The file cannot be opened, locked or has no schema; worded as the reference does.
pub fn open(name: &str, uuids: &mut dyn UuidSource) -> Result<Opened, WireError> {
    let mut file = log_file::open(name, OpenMode::ReadWrite)
        .map_err(|error| WireError::new(Tag::IoError, error.to_string()))?;
    let mut load = Load::open(FileSource(&mut file)).map_err(|damage| damage.to_wire(name))?;
    let mut database = Database::new(load.schema().clone());
    loop {
        let damage = match load.next_transaction() {
            Ok(None) => break,
            Ok(Some(recorded)) => match database.replay(recorded, uuids) {
                Ok(_) => continue,
                Err(error) => load.reject(error),
            },
            Err(damage) => damage,
        };
        vlog::err(Module::OvsdbServer, format_args!("{}", damage.report(name)));
        break;
    }
    let end = load.good_end();
    let state = FileState {
        records: load.records(),
        size: FileSize {
            base: load.base_bytes(),
            end,
        },
    };
    drop(load);
    file.set_end(end);
    Ok(Opened {
        database,
        file,
        state,
    })
}
