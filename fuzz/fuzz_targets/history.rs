//! See `fuzz::history`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::history::run(input));
