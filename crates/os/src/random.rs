//! The only source of chance: bytes of the operating system, buffered, and version 4 UUIDs made of them.
//!
//! One generator per owner (an engine thread, a client), handed in as a value. Pure crates take the bytes as input.

use std::io;

/// Bytes fetched from the operating system at a time: 64 UUIDs per call.
const BUFFER_BYTES: usize = 1024;

/// A buffered reader of the operating system's random source.
#[derive(Debug)]
pub struct Random {
    buffer: Box<[u8; BUFFER_BYTES]>,
    used: usize,
}

impl Random {
    /// A generator that is ready for use.
    ///
    /// # Errors
    /// The operating system has no random source to offer.
    pub fn new() -> io::Result<Random> {
        let mut random = Random {
            buffer: Box::new([0; BUFFER_BYTES]),
            used: 0,
        };
        random.refill()?;
        Ok(random)
    }

    /// `N` random bytes.
    ///
    /// # Errors
    /// The random source fails, which no running Linux does once [`Random::new`] has succeeded.
    pub fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        const { assert!(N <= BUFFER_BYTES) };
        if BUFFER_BYTES - self.used < N {
            self.refill()?;
        }
        let left = &mut self.buffer[self.used..];
        let Some(bytes) = left.first_chunk_mut::<N>() else {
            unreachable!("a buffer holds that many");
        };
        self.used += N;
        // Bytes are wiped as they are handed out, so that no value is given twice and none can be read back.
        Ok(std::mem::replace(bytes, [0; N]))
    }

    /// The 16 bytes of a version 4, variant 1 UUID (RFC 4122 4.4).
    ///
    /// # Errors
    /// As [`Random::bytes`].
    pub fn uuid(&mut self) -> io::Result<[u8; 16]> {
        let mut uuid = self.bytes::<16>()?;
        uuid[6] = uuid[6] & 0x0f | 0x40;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        Ok(uuid)
    }

    fn refill(&mut self) -> io::Result<()> {
        getrandom::fill(&mut self.buffer[..]).map_err(|error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::other(error.to_string()),
        })?;
        self.used = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_differ_and_carry_version_and_variant() {
        let mut random = Random::new().unwrap();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let uuid = random.uuid().unwrap();
            assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (4, 2));
            assert!(seen.insert(uuid));
        }
    }
}
