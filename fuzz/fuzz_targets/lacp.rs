//! See `fuzz::lacp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::lacp::run(input));
