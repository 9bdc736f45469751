//! Proving that a record with damage is what was written, with the help of its hash.
//!
//! - A body is intact if it has nearly the digits of the hash in its header line: the line is
//!   damaged. No other body would have them.
//! - A body in which one bit has flipped is restored by trying all bits.
//! - A record whose header line is damaged elsewhere is intact if the hash of its body stands there.
//!
//! Called for salvage, and by [`crate::cluster`] for the promises of a damaged member.

use sha1::{Digest, Sha1};

use super::Bytes;
use crate::header::write_hex;
use crate::reader::parse_object;

/// Digits of a hash.
const HASH_DIGITS: usize = 40;

/// A damaged hash differs from the right one in at most so many of its 40 digits. Hashes of different
/// bodies agree in two or three digits.
const WRONG_DIGITS_MAX: usize = 8;

/// A longer record is not looked for behind a damaged header line.
const FOUND_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes that SHA-1 mixes at once.
const BLOCK_BYTES: usize = 64;

/// Whether two hashes differ by damage to one of them.
pub(crate) fn is_nearly(actual: &[u8; 20], expected: &[u8; 20]) -> bool {
    let wrong = actual.iter().zip(expected).map(|(one, other)| {
        let differing = one ^ other;
        usize::from(differing & 0xf0 != 0) + usize::from(differing & 0x0f != 0)
    });
    wrong.sum::<usize>() <= WRONG_DIGITS_MAX
}

/// Restores a body in which one bit is wrong. Its time grows with the square of the length: 3 s for
/// 32 KiB.
pub(crate) fn restore(body: &mut [u8], sha1: &[u8; 20]) -> bool {
    // The hash of all blocks before the one whose bits are tried.
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

/// The body of a record that ends at `limit` and whose header line is damaged, by the hash in that
/// line. `head` is how the record at `at` begins.
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

/// These bytes, fewer at the end of the file.
///
/// # Errors
/// The file cannot be read, or they are too many.
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
