//! What is booked about user planes, and how it is put right.

#[cfg(test)]
use super::ports::Change;
use super::{Request, UserPlanes};
use crate::addresses::Net;
#[cfg(test)]
use crate::topology::PortId;
use crate::topology::{GroupId, Seid, Topology, UserPlaneId};
use core::time::Duration;
use pfcp::FailReason;

impl UserPlanes {
    /// The requests that wait for an answer, by their tokens.
    pub fn requests(&self) -> impl Iterator<Item = (u64, &Request)> {
        let requests = self.requests.iter();
        requests.map(|(token, request)| (token as u64, request))
    }

    /// The tokens of the requests that PFCP has.
    pub fn open_tokens(&self) -> impl Iterator<Item = u64> {
        self.node.open_tokens()
    }

    /// Every net that a group is to announce.
    pub fn wanted_nets(&self) -> impl Iterator<Item = (GroupId, Net)> {
        let groups = self.nets.iter();
        groups.flat_map(|(group, nets)| nets.wanted.iter().map(|net| (*group, *net)))
    }

    /// Every net that a user plane announces for a group.
    pub fn told_nets(&self) -> impl Iterator<Item = (GroupId, Net)> {
        let groups = self.nets.iter();
        groups.flat_map(|(group, nets)| nets.told.keys().map(|net| (*group, *net)))
    }

    /// Whether a change of the group's nets is under way.
    pub fn is_telling(&self, group: GroupId) -> bool {
        let nets = self.nets.get(&group);
        nets.is_some_and(|nets| nets.under_way.is_some())
    }

    /// Sessions that wait to be put back or deleted.
    pub fn resync_queue(&self) -> impl Iterator<Item = Seid> {
        self.peers
            .values()
            .flat_map(|peer| peer.resync.iter().copied())
    }

    /// How many sessions are being put back.
    pub fn resyncing(&self, plane: UserPlaneId) -> usize {
        self.peer(plane).resyncing
    }

    /// Corrects how many sessions are being put back.
    pub fn set_resyncing(&mut self, plane: UserPlaneId, resyncing: usize) {
        self.peer_mut(plane).resyncing = resyncing;
    }

    /// Ends a request that PFCP does not have (any more), as one that was not answered.
    pub fn give_up(&mut self, now: Duration, token: u64, topology: &Topology) {
        self.on_answer(now, token, Err(FailReason::TimedOut), topology);
    }
}

/// Ways to break the books that nothing but a fault has.
#[cfg(test)]
impl UserPlanes {
    pub fn lose_port(&mut self, port: PortId) {
        self.defaults.remove(&port);
    }

    pub fn invent_request(&mut self, request: Request) {
        self.book(request);
    }

    pub fn lose_announcement(&mut self, group: GroupId) {
        self.nets.entry(group).or_default().told.pop_first();
    }

    pub fn invent_telling(&mut self, group: GroupId) {
        self.nets.entry(group).or_default().under_way = Some(Change::Remove(Vec::new()));
    }
}
