//! Proves with the hash that a damaged record is what was originally written.
//!
//! - If the body's hash nearly equals the one in the header line, the body is intact and the line
//!   is damaged. No other body would come that close.
//! - If one bit of the body has flipped, trying all bits finds it.
//! - If the header line is damaged elsewhere, the record is intact if the line still holds the hash
//!   of its body.
//!
//! Salvage calls this module, and so does [`crate::cluster`] for the promises of a damaged member.

use sha1::{Digest, Sha1};

use super::Bytes;
use crate::header::write_hex;
use crate::reader::parse_object;

/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 40;

/// A damaged hash differs from the right one in at most this many of its 40 digits. Hashes of
/// different bodies agree in only two or three digits.
const WRONG_DIGITS_MAX: usize = 8;

/// A longer record is not searched for after a damaged header line, bytes.
const FOUND_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Block size of SHA-1, bytes.
const BLOCK_BYTES: usize = 64;

/// Whether two hashes differ so little that one of them is a damaged copy of the other.
pub(crate) fn is_nearly(actual: &[u8; 20], expected: &[u8; 20]) -> bool {
    let wrong = actual.iter().zip(expected).map(|(one, other)| {
        let differing = one ^ other;
        usize::from(differing & 0xf0 != 0) + usize::from(differing & 0x0f != 0)
    });
    wrong.sum::<usize>() <= WRONG_DIGITS_MAX
}

/// Restores a body in which one bit is wrong, in place; `false` if no single bit explains the hash.
/// Time grows with the square of the length: 3 s for 32 KiB.
pub(crate) fn restore(body: &mut [u8], sha1: &[u8; 20]) -> bool {
    // The hash state over all blocks before the one whose bits are tried.
    let mut before = Sha1::new();
    for start in (0..body.len()).step_by(BLOCK_BYTES) {
        let end = body.len().min(start + BLOCK_BYTES);
        for at in start..end {
            for bit in 0..8 {
                body[at] ^= 1 << bit;
                let actual: [u8; 20] = before
                    .clone()
                    .chain_update(&body[start..])
                    .finalize()
                    .into();
                if actual == *sha1 {
                    return true;
                }
                body[at] ^= 1 << bit;
            }
        }
        before.update(&body[start..end]);
    }
    false
}

/// Finds the body of a record that ends at `limit` and has a damaged header line, by the hash in
/// that line. `head` holds the first bytes of the record at `at`.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn find_body<B: Bytes>(
    bytes: &mut B,
    head: &[u8],
    at: u64,
    limit: u64,
) -> Result<Option<Vec<u8>>, String> {
    for (from, digits) in head.windows(HASH_DIGITS).enumerate() {
        let is_digit = |byte: &&u8| byte.is_ascii_hexdigit();
        let begin = at + (from + HASH_DIGITS) as u64 + 1;
        let wrong = digits.iter().filter(|byte| !is_digit(byte)).count();
        if wrong > WRONG_DIGITS_MAX || begin >= limit || limit - begin > FOUND_BYTES_MAX {
            continue;
        }
        let body = read_range(bytes, begin, limit - begin)?;
        let mut actual = Vec::with_capacity(HASH_DIGITS);
        write_hex(&Sha1::digest(&body).into(), &mut actual);
        let differing = actual.iter().zip(digits).filter(|(a, b)| a != b).count();
        if differing <= WRONG_DIGITS_MAX && parse_object(&body).is_ok() {
            return Ok(Some(body));
        }
    }
    Ok(None)
}

/// Reads a range of the file; fewer bytes at its end.
///
/// # Errors
/// The file cannot be read, or the range exceeds memory.
pub(crate) fn read_range<B: Bytes>(
    bytes: &mut B,
    offset: u64,
    length: u64,
) -> Result<Vec<u8>, String> {
    let length = usize::try_from(length).map_err(|_| "a record that is too long".to_owned())?;
    let mut room = vec![0; length];
    let mut got = 0;
    while got < length {
        match bytes.read_at(&mut room[got..], offset + got as u64)? {
            0 => break,
            more => got += more,
        }
    }
    room.truncate(got);
    Ok(room)
}
