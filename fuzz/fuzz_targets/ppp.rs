//! See `fuzz::ppp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::ppp::run(input));
