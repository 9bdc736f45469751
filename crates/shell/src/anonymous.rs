//! Files without a name: memory that processes share across `fork` and that ends with the last of them.

use std::ffi::CStr;
use std::fs::File;
use std::io;

use rustix::fs::{MemfdFlags, memfd_create};

/// Makes an empty file; `label` shows up in `/proc/PID/fd`.
///
/// # Errors
/// No memory or descriptor is left.
pub fn file(label: &CStr) -> io::Result<File> {
    Ok(memfd_create(label, MemfdFlags::CLOEXEC)?.into())
}
