//! Octets by home and address family: one thread counts, any other may read.

use cpe::Family;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Octets of the IP packets that arrived from each home, or at each home.
#[derive(Clone, Debug)]
pub struct OctetsByHome(Arc<[[AtomicU64; 2]]>);

impl OctetsByHome {
    /// Nothing has arrived yet.
    pub fn new(homes: usize) -> Self {
        OctetsByHome((0..homes).map(|_| Default::default()).collect())
    }

    /// A packet of so many octets arrived.
    pub fn add(&self, home: u32, family: Family, octets: usize) {
        let counter = &self.0[home as usize][family as usize];
        counter.fetch_add(octets as u64, Ordering::Relaxed);
    }

    /// What has arrived so far: IPv4 and IPv6.
    pub fn read(&self) -> Vec<[u64; 2]> {
        let read = |octets: &AtomicU64| octets.load(Ordering::Relaxed);
        let octets = self.0.iter().map(|families| families.each_ref().map(read));
        octets.collect()
    }
}
