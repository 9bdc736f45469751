//! The scan with x86-64 vectors: SSE2, which every such processor has, and AVX2 with a carry-less
//! product where the processor has them.
//!
//! The only file of this crate with `unsafe`, apart from tests: loads of whole vectors, and calls
//! of functions compiled for instructions that were detected at run time.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256i, _mm_clmulepi64_si128, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_loadu_si128,
    _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
};

use super::{BLOCK, LANE, Masks, Visitor, portable};

/// [`super::blocks`] with the best instructions that the processor has.
pub(super) fn blocks(input: &[u8], visitor: &mut impl Visitor) -> usize {
    if std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("pclmulqdq")
    {
        // SAFETY: the processor has the instructions that the function is compiled for, as just
        // checked.
        return unsafe { blocks_avx2(input, visitor) };
    }
    blocks_sse2(input, visitor)
}

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
    let product = _mm_clmulepi64_si128(_mm_set_epi64x(0, bits.cast_signed()), _mm_set1_epi8(-1), 0);
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
    // SAFETY: SSE2 is part of every x86-64 processor. A byte is its own minimum with 0x1f when it
    // is below 0x20.
    let found = unsafe {
        let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"'.cast_signed()));
        let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\'.cast_signed()));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control))
    };
    (found != 0).then(|| found.trailing_zeros() as usize)
}
