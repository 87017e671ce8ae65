//! Emulated homes for the lab and for load.
#![forbid(unsafe_code)]

mod pace;
mod traffic;

pub use pace::Pace;
pub use traffic::{Arrival, Counts, Label, Party, Verdict, Verifier};

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Family; 2] = [Family::V4, Family::V6];
}
