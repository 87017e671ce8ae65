//! Groups of neighbours that share what is sent to a destination (ECMP).
//!
//! A group has 512 buckets with a member each; a flow's hash picks the bucket. When a member goes its buckets go to the others, and
//! no other flow moves; when one comes it takes its share from all (RFC 2992 §1 wants that of a hash).
use crate::api::{AdjacencyIndex, Destination, GroupError, GroupIndex};
use crate::tables::fib::Target;
use core::sync::atomic::Ordering::Relaxed;
use dpdk::Words;
use std::collections::{BTreeMap, BTreeSet};

/// The most members of a group, of which one may be named several times, for more of the flows.
pub const MAX_MEMBERS: usize = 64;

const BUCKETS: usize = 512;

/// All groups. A clone is the same groups: the control thread has one to write, workers have one to read.
#[derive(Clone)]
pub(crate) struct Groups {
    buckets: Words,
    /// The members of each group, once each, in no order and with gaps: reverse paths are looked for among them.
    members: Words,
}

impl Groups {
    pub fn new(limit: u32) -> Result<Self, dpdk::Error> {
        Ok(Groups {
            buckets: Words::new(limit as usize * BUCKETS)?,
            members: Words::new(limit as usize * MAX_MEMBERS)?,
        })
    }

    /// The member for a flow; nothing if the group has none.
    #[inline(always)]
    pub fn member(&self, GroupIndex(index): GroupIndex, flow: u32) -> Target {
        let bucket = index as usize * BUCKETS + flow as usize % BUCKETS;
        let word = self
            .buckets
            .get(bucket)
            .map_or(0, |bucket| bucket.load(Relaxed));
        Target::of_word(word)
    }

    /// The members of a group.
    pub fn members(&self, GroupIndex(index): GroupIndex) -> impl Iterator<Item = AdjacencyIndex> {
        let from = index as usize * MAX_MEMBERS;
        let places = self.members.get(from..from + MAX_MEMBERS);
        let words = places.into_iter().flatten();
        words.filter_map(|word| Target::of_word(word.load(Relaxed)).adjacency())
    }

    /// Can the group have so many members?
    pub fn check(&self, index: GroupIndex, members: usize) -> Result<(), GroupError> {
        if index.0 as usize >= self.buckets.len() / BUCKETS {
            return Err(GroupError::NoPlace(index));
        }
        match members > MAX_MEMBERS {
            true => Err(GroupError::Members(members)),
            false => Ok(()),
        }
    }

    /// Sets the members of a group for which `check` was good, none to remove it.
    pub fn set(&self, index: GroupIndex, members: &[AdjacencyIndex]) {
        let from = index.0 as usize * BUCKETS;
        let buckets = &self.buckets[from..from + BUCKETS];
        let words = members.iter().map(|member| {
            let to = Destination::Adjacency(*member);
            Target::of(to).word()
        });
        self.list(index, words.clone());
        let held: Vec<u32> = buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        let new = share(&held, words);
        for (bucket, (new, held)) in buckets.iter().zip(new.into_iter().zip(held)) {
            if new != held {
                bucket.store(new, Relaxed);
            }
        }
    }

    /// Notes who is in a group. Those that stay keep their places: readers find them all the time.
    fn list(&self, GroupIndex(index): GroupIndex, members: impl Iterator<Item = u32>) {
        let from = index as usize * MAX_MEMBERS;
        let mut new = BTreeSet::from_iter(members);
        let places = self.members[from..from + MAX_MEMBERS].iter();
        let free: Vec<_> = places
            .filter(|place| !new.remove(&place.load(Relaxed)))
            .collect();
        for place in free {
            place.store(new.pop_first().unwrap_or(0), Relaxed);
        }
    }
}

/// Gives every member its share of the buckets, and moves as few of them as that takes.
fn share(held: &[u32], members: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
    let all = members.clone().count();
    if all == 0 {
        return vec![0; held.len()];
    }
    // What each is due, rounded down; what is left over goes first to those that have it already.
    let mut due = BTreeMap::<u32, usize>::new();
    members.for_each(|member| *due.entry(member).or_default() += 1);
    due.values_mut()
        .for_each(|weight| *weight = held.len() * *weight / all);
    let over = held.len() - due.values().sum::<usize>();
    let lacks = |(member, due): &(&u32, &mut usize)| {
        let has = held.iter().filter(|holder| holder == member).count();
        has <= **due
    };
    let (first, then): (Vec<_>, Vec<_>) = due.iter_mut().partition(|entry| !lacks(entry));
    let more = first.into_iter().chain(then).take(over);
    more.for_each(|(_, due)| *due += 1);
    let mut shared: Vec<u32> = held
        .iter()
        .map(|holder| match due.get_mut(holder) {
            Some(due) if *due > 0 => {
                *due -= 1;
                *holder
            }
            _ => 0,
        })
        .collect();
    let mut open = shared.iter_mut().filter(|holder| **holder == 0);
    while due.values().any(|due| *due > 0) {
        for (member, due) in due.iter_mut().filter(|(_, due)| **due > 0) {
            *due -= 1;
            if let Some(bucket) = open.next() {
                *bucket = *member;
            }
        }
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupIndex = GroupIndex(3);

    fn held(groups: &Groups) -> Vec<Option<Destination>> {
        let flows = 0..BUCKETS as u32;
        flows
            .map(|flow| groups.member(GROUP, flow).destination())
            .collect()
    }

    fn set(groups: &Groups, members: &[u32]) -> Vec<Option<Destination>> {
        let members: Vec<_> = members.iter().copied().map(AdjacencyIndex).collect();
        groups.check(GROUP, members.len()).unwrap();
        groups.set(GROUP, &members);
        held(groups)
    }

    fn to(member: u32) -> Option<Destination> {
        Some(Destination::Adjacency(AdjacencyIndex(member)))
    }

    fn share_of(held: &[Option<Destination>], member: u32) -> usize {
        held.iter().filter(|holder| **holder == to(member)).count()
    }

    fn moved(before: &[Option<Destination>], after: &[Option<Destination>]) -> usize {
        before.iter().zip(after).filter(|(b, a)| b != a).count()
    }

    #[test]
    fn members_have_equal_shares_and_only_the_flows_that_must_move_do() {
        let groups = Groups::new(8).unwrap();
        let mut members: Vec<u32> = vec![0];
        let mut before = set(&groups, &members);
        for n in 1..64 {
            members.push(n);
            let after = set(&groups, &members);
            let (least, most) = (BUCKETS / members.len(), BUCKETS.div_ceil(members.len()));
            for member in &members {
                let share = share_of(&after, *member);
                assert!((least..=most).contains(&share), "{member} of {n}: {share}");
            }
            assert_eq!(moved(&before, &after), share_of(&after, n), "{n} came");
            before = after;
        }
        while members.len() > 1 {
            let gone = members.remove(members.len() * 5 / 8);
            let after = set(&groups, &members);
            assert_eq!(
                moved(&before, &after),
                share_of(&before, gone),
                "{gone} went"
            );
            before = after;
        }
        assert_eq!(set(&groups, &[]), [None; BUCKETS]);
    }

    #[test]
    fn the_members_are_known_and_those_that_stay_keep_their_places() {
        let groups = Groups::new(8).unwrap();
        let members = |of: &Groups| of.members(GROUP).map(|m| m.0).collect::<Vec<_>>();
        set(&groups, &[7, 9, 7, 11]);
        assert_eq!(members(&groups), [7, 9, 11]);
        set(&groups, &[11, 3, 9]);
        assert_eq!(members(&groups), [3, 9, 11]);
        set(&groups, &[11]);
        assert_eq!(members(&groups), [11]);
        assert_eq!(groups.members(GroupIndex(2)).count(), 0);
        set(&groups, &[]);
        assert_eq!(groups.members(GROUP).count(), 0);
    }

    #[test]
    fn who_is_named_twice_has_twice_as_much() {
        let groups = Groups::new(8).unwrap();
        let held = set(&groups, &[7, 9, 7]);
        assert_eq!((share_of(&held, 7), share_of(&held, 9)), (342, 170));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let groups = Groups::new(4).unwrap();
        let beyond = GroupIndex(4);
        assert_eq!(groups.check(GROUP, 65), Err(GroupError::Members(65)));
        assert_eq!(groups.check(beyond, 0), Err(GroupError::NoPlace(beyond)));
        assert_eq!(groups.check(GROUP, 64), Ok(()));
        assert_eq!(groups.member(beyond, 7), Target::NONE);
    }
}
