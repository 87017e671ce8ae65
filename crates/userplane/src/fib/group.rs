//! Groups of next hops that flows are spread among. Routes with the same next hops share one, which is there for as long as a
//! prefix uses it: a full table by two routers has one group.

use std::collections::HashMap;
use std::net::IpAddr;

use super::{AdjacencyId, Command, Fib, Target};

/// The index of a group, as the dataplane knows it.
pub type GroupId = u32;

/// The most groups that are kept; a route for which there is none leads to the first of its next hops, and is counted.
pub const MAX_GROUPS: usize = 1024;
/// The most next hops of a group; further ones are left out. Weights are rounded so that their shares fit.
pub const MAX_WAYS: usize = dataplane::MAX_MEMBERS;

#[derive(Debug)]
struct Group {
    /// In order; one is named as often as it has shares.
    members: Vec<AdjacencyId>,
    /// Prefixes that use it.
    users: usize,
}

/// The groups that there are.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: slab::Slab<Group>,
    by_members: HashMap<Vec<AdjacencyId>, GroupId>,
    /// Routes that found no room for their group.
    pub(super) refused: u64,
}

impl Groups {
    /// The next hops of a group.
    pub fn members(&self, id: GroupId) -> &[AdjacencyId] {
        let group = self.all.get(id as usize);
        group.map_or(&[], |group| &group.members)
    }

    /// How many groups a next hop is in, and how many prefixes use these.
    pub fn of(&self, id: AdjacencyId) -> (usize, usize) {
        let groups = self.all.iter().map(|(_, group)| group);
        let with = groups.filter(|group| group.members.binary_search(&id).is_ok());
        with.fold((0, 0), |(n, users), group| (n + 1, users + group.users))
    }
}

impl Fib {
    /// Routes that found no room for their group.
    pub fn groups_refused(&self) -> u64 {
        self.groups.refused
    }

    /// Where a route by several routers leads: to a group, or to the one router that is left.
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
        // A group uses each of its next hops once.
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

    /// Where a route by several routers leads if everything was done; else somewhere that no route leads.
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

    /// The groups that the dataplane was told of, with their members.
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

/// How many of at most [`MAX_WAYS`] shares each of so many weights gets, at least one.
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
