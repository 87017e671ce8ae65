//! Octets that must never appear in a log.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Password or shared secret. Its `Debug` form reveals nothing, not even the length.
#[derive(Clone, Default)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Wraps the octets.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The octets themselves, for a computation only.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether both are equal. The time does not depend on where they differ. It compares digests, so that not even the lengths
    /// show.
    pub fn matches(&self, other: &[u8]) -> bool {
        Sha256::digest(&self.0).ct_eq(&Sha256::digest(other)).into()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("<secret>")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl Eq for Secret {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_shows_itself() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "<secret>");
    }

    #[test]
    fn equal_only_to_itself() {
        assert_eq!(Secret::new("a"), Secret::new("a"));
        assert_ne!(Secret::new("a"), Secret::new("ab"));
    }
}
