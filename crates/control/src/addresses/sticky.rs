//! What subscribers had from pools, so that they get it again.

use super::Net;
use crate::subscribers::Identity;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Maximum number of addresses and prefixes of one subscriber: those of two sessions.
const MOST_NETS: usize = 8;

/// Addresses and prefixes of subscribers whose sessions have ended. The subscriber that ended the longest ago is forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Sticky {
    by_subscriber: HashMap<Arc<Identity>, Had>,
    by_age: BTreeMap<u64, Arc<Identity>>,
    next_age: u64,
}

#[derive(Debug)]
struct Had {
    age: u64,
    /// The latest first.
    nets: Vec<Net>,
}

impl Sticky {
    /// Remembers what a subscriber had, for at most so many subscribers. Returns whether another one was forgotten for it.
    pub fn remember(
        &mut self,
        of: &Identity,
        nets: impl Iterator<Item = Net>,
        most: usize,
    ) -> bool {
        let mut nets: Vec<Net> = nets.collect();
        if nets.is_empty() {
            return false;
        }
        if let Some(before) = self.by_subscriber.remove(of) {
            self.by_age.remove(&before.age);
            let older = before.nets.into_iter();
            let older: Vec<Net> = older.filter(|net| !nets.contains(net)).collect();
            nets.extend(older);
        }
        nets.truncate(MOST_NETS);
        let age = self.next_age;
        self.next_age += 1;
        let of = Arc::new(of.clone());
        self.by_age.insert(age, of.clone());
        self.by_subscriber.insert(of, Had { age, nets });
        let is_full = self.by_age.len() > most;
        self.keep(most);
        is_full
    }

    /// Forgets all but so many subscribers, the longest gone first.
    pub fn keep(&mut self, most: usize) {
        while self.by_age.len() > most
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_subscriber.remove(&oldest);
        }
    }

    /// What a subscriber had, the latest first.
    pub fn of(&self, subscriber: &Identity) -> &[Net] {
        let had = self.by_subscriber.get(subscriber);
        had.map_or(&[], |had| &had.nets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::InstanceId;

    fn net(last: u8) -> Net {
        let net = core::net::IpAddr::from([10, 0, 0, last]).into();
        let instance = InstanceId(0);
        Net { instance, net }
    }

    fn home(name: &str) -> Identity {
        Identity::User(name.as_bytes().into())
    }

    #[test]
    fn the_latest_come_first_and_the_oldest_subscribers_go() {
        let mut sticky = Sticky::default();
        let mut remember = |name: &str, nets: &[u8]| {
            let nets = nets.iter().map(|last| net(*last));
            sticky.remember(&home(name), nets, 2)
        };
        let full = [
            remember("alice", &[1, 2]),
            remember("bob", &[3]),
            remember("alice", &[4, 1]),
            remember("carol", &[]),
        ];
        assert_eq!(full, [false; 4]);
        let of = |sticky: &Sticky, name: &str| sticky.of(&home(name)).to_vec();
        assert_eq!(of(&sticky, "alice"), [net(4), net(1), net(2)]);
        assert_eq!(of(&sticky, "bob"), [net(3)]);
        assert!(sticky.remember(&home("carol"), (30..50).map(net), 2));
        assert_eq!(of(&sticky, "carol").len(), MOST_NETS, "of one session");
        assert_eq!(of(&sticky, "bob"), [], "the longest gone");
        for last in 10..20 {
            sticky.remember(&home("alice"), [net(last)].into_iter(), 2);
        }
        assert_eq!(of(&sticky, "alice").len(), MOST_NETS);
        assert_eq!(of(&sticky, "alice")[0], net(19));
        sticky.keep(1);
        assert_eq!((of(&sticky, "carol").len(), sticky.by_age.len()), (0, 1));
    }
}
