//! Hands inputs to the target `client`; what must hold is written there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| corvid_fuzzing::targets::client(data));
