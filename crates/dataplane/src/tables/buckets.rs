//! Token buckets by key, as many as fit: one for each access line, MAC address and so on of which packets come faster than it fills.
//!
//! A bucket that is full says nothing, so its place is free for another key. While all places of a set are taken, a new key takes that of
//! the bucket that will be full first: those that are exceeded most stay.
use crate::police::{Bucket, Rate};

/// Places of a set: with them, a set is one cache line.
const WAYS: usize = 4;

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Set {
    /// The keys' upper halves.
    keys: [u32; WAYS],
    buckets: [Bucket; WAYS],
}

const _: () = assert!(size_of::<Set>() == 64);

/// See the top of the file.
pub(crate) struct Buckets(Box<[Set]>);

impl Buckets {
    /// With so many places.
    pub fn new(places: usize) -> Self {
        let sets = (places / WAYS).next_power_of_two();
        Buckets((0..sets).map(|_| Set::default()).collect())
    }

    /// Takes a token of this key's bucket if there is one. Keys are even in all bits, and nobody can choose two that are alike.
    pub fn take(&mut self, key: u64, now: u64, rate: Rate) -> bool {
        let last = self.0.len() - 1;
        let set = &mut self.0[key as usize & last];
        let key = (key >> 32) as u32;
        let place = set.keys.iter().position(|there| *there == key);
        let place = place.unwrap_or_else(|| {
            let first = (0..WAYS).min_by_key(|way| set.buckets[*way]).unwrap_or(0);
            set.keys[first] = key;
            set.buckets[first] = Bucket::FULL;
            first
        });
        set.buckets[place].take(now, rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PuntRate;

    const SECOND: u64 = 1_000_000;

    fn rate(per_second: u32, burst: u32) -> Rate {
        Rate::new(PuntRate { per_second, burst }, SECOND)
    }

    /// A key that is even in all bits.
    fn key(n: u64) -> u64 {
        (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }

    #[test]
    fn each_key_has_its_own_bucket() {
        let mut buckets = Buckets::new(4096);
        for n in 0..500 {
            let taken = (0..10).filter(|_| buckets.take(key(n), 7, rate(10, 4)));
            assert_eq!(taken.count(), 4, "key {n}");
        }
        assert!(!buckets.take(key(0), 7, rate(10, 4)));
        assert!(buckets.take(key(0), 7 + SECOND / 10, rate(10, 4)));
    }

    #[test]
    fn whoever_exceeds_its_rate_keeps_its_bucket_whoever_else_comes() {
        let mut buckets = Buckets::new(4);
        let slow = rate(1, 8);
        let heavy = |buckets: &mut Buckets, now| {
            let taken = (0..20).filter(|_| buckets.take(key(0), now, slow));
            taken.count()
        };
        assert_eq!(heavy(&mut buckets, 1), 8);
        for n in 1..10_000 {
            buckets.take(key(n), 1, slow);
        }
        assert_eq!(heavy(&mut buckets, 1), 0);
        assert_eq!(heavy(&mut buckets, 1 + 3 * SECOND), 3);
    }
}
