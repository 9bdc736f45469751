//! Bytes that matter, found many at a time: the masks of framing and the search inside strings.
//!
//! The only file of this crate with `unsafe`: loads of whole vectors and the calls into functions compiled for instructions
//! that were found at run time. Every entry has a portable form that works on eight bytes in a word, and all forms give the
//! same masks; tests compare them. This file knows bytes and bits, not JSON's grammar.

#![allow(unsafe_code)]

/// Bytes per block of masks: one bit each in a `u64`.
pub(crate) const BLOCK: usize = 64;

/// Bytes of the vectors that strings are searched with.
const LANE: usize = 16;

/// Where the bytes that decide framing are in one block; bit `i` stands for byte `i`.
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
    /// Those of what comes after the first `count` bytes, fewer than a block, as if blanks followed.
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

/// What a scan does with each block.
pub(crate) trait Visitor {
    /// Takes the masks of one block; `prefix_xor` turns quote marks into "inside a string" marks. Returns whether to go on.
    fn block(&mut self, masks: Masks, prefix_xor: impl Fn(u64) -> u64) -> bool;
}

/// Feeds whole blocks of `input` to `visitor` until it stops; returns how many blocks it took (the one it stopped at
/// included). Bytes after the last whole block are the caller's.
pub(crate) fn blocks(input: &[u8], visitor: &mut impl Visitor) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("pclmulqdq")
        {
            // SAFETY: the processor has the instructions that the function is compiled for, as just checked.
            return unsafe { x86_64::blocks_avx2(input, visitor) };
        }
        x86_64::blocks_sse2(input, visitor)
    }
    #[cfg(not(target_arch = "x86_64"))]
    portable::blocks(input, visitor)
}

/// Offset of the first `"`, `\` or byte below 0x20 in `text`; its length when there is none.
#[inline]
pub(crate) fn special(text: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        x86_64::special(text)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        portable::special(text)
    }
}

/// One past the closing quote of a string without escapes whose content begins at `start` and is shorter than a vector, as nearly all
/// names and many values are; `None` when it takes [`special`] to tell, or the text ends too soon for a load.
#[inline(always)]
pub(crate) fn short_string_end(text: &[u8], start: usize) -> Option<usize> {
    let lane = text.get(start..)?.first_chunk::<LANE>()?;
    #[cfg(target_arch = "x86_64")]
    let length = x86_64::special_in_lane(lane)?;
    #[cfg(not(target_arch = "x86_64"))]
    let length = Some(portable::special(lane)).filter(|length| *length < LANE)?;
    (lane[length] == b'"').then_some(start + length + 1)
}

/// The loop over blocks, shared by the forms; inlined so that it is compiled for each form's instructions.
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

/// Eight bytes in a word; no instructions beyond the baseline of any processor.
#[cfg_attr(target_arch = "x86_64", allow(dead_code))]
mod portable {
    use super::{BLOCK, Masks, Visitor};

    const LOW_BITS: u64 = 0x0101_0101_0101_0101;
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

    #[cfg_attr(target_arch = "x86_64", allow(dead_code))]
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

    /// Bit `i` becomes the parity of bits `0..=i`: with quotes as input, ones from each opening quote up to its partner.
    pub(super) fn prefix_xor(mut bits: u64) -> u64 {
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        bits
    }

    /// The high bit of each byte of `word` that equals `byte`, exact in every position (no borrow between bytes).
    pub(super) fn equal(word: u64, byte: u8) -> u64 {
        let difference = word ^ (LOW_BITS * u64::from(byte));
        !(((difference & !HIGH_BITS) + !HIGH_BITS) | difference) & HIGH_BITS
    }

    /// The high bit of each byte of `word` below 0x20, exact.
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

    /// [`special`] of what is shorter than a vector: by two words that overlap.
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
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_clmulepi64_si128, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_loadu_si128,
        _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
        _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi8,
    };

    use super::{BLOCK, LANE, Masks, Visitor, portable};

    pub(super) fn blocks_sse2(input: &[u8], visitor: &mut impl Visitor) -> usize {
        super::run(input, visitor, masks_sse2, portable::prefix_xor)
    }

    #[target_feature(enable = "avx2,pclmulqdq,popcnt")]
    pub(super) fn blocks_avx2(input: &[u8], visitor: &mut impl Visitor) -> usize {
        super::run(
            input,
            visitor,
            |block| masks_avx2(block),
            |bits| prefix_xor_clmul(bits),
        )
    }

    #[inline]
    pub(super) fn masks_sse2(block: &[u8; BLOCK]) -> Masks {
        let mut masks = Masks {
            quote: 0,
            backslash: 0,
            open: 0,
            close: 0,
        };
        for (index, lane) in block.as_chunks::<16>().0.iter().enumerate() {
            let bytes = load(lane);
            let shift = 16 * index;
            // SAFETY: SSE2 is part of every x86-64 processor.
            unsafe {
                let folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
                masks.quote |= equal_sse2(bytes, b'"') << shift;
                masks.backslash |= equal_sse2(bytes, b'\\') << shift;
                masks.open |= equal_sse2(folded, b'{') << shift;
                masks.close |= equal_sse2(folded, b'}') << shift;
            }
        }
        masks
    }

    #[inline]
    fn load(lane: &[u8; 16]) -> __m128i {
        // SAFETY: the array is 16 readable bytes, and the load has no alignment of its own.
        unsafe { _mm_loadu_si128(lane.as_ptr().cast()) }
    }

    #[inline]
    fn equal_sse2(bytes: __m128i, byte: u8) -> u64 {
        // SAFETY: SSE2 is part of every x86-64 processor.
        let found =
            unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()))) };
        u64::from(found.cast_unsigned())
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn masks_avx2(block: &[u8; BLOCK]) -> Masks {
        let pointer: *const __m256i = block.as_ptr().cast();
        // SAFETY: the block is 64 readable bytes, two vectors of 32; the loads need no alignment.
        let (low, high) = unsafe {
            (
                _mm256_loadu_si256(pointer),
                _mm256_loadu_si256(pointer.add(1)),
            )
        };
        let case = _mm256_set1_epi8(0x20);
        let (low_folded, high_folded) = (_mm256_or_si256(low, case), _mm256_or_si256(high, case));
        Masks {
            quote: equal_avx2(low, high, b'"'),
            backslash: equal_avx2(low, high, b'\\'),
            open: equal_avx2(low_folded, high_folded, b'{'),
            close: equal_avx2(low_folded, high_folded, b'}'),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn equal_avx2(low: __m256i, high: __m256i, byte: u8) -> u64 {
        let byte = _mm256_set1_epi8(byte.cast_signed());
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, byte)).cast_unsigned();
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, byte)).cast_unsigned();
        u64::from(low) | u64::from(high) << 32
    }

    /// A carry-less product with all ones is the parity of all lower bits.
    #[inline]
    #[target_feature(enable = "pclmulqdq")]
    pub(super) fn prefix_xor_clmul(bits: u64) -> u64 {
        let product =
            _mm_clmulepi64_si128(_mm_set_epi64x(0, bits.cast_signed()), _mm_set1_epi8(-1), 0);
        _mm_cvtsi128_si64(product).cast_unsigned()
    }

    #[inline]
    pub(super) fn special(text: &[u8]) -> usize {
        let (lanes, tail) = text.as_chunks::<LANE>();
        let Some(last) = text.last_chunk() else {
            return portable::special_in_short(text);
        };
        for (index, lane) in lanes.iter().enumerate() {
            if let Some(at) = special_in_lane(lane) {
                return LANE * index + at;
            }
        }
        if tail.is_empty() {
            return text.len();
        }
        // The last vector overlaps the one before, in which nothing was found.
        special_in_lane(last).map_or(text.len(), |at| text.len() - LANE + at)
    }

    #[inline]
    pub(super) fn special_in_lane(lane: &[u8; LANE]) -> Option<usize> {
        let bytes = load(lane);
        // SAFETY: SSE2 is part of every x86-64 processor. A byte is its own minimum with 0x1f when it is below 0x20.
        let found = unsafe {
            let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"'.cast_signed()));
            let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\'.cast_signed()));
            let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
            _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control))
        };
        (found != 0).then(|| found.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BLOCK, Masks, portable, short_string_end, special};

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

    /// Bytes that matter and those next to them, more often than chance would give.
    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![
            any::<u8>(),
            prop::sample::select(
                b"\"!#\\[]{}Z^z|\x00\x1f\x20\x7f\x80\x9f\xa0\xa2\xdb\xdc\xff".to_vec()
            ),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        #[test]
        fn all_forms_give_the_same_masks(bytes in prop::collection::vec(byte(), BLOCK)) {
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
        fn special_finds_the_first(
            plain in prop_oneof![0_usize..20, 0_usize..70],
            tail in prop::collection::vec(byte(), 0..20),
        ) {
            let mut text = vec![0xe9; plain];
            text.extend(tail);
            let expected = portable::special_bytewise(&text);
            prop_assert_eq!(special(&text), expected);
            prop_assert_eq!(portable::special(&text), expected);
        }
    }
}
