//! The salvage copy of a damaged file, made before the first write destroys the records after the
//! damage.
//!
//! Invariant: when [`copy`] succeeds, a file with the same content exists under a new name, and
//! file and directory are synced. When it fails, it leaves no file. It never changes an existing
//! file. A copy with the same content from an earlier start is reused, so restarts do not fill the
//! disk.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use corvid_disk::log_file::sync_directory_of;
use corvid_shell::date::utc_text;

use super::Progress;

/// The maximum number of copies with the same time in their names.
const NAMES_MAX: u32 = 1000;

/// The number of bytes copied or compared at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Copies the file at `path`, with its mode, to `NAME.damaged-YYYYMMDDTHHMMSSZ` in the same
/// directory; `now_ms` is since the Unix epoch. Symbolic links are followed: the copy is next to
/// the link's target. Returns the copy's name.
///
/// # Errors
/// The copy could not be made, or the opening is cancelled.
pub(super) fn copy(path: &Path, now_ms: i64, progress: &Progress) -> io::Result<PathBuf> {
    let path = fs::canonicalize(path)?;
    if let Some(earlier) = earlier_copy(&path, progress)? {
        return Ok(earlier);
    }
    let mut source = File::open(&path)?;
    let mode = source.metadata()?.mode() & 0o777;
    let (copy, mut file) = create(&path, now_ms)?;
    // The mode is set explicitly, because the umask would reduce it. The directory is synced last:
    // only then does the copy survive a crash under its name.
    let written = file
        .set_permissions(Permissions::from_mode(mode))
        .and_then(|()| copy_bytes(&mut source, &mut file, progress))
        .and_then(|()| file.sync_all())
        .and_then(|()| sync_directory_of(&copy).map(drop));
    if let Err(error) = written {
        // An incomplete copy must not be mistaken for a complete one, nor fill the disk.
        let _ = fs::remove_file(&copy);
        return Err(error);
    }
    Ok(copy)
}

fn copy_bytes(source: &mut File, copy: &mut File, progress: &Progress) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        progress.advance()?;
        match source.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(got) => copy.write_all(&piece[..got])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Creates the copy's file under a name that does not exist yet.
fn create(path: &Path, now_ms: i64) -> io::Result<(PathBuf, File)> {
    let stem = with_suffix(path, &suffix(now_ms));
    let mut name = stem.clone();
    for number in 1..=NAMES_MAX {
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&name);
        match created {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                name = with_suffix(&stem, &format!("-{number}"));
            }
            created => return created.map(|file| (name, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The suffix of a copy's name: `.damaged-20261121T070000Z`
fn suffix(now_ms: i64) -> String {
    let digits: String = utc_text(now_ms)
        .chars()
        .filter(char::is_ascii_digit)
        .take("YYYYMMDDHHMMSS".len())
        .collect();
    let (date, time) = digits.split_at("YYYYMMDD".len());
    format!("{SIGN}{date}T{time}Z")
}

const SIGN: &str = ".damaged-";

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// An earlier copy that has the file's current content.
fn earlier_copy(path: &Path, progress: &Progress) -> io::Result<Option<PathBuf>> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let mut prefix = name.to_owned();
    prefix.push(SIGN);
    let mut copies = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        if starts_with(&name, &prefix) {
            copies.push(directory.join(name));
        }
    }
    copies.sort();
    for copy in copies {
        if is_same(path, &copy, progress).unwrap_or(false) {
            return Ok(Some(copy));
        }
        progress.advance()?;
    }
    Ok(None)
}

fn starts_with(name: &OsStr, prefix: &OsStr) -> bool {
    name.as_encoded_bytes()
        .starts_with(prefix.as_encoded_bytes())
}

/// Whether two files have the same content and are not the same file.
fn is_same(path: &Path, copy: &Path, progress: &Progress) -> io::Result<bool> {
    let (mut left, mut right) = (File::open(path)?, File::open(copy)?);
    let (left_data, right_data) = (left.metadata()?, fs::symlink_metadata(copy)?);
    if !right_data.is_file()
        || left_data.ino() == right_data.ino()
        || left_data.len() != right_data.len()
    {
        return Ok(false);
    }
    let (mut here, mut there) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    loop {
        progress.advance()?;
        let got = left.read(&mut here)?;
        if got == 0 {
            return Ok(true);
        }
        right.read_exact(&mut there[..got])?;
        if here[..got] != there[..got] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::liveness::Liveness;

    const NOW_MS: i64 = 1_700_000_000_123;

    /// A directory for one test; dropping the value removes it.
    struct ScratchDirectory(PathBuf);

    impl ScratchDirectory {
        fn new(name: &str) -> ScratchDirectory {
            let name = format!("corvid-salvage-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            fs::create_dir(&directory).expect("a directory of its own");
            ScratchDirectory(directory)
        }

        fn file(&self, name: &str, content: &str) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, content).expect("written");
            path
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("readable");
            let mut names: Vec<String> = entries
                .map(|entry| {
                    entry
                        .expect("readable")
                        .file_name()
                        .into_string()
                        .expect("UTF-8")
                })
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for ScratchDirectory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn copy_has_content_and_mode_of_the_original() {
        let scratch = ScratchDirectory::new("mode");
        let path = scratch.file("a.db", "content");
        fs::set_permissions(&path, Permissions::from_mode(0o646)).expect("ours");
        let copied = copy(&path, NOW_MS, &Progress::default()).expect("room");
        assert!(
            copied.ends_with("a.db.damaged-20231114T221320Z"),
            "{copied:?}"
        );
        assert_eq!(fs::read(&copied).expect("readable"), b"content");
        let mode = fs::metadata(&copied).expect("there").mode();
        assert_eq!(mode & 0o777, 0o646);
    }

    #[test]
    fn copies_overwrite_no_file_and_are_made_once() {
        let scratch = ScratchDirectory::new("twice");
        let path = scratch.file("a.db", "new");
        scratch.file("a.db.damaged-20231114T221320Z", "old");
        scratch.file("a.db.damaged-20231114T221320Z-1", "NEW");
        let copied = copy(&path, NOW_MS, &Progress::default()).expect("room");
        assert!(
            copied.ends_with("a.db.damaged-20231114T221320Z-2"),
            "{copied:?}"
        );
        assert_eq!(
            copy(&path, NOW_MS + 5000, &Progress::default()).expect("room"),
            copied
        );
        fs::write(&path, "newer").expect("written");
        let newer = copy(&path, NOW_MS + 5000, &Progress::default()).expect("room");
        assert!(
            newer.ends_with("a.db.damaged-20231114T221325Z"),
            "{newer:?}"
        );
        assert_eq!(scratch.names().len(), 5);
        let old = scratch.0.join("a.db.damaged-20231114T221320Z");
        assert_eq!(fs::read(old).expect("readable"), b"old");
    }

    #[test]
    fn the_copy_of_a_link_is_beside_its_target() {
        let (scratch, other) = (
            ScratchDirectory::new("link"),
            ScratchDirectory::new("target"),
        );
        let path = other.file("real.db", "content");
        let link = scratch.0.join("a.db");
        std::os::unix::fs::symlink(path, &link).expect("a link");
        copy(&link, NOW_MS, &Progress::default()).expect("room");
        assert_eq!(scratch.names(), ["a.db"]);
        assert_eq!(
            other.names(),
            ["real.db", "real.db.damaged-20231114T221320Z"]
        );
    }

    #[test]
    fn a_cancelled_copy_leaves_no_file() {
        let scratch = ScratchDirectory::new("cancelled");
        let path = scratch.file("a.db", "content");
        let is_cancelled = Arc::new(AtomicBool::new(true));
        let progress = Progress::new(Liveness::default(), is_cancelled);
        assert!(copy(&path, NOW_MS, &progress).is_err());
        assert_eq!(scratch.names(), ["a.db"]);
    }

    #[test]
    fn a_failed_copy_leaves_no_file() {
        let scratch = ScratchDirectory::new("failure");
        let path = scratch.0.join("a.db");
        fs::create_dir(&path).expect("no file");
        assert!(copy(&path, NOW_MS, &Progress::default()).is_err());
        assert_eq!(scratch.names(), ["a.db"]);
    }
}
