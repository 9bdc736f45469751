//! Strings that come again and again while data are read: map keys above all. Equal ones that come close to each other share their memory.
//!
//! A direct-mapped cache: what falls on an occupied place takes it. So it costs one comparison a string, holds a bounded number of short
//! strings, and needs no clearing.

use foldhash::fast::FixedState;
use std::hash::BuildHasher;

use super::Symbols;
use crate::{Str, Uuid, WireError};

/// Strings held.
const PLACES: usize = 512;
/// Longer ones are rarely repeated.
const TEXT_BYTES_MAX: usize = 48;

/// Recent strings. As [`Symbols`] it admits no names.
#[derive(Debug)]
pub struct Repeats {
    recent: Box<[Str]>,
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats {
            recent: vec![Str::default(); PLACES].into(),
        }
    }
}

impl Symbols for Repeats {
    fn resolve(&mut self, _: &str) -> Uuid {
        unreachable!("names are not admitted")
    }

    fn admits_names(&self) -> bool {
        false
    }

    fn string(&mut self, text: &[u8]) -> Result<Str, WireError> {
        if text.len() > TEXT_BYTES_MAX {
            return Str::from_utf8(text);
        }
        let hash = FixedState::default().hash_one(text);
        let place = &mut self.recent[usize::try_from(hash % PLACES as u64).unwrap_or(0)];
        if place.as_bytes() != text {
            *place = Str::from_utf8(text)?;
        }
        Ok(place.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_strings_share_memory() {
        let mut repeats = Repeats::default();
        let first = repeats.string(b"requested-chassis").expect("ASCII");
        let second = repeats.string(b"requested-chassis").expect("ASCII");
        assert!(first.ptr_eq(&second));
        assert_eq!(repeats.string(b"").expect("empty"), Str::default());
        let long = vec![b'x'; TEXT_BYTES_MAX + 1];
        let [first, second] = [0, 1].map(|_| repeats.string(&long).expect("ASCII"));
        assert!(first == second && !first.ptr_eq(&second));
    }

    #[test]
    fn whatever_is_forgotten_every_string_is_itself() {
        let mut repeats = Repeats::default();
        for number in (0..3000).chain(0..3000) {
            let text = number.to_string();
            assert_eq!(&*repeats.string(text.as_bytes()).expect("ASCII"), text);
        }
        assert!(repeats.string(b"\xff").is_err());
    }
}
