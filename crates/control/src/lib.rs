//! Control plane.
pub mod bank;
pub mod pool;
pub mod store;
pub mod topology;
pub mod wheel;
