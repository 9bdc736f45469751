//! Passes inputs to the target `segments` of `corvid_fuzzing`, which documents its invariants.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| corvid_fuzzing::targets::segments(data));
