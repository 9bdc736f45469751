//! Passes inputs to the target `cluster_records` of `corvid_fuzzing`, which documents its
//! invariants.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| corvid_fuzzing::targets::cluster_records(data));
