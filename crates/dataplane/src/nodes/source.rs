//! Node `source`: may a packet from the core have its source, by the routes (RFC 3704 §2). Only ports that say so pass packets to it.
//!
//! Out: those that may → `lookup`. Drops: `unrouted-source`, `inside-source`, `reverse-path`.
use crate::api::{Destination, PortIndex, SourceCheck};
use crate::drops::DropReason;
use crate::tables::adjacency::Adjacencies;
use crate::tables::fib::Target;
use crate::tables::groups::Groups;

/// Why a packet is dropped that came by an interface with such a check, if the route to its source leads to `back`; `None`: it is not.
pub(crate) fn refusal(
    check: SourceCheck,
    interface: PortIndex,
    back: Target,
    groups: &Groups,
    adjacencies: &Adjacencies,
) -> Option<DropReason> {
    if check == SourceCheck::Off {
        return None;
    }
    let is_here = |index| adjacencies.is_on(index, interface);
    let returns = match back.destination() {
        None | Some(Destination::Discard) => return Some(DropReason::UnroutedSource),
        Some(Destination::Session(_) | Destination::Local) => {
            return Some(DropReason::InsideSource);
        }
        _ if check == SourceCheck::Loose => true,
        Some(Destination::Adjacency(index)) => is_here(index),
        Some(Destination::Connected(port)) => port == interface,
        Some(Destination::Group(group)) => groups.members(group).any(is_here),
    };
    (!returns).then_some(DropReason::ReversePath)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Adjacency, AdjacencyIndex, GroupIndex, InstanceIndex, SessionIndex};
    use crate::tables::interfaces::Interface;
    use wire::eth::MacAddr;

    const HERE: PortIndex = PortIndex(3);

    /// Adjacencies 0 and 1 are here, the second one is not resolved; 2 and 3 are elsewhere, the second one is not resolved.
    fn adjacencies() -> Adjacencies {
        let mut all = Adjacencies::new(8);
        for (n, port) in (0..).zip([HERE, HERE, PortIndex(4), PortIndex(4)]) {
            let interface = Interface {
                port,
                own: MacAddr([2; 6]),
                mtu: 1500,
                vlan: 0,
                instance: InstanceIndex(0),
                source_check: SourceCheck::Off,
                priority_source: policy::PrioritySource::Fixed,
            };
            let mac = (n % 2 == 0).then_some(MacAddr([4; 6]));
            let adjacency = Adjacency { port, mac };
            assert!(all.set(AdjacencyIndex(n), Some((adjacency, &interface))));
        }
        all
    }

    #[test]
    fn every_route_back_in_every_mode() {
        let (groups, adjacencies) = (Groups::new(4).unwrap(), adjacencies());
        groups.set(GroupIndex(0), &[AdjacencyIndex(3), AdjacencyIndex(0)]);
        groups.set(GroupIndex(1), &[AdjacencyIndex(2), AdjacencyIndex(3)]);
        let refused = |check, back: Option<Destination>| {
            let back = back.map(Target::of).unwrap_or_default();
            refusal(check, HERE, back, &groups, &adjacencies)
        };
        let adjacency = |n| Some(Destination::Adjacency(AdjacencyIndex(n)));
        let group = |n| Some(Destination::Group(GroupIndex(n)));
        let connected = |port| Some(Destination::Connected(port));
        let session = Some(Destination::Session(SessionIndex(7)));
        let unrouted = Some(DropReason::UnroutedSource);
        let inside = Some(DropReason::InsideSource);
        let other = Some(DropReason::ReversePath);
        for (back, loose, strict) in [
            (None, unrouted, unrouted),
            (Some(Destination::Discard), unrouted, unrouted),
            (session, inside, inside),
            (Some(Destination::Local), inside, inside),
            (adjacency(0), None, None),
            (adjacency(1), None, None),
            (adjacency(2), None, other),
            (adjacency(3), None, other),
            (adjacency(4), None, other), // which is not there
            (connected(HERE), None, None),
            (connected(PortIndex(4)), None, other),
            (group(0), None, None),
            (group(1), None, other),
            (group(2), None, other), // without members
        ] {
            assert_eq!(refused(SourceCheck::Off, back), None, "{back:?}");
            assert_eq!(refused(SourceCheck::Loose, back), loose, "{back:?}");
            assert_eq!(refused(SourceCheck::Strict, back), strict, "{back:?}");
        }
    }
}
