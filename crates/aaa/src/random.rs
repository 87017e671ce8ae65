//! Unpredictable numbers from the client's seed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// HMAC-SHA-256 of a counter, with the seed as key. A request authenticator must be unpredictable and must never repeat (RFC 2865
/// §3): whoever can predict it can prepare replies.
#[derive(Clone)]
pub(crate) struct Random {
    key: Hmac<Sha256>,
    counter: u64,
}

impl Random {
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        Self {
            key: Hmac::new_from_slice(seed).expect("HMAC takes keys of any length"),
            counter: 0,
        }
    }

    fn block(&mut self) -> [u8; 32] {
        self.counter += 1;
        self.key
            .clone()
            .chain_update(self.counter.to_be_bytes())
            .finalize()
            .into_bytes()
            .into()
    }

    pub(crate) fn authenticator(&mut self) -> [u8; 16] {
        *self.block().first_chunk().expect("a block has 32 octets")
    }

    pub(crate) fn number(&mut self) -> u32 {
        u32::from_be_bytes(*self.block().first_chunk().expect("a block has 32 octets"))
    }

    /// Between 0 and 1.
    pub(crate) fn share(&mut self) -> f64 {
        f64::from(self.number()) / f64::from(u32::MAX)
    }

    /// Between -0.1 and 0.1 (RAND of RFC 5080 §2.2.1).
    pub(crate) fn jitter(&mut self) -> f64 {
        self.share() * 0.2 - 0.1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn never_repeats_and_follows_the_seed() {
        let mut random = Random::new(&[1; 32]);
        let numbers: HashSet<[u8; 16]> = (0..1000).map(|_| random.authenticator()).collect();
        assert_eq!(numbers.len(), 1000);
        assert!(!numbers.contains(&Random::new(&[2; 32]).authenticator()));
    }

    #[test]
    fn jitter_stays_within_a_tenth_and_uses_it() {
        let mut random = Random::new(&[1; 32]);
        let jitters: Vec<f64> = (0..1000).map(|_| random.jitter()).collect();
        assert!(jitters.iter().all(|jitter| jitter.abs() <= 0.1));
        assert!(
            jitters.iter().any(|&jitter| jitter > 0.09)
                && jitters.iter().any(|&jitter| jitter < -0.09)
        );
    }
}
