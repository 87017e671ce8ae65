//! Octets by home: one thread counts, any other may read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Octets of the IP packets that arrived from each home, or at each home.
#[derive(Clone, Debug)]
pub struct OctetsByHome(Arc<[AtomicU64]>);

impl OctetsByHome {
    /// Nothing has arrived yet.
    pub fn new(homes: usize) -> Self {
        OctetsByHome((0..homes).map(|_| AtomicU64::new(0)).collect())
    }

    /// A packet of so many octets arrived.
    pub fn add(&self, home: u32, octets: usize) {
        self.0[home as usize].fetch_add(octets as u64, Ordering::Relaxed);
    }

    /// What has arrived so far.
    pub fn read(&self) -> Vec<u64> {
        let octets = self.0.iter().map(|octets| octets.load(Ordering::Relaxed));
        octets.collect()
    }
}
