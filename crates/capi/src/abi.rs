//! The ABI: the library's version, and the sizes of the structs that programs allocate.
//!
//! Invariant: a struct that the caller allocates begins with its size in the header that the
//! program was compiled with. Later versions add members at the end only. A library that is older
//! than the program refuses members that it does not know unless they are 0. One that is newer
//! takes members that the program does not know as 0.

use std::ffi::{c_char, c_uint};

use crate::error::Failure;
use crate::pointer;

/// The version of the library that the program runs with, "MAJOR.MINOR.PATCH". `CORVID_VERSION` is
/// the version that it was compiled with. A constant of the library.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The version of generated code that the library reads: its `CORVID_IDL_VERSION`, which a class
/// must have.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_version() -> c_uint {
    IDL_VERSION
}

/// Grows when generated code must be made again: with the layout of classes, of columns and of the
/// head of rows.
pub(crate) const IDL_VERSION: c_uint = 1;

/// Whether a class is as this library reads it. Called before any other member is read.
pub(crate) fn check_class(version: c_uint) -> Result<(), Failure> {
    if version == IDL_VERSION {
        return Ok(());
    }
    Err(Failure::argument(format!(
        "the generated code has version {version}, and the library reads version {IDL_VERSION}: \
         make the code again with the ovsdb-idlc of libcorvid {}, and compile it with its corvid.h",
        env!("CARGO_PKG_VERSION")
    )))
}

/// A struct that callers allocate.
///
/// # Safety
/// The type is `repr(C)`, all bytes 0 are a value of it, and its first member is a `usize`, its
/// size.
pub(crate) unsafe trait Versioned: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// Its size in the first version of the library.
    const LEAST: usize;
}

/// The size that a struct of the caller states.
pub(crate) fn stated_size<T: Versioned>(pointer: *const T) -> Result<usize, Failure> {
    let size = pointer::array(pointer.cast::<usize>(), 1, T::NAME)?[0];
    // A struct that was never set has an arbitrary size. Such a size is refused, not believed.
    if size < T::LEAST || size > T::LEAST * 16 || size % align_of::<usize>() != 0 {
        return Err(Failure::argument(format!(
            "the size of a struct {} is {size}, and at least {} is expected: set its member `size`",
            T::NAME,
            T::LEAST
        )));
    }
    Ok(size)
}

/// The caller's structs, spaced by the size that the first one states.
pub(crate) fn sized_array<T: Versioned>(
    pointer: *const T,
    count: usize,
    name: &'static str,
) -> Result<impl ExactSizeIterator<Item = Result<T, Failure>>, Failure> {
    let size = if count == 0 {
        T::LEAST
    } else {
        stated_size(pointer)?
    };
    let bytes = count.checked_mul(size);
    let bytes = bytes.ok_or_else(|| Failure::argument(format!("{name} cannot be an array")))?;
    let bytes = pointer::array(pointer.cast::<u8>(), bytes, name)?;
    Ok(bytes.chunks_exact(size).map(taken))
}

/// A struct of its bytes.
fn taken<T: Versioned>(bytes: &[u8]) -> Result<T, Failure> {
    let stated = bytes.first_chunk().map(|size| usize::from_ne_bytes(*size));
    if stated != Some(bytes.len()) {
        return Err(Failure::argument(format!(
            "the structs {} of one array have different sizes",
            T::NAME
        )));
    }
    let known = bytes.len().min(size_of::<T>());
    if bytes[known..].iter().any(|byte| *byte != 0) {
        return Err(Failure::argument(format!(
            "a struct {} has members that libcorvid {} does not know",
            T::NAME,
            env!("CARGO_PKG_VERSION")
        )));
    }
    // SAFETY: all bytes 0 are a value, and the first `known` bytes are the members that both sides
    // have, as the program set them.
    Ok(unsafe {
        let mut value = std::mem::zeroed::<T>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut value).cast::<u8>(), known);
        value
    })
}

/// A struct of the caller for a result, which states its size.
pub(crate) struct SizedOut<T> {
    place: *mut T,
    size: usize,
}

impl<T: Versioned> SizedOut<T> {
    pub(crate) fn new(pointer: *mut T) -> Result<SizedOut<T>, Failure> {
        Ok(SizedOut {
            size: stated_size(pointer)?,
            place: pointer,
        })
    }

    /// Writes the members that both sides know. Others of a newer program become 0.
    pub(crate) fn set(self, mut value: T) {
        // SAFETY: the first member is the size, which stays as the caller has it. By the contract
        // the place has as many bytes as it states.
        unsafe {
            (&raw mut value).cast::<usize>().write(self.size);
            let place = self.place.cast::<u8>();
            let known = self.size.min(size_of::<T>());
            std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), place, known);
            place.add(known).write_bytes(0, self.size - known);
        }
    }
}
