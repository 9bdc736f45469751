//! An open file whose end holds nobody up: if it is large and has no name any more, a thread gives its blocks back in steps.
//!
//! Closing the last descriptor of a file without a name frees all its blocks in one transaction of the file system's journal, and every sync
//! on that file system waits for it: 25 ms for 200 MiB on ext4 with the option `discard`. So the thread cuts the file, syncs it, rests for as
//! long as that took, and so on, before it closes the file.
//!
//! Invariant: a file is cut only while it has no name and no one else has it open, so no reader sees a part of it. A program that opened it
//! before, to copy it for example, reads all of it; then it is closed as any file is, and the space is freed when that program closes it.
//! A write lease tells: the kernel grants it to the only user of a file alone. A file without a name can be opened in one way more,
//! through the entry of this process in `/proc`; the test before each step finds that too.
//!
//! [`crate::log_file`] keeps every descriptor of a database file in this type. It knows nothing of records.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are given back at once. A smaller file is closed as it is.
const STEP_BYTES: u64 = 8 * 1024 * 1024;

/// The longest rest between two steps.
const REST_MAX: Duration = Duration::from_millis(100);

/// Files that wait for the thread. One more is closed as it is.
const FILES_MAX: usize = 64;

/// The command of `fcntl` that chooses a signal for the breaking of leases. The C library's declarations lack it.
const F_SETSIG: libc::c_int = 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct OpenFile(File);

impl OpenFile {
    pub(crate) fn new(file: File) -> OpenFile {
        OpenFile(file)
    }

    /// Opens a large file whose name is about to be removed or to lead to another file. Drop the value afterwards.
    pub(crate) fn before_removal(path: &Path) -> Option<OpenFile> {
        let data = std::fs::symlink_metadata(path).ok()?;
        if !data.is_file() || data.len() <= STEP_BYTES {
            return None;
        }
        let mut options = File::options();
        options.read(true).write(true);
        // If another process has put something else there meanwhile, it is left alone.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options.open(path).ok().map(OpenFile)
    }
}

impl Deref for OpenFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if is_large_and_nameless(&self.0)
            && let Ok(file) = self.0.try_clone()
            && let Some(thread) = closing_thread()
        {
            // If the queue is full, the file is closed here.
            let _ = thread.try_send(file);
        }
    }
}

fn is_large_and_nameless(file: &File) -> bool {
    file.metadata()
        .is_ok_and(|data| data.is_file() && data.nlink() == 0 && data.len() > STEP_BYTES)
}

/// The queue of the thread, which starts with the first need. It lives as long as the process: at the end the kernel closes what is left.
fn closing_thread() -> Option<&'static SyncSender<File>> {
    static QUEUE: OnceLock<Option<SyncSender<File>>> = OnceLock::new();
    let start = || {
        let (sender, files) = mpsc::sync_channel(FILES_MAX);
        let thread = thread::Builder::new().name("close".to_owned());
        let work = move || {
            for file in files {
                // The rest of it is freed when it is closed.
                let _ = empty(&file);
            }
        };
        thread.spawn(work).ok().map(|_| sender)
    };
    QUEUE.get_or_init(start).as_ref()
}

/// Gives the blocks of a file back in steps, as long as nobody else can read it.
fn empty(file: &File) -> io::Result<()> {
    while is_large_and_nameless(file) && is_only_user(file) {
        let began = Instant::now();
        give_back(file)?;
        thread::sleep(began.elapsed().min(REST_MAX));
    }
    Ok(())
}

/// Cuts a step off. The sync makes it a transaction of its own.
fn give_back(file: &File) -> io::Result<()> {
    let length = file.metadata()?.len();
    file.set_len(length.saturating_sub(STEP_BYTES))?;
    file.sync_data()
}

/// Whether no other open file description leads to this file: then the kernel grants a write lease, which is given back at once. False
/// also where the file system has no leases, or where this process neither owns the file nor may lease those of others.
fn is_only_user(file: &File) -> bool {
    let descriptor = file.as_raw_fd();
    // A lease that is broken while it is held sends a signal: this one has no effect by default, SIGIO would end the process.
    // SAFETY: three calls on an open descriptor; their third arguments are integers.
    unsafe {
        libc::fcntl(descriptor, F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_WRLCK) == 0
            && libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_UNLCK) == 0
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;

    use super::*;

    /// Longer than any step takes on a busy machine.
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// A file of five steps and a bit, the name of it, and a descriptor that is no other user of it.
    fn large_file(directory: &tempfile::TempDir) -> (OpenFile, PathBuf, File) {
        let path = directory.path().join("large");
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(&path);
        let file = file.unwrap();
        let piece = vec![b'x'; usize::try_from(STEP_BYTES).unwrap()];
        for step in 0..5 {
            file.write_all_at(&piece, step * STEP_BYTES).unwrap();
        }
        file.write_all_at(b"end", 5 * STEP_BYTES).unwrap();
        let watch = file.try_clone().unwrap();
        (OpenFile::new(file), path, watch)
    }

    fn length(file: &File) -> u64 {
        file.metadata().unwrap().len()
    }

    /// Waits until the thread has closed what was queued before: another file has been emptied behind it.
    fn wait_for_thread() {
        let directory = tempfile::tempdir().unwrap();
        let (file, path, watch) = large_file(&directory);
        std::fs::remove_file(path).unwrap();
        drop(file);
        wait_until_short(&watch);
    }

    fn wait_until_short(file: &File) {
        let began = Instant::now();
        while length(file) > STEP_BYTES {
            assert!(began.elapsed() < TIMEOUT, "{} bytes", length(file));
            thread::yield_now();
        }
    }

    #[test]
    fn a_file_without_name_and_reader_is_emptied_in_steps() {
        let directory = tempfile::tempdir().unwrap();
        let (file, path, watch) = large_file(&directory);
        std::fs::remove_file(path).unwrap();
        give_back(&file).unwrap();
        assert_eq!(length(&watch), 4 * STEP_BYTES + 3);
        drop(file);
        wait_until_short(&watch);
        assert_eq!(length(&watch), 3);
    }

    #[test]
    fn a_reader_of_a_file_without_name_reads_all_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let (file, path, watch) = large_file(&directory);
        let mut reader = File::open(&path).unwrap();
        let mut contents = vec![0; 1000];
        reader.read_exact(&mut contents).unwrap();
        std::fs::remove_file(path).unwrap();
        drop(file);
        wait_for_thread();
        reader.read_to_end(&mut contents).unwrap();
        assert_eq!(contents.len() as u64, 5 * STEP_BYTES + 3);
        assert!(contents.ends_with(b"xxxend"));
        drop(watch);
    }

    #[test]
    fn a_reader_that_comes_later_through_proc_ends_the_cutting() {
        let directory = tempfile::tempdir().unwrap();
        let (file, path, _watch) = large_file(&directory);
        std::fs::remove_file(path).unwrap();
        assert!(is_only_user(&file));
        let through_proc = format!("/proc/self/fd/{}", file.as_raw_fd());
        let reader = File::open(through_proc).unwrap();
        assert!(!is_only_user(&file));
        empty(&file).unwrap();
        assert_eq!(length(&reader), 5 * STEP_BYTES + 3);
        drop(reader);
        empty(&file).unwrap();
        assert_eq!(length(&file), 3);
    }

    #[test]
    fn a_file_is_opened_before_its_name_goes() {
        let directory = tempfile::tempdir().unwrap();
        let (file, path, watch) = large_file(&directory);
        drop(file);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(OpenFile::before_removal(&link).is_none());
        assert!(OpenFile::before_removal(directory.path()).is_none());
        let before = OpenFile::before_removal(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(OpenFile::before_removal(&path).is_none());
        drop(watch);
        let watch = before.try_clone().unwrap();
        drop(before);
        wait_until_short(&watch);
    }

    #[test]
    fn a_file_that_keeps_a_name_keeps_its_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let (file, path, watch) = large_file(&directory);
        let link = directory.path().join("link");
        std::fs::hard_link(&path, &link).unwrap();
        std::fs::remove_file(path).unwrap();
        empty(&file).unwrap();
        drop(file);
        wait_for_thread();
        assert_eq!(length(&watch), 5 * STEP_BYTES + 3);
        assert_eq!(std::fs::metadata(link).unwrap().len(), length(&watch));
    }
}
