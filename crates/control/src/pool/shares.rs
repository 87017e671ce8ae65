//! Shares of groups in a pool.

use super::Pool;
use core::hash::Hash;
use std::collections::BTreeMap;

/// Share of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Blocks that are allocated to it.
    pub nets: u64,
    /// Units of these that its subscribers have.
    pub used: u64,
}

impl<G: Copy + Eq + Hash + Ord> Pool<G> {
    /// Shares of the groups that have blocks.
    pub fn shares(&self) -> BTreeMap<G, Share> {
        let groups = self.groups.iter();
        groups.map(|(group, of)| (*group, of.share)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pool, PoolSettings};

    #[test]
    fn the_size_is_what_can_be_given_and_the_shares_are_what_was() {
        let own = ["10.0.0.1", "10.0.0.0", "10.0.0.1", "192.0.2.1"].map(|a| a.parse().unwrap());
        let excluded = "10.0.0.100".parse().unwrap()..="10.0.0.140".parse().unwrap();
        for length in [24, 25, 28, 30, 31, 32] {
            let mut pool: Pool<u8> = Pool::new(&PoolSettings {
                own: own.to_vec(),
                excluded: vec![excluded.clone()],
                ..PoolSettings::new("10.0.0.0/24".parse().unwrap(), length, 32)
            })
            .unwrap();
            let given = std::iter::from_fn(|| pool.allocate(7).ok()).count() as u64;
            assert_eq!(pool.size(), given, "blocks of /{length}");
            let share = pool.shares()[&7];
            assert_eq!((share.used, share.nets), (given, pool.lent.len() as u64));
        }
        let mut pool: Pool<u8> = Pool::new(&PoolSettings {
            own: vec!["2001:db8::1".parse().unwrap()],
            ..PoolSettings::new("2001:db8::/48".parse().unwrap(), 56, 64)
        })
        .unwrap();
        assert_eq!(pool.size(), 65_535);
        for n in 0..300 {
            pool.allocate((n % 2) as u8).unwrap();
        }
        let shares = pool.shares();
        assert_eq!(shares.len(), 2);
        assert_eq!(shares.values().map(|share| share.used).sum::<u64>(), 300);
    }
}
