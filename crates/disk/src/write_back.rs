//! Bringing a part of a file to disk without forcing it, so that a later sync has little to do.
//!
//! A sync of a growing file commits the journal of the file system and empties the cache of the
//! disk, and the syncs of other files wait for both. Write-back waits only for the bytes. It
//! promises nothing about durability; only the sync that follows does.
//!
//! [`crate::log_file`] and [`crate::replacement`] use it for new files.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Hands `length` bytes from `offset` to the disk, and waits until it has them. A no-op if the
/// system does not support it.
///
/// # Errors
/// The disk did not accept them. A later sync may not report the error again.
pub(crate) fn write_back(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let (Ok(offset), Ok(length)) = (i64::try_from(offset), i64::try_from(length)) else {
        return Ok(());
    };
    let steps = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: a call on an open descriptor, with integers.
    let outcome = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, steps) };
    if outcome == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EINVAL | libc::EOPNOTSUPP | libc::ESPIPE | libc::EPERM) => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_file_is_brought_to_disk() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        write_back(&file, 4096, 8192).unwrap();
        // First where nothing needs to be done, then where nothing can be.
        write_back(&file, 1 << 40, 1).unwrap();
        write_back(&file, u64::MAX, 1).unwrap();
        let (reader, _writer) = io::pipe().unwrap();
        write_back(&File::from(std::os::fd::OwnedFd::from(reader)), 0, 1).unwrap();
    }

    #[test]
    fn other_failures_are_errors() {
        let closed = {
            let file = tempfile::tempfile().unwrap();
            // A descriptor that only names the file: it cannot be written through.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let mut options = File::options();
            std::os::unix::fs::OpenOptionsExt::custom_flags(options.read(true), libc::O_PATH);
            options.open(path).unwrap()
        };
        let error = write_back(&closed, 0, 1).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }
}
