//! See `fuzz::radius`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::radius::run(input));
