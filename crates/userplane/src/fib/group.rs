//! Groups of next hops for load balancing. Routes with the same next hops share a group, which exists for as long as a prefix
//! uses it. A full table by two routers has one group.

use std::collections::HashMap;
use std::net::IpAddr;

use super::{AdjacencyId, Command, Fib, Target};

/// Index of a group in the dataplane.
pub type GroupId = u32;

/// Maximum number of groups. Above it, a route leads to the first of its next hops, and is counted.
pub const MAX_GROUPS: usize = 1024;
/// Maximum number of next hops in a group; further ones are left out. Weights are rounded so that their shares fit.
pub const MAX_WAYS: usize = dataplane::MAX_MEMBERS;

#[derive(Debug)]
struct Group {
    /// Sorted. A next hop appears once for each of its shares.
    members: Vec<AdjacencyId>,
    /// Prefixes that use it.
    users: usize,
}

/// All groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: slab::Slab<Group>,
    by_members: HashMap<Vec<AdjacencyId>, GroupId>,
    /// Routes whose group was rejected for lack of room.
    pub(super) refused: u64,
}

impl Groups {
    /// Next hops of a group.
    pub fn members(&self, id: GroupId) -> &[AdjacencyId] {
        let group = self.all.get(id as usize);
        group.map_or(&[], |group| &group.members)
    }

    /// Number of groups that a next hop is in, and number of prefixes that use them.
    pub fn of(&self, id: AdjacencyId) -> (usize, usize) {
        let groups = self.all.iter().map(|(_, group)| group);
        let with = groups.filter(|group| group.members.binary_search(&id).is_ok());
        with.fold((0, 0), |(n, users), group| (n + 1, users + group.users))
    }
}

impl Fib {
    /// Routes whose group was rejected for lack of room.
    pub fn groups_refused(&self) -> u64 {
        self.groups.refused
    }

    /// Target of a route by several routers: a group, or the one router that is left.
    pub(super) fn acquire_any(&mut self, hops: &[((u32, IpAddr), u16)]) -> Option<Target> {
        let hops = hops.iter().take(MAX_WAYS);
        let known = hops.filter_map(|&((link, router), weight)| {
            let id = self.acquire(link, router)?;
            Some((id, weight))
        });
        let known: Vec<(AdjacencyId, u16)> = known.collect();
        let (&(first, _), rest) = known.split_first()?;
        if rest.iter().all(|(id, _)| *id == first) {
            rest.iter().for_each(|(id, _)| self.release(*id));
            return Some(Target::Adjacency(first));
        }
        let members = members(&known);
        let group = self.groups.by_members.get(&members).copied();
        if let Some(id) = group {
            self.groups.all[id as usize].users += 1;
            known.iter().for_each(|(id, _)| self.release(*id));
            return Some(Target::Group(id));
        }
        if self.groups.all.len() >= MAX_GROUPS {
            self.groups.refused += 1;
            rest.iter().for_each(|(id, _)| self.release(*id));
            return Some(Target::Adjacency(first));
        }
        // A group counts as one user of each of its next hops.
        for (place, (id, _)) in known.iter().enumerate() {
            if known[..place].iter().any(|(other, _)| other == id) {
                self.release(*id);
            }
        }
        let id = self.groups.all.insert(Group {
            members: members.clone(),
            users: 1,
        });
        let id = id as GroupId;
        self.groups.by_members.insert(members.clone(), id);
        self.commands.push(Command::SetGroup(id, members));
        Some(Target::Group(id))
    }

    pub(super) fn release_group(&mut self, id: GroupId) {
        let group = &mut self.groups.all[id as usize];
        group.users -= 1;
        if group.users > 0 {
            return;
        }
        let mut members = self.groups.all.remove(id as usize).members;
        self.groups.by_members.remove(&members);
        self.commands.push(Command::RemoveGroup(id));
        members.dedup();
        members.into_iter().for_each(|id| self.release(id));
    }

    /// Target of a route by several routers in the current state; if there is none, a target that no route has.
    pub(super) fn known_any(&self, hops: &[((u32, IpAddr), u16)]) -> Target {
        let hops = hops.iter().take(MAX_WAYS);
        let known = hops.filter_map(|(hop, weight)| Some((*self.by_hop.get(hop)?, *weight)));
        let known: Vec<(AdjacencyId, u16)> = known.collect();
        let Some((&(first, _), rest)) = known.split_first() else {
            return Target::OnLink(u16::MAX);
        };
        if rest.iter().all(|(id, _)| *id == first) {
            return Target::Adjacency(first);
        }
        match self.groups.by_members.get(&members(&known)) {
            Some(id) => Target::Group(*id),
            None if self.groups.all.len() >= MAX_GROUPS => Target::Adjacency(first),
            None => Target::OnLink(u16::MAX),
        }
    }

    /// The dataplane's groups with their members.
    pub fn groups(&self) -> impl Iterator<Item = (GroupId, &[AdjacencyId])> {
        let all = self.groups.all.iter();
        all.map(|(id, group)| (id as GroupId, &group.members[..]))
    }
}

/// Next hops in order, each as often as it has shares.
fn members(hops: &[(AdjacencyId, u16)]) -> Vec<AdjacencyId> {
    let shares = shares(&hops.iter().map(|(_, weight)| *weight).collect::<Vec<_>>());
    let repeated = hops.iter().zip(shares);
    let repeated = repeated.flat_map(|((id, _), shares)| std::iter::repeat_n(*id, shares));
    let mut members: Vec<AdjacencyId> = repeated.collect();
    members.sort_unstable();
    members
}

/// Number of shares for each weight: at least one each, at most [`MAX_WAYS`] in total.
fn shares(weights: &[u16]) -> Vec<usize> {
    let weight = |w: &u16| usize::from(*w).max(1);
    let divisor = weights.iter().map(weight).reduce(gcd).unwrap_or(1);
    let mut shares: Vec<usize> = weights.iter().map(|w| weight(w) / divisor).collect();
    let sum: usize = shares.iter().sum();
    if sum > MAX_WAYS {
        for share in &mut shares {
            *share = (*share * MAX_WAYS / sum).max(1);
        }
        while shares.iter().sum::<usize>() > MAX_WAYS
            && let Some(largest) = shares.iter_mut().max()
        {
            *largest -= 1;
        }
    }
    shares
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_become_shares() {
        assert_eq!(shares(&[1, 1]), [1, 1]);
        assert_eq!(shares(&[200, 100]), [2, 1]);
        assert_eq!(shares(&[255, 1]), [63, 1]);
        assert_eq!(shares(&[1; 64]), [1; 64]);
        let many = shares(&[[1000; 32], [1; 32]].concat());
        assert_eq!(many.iter().sum::<usize>(), MAX_WAYS);
        assert!(many.iter().all(|share| *share >= 1));
    }
}
