//! Control plane.
pub mod bank;
pub mod topology;
pub mod pool; pub mod store; pub mod wheel;
