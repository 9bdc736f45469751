//! Hands inputs to the target `read`; what must hold is written there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| corvid_fuzzing::targets::read(data));
