//! The interactive command line.

pub mod candidate;
pub mod complete;
pub mod pipe;
