//! The source of UUIDs of a simulated process: they follow from its seed.

use corvid_data::{Uuid, UuidSource};

use crate::world::dice::Dice;

/// UUIDs that follow from a seed.
#[derive(Clone, Debug)]
pub(crate) struct SeededUuids(pub(crate) Dice);

impl UuidSource for SeededUuids {
    fn fresh(&mut self) -> Uuid {
        let high = u128::from(self.0.draw());
        Uuid((high << 64 | u128::from(self.0.draw())).to_be_bytes())
    }
}
