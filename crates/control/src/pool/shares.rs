//! How much there is of a pool, and who has it.

use super::{Family, Pool};
use core::hash::Hash;
use std::collections::{BTreeMap, BTreeSet};

/// What a group has of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Nets that are lent to it.
    pub nets: u64,
    /// Units of these that its subscribers have.
    pub used: u64,
}

impl<F: Family, G: Copy + Eq + Hash + Ord> Pool<F, G> {
    /// How many units subscribers can have.
    pub fn size(&self) -> u64 {
        let skips_ends = F::SKIP_ENDS && self.net_units > 2;
        let of_net = u64::from(self.net_units) - if skips_ends { 2 } else { 0 };
        let end = self.first + self.net_count * u64::from(self.net_units);
        let own: BTreeSet<u64> = self.excluded.iter().copied().collect();
        let counted = |number: &u64| {
            let index = number.wrapping_sub(self.first) % u64::from(self.net_units);
            let is_end = index == 0 || index == u64::from(self.net_units) - 1;
            (self.first..end).contains(number) && !(skips_ends && is_end)
        };
        self.net_count * of_net - own.iter().filter(|number| counted(number)).count() as u64
    }

    /// What each group has of it.
    pub fn shares(&self) -> BTreeMap<G, Share> {
        let mut shares: BTreeMap<G, Share> = BTreeMap::new();
        for (_, lent) in &self.lent {
            let share = shares.entry(lent.group).or_default();
            share.nets += 1;
            share.used += u64::from(lent.used);
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ipv4Pool, Ipv6Pool};

    #[test]
    fn the_size_is_what_can_be_given_and_the_shares_are_what_was() {
        let own = ["10.0.0.1", "10.0.0.0", "10.0.0.1", "192.0.2.1"].map(|a| a.parse().unwrap());
        for length in [24, 25, 28, 30, 31, 32] {
            let prefix = "10.0.0.0/24".parse().unwrap();
            let mut pool: Ipv4Pool<u8> = Ipv4Pool::new(prefix, length, &own).unwrap();
            let given = std::iter::from_fn(|| pool.allocate(7).ok()).count() as u64;
            assert_eq!(pool.size(), given, "nets of /{length}");
            let share = pool.shares()[&7];
            assert_eq!((share.used, share.nets), (given, pool.lent() as u64));
        }
        let gateway = "2001:db8::/64".parse().unwrap();
        let prefix = "2001:db8::/48".parse().unwrap();
        let mut pool: Ipv6Pool<u8> = Ipv6Pool::new(prefix, 56, &[gateway]).unwrap();
        assert_eq!(pool.size(), 65_535);
        for n in 0..300 {
            pool.allocate((n % 2) as u8).unwrap();
        }
        let shares = pool.shares();
        assert_eq!(shares.len(), 2);
        assert_eq!(shares.values().map(|share| share.used).sum::<u64>(), 300);
    }
}
