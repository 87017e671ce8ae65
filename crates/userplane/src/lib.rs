//! User plane.
#![forbid(unsafe_code)]
pub mod compile;
pub mod device;
pub mod engine;
pub mod fib;
pub mod icmp;
pub mod netlink;
pub mod table;
