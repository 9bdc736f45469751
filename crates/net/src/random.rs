//! Random numbers: buffered bytes from the operating system, and version 4 UUIDs made from them.
//!
//! Each owner (a database's thread, a client) has its own generator, passed in as a value. Pure
//! crates take the bytes as input.

use std::io;

use corvid_json::splitmix;

use crate::fork::Home;

/// The number of bytes fetched from the operating system at a time: 64 UUIDs per call.
const BUFFER_BYTES: usize = 1024;

/// A buffered reader of the operating system's random source.
#[derive(Debug)]
pub struct Random {
    buffer: Box<[u8; BUFFER_BYTES]>,
    used: usize,
    /// The process that filled the buffer. A forked child must not return the same bytes.
    home: Home,
}

impl Random {
    /// A generator with a full buffer.
    ///
    /// # Errors
    /// The operating system has no random source.
    pub fn new() -> io::Result<Random> {
        let mut random = Random {
            buffer: Box::new([0; BUFFER_BYTES]),
            used: 0,
            home: Home::this_process(),
        };
        random.refill()?;
        Ok(random)
    }

    /// `N` random bytes.
    ///
    /// # Errors
    /// The random source fails, which does not happen on a running Linux once [`Random::new`] has
    /// succeeded.
    pub fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        const { assert!(N <= BUFFER_BYTES) };
        if BUFFER_BYTES - self.used < N || !self.home.is_this_process() {
            self.refill()?;
        }
        let left = &mut self.buffer[self.used..];
        let Some(bytes) = left.first_chunk_mut::<N>() else {
            unreachable!("a buffer holds that many");
        };
        self.used += N;
        // Returned bytes are overwritten, so that no value is returned twice and none can be read
        // back.
        Ok(std::mem::replace(bytes, [0; N]))
    }

    /// The 16 bytes of a version 4, variant 1 UUID (RFC 4122 4.4).
    ///
    /// # Errors
    /// The random source fails, as for [`Random::bytes`].
    pub fn uuid(&mut self) -> io::Result<[u8; 16]> {
        self.bytes().map(shaped)
    }

    fn refill(&mut self) -> io::Result<()> {
        getrandom::getrandom(&mut self.buffer[..])?;
        self.used = 0;
        self.home = Home::this_process();
        Ok(())
    }
}

/// Version 4 UUIDs for a few instructions each, as unlikely to repeat as random ones: two counters
/// that begin at random numbers, each mixed. One UUID reveals the others, so they are for values
/// that only have to differ: versions of rows, not their UUIDs.
#[derive(Debug)]
pub struct PseudoRandom {
    numbers: [u64; 2],
}

impl PseudoRandom {
    /// A generator that begins at random numbers.
    ///
    /// # Errors
    /// The operating system has no random source.
    pub fn new() -> io::Result<PseudoRandom> {
        let mut random = Random::new()?;
        let mut number = || random.bytes().map(u64::from_le_bytes);
        Ok(PseudoRandom {
            numbers: [number()?, number()?],
        })
    }

    /// The 16 bytes of the next UUID.
    pub fn uuid(&mut self) -> [u8; 16] {
        self.numbers = self
            .numbers
            .map(|number| number.wrapping_add(splitmix::STEP));
        let mut uuid = [0; 16];
        let (halves, _) = uuid.as_chunks_mut();
        for (half, number) in halves.iter_mut().zip(self.numbers) {
            *half = splitmix::mix(number).to_be_bytes();
        }
        shaped(uuid)
    }
}

/// Sets the bits of version 4 and variant 1.
fn shaped(mut uuid: [u8; 16]) -> [u8; 16] {
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pseudo_random_uuids_differ_in_half_of_their_bits() {
        let (mut one, mut other) = (PseudoRandom::new().unwrap(), PseudoRandom::new().unwrap());
        let mut seen = std::collections::HashSet::new();
        let mut different = 0;
        for _ in 0..1000 {
            let uuids = [one.uuid(), other.uuid(), one.uuid()];
            for uuid in uuids {
                assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (4, 2));
                assert!(seen.insert(uuid));
            }
            for (a, b) in [(0, 1), (0, 2)] {
                let [a, b] = [uuids[a], uuids[b]].map(u128::from_be_bytes);
                different += (a ^ b).count_ones();
            }
        }
        // 61 of 122 bits differ, 2,000 times, with a standard deviation of 250.
        assert!((119_000..125_000).contains(&different), "{different}");
    }

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
