//! The size of a terminal's window, as the kernel knows it.

#![allow(unsafe_code)]

use std::os::fd::RawFd;

/// The size of a window in letters; 0 if it is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowSize {
    pub(crate) columns: u16,
    pub(crate) lines: u16,
}

/// The size of the terminal that a descriptor refers to; unknown if it is none.
pub(crate) fn size(fd: RawFd) -> WindowSize {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the request writes a `winsize` to the pointer, which is valid for the call.
    match unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) } {
        0 => WindowSize {
            columns: size.ws_col,
            lines: size.ws_row,
        },
        _ => WindowSize::default(),
    }
}
