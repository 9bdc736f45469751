//! Hands inputs to the target `tls_records`; what must hold is written there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| corvid_fuzzing::targets::tls_records(data));
