//! See `fuzz::gtpu`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::gtpu::run(input));
