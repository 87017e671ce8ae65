//! Tunnel Endpoint Identifiers (TS 29.281 §5.1), the same in both directions of a tunnel.
//!
//! GTP-U has no authentication: whoever names a tunnel's TEID with a forged source address speaks for its session. So TEIDs cannot be
//! guessed: they are keyed hashes of what they belong to. The store keeps the key, so that a session has the same TEID after a
//! restart, and on each user plane that its subscriber group may be on.

use crate::topology::{GroupId, PortId, Seid};
use sha2::{Digest, Sha256};

/// Bit of the TEIDs of access ports' default sessions. Those of subscribers' sessions do not have it.
const OF_PORT: u32 = 1 << 31;
/// Bits of a session's index in the TEIDs of earlier versions.
const INDEX_BITS: u32 = 20;

/// Source of TEIDs.
#[derive(Clone, Debug)]
pub(crate) struct Teids {
    pub key: [u8; 32],
    /// Last generation of sessions that began under an earlier version. They keep their TEIDs, which consist of group and index.
    pub plain_until: u64,
    /// Ports below this number were known to an earlier version. Their default sessions keep their TEIDs, by which a user plane of that
    /// time finds the default session that a new one replaces.
    pub plain_ports: u16,
}

impl Teids {
    /// TEID of a session. Another session may have it by chance: then the next generation is tried.
    pub fn of_session(&self, seid: Seid, group: GroupId) -> u32 {
        match seid.generation() <= self.plain_until {
            true => (u32::from(group.0) + 1) << INDEX_BITS | seid.index(),
            false => (self.hash(seid.0, 0) & !OF_PORT).max(1),
        }
    }

    /// TEID of an access port's default session that is not taken.
    pub fn of_port(&self, port: PortId, is_taken: impl Fn(u32) -> bool) -> u32 {
        if port.0 < self.plain_ports {
            return u32::from(port.0) + 1;
        }
        let port = Seid::of_port(port).0;
        let teids = (0..=u32::MAX).map(|attempt| self.hash(port, attempt) | OF_PORT);
        let mut free = teids.filter(|teid| !is_taken(*teid));
        free.next().expect("there are fewer ports than TEIDs")
    }

    /// The input always has the same length, so that a hash with the key in front is a keyed one.
    fn hash(&self, seid: u64, attempt: u32) -> u32 {
        let hash = Sha256::new()
            .chain_update(self.key)
            .chain_update(seid.to_be_bytes())
            .chain_update(attempt.to_be_bytes())
            .finalize();
        u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn teids(key: u8) -> Teids {
        Teids {
            key: [key; 32],
            plain_until: 41,
            plain_ports: 0,
        }
    }

    #[test]
    fn only_sessions_of_an_earlier_version_have_teids_that_can_be_guessed() {
        let group = GroupId(2);
        assert_eq!(teids(1).of_session(Seid::new(41, 5), group), 0x30_0005);
        let new = |key, n: u64| teids(key).of_session(Seid::new(42 + n, 5 + n as u32), group);
        let all: BTreeSet<u32> = (0..10_000).map(|n| new(1, n)).collect();
        // By chance two of them may be the same: in one of 40 runs with other keys.
        assert!(all.len() >= 9_998);
        // Each bit but the first is set in about half of them, and another key gives others.
        for bit in 0..31 {
            let set = all.iter().filter(|teid| *teid >> bit & 1 == 1).count();
            assert!((4_700..5_300).contains(&set), "bit {bit}: {set}");
        }
        assert!((0..100).all(|n| new(1, n) != new(2, n) && new(1, n) & OF_PORT == 0));
        assert_eq!(new(1, 7), new(1, 7), "it stays the same");
    }

    #[test]
    fn a_port_s_teid_is_no_other_port_s_and_no_session_s() {
        let teids = teids(1);
        let first = teids.of_port(PortId(0), |_| false);
        let second = teids.of_port(PortId(0), |teid| teid == first);
        assert!(first != second && first & second & OF_PORT != 0);
        assert_eq!(teids.of_port(PortId(0), |_| false), first);
        assert_ne!(teids.of_port(PortId(1), |_| false), first);
    }

    #[test]
    fn ports_of_an_earlier_version_keep_their_teids() {
        let upgraded = Teids {
            plain_ports: 2,
            ..teids(1)
        };
        let of = |teids: &Teids, port| teids.of_port(PortId(port), |_| false);
        assert_eq!([0, 1].map(|port| of(&upgraded, port)), [1, 2]);
        assert_eq!(of(&upgraded, 2), of(&teids(1), 2));
    }
}
