//! The scan on eight bytes in a word, with only instructions that every processor has.
//!
//! Words are little-endian by construction, so the first byte is the lowest on every processor. The
//! x86-64 implementation uses these functions for texts that are shorter than a vector.

use super::{BLOCK, LANE, Masks, Visitor};

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

pub(super) fn blocks(input: &[u8], visitor: &mut impl Visitor) -> usize {
    super::run(input, visitor, masks, prefix_xor)
}

pub(super) fn masks(block: &[u8; BLOCK]) -> Masks {
    let mut masks = Masks {
        quote: 0,
        backslash: 0,
        open: 0,
        close: 0,
    };
    for (index, &word) in block.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(word);
        let folded = word | (LOW_BITS * 0x20);
        let shift = 8 * index;
        masks.quote |= gather(equal(word, b'"')) << shift;
        masks.backslash |= gather(equal(word, b'\\')) << shift;
        masks.open |= gather(equal(folded, b'{')) << shift;
        masks.close |= gather(equal(folded, b'}')) << shift;
    }
    masks
}

/// Bit `i` becomes the parity of bits `0..=i`. With quotes as input: ones from each opening quote
/// up to its partner.
pub(super) fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// Sets the high bit of each byte of `word` that equals `byte`. Exact in every byte (no borrow
/// between bytes).
pub(super) fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (LOW_BITS * u64::from(byte));
    !(((difference & !HIGH_BITS) + !HIGH_BITS) | difference) & HIGH_BITS
}

/// Sets the high bit of each byte of `word` below 0x20. Exact.
fn below_space(word: u64) -> u64 {
    !(((word & !HIGH_BITS) + LOW_BITS * (0x80 - 0x20)) | word) & HIGH_BITS
}

/// Packs the high bits of eight bytes into eight bits, first byte lowest.
fn gather(high_bits: u64) -> u64 {
    (high_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

pub(super) fn special(text: &[u8]) -> usize {
    let (words, tail) = text.as_chunks::<8>();
    for (index, &word) in words.iter().enumerate() {
        if let Some(at) = special_in_word(word) {
            return 8 * index + at;
        }
    }
    8 * words.len() + special_bytewise(tail)
}

#[inline]
fn special_in_word(word: [u8; 8]) -> Option<usize> {
    let word = u64::from_le_bytes(word);
    let found = equal(word, b'"') | equal(word, b'\\') | below_space(word);
    (found != 0).then(|| (found.trailing_zeros() / 8) as usize)
}

/// [`super::special`] in the bytes of one vector.
#[inline]
pub(super) fn special_in_lane(lane: &[u8; LANE]) -> Option<usize> {
    let (words, _) = lane.as_chunks::<8>();
    let found = words.iter().enumerate();
    found
        .filter_map(|(index, &word)| special_in_word(word).map(|at| 8 * index + at))
        .next()
}

/// [`special`] in a text that is shorter than a vector, through two words that overlap. Only the
/// vectors call it.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn special_in_short(text: &[u8]) -> usize {
    let length = text.len();
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return special_in_word(*first)
            .or_else(|| special_in_word(*last).map(|at| length + at - 8))
            .unwrap_or(length);
    }
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let [a, b, c, d] = *first;
        let [w, x, y, z] = *last;
        return match special_in_word([a, b, c, d, w, x, y, z]) {
            Some(at) if at < 4 => at,
            Some(at) => length + at - 8,
            None => length,
        };
    }
    special_bytewise(text)
}

#[inline]
pub(super) fn special_bytewise(text: &[u8]) -> usize {
    text.iter()
        .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
        .unwrap_or(text.len())
}
