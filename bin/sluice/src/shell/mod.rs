//! The interactive command line.

pub mod candidate;
pub mod complete;
pub mod pager;
pub mod pipe;
pub mod terminal;
