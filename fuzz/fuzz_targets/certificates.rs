//! Hands inputs to the target `certificates`; what must hold is written there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| corvid_fuzzing::targets::certificates(data));
