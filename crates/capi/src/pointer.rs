//! The pointers that C passes: the only place that follows them.
//!
//! The header states the contract: a pointer that is not null points to memory of the stated size,
//! which nobody changes during the call. Nothing can check that, so these functions are safe to
//! name in the rest of the crate and sound as long as the caller keeps the contract.

use std::ffi::{CStr, c_char};
use std::ptr::NonNull;

use crate::error::Failure;

/// The bytes of a string that ends with NUL.
pub(crate) fn bytes<'a>(pointer: *const c_char, name: &'static str) -> Result<&'a [u8], Failure> {
    if pointer.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: it is not null, so by the contract it is a string with its NUL.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// A string that ends with NUL.
pub(crate) fn text<'a>(pointer: *const c_char, name: &'static str) -> Result<&'a str, Failure> {
    let text = std::str::from_utf8(bytes(pointer, name)?);
    text.map_err(|_| Failure::argument(format!("{name} is not UTF-8")))
}

/// A string, or nothing if it is null.
pub(crate) fn optional_text<'a>(
    pointer: *const c_char,
    name: &'static str,
) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    text(pointer, name).map(Some)
}

/// A copy of a string, or nothing if it is null.
pub(crate) fn owned_text(
    pointer: *const c_char,
    name: &'static str,
) -> Result<Option<String>, Failure> {
    Ok(optional_text(pointer, name)?.map(str::to_owned))
}

/// An array; null is fine if it has no elements.
pub(crate) fn array<'a, T>(
    pointer: *const T,
    count: usize,
    name: &'static str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check_array(pointer, count, name)?;
    // SAFETY: it is not null and aligned, its size fits, and by the contract it has `count`
    // elements.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Whether a pointer may be that of an array.
fn check_array<T>(pointer: *const T, count: usize, name: &'static str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::null(name));
    }
    let bytes = count.checked_mul(size_of::<T>());
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) || !pointer.is_aligned() {
        return Err(Failure::argument(format!("{name} cannot be an array")));
    }
    Ok(())
}

/// A place for a result. Checked before any work is done, so that no result is lost.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    pub(crate) fn new(pointer: *mut T, name: &'static str) -> Result<Out<T>, Failure> {
        let place = NonNull::new(pointer).ok_or_else(|| Failure::null(name))?;
        if !place.is_aligned() {
            return Err(Failure::argument(format!("{name} is not aligned")));
        }
        Ok(Out(place))
    }

    pub(crate) fn set(self, value: T) {
        // SAFETY: it is not null and aligned, and by the contract it has room for a value. A former
        // value there has no destructor.
        unsafe { self.0.write(value) }
    }
}

/// An array of the caller for results, which is filled from its beginning.
pub(crate) struct OutArray<T> {
    next: *mut T,
    left: usize,
}

impl<T> OutArray<T> {
    pub(crate) fn new(
        pointer: *mut T,
        count: usize,
        name: &'static str,
    ) -> Result<OutArray<T>, Failure> {
        if count > 0 {
            check_array(pointer, count, name)?;
        }
        Ok(OutArray {
            next: pointer,
            left: count,
        })
    }

    pub(crate) fn push(&mut self, value: T) -> Result<(), Failure> {
        if self.left == 0 {
            return Err(full());
        }
        // SAFETY: by the contract the array has as many places as it is said to have, of which one
        // is left; a former value there has no destructor.
        unsafe {
            self.next.write(value);
            self.next = self.next.add(1);
        }
        self.left -= 1;
        Ok(())
    }
}

impl OutArray<c_char> {
    /// Copies a text with its NUL; returns where it is.
    pub(crate) fn push_text(&mut self, text: &str) -> Result<*const c_char, Failure> {
        let start = self.next;
        if self.left <= text.len() {
            return Err(full());
        }
        copy_text(text, start, self.left)?;
        // SAFETY: the text and its NUL are within the array.
        self.next = unsafe { start.add(text.len() + 1) };
        self.left -= text.len() + 1;
        Ok(start)
    }
}

fn full() -> Failure {
    let text = "the array of the caller is too small";
    Failure::new(crate::error::corvid_error::CORVID_ERR_LIMIT, text)
}

/// Copies a text into a buffer of the caller, cut if it does not fit, with NUL; returns its whole
/// length.
pub(crate) fn copy_text(text: &str, buffer: *mut c_char, size: usize) -> Result<usize, Failure> {
    if size > 0 {
        if buffer.is_null() {
            return Err(Failure::null("buffer"));
        }
        let mut end = text.len().min(size - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // SAFETY: the buffer is not null and by the contract has `size` bytes, of which at most
        // `size` are written. It cannot overlap a string of the library.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast::<c_char>(), buffer, end);
            buffer.add(end).write(0);
        }
    }
    Ok(text.len())
}
