//! VLANs that were moved to another worker.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use dataplane::{PortIndex, Relocation, SessionEntry, SessionIndex};

use super::Engine;
use crate::compile::CompiledSession;

fn outer_vlan(entry: &SessionEntry) -> u16 {
    entry.tags.outer.map_or(0, |tag| tag.vid)
}

impl<T: Copy> Engine<T> {
    /// Worker of a session: that of its VLAN, or of its PPPoE session id.
    pub(super) fn worker_of(&self, entry: &SessionEntry) -> u16 {
        let owner = self.owners.get(&(entry.port, outer_vlan(entry)));
        let of_id = || self.table.worker_of(entry.pppoe_session_id);
        owner.copied().unwrap_or_else(of_id)
    }

    /// Sessions of VLANs of a port that are not at a worker.
    pub fn to_move(
        &self,
        port: PortIndex,
        vlans: &[RangeInclusive<u16>],
        worker: u16,
    ) -> Vec<SessionIndex> {
        let sessions = self.table.iter().filter_map(|(index, session)| {
            let CompiledSession::Subscriber { entry, .. } = &session.compiled else {
                return None;
            };
            let vlan = outer_vlan(entry);
            let is_in = entry.port == port && vlans.iter().any(|range| range.contains(&vlan));
            (is_in && self.table.worker_at(index) != worker).then_some(index)
        });
        sessions.collect()
    }

    /// Number of subscribers with a rate for all their sessions that have one in VLANs of a port, and will have another one at another worker when
    /// these are at a worker. Both workers hold that rate, each for its own sessions.
    pub fn split_by_move(
        &self,
        port: PortIndex,
        vlans: &[RangeInclusive<u16>],
        worker: u16,
    ) -> usize {
        let (mut inside, mut elsewhere) = (HashSet::new(), HashSet::new());
        for (index, session) in self.table.iter() {
            let CompiledSession::Subscriber { entry, .. } = &session.compiled else {
                continue;
            };
            let vlan = outer_vlan(entry);
            let rates = &entry.packets;
            let rate = rates.subscriber_rate_up.or(rates.subscriber_rate_down);
            if entry.subscriber == 0 || rate.is_none() {
                continue;
            } else if entry.port == port && vlans.iter().any(|range| range.contains(&vlan)) {
                inside.insert(entry.subscriber);
            } else if self.table.worker_at(index) != worker {
                elsewhere.insert(entry.subscriber);
            }
        }
        inside.intersection(&elsewhere).count()
    }

    /// Says which workers have VLANs of a port: sessions that come later have places of theirs.
    pub fn set_owners(&mut self, port: PortIndex, workers: impl IntoIterator<Item = (u16, u16)>) {
        let owners = workers
            .into_iter()
            .map(|(vlan, worker)| ((port, vlan), worker));
        self.owners.extend(owners);
    }

    /// Makes VLANs a worker's: sessions that come later have places of that, and these sessions get some.
    pub fn relocate(
        &mut self,
        port: PortIndex,
        vlans: Vec<RangeInclusive<u16>>,
        worker: u16,
        sessions: Vec<SessionIndex>,
    ) -> Relocation {
        let all = vlans.iter().flat_map(|range| range.clone());
        self.set_owners(port, all.map(|vlan| (vlan, worker)));
        let moved = sessions.into_iter().filter_map(|index| {
            let place = self.table.relocate(index, worker)?;
            Some((index, place))
        });
        Relocation {
            port,
            sessions: moved.collect(),
            vlans,
            worker,
        }
    }
}
