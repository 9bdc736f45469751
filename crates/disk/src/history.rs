//! The history folder of a database file on a real disk: `NAME.history`, next to the file to which
//! the name finally leads. [`corvid_log::history`] decides what is kept and removed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use corvid_log::history::{HistoryFolder, HistoryForm, HistoryName, Removal};
use corvid_log::{DiskFile as _, Fault};
use corvid_net::os_name;
use corvid_shell::vlog::{self, Module};

use crate::lockfile::follow_links;
use crate::log_file::{
    DirectorySync, Handle, Watched, create_temporary, fault, sync_directory_of, with_suffix,
};
use crate::open_file::OpenFile;

/// Mode of the folder, before the umask: members of the group may read what they may read in the
/// database file.
const FOLDER_MODE: u32 = 0o770;

/// The end of the folder's name, after that of the database file.
pub(crate) const SUFFIX: &str = ".history";

/// The folder with the history of a database file. It need not exist. Symbolic links are followed,
/// because a second name must be on the file system of the file.
#[must_use]
pub fn folder_of(database: &Path) -> PathBuf {
    with_suffix(&follow_links(database), SUFFIX)
}

/// The names of all files in a folder; none without the folder. Other files than ours may lie
/// there, for example copies that an operator made.
pub(crate) fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// The history folder of one database file.
#[derive(Debug)]
pub struct Folder {
    /// The database's absolute name.
    database: PathBuf,
    /// Histograms are of the database's file only: these handles are not measured.
    unmeasured: Watched,
    /// Number of warnings, for metrics.
    warnings: Arc<AtomicU64>,
}

impl Folder {
    pub(crate) fn new(database: PathBuf) -> Folder {
        Folder {
            database,
            unmeasured: Arc::default(),
            warnings: Arc::default(),
        }
    }

    /// How often something went wrong or the history gave way. Only grows.
    #[must_use]
    pub fn warnings(&self) -> &Arc<AtomicU64> {
        &self.warnings
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        folder_of(&self.database)
    }

    fn path_of(&self, name: HistoryName) -> PathBuf {
        self.path().join(name.to_string())
    }

    /// Creates the folder. Returns whether it is new.
    fn create_folder(&self) -> io::Result<()> {
        let folder = self.path();
        let mut builder = std::fs::DirBuilder::new();
        match builder.mode(FOLDER_MODE).create(&folder) {
            Ok(()) => sync(&folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Forces the name of `path` to disk, as far as the file system can.
fn sync(path: &Path) -> io::Result<()> {
    match sync_directory_of(path)? {
        DirectorySync::Done | DirectorySync::Impossible(_) => Ok(()),
    }
}

fn shown<T>(outcome: io::Result<T>) -> Result<T, Fault> {
    outcome.map_err(|error| fault(&error))
}

impl HistoryFolder for Folder {
    type Handle = Handle;

    fn list(&self) -> Result<Vec<HistoryName>, Fault> {
        let names = shown(names_in(&self.path()))?.into_iter();
        Ok(names.filter_map(|name| name.parse().ok()).collect())
    }

    fn holds(&self, name: HistoryName) -> bool {
        self.path_of(name).symlink_metadata().is_ok()
    }

    fn link_present(&self, number: u64) -> Result<(), Fault> {
        shown(self.create_folder())?;
        let second = self.path_of(HistoryName::plain(number));
        shown(std::fs::hard_link(follow_links(&self.database), second))
    }

    fn is_present(&self, number: u64) -> Result<bool, Fault> {
        let plain = shown(self.path_of(HistoryName::plain(number)).symlink_metadata())?;
        let present = shown(follow_links(&self.database).symlink_metadata())?;
        Ok((plain.dev(), plain.ino()) == (present.dev(), present.ino()))
    }

    fn create(&self, name: HistoryName) -> Result<Handle, Fault> {
        let file = shown(create_temporary(&self.path_of(name)))?;
        Ok(Handle::new(file, &self.unmeasured))
    }

    fn open(&self, name: HistoryName) -> Result<Handle, Fault> {
        let file = shown(File::open(self.path_of(name)))?;
        Ok(Handle::new(file, &self.unmeasured))
    }

    fn rename(&self, from: HistoryName, to: HistoryName) -> Result<(), Fault> {
        let to = self.path_of(to);
        let _replaced = OpenFile::before_removal(&to);
        shown(std::fs::rename(self.path_of(from), to))
    }

    fn remove(&self, name: HistoryName, how: Removal) -> Result<(), Fault> {
        let path = self.path_of(name);
        let _removed = match how {
            Removal::Gentle => OpenFile::before_removal(&path),
            Removal::AtOnce => None,
        };
        if how == Removal::AtOnce && name.form == HistoryForm::Partial {
            // The thread that writes the segment still has it open, so removing the name would
            // free nothing. Nobody reads a segment that is not complete. Best effort.
            let file = OpenOptions::new().write(true).open(&path);
            let _ = file.and_then(|file| file.set_len(0));
        }
        shown(std::fs::remove_file(path))
    }

    fn sync(&self) -> Result<(), Fault> {
        // Any name in the folder: the directory that holds it is synced.
        shown(sync(&self.path_of(HistoryName::plain(1))))
    }

    fn warn(&self, text: &str) {
        self.warnings.fetch_add(1, Ordering::Relaxed);
        vlog::warn(
            Module::OvsdbLog,
            format_args!(
                "history of {}: {text}",
                os_name::text(self.database.as_os_str())
            ),
        );
    }
}

impl Folder {
    /// The length of a file, bytes.
    ///
    /// # Errors
    /// There is no such file.
    pub fn length(&self, name: HistoryName) -> Result<u64, Fault> {
        self.open(name)?.length()
    }
}

#[cfg(test)]
mod tests {
    use corvid_log::history::skip;

    use super::*;

    fn database(directory: &tempfile::TempDir) -> PathBuf {
        let database = directory.path().join("a.db");
        std::fs::write(&database, "old").unwrap();
        database
    }

    #[test]
    fn the_present_file_gets_a_second_name_next_to_the_file_that_a_link_leads_to() {
        let directory = tempfile::tempdir().unwrap();
        let database = database(&directory);
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("link.db");
        std::os::unix::fs::symlink(&database, &link).unwrap();
        let folder = Folder::new(link);
        assert_eq!(folder.list(), Ok(Vec::new()), "there is no folder yet");
        folder.link_present(1).unwrap();
        folder.sync().unwrap();
        assert_eq!(folder.list(), Ok(vec![HistoryName::plain(1)]));
        assert_eq!(folder.is_present(1), Ok(true));
        assert!(folder.link_present(1).is_err(), "the name is taken");
        std::fs::write(directory.path().join("new"), "new").unwrap();
        std::fs::rename(directory.path().join("new"), &database).unwrap();
        assert_eq!(folder.is_present(1), Ok(false));
        let kept = directory.path().join("a.db.history/0000000001.db");
        assert_eq!(std::fs::read(kept).unwrap(), b"old");
    }

    #[test]
    fn foreign_files_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::new(database(&directory));
        folder.link_present(1).unwrap();
        std::fs::write(folder.path().join("1.db"), "").unwrap();
        std::fs::write(folder.path().join("README"), "").unwrap();
        assert_eq!(folder.list(), Ok(vec![HistoryName::plain(1)]));
    }

    #[test]
    fn the_number_of_a_file_that_was_not_kept_stays_taken() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::new(database(&directory));
        assert_eq!(skip(&folder, 0), 0);
        assert_eq!(folder.list(), Ok(Vec::new()), "there is no history");
        folder.link_present(1).unwrap();
        assert_eq!(skip(&folder, 0), 2);
        assert!(folder.holds(HistoryName::gone(2)));
        assert_eq!(skip(&folder, 0), 3, "after a restart");
        assert!(!folder.holds(HistoryName::gone(2)));
        assert_eq!(folder.length(HistoryName::gone(3)), Ok(0));
    }

    #[test]
    fn a_segment_being_written_frees_its_space_although_it_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::new(database(&directory));
        folder.link_present(1).unwrap();
        let partial = HistoryName::partial(1);
        let mut file = folder.create(partial).unwrap();
        corvid_log::DiskFile::write_at(&mut file, &[b"frames"], 0).unwrap();
        folder.remove(partial, Removal::AtOnce).unwrap();
        assert_eq!(file.length(), Ok(0));
        assert!(!folder.holds(partial));
    }
}
