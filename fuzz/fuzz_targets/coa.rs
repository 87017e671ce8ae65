//! See `fuzz::coa`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::coa::run(input));
