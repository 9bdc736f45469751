//! Texts of error numbers, as the C library renders them.
//!
//! Messages of OVSDB programs carry `strerror` texts ("No such file or directory"), while Rust's
//! own rendering appends "(os error N)". Every error that a user sees is rendered here. Stateless.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;

/// The reference's text for the end of a stream.
pub const END_OF_FILE: &str = "End of file";

/// The C library's text for an error number.
#[must_use]
pub fn text_of(code: i32) -> String {
    let mut buffer = [0 as libc::c_char; 256];
    // SAFETY: the buffer is valid for its length, and strerror_r (the XSI form, which the libc
    // crate binds) always leaves a terminated string in it, also when it reports ERANGE or EINVAL.
    let text = unsafe {
        libc::strerror_r(code, buffer.as_mut_ptr(), buffer.len());
        CStr::from_ptr(buffer.as_ptr())
    };
    text.to_string_lossy().into_owned()
}

/// The text for an I/O error: the C library's if it has a number, `End of file` for an early end,
/// else the error's own text.
#[must_use]
pub fn text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => text_of(code),
        None if error.kind() == io::ErrorKind::UnexpectedEof => END_OF_FILE.to_owned(),
        None => error.to_string(),
    }
}

/// The last failed C library call's error number on this thread, as an error.
#[must_use]
pub fn last() -> io::Error {
    io::Error::last_os_error()
}

/// An error with this number.
#[must_use]
pub fn from_code(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

/// Whether a non-blocking call would block.
#[must_use]
pub fn is_again(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Whether a connection could not be started because the host name has no address, or is not
/// resolved yet.
#[must_use]
pub fn is_unresolved(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAFNOSUPPORT)
}

/// Whether a connection could not be started because the TLS settings are incomplete or
/// contradictory.
#[must_use]
pub fn is_tls_unusable(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPROTO | libc::ENOPROTOOPT))
}

/// Turns the C convention "-1 and errno" into a result.
///
/// # Errors
/// The call failed; the error has its number.
pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(last()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_c_library() {
        assert_eq!(text(&from_code(libc::ENOENT)), "No such file or directory");
        assert_eq!(text(&io::ErrorKind::UnexpectedEof.into()), "End of file");
    }
}
