//! See `fuzz::classify`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::classify::run(input));
