//! An open file whose closing delays nothing else. If the file is large and has no name any longer,
//! a thread frees its blocks in steps.
//!
//! Closing the last descriptor of a nameless file frees all its blocks in one transaction of the
//! file system's journal, and every sync on that file system waits for it: 25 ms for 200 MiB on
//! ext4 with the option `discard`. So the thread truncates the file by a step, syncs it, sleeps for
//! as long as that took, and repeats this before it closes the file.
//!
//! Invariant: a file is truncated only while it has no name and nobody else has it open, so no
//! reader ever sees a part of it. A program that opened it earlier, for example to copy it, reads
//! all of it. The file is then closed like any other, and its space is freed when that program
//! closes it. A write lease provides the test: the kernel grants it only to the sole user of a
//! file. A nameless file can still be opened through this process's entry in `/proc`; the test
//! before each step detects that too.
//!
//! [`crate::log_file`] keeps every descriptor of a database file in this type, which knows nothing
//! about records.

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

/// Bytes freed at a time. A smaller file is closed at once.
const STEP_BYTES: u64 = 8 * 1024 * 1024;

/// The longest pause between two steps.
const REST_MAX: Duration = Duration::from_millis(100);

/// Maximum number of files queued for the thread. One more is closed at once.
const FILES_MAX: usize = 64;

/// The `fcntl` command that chooses the signal for a broken lease. The C library's declarations
/// lack it.
const F_SETSIG: libc::c_int = 10;

/// An open file that is closed in steps if it is large and nameless.
#[derive(Debug)]
pub(crate) struct OpenFile(File);

impl OpenFile {
    pub(crate) fn new(file: File) -> OpenFile {
        OpenFile(file)
    }

    /// Opens a large file whose name is about to be removed or to lead to another file. Drop the
    /// value afterwards.
    pub(crate) fn before_removal(path: &Path) -> Option<OpenFile> {
        let data = std::fs::symlink_metadata(path).ok()?;
        if !data.is_file() || data.len() <= STEP_BYTES {
            return None;
        }
        let mut options = File::options();
        options.read(true).write(true);
        // If another process has put something else there in the meantime, it is left alone.
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

/// The queue of the thread, which starts on first use. It lives as long as the process; at exit the
/// kernel closes the remaining files.
fn closing_thread() -> Option<&'static SyncSender<File>> {
    static QUEUE: OnceLock<Option<SyncSender<File>>> = OnceLock::new();
    let start = || {
        let (sender, files) = mpsc::sync_channel(FILES_MAX);
        let thread = thread::Builder::new().name("close".to_owned());
        let work = move || {
            for file in files {
                // Closing the file frees what is left of it.
                let _ = empty(&file);
            }
        };
        thread.spawn(work).ok().map(|_| sender)
    };
    QUEUE.get_or_init(start).as_ref()
}

/// Frees the blocks of a file in steps, as long as nobody else can read it.
fn empty(file: &File) -> io::Result<()> {
    while is_large_and_nameless(file) && is_only_user(file) {
        let began = Instant::now();
        give_back(file)?;
        thread::sleep(began.elapsed().min(REST_MAX));
    }
    Ok(())
}

/// Cuts off one step. The sync makes it a separate transaction.
fn give_back(file: &File) -> io::Result<()> {
    let length = file.metadata()?.len();
    file.set_len(length.saturating_sub(STEP_BYTES))?;
    file.sync_data()
}

/// Whether no other open file description leads to this file. In that case the kernel grants a
/// write lease, which is released at once. Also false if the file system has no leases, or if this
/// process neither owns the file nor may lease other users' files.
fn is_only_user(file: &File) -> bool {
    let descriptor = file.as_raw_fd();
    // If a lease is broken while it is held, the kernel sends a signal. SIGURG has no effect by
    // default; SIGIO would end the process.
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

    /// Longer than any step takes, even on a busy machine.
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// A file of a little more than five steps, its name, and a descriptor that does not count as
    /// another user.
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

    /// Waits until the thread has closed everything queued before, by queueing another file.
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
