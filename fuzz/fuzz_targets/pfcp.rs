//! See `fuzz::pfcp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::pfcp::run(input));
