//! See `fuzz::dhcpv6`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::dhcpv6::run(input));
