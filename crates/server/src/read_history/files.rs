//! The files of a served database, opened for one reading.
//!
//! Invariant: the present file is opened together with its published end, so what is being written
//! is not read.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corvid_disk::history_files::{HistoryFile, HistoryFiles, OpenedFile};
use corvid_history::{Files, Opened, ReadAt};
use corvid_log::storage::FileStatus;
use corvid_net::os_name;

/// How long opening waits for a swap of the file to end. A swap may include two syncs of a slow
/// disk.
const SWAP_MAX: Duration = Duration::from_secs(20);

/// Pause between attempts to open the file.
const SWAP_PAUSE: Duration = Duration::from_millis(5);

/// Where the files of a served database are.
pub(crate) struct HistorySource {
    /// The database file.
    pub(crate) path: PathBuf,
    /// Its published state.
    pub(crate) status: Arc<FileStatus>,
}

/// Called before each read of a file. May take long; an error ends the reading.
pub(super) type Pause = Rc<dyn Fn() -> Result<(), String>>;

/// The files for one reading.
pub(super) struct ReadingFiles {
    files: HistoryFiles,
    status: Arc<FileStatus>,
    pause: Pause,
    end: Cell<u64>,
}

/// A file whose reader pauses between pages.
pub(super) struct ReadingFile {
    file: HistoryFile,
    pause: Pause,
}

impl ReadAt for ReadingFile {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        // A reading that finds nothing still tells how far it is, and ends when nobody waits.
        (self.pause)()?;
        self.file.read_at(room, offset)
    }

    fn length(&self) -> Result<u64, String> {
        self.file.length()
    }
}

impl ReadingFiles {
    pub(super) fn new(source: HistorySource, pause: Pause) -> ReadingFiles {
        // Clients need not know the server's folders.
        let name = source.path.file_name();
        let shown = os_name::text(name.unwrap_or(source.path.as_os_str()));
        ReadingFiles {
            files: HistoryFiles::of(&source.path, shown).closing_in_steps(),
            status: source.status,
            pause,
            end: Cell::new(0),
        }
    }

    /// Where the present file ended when it was opened.
    pub(super) fn end(&self) -> u64 {
        self.end.get()
    }

    fn of(&self, file: HistoryFile) -> ReadingFile {
        ReadingFile {
            file,
            pause: self.pause.clone(),
        }
    }
}

impl Files for ReadingFiles {
    type Handle = ReadingFile;

    fn present(&self) -> Result<Option<ReadingFile>, String> {
        let began = Instant::now();
        loop {
            if let Some((file, end)) = self.status.open_with_end(|| self.files.present())? {
                self.end.set(end);
                return Ok(file.map(|file| self.of(file)));
            }
            if began.elapsed() > SWAP_MAX {
                return Err("it is being replaced; try again".to_owned());
            }
            (self.pause)()?;
            std::thread::sleep(SWAP_PAUSE);
        }
    }

    fn list(&self) -> Result<Vec<String>, String> {
        self.files.list()
    }

    fn open(&self, name: &str) -> Result<Opened<ReadingFile>, String> {
        Ok(match self.files.open(name)? {
            OpenedFile::Open(file) => Opened::Handle(self.of(file)),
            OpenedFile::Gone => Opened::Gone,
            OpenedFile::Present => Opened::Present,
        })
    }

    fn shown(&self, name: Option<&str>) -> String {
        self.files.shown(name)
    }
}
