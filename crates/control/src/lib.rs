//! Control plane.
pub mod addresses;
pub mod bank;
pub mod counters;
pub mod pool;
pub mod store;
pub mod topology;
pub mod wheel;
