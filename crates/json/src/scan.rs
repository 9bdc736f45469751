//! Finds the bytes that matter, many at a time: the masks of framing, and the search inside
//! strings.
//!
//! There are two implementations of the same three functions. `x86_64` uses vector instructions.
//! `portable` works on eight bytes in a word and needs no special instructions. Other processors
//! use the portable one, and so does x86-64 with the feature `portable-scan`. On x86-64 both are
//! always compiled, and the tests compare them. This module works on bytes and bits; the grammar of
//! JSON is in [`crate::frame`] and [`crate::lex`].

#[cfg_attr(
    all(target_arch = "x86_64", not(feature = "portable-scan")),
    allow(dead_code)
)]
mod portable;
#[cfg(target_arch = "x86_64")]
#[cfg_attr(feature = "portable-scan", allow(dead_code))]
mod x86_64;

#[cfg(any(not(target_arch = "x86_64"), feature = "portable-scan"))]
use portable as implementation;
#[cfg(all(target_arch = "x86_64", not(feature = "portable-scan")))]
use x86_64 as implementation;

/// Bytes per block of masks: one bit each in a `u64`.
pub(crate) const BLOCK: usize = 64;

/// Bytes of the vectors with which strings are searched.
const LANE: usize = 16;

/// Positions of the bytes that decide framing in one block; bit `i` stands for byte `i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Masks {
    pub(crate) quote: u64,
    pub(crate) backslash: u64,
    /// `[` and `{`.
    pub(crate) open: u64,
    /// `]` and `}`.
    pub(crate) close: u64,
}

impl Masks {
    /// The masks without their first `count` bytes, fewer than a block, as if blanks followed the
    /// last byte.
    #[inline(always)]
    pub(crate) fn after(self, count: usize) -> Masks {
        Masks {
            quote: self.quote >> count,
            backslash: self.backslash >> count,
            open: self.open >> count,
            close: self.close >> count,
        }
    }
}

/// The consumer of a scan's blocks.
pub(crate) trait Visitor {
    /// Receives the masks of one block. `prefix_xor` turns quote marks into "inside a string"
    /// marks. Returns whether to continue.
    fn block(&mut self, masks: Masks, prefix_xor: impl Fn(u64) -> u64) -> bool;
}

/// Feeds whole blocks of `input` to `visitor` until it stops. Returns the number of blocks that it
/// visited, including the one where it stopped. The caller handles the bytes after the last whole
/// block.
pub(crate) fn blocks(input: &[u8], visitor: &mut impl Visitor) -> usize {
    implementation::blocks(input, visitor)
}

/// Offset of the first `"`, `\` or byte below 0x20 in `text`, or its length if there is none.
#[inline]
pub(crate) fn special(text: &[u8]) -> usize {
    implementation::special(text)
}

/// The offset after the closing quote of a string without escapes whose contents begin at `start`
/// and are shorter than a vector. Nearly all names and many values are such strings. `None` if only
/// [`special`] can find the end, or if the text ends too soon for a vector load.
#[inline(always)]
pub(crate) fn short_string_end(text: &[u8], start: usize) -> Option<usize> {
    let lane = text.get(start..)?.first_chunk::<LANE>()?;
    let length = implementation::special_in_lane(lane)?;
    (lane[length] == b'"').then_some(start + length + 1)
}

/// The loop over blocks that the implementations share. Inlined, so that it is compiled for each
/// one's instructions.
#[inline(always)]
fn run(
    input: &[u8],
    visitor: &mut impl Visitor,
    masks: impl Fn(&[u8; BLOCK]) -> Masks,
    prefix_xor: impl Fn(u64) -> u64,
) -> usize {
    let (blocks, _) = input.as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        if !visitor.block(masks(block), &prefix_xor) {
            return index + 1;
        }
    }
    blocks.len()
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use proptest::prelude::*;

    use super::{BLOCK, LANE, Masks, Visitor, blocks, portable, short_string_end, special};

    fn bytewise(block: &[u8; BLOCK]) -> Masks {
        let mask = |wanted: &[u8]| {
            block.iter().enumerate().fold(0, |bits, (index, byte)| {
                bits | u64::from(wanted.contains(byte)) << index
            })
        };
        Masks {
            quote: mask(b"\""),
            backslash: mask(b"\\"),
            open: mask(b"[{"),
            close: mask(b"]}"),
        }
    }

    /// Bytes that matter and their neighbours, more often than chance would give.
    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![
            any::<u8>(),
            prop::sample::select(
                b"\"!#\\[]{}Z^z|\x00\x1f\x20\x7f\x80\x9f\xa0\xa2\xdb\xdc\xff".to_vec()
            ),
        ]
    }

    /// Records the masks and string marks of the blocks that it visits, and stops after
    /// `blocks_max`.
    struct Recorder {
        blocks_max: usize,
        seen: Vec<(Masks, u64)>,
    }

    impl Visitor for Recorder {
        fn block(&mut self, masks: Masks, prefix_xor: impl Fn(u64) -> u64) -> bool {
            self.seen.push((masks, prefix_xor(masks.quote)));
            self.seen.len() < self.blocks_max
        }
    }

    /// The number of blocks that `scan` returned, and the recorded blocks.
    fn record(
        blocks_max: usize,
        scan: impl FnOnce(&mut Recorder) -> usize,
    ) -> (usize, Vec<(Masks, u64)>) {
        let seen = Vec::new();
        let mut recorder = Recorder { blocks_max, seen };
        (scan(&mut recorder), recorder.seen)
    }

    /// Generated cases of each property. Under miri each takes a thousand times as long.
    const CASES: u32 = if cfg!(miri) { 8 } else { 2048 };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(CASES))]

        #[test]
        fn all_implementations_scan_the_same_blocks(
            text in prop::collection::vec(byte(), 0..5 * BLOCK),
            blocks_max in 1_usize..6,
        ) {
            let expected = record(blocks_max, |recorder| portable::blocks(&text, recorder));
            prop_assert_eq!(expected.0, blocks_max.min(text.len() / BLOCK));
            prop_assert_eq!(record(blocks_max, |recorder| blocks(&text, recorder)), expected.clone());
            #[cfg(target_arch = "x86_64")]
            {
                let sse2 = record(blocks_max, |recorder| super::x86_64::blocks_sse2(&text, recorder));
                prop_assert_eq!(sse2, expected.clone());
                prop_assert_eq!(record(blocks_max, |recorder| super::x86_64::blocks(&text, recorder)), expected);
            }
        }

        #[test]
        fn all_implementations_give_the_same_masks(bytes in prop::collection::vec(byte(), BLOCK)) {
            let block: [u8; BLOCK] = bytes.try_into().unwrap();
            let expected = bytewise(&block);
            prop_assert_eq!(portable::masks(&block), expected);
            #[cfg(target_arch = "x86_64")]
            {
                prop_assert_eq!(super::x86_64::masks_sse2(&block), expected);
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the feature was just found.
                    prop_assert_eq!(unsafe { super::x86_64::masks_avx2(&block) }, expected);
                }
            }
        }

        #[test]
        fn prefix_xor_is_running_parity(bits in any::<u64>()) {
            let expected = (0..64).fold(0_u64, |all, i| all | u64::from((bits << (63 - i)).count_ones() % 2) << i);
            prop_assert_eq!(portable::prefix_xor(bits), expected);
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("pclmulqdq") {
                // SAFETY: the feature was just found.
                prop_assert_eq!(unsafe { super::x86_64::prefix_xor_clmul(bits) }, expected);
            }
        }

        #[test]
        fn short_strings_end_at_their_quote(text in prop::collection::vec(byte(), 0..40), start in 0_usize..24) {
            if let Some(end) = short_string_end(&text, start) {
                prop_assert_eq!(end - 1, start + portable::special_bytewise(&text[start..]));
                prop_assert_eq!(text[end - 1], b'"');
            }
        }

        #[test]
        fn all_implementations_find_the_first_special_byte_of_a_lane(bytes in prop::collection::vec(byte(), LANE)) {
            let lane: [u8; LANE] = bytes.try_into().unwrap();
            let expected = Some(portable::special_bytewise(&lane)).filter(|length| *length < LANE);
            prop_assert_eq!(portable::special_in_lane(&lane), expected);
            #[cfg(target_arch = "x86_64")]
            prop_assert_eq!(super::x86_64::special_in_lane(&lane), expected);
        }

        #[test]
        fn all_implementations_find_the_first_special_byte(
            plain in prop_oneof![0_usize..20, 0_usize..70],
            tail in prop::collection::vec(byte(), 0..20),
        ) {
            let mut text = vec![0xe9; plain];
            text.extend(tail);
            let expected = portable::special_bytewise(&text);
            prop_assert_eq!(special(&text), expected);
            prop_assert_eq!(portable::special(&text), expected);
            #[cfg(target_arch = "x86_64")]
            prop_assert_eq!(super::x86_64::special(&text), expected);
        }
    }
}
