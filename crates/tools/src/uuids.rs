//! Row UUIDs from the operating system's random source.

use corvid_data::uuid::UuidSource;
use corvid_data::{HashSeed, Uuid};
use corvid_net::random::Random;
use corvid_shell::program;

use crate::failure::Failure;

/// Fresh version 4 UUIDs.
#[derive(Debug)]
pub struct RandomUuids(Random);

impl RandomUuids {
    /// Opens the random source.
    ///
    /// # Errors
    /// The system has no random source.
    pub fn new() -> Result<RandomUuids, Failure> {
        let random = Random::new();
        random.map(RandomUuids).map_err(|error| {
            Failure::new(format!(
                "cannot read random numbers ({})",
                corvid_net::errno::text(&error)
            ))
        })
    }
}

impl RandomUuids {
    /// A seed for the hashes of a database. Without a random seed, a file's contents could be
    /// crafted so that hashes collide.
    pub fn hash_seed(&mut self) -> HashSeed {
        match self.0.bytes() {
            Ok(bytes) => HashSeed::new(u64::from_ne_bytes(bytes)),
            Err(error) => program::fatal_error("cannot read random numbers", &error),
        }
    }
}

impl UuidSource for RandomUuids {
    fn fresh(&mut self) -> Uuid {
        match self.0.uuid() {
            Ok(bytes) => Uuid(bytes),
            Err(error) => program::fatal_error("cannot read random numbers", &error),
        }
    }
}
