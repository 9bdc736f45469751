//! Files without a name: memory that processes share across `fork`, freed when the last of them
//! ends.

use std::ffi::CStr;
use std::fs::File;
use std::io;

use rustix::fs::{MemfdFlags, memfd_create};

/// Creates an empty file; `label` appears in `/proc/PID/fd`.
///
/// # Errors
/// Memory or descriptors are exhausted.
pub fn file(label: &CStr) -> io::Result<File> {
    Ok(memfd_create(label, MemfdFlags::CLOEXEC)?.into())
}
