//! See `fuzz::discovery`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::discovery::run(input));
