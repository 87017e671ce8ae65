//! User plane.
#![forbid(unsafe_code)]
pub mod device;
pub mod fib;
pub mod netlink;
