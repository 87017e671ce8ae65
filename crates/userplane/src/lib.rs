//! User plane.
#![forbid(unsafe_code)]
pub mod device;
pub mod fib;
pub mod icmp;
pub mod netlink;
