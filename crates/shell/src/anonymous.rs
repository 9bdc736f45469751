//! Files without a name: memory that processes share across `fork` and that ends with the last of them.

#![allow(
    unsafe_code,
    reason = "a file without a name can be had from the C library only"
)]

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

/// Makes an empty one; `label` shows up in `/proc/PID/fd`.
///
/// # Errors
/// No memory or descriptor is left.
pub fn file(label: &std::ffi::CStr) -> io::Result<File> {
    // SAFETY: the label is a C string, which the call copies.
    let descriptor = unsafe { libc::memfd_create(label.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}
