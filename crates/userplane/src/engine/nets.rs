//! Prefixes that control planes want announced.

use std::net::SocketAddr;
use std::time::Duration;

use dataplane::InstanceIndex;
use tracing::info;

use super::{Engine, Now, Output};
use crate::announcement::Announcement;

/// Time for a returned control plane to announce its prefixes of every port again, even if some requests are lost.
const TELLING: Duration = Duration::from_secs(10);

impl<T: Copy> Engine<T> {
    /// Starts the wait for a returned control plane. It establishes its default sessions again, and only they carry the prefixes.
    pub(super) fn await_nets(&mut self, now: Now, peer: SocketAddr) {
        let peer = self.peers.entry(peer).or_default();
        peer.telling = Some(now.monotonic + TELLING);
    }

    /// Keeps prefixes announced while their control plane has time to announce them again. Without that, packets to sessions in
    /// these prefixes would be lost. A default session that is replaced later withdraws its prefixes at once.
    pub(super) fn hold_nets(&mut self, peer: SocketAddr, nets: Vec<(InstanceIndex, Announcement)>) {
        if self.peers.get(&peer).is_none_or(|p| p.telling.is_none()) {
            return;
        }
        let held = self.held.entry(peer).or_default();
        let new: Vec<_> = nets.into_iter().filter(|net| held.insert(*net)).collect();
        self.change_nets(true, &[], &new);
    }

    /// Withdraws the held prefixes that a control plane no longer wants.
    pub(super) fn release_nets(&mut self, peer: SocketAddr) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.telling = None;
        }
        let held = self.held.remove(&peer).unwrap_or_default();
        self.change_nets(true, &Vec::from_iter(held), &[]);
    }

    /// Next time at which a control plane's time to announce its prefixes ends.
    pub(super) fn telling_ends(&self) -> Option<Duration> {
        self.peers.values().filter_map(|peer| peer.telling).min()
    }

    pub(super) fn end_telling(&mut self, now: Now) {
        let due = |at: Option<Duration>| at.is_some_and(|at| at <= now.monotonic);
        let late = self.peers.iter().filter(|(_, peer)| due(peer.telling));
        let late: Vec<SocketAddr> = late.map(|(address, _)| *address).collect();
        late.into_iter().for_each(|peer| self.release_nets(peer));
    }

    /// Prefixes of an instance that sessions announce.
    pub fn announced(&self, instance: InstanceIndex) -> impl Iterator<Item = Announcement> + '_ {
        let nets = self.nets.keys().filter(move |(of, _)| *of == instance);
        nets.map(|(_, net)| *net)
    }

    /// Announces prefixes that no session announced before, and then withdraws those that no session announces now. Both lists are
    /// sorted. Only the prefixes of default sessions are logged; there may be very many others.
    pub(super) fn change_nets(
        &mut self,
        of_group: bool,
        old: &[(InstanceIndex, Announcement)],
        new: &[(InstanceIndex, Announcement)],
    ) {
        for net in new.iter().filter(|net| old.binary_search(net).is_err()) {
            let users = self.nets.entry(*net).or_insert(0);
            *users += 1;
            if *users == 1 {
                if of_group {
                    info!(net = %net.1, "subscriber prefix announced");
                }
                self.outputs.push_back(Output::AddNet(net.0, net.1));
            }
        }
        for net in old.iter().filter(|net| new.binary_search(net).is_err()) {
            let Some(users) = self.nets.get_mut(net) else {
                continue;
            };
            *users -= 1;
            if *users == 0 {
                if of_group {
                    info!(net = %net.1, "subscriber prefix withdrawn");
                }
                self.nets.remove(net);
                self.outputs.push_back(Output::RemoveNet(net.0, net.1));
            }
        }
    }
}
