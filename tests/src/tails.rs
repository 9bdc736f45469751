//! Ends of database files as a crash of the machine may leave them: bytes that are not a whole
//! record.
//!
//! Called by the tests of storage while no server has the file open. A reader never accepts these
//! bytes as a record.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use sha1::{Digest, Sha1};

use crate::random::Random;

/// Appends such bytes to the file, and returns what kind they are.
///
/// # Errors
///
/// An error of the operating system.
pub fn append(path: &Path, random: &mut Random) -> io::Result<&'static str> {
    let body =
        b"{\"_date\":1700000000000,\"Tally\":{\"00000000-0000-4000-8000-000000000001\":null}}\n";
    let hash: String = Sha1::digest(body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut record = format!("OVSDB JSON {} {hash}\n", body.len()).into_bytes();
    let header_bytes = record.len();
    record.extend_from_slice(body);
    let cut = |random: &mut Random, from: usize, to: usize| from + length(random, to - from);
    let (kind, bytes) = match random.below(6) {
        0 => {
            let count = 1 + length(random, 5000);
            ("random bytes", random.bytes(count))
        }
        1 => {
            let end = cut(random, 1, header_bytes);
            ("part of a header", record[..end].to_vec())
        }
        2 => ("a header without its body", record[..header_bytes].to_vec()),
        3 => {
            let end = cut(random, header_bytes + 1, record.len());
            ("half a record", record[..end].to_vec())
        }
        4 => {
            let at = cut(random, header_bytes, record.len() - 1);
            record[at] ^= 1 << random.below(3);
            ("a record with a flipped bit", record)
        }
        _ => ("zeros", vec![0; 1 + length(random, 8192)]),
    };
    OpenOptions::new()
        .append(true)
        .open(path)?
        .write_all(&bytes)?;
    Ok(kind)
}

/// Writes random bytes to the file to which the next replacement will be written.
///
/// # Errors
///
/// An error of the operating system.
pub fn leave_stale_replacement(path: &Path, random: &mut Random) -> io::Result<()> {
    let bytes = 1 + length(random, 5000);
    fs::write(replacement(path), random.bytes(bytes))
}

/// Returns the name under which the replacement of a file is written.
#[must_use]
pub fn replacement(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// Returns a length below `end`.
fn length(random: &mut Random, end: usize) -> usize {
    usize::try_from(random.below(end as u64)).unwrap_or(0)
}
