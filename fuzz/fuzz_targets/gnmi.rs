//! See `fuzz::gnmi`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::gnmi::run(input));
