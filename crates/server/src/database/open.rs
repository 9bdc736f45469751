//! Opens a database file: reads, decodes and applies every record, and reports damage. Runs on the
//! thread of the opening.

use std::path::PathBuf;

use corvid_data::uuid::UuidSource;
use corvid_data::{HashSeed, Tag, Uuid, WireError};
use corvid_disk::log_file::{self, Handle, LogFile, OpenMode};
use corvid_engine::Database;
use corvid_log::header::LINE_BYTES_MAX;
use corvid_log::storage::FileSize;
use corvid_log::{DiskFile, Ending, Fault, Magic, Source};
use corvid_net::random::{PseudoRandom, Random};
use corvid_net::{errno, os_name};
use corvid_service::once::RecordedCommits;
use corvid_service::storage::FileState;
use corvid_service::storage::loading::Loaded;

mod damage;
mod decoding;
mod load;
mod member;
mod own_references;
mod progress;
mod salvage_copy;

pub(crate) use member::{OpenedMember, load as load_member};
pub(crate) use progress::Progress;

/// The maximum number of threads that read and decode for the thread that applies.
const WORKERS_MAX: usize = 8;

/// Row UUIDs from the operating system's random source.
pub(crate) struct RandomUuids(Random);

impl RandomUuids {
    /// A generator for one database.
    ///
    /// # Errors
    /// The system has no random source.
    pub(crate) fn new() -> std::io::Result<RandomUuids> {
        Ok(RandomUuids(Random::new()?))
    }
}

impl UuidSource for RandomUuids {
    fn fresh(&mut self) -> Uuid {
        match self.0.uuid() {
            Ok(bytes) => Uuid(bytes),
            // Repeated UUIDs would corrupt databases, so a failure is fatal. The random source of a
            // running Linux does not fail.
            Err(error) => panic!("the random source failed: {error}"),
        }
    }
}

/// A seed for the hashes of all databases of this process.
///
/// # Errors
/// The system has no random source.
pub(crate) fn hash_seed() -> std::io::Result<HashSeed> {
    let bytes = Random::new()?.bytes()?;
    Ok(HashSeed::new(u64::from_ne_bytes(bytes)))
}

/// Versions for the rows read from a file.
struct Versions(PseudoRandom);

impl UuidSource for Versions {
    fn fresh(&mut self) -> Uuid {
        Uuid(self.0.uuid())
    }
}

/// An opened file.
#[derive(Debug)]
pub(crate) enum Opened {
    /// A standalone database.
    Standalone(Box<OpenedFile>),
    /// A cluster member.
    Member(Box<OpenedMember>),
}

/// The file of a standalone database, and its contents.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    /// The contents.
    pub(crate) database: Database,
    /// The file, ready to append to.
    pub(crate) file: LogFile,
    /// The file's number of records and its size.
    pub(crate) state: FileState,
    /// The last commits that the file's records name.
    pub(crate) recorded: RecordedCommits,
    /// The copy that was made because the file ends in damage.
    pub(crate) salvage_copy: Option<PathBuf>,
}

impl Opened {
    /// The name of the database.
    #[must_use]
    pub(crate) fn database_name(&self) -> &str {
        match self {
            Opened::Standalone(opened) => &opened.database.schema().name,
            Opened::Member(opened) => &opened.recovered.name,
        }
    }

    /// Closes the file at once, and frees the contents on a separate thread, because freeing may
    /// take as long as loading.
    pub(crate) fn discard(self) {
        let database = match self {
            Opened::Standalone(opened) => Some(opened.database),
            Opened::Member(opened) => opened.contents.map(|contents| contents.database),
        };
        let thread = std::thread::Builder::new().name("discard".to_owned());
        // If the thread cannot be created, the contents are freed here.
        let _ = thread.spawn(move || drop(database));
    }
}

/// A file as a log source.
struct FileSource<'p> {
    file: Handle,
    offset: u64,
    bytes: u64,
    progress: &'p Progress,
}

impl Source for FileSource<'_> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        self.progress
            .advance()
            .map_err(|error| errno::text(&error))?;
        let got = self
            .file
            .read_at(room, self.offset)
            .map_err(|fault| fault.text)?;
        self.offset += got as u64;
        Ok(got)
    }

    fn bytes_left(&self) -> Option<u64> {
        Some(self.bytes.saturating_sub(self.offset))
    }
}

/// The kind of database that a file holds. The file is not locked.
///
/// # Errors
/// The file cannot be read, or holds no database.
pub(crate) fn kind(name: &str) -> Result<Magic, WireError> {
    identify(name, &mut open_file(name, OpenMode::ReadOnly)?)
}

fn open_file(name: &str, mode: OpenMode) -> Result<LogFile, WireError> {
    log_file::open(name, mode).map_err(|error| WireError::new(Tag::IoError, error.to_string()))
}

/// Opens a file of either kind. A torn end is logged and ignored. If the first write would cut off
/// more than a torn end, a salvage copy of the file is made first.
///
/// # Errors
/// In the reference's words: the file cannot be opened or locked, or has no schema. In ours: the
/// file is rotten or cannot be copied, or `progress` was cancelled.
pub(crate) fn open(
    name: &str,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
    progress: &Progress,
) -> Result<Opened, WireError> {
    let step = || progress.advance().map_err(|error| cancelled(name, &error));
    step()?;
    let mut file = open_file(name, OpenMode::ReadWrite)?;
    if identify(name, &mut file)? == Magic::Clustered {
        let opened = member::open(name, file, seed, uuids, progress)?;
        return Ok(Opened::Member(Box::new(opened)));
    }
    let loaded = load(name, &mut file, seed, uuids, progress)?;
    step()?;
    // Before the file is returned: the caller's first append cuts the damage off.
    let mut salvage_copy = None;
    if let Some(damage) = &loaded.damage {
        salvage_copy = damage::handle(damage, name, &mut file, progress)?;
        step()?;
    }
    own_references::warn(&loaded.database, name);
    let extent = loaded.extent;
    file.set_end(extent.good_end());
    Ok(Opened::Standalone(Box::new(OpenedFile {
        database: loaded.database,
        recorded: loaded.recorded,
        file,
        salvage_copy,
        state: FileState {
            records: extent.records(),
            size: FileSize {
                base: extent.base_bytes(),
                end: extent.good_end(),
            },
        },
    })))
}

/// The contents of a file that another process may be serving.
#[derive(Debug)]
pub(crate) struct Inspected {
    /// The name of the database.
    pub(crate) name: String,
    /// Its contents; `None` while its server joins a cluster.
    pub(crate) database: Option<Database>,
    /// A message about damage that a server would ignore.
    pub(crate) damage: Option<String>,
}

/// Reads a database without locking or changing its file.
///
/// # Errors
/// A server could not open the file, or the file has no schema.
pub(crate) fn inspect(
    name: &str,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
) -> Result<Inspected, WireError> {
    let mut file = open_file(name, OpenMode::ReadOnly)?;
    let writable = std::fs::OpenOptions::new()
        .append(true)
        .open(os_name::path(name));
    writable.map_err(|error| failed(name, &errno::text(&error)))?;
    if identify(name, &mut file)? == Magic::Clustered {
        let opened = member::open(name, file, seed, uuids, &Progress::default())?;
        let damage = opened.recovered.damage.as_ref();
        return Ok(Inspected {
            damage: damage.map(|damage| damage.to_wire(name).to_string()),
            name: opened.recovered.name,
            database: opened.contents.map(|contents| contents.database),
        });
    }
    let progress = Progress::default();
    let loaded = load(name, &mut file, seed, uuids, &progress)?;
    let mut report = None;
    if let Some(damage) = &loaded.damage {
        let advice = match damage::judge(damage, name, file.file(), &progress)? {
            Ending::Torn => "",
            Ending::Doubtful(_) | Ending::Rotten(_) => {
                "; a server saves a copy of the file before it cuts off everything from there"
            }
        };
        report = Some(format!("{}{advice}", damage.report(name)));
    }
    Ok(Inspected {
        name: loaded.database.schema().name.to_string(),
        database: Some(loaded.database),
        damage: report,
    })
}

fn failed(name: &str, reason: &str) -> WireError {
    WireError::new(Tag::IoError, format!("{name}: open failed ({reason})"))
}

fn cancelled(name: &str, error: &std::io::Error) -> WireError {
    let reason = errno::text(error);
    WireError::new(Tag::IoError, format!("{name}: not opened ({reason})"))
}

fn load(
    name: &str,
    file: &mut LogFile,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
    progress: &Progress,
) -> Result<Loaded, WireError> {
    let bytes = std::fs::metadata(file.disk().path())
        .map_err(|error| failed(name, &errno::text(&error)))?
        .len();
    let source = || {
        let file = file.file().share();
        Ok(FileSource {
            file: file.map_err(|fault| failed(name, &fault.text))?,
            offset: 0,
            bytes,
            progress,
        })
    };
    load::load(name, workers(), source, seed, uuids, fresh_versions)
}

/// The kind of a file, by its first line. A file that does not begin like a log is reported as
/// such, not as damaged.
fn identify(name: &str, file: &mut LogFile) -> Result<Magic, WireError> {
    let io_error = |fault: Fault| {
        let details = format!("{name}: read error ({})", fault.text);
        WireError::new(Tag::IoError, details)
    };
    let source = file.file().share().map_err(io_error)?;
    let mut prefix = [0; LINE_BYTES_MAX];
    let mut held = 0;
    while held < prefix.len() {
        match source.read_at(&mut prefix[held..], held as u64) {
            Ok(0) => break,
            Ok(got) => held += got,
            Err(fault) => return Err(io_error(fault)),
        }
    }
    Magic::identify(&prefix[..held]).map_err(|error| error.to_wire(name))
}

fn fresh_versions() -> Versions {
    match PseudoRandom::new() {
        Ok(versions) => Versions(versions),
        Err(error) => panic!("the random source failed: {error}"),
    }
}

/// The number of threads that read and decode: one for each other core, and at least one, because
/// reading blocks. The one thread that applies cannot keep more than a few of them busy.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() - 1).clamp(1, WORKERS_MAX))
}
