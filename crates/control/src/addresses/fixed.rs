//! Prefixes outside of the pools, which AAA chose: no two sessions have overlapping ones.

use super::Net;
use crate::topology::InstanceId;
use ipnet::IpNet;
use std::collections::BTreeMap;

/// Every such prefix, and the session that holds it. One session may have prefixes within each other, such as its router's
/// address and the network of that.
#[derive(Default)]
pub(super) struct Fixed {
    holders: BTreeMap<Net, u32>,
    /// How many there are of each length. There are few lengths, so that few are looked for.
    lengths: BTreeMap<(InstanceId, Family, u8), usize>,
}

/// Whether it is IPv6.
type Family = bool;

fn length(net: Net) -> (InstanceId, Family, u8) {
    let is_ipv6 = matches!(net.net, IpNet::V6(_));
    (net.instance, is_ipv6, net.net.prefix_len())
}

impl Fixed {
    /// All of them.
    pub fn nets(&self) -> impl Iterator<Item = Net> {
        self.holders.keys().copied()
    }

    /// Gives a prefix to a session.
    ///
    /// # Errors
    /// The prefix of another session that it overlaps, or itself if the session has it.
    pub fn insert(&mut self, net: Net, holder: u32) -> Result<(), IpNet> {
        let mut others = self.overlapping_with_holders(net);
        if let Some((other, _)) = others.find(|(_, of)| *of != holder) {
            return Err(other);
        }
        drop(others);
        if self.holders.insert(net, holder).is_some() {
            return Err(net.net);
        }
        *self.lengths.entry(length(net)).or_default() += 1;
        Ok(())
    }

    /// Takes a prefix back; whether somebody had it.
    pub fn remove(&mut self, net: Net) -> bool {
        let had = self.holders.remove(&net).is_some();
        if had && let Some(count) = self.lengths.get_mut(&length(net)) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&length(net));
            }
        }
        had
    }

    /// Those that overlap a prefix, with the sessions that hold them.
    fn overlapping_with_holders(&self, net: Net) -> impl Iterator<Item = (IpNet, u32)> {
        let (instance, is_ipv6, own) = length(net);
        let shorter = self
            .lengths
            .range((instance, is_ipv6, 0)..(instance, is_ipv6, own));
        let around = shorter.filter_map(move |((_, _, length), _)| {
            let net = IpNet::new(net.net.network(), *length).ok()?.trunc();
            self.holders.get_key_value(&Net { instance, net })
        });
        let all = self.within(net).chain(around);
        all.map(|(net, of)| (net.net, *of))
    }

    /// Those within a prefix.
    fn within(&self, net: Net) -> impl Iterator<Item = (&Net, &u32)> {
        // ordered by address, then by length
        let at = |address, length| Net {
            net: IpNet::new(address, length).expect("a length of its family"),
            ..net
        };
        let first = at(net.net.network(), net.net.prefix_len());
        let last = at(net.net.broadcast(), net.net.max_prefix_len());
        self.holders.range(first..=last)
    }

    /// Those that overlap a prefix.
    pub fn overlapping(&self, net: Net) -> impl Iterator<Item = IpNet> {
        self.overlapping_with_holders(net).map(|(net, _)| net)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HERE: InstanceId = InstanceId(0);

    fn net(text: &str) -> Net {
        Net {
            instance: HERE,
            net: text.parse().unwrap(),
        }
    }

    #[test]
    fn prefixes_of_two_sessions_never_overlap() {
        let mut fixed = Fixed::default();
        let mut insert = |text, holder| fixed.insert(net(text), holder);
        assert_eq!(insert("192.0.2.0/24", 1), Ok(()));
        // A session's own lie within each other.
        assert_eq!(insert("192.0.2.9/32", 1), Ok(()));
        let within = Err("192.0.2.0/24".parse().unwrap());
        assert_eq!(insert("192.0.2.64/28", 2), within);
        assert_eq!(insert("192.0.0.0/16", 2), within);
        assert_eq!(insert("192.0.2.0/24", 2), within);
        assert_eq!(insert("192.0.2.0/24", 1), within, "it has it already");
        assert_eq!(insert("192.0.3.0/24", 2), Ok(()));
        assert_eq!(insert("::/0", 2), Ok(()), "another family");
        let elsewhere = Net {
            instance: InstanceId(1),
            ..net("192.0.2.0/24")
        };
        assert_eq!(fixed.insert(elsewhere, 2), Ok(()));
        assert!(fixed.remove(net("192.0.2.0/24")) && !fixed.remove(net("192.0.2.0/24")));
        assert_eq!(fixed.insert(net("192.0.2.64/28"), 2), Ok(()));
    }

    proptest! {
        /// As a comparison with each of the others says.
        #[test]
        fn overlaps_are_found_wherever_they_are(
            steps in prop::collection::vec((any::<bool>(), 0u32..4, 20u8..=32, 0u32..64), 1..60),
        ) {
            let (mut fixed, mut all) = (Fixed::default(), Vec::<(Net, u32)>::new());
            for (add, holder, length, last) in steps {
                let address = core::net::Ipv4Addr::from(0xc000_0200 + last);
                let prefix = IpNet::new(address.into(), length).unwrap().trunc();
                let net = Net { instance: HERE, net: prefix };
                if !add {
                    let before = all.len();
                    all.retain(|(other, _)| *other != net);
                    prop_assert_eq!(fixed.remove(net), all.len() < before);
                    continue;
                }
                let collides = |(other, of): &(Net, u32)| {
                    let overlap = other.net.contains(&prefix) || prefix.contains(&other.net);
                    *other == net || *of != holder && overlap
                };
                let free = !all.iter().any(collides);
                prop_assert_eq!(fixed.insert(net, holder).is_ok(), free);
                if free {
                    all.push((net, holder));
                }
            }
        }
    }
}
