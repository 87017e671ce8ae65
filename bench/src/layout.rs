//! Which access segment, PPPoE session id and network instance each session has.
use crate::frames::{ACCESS, CORE, GATEWAY, address_v4, address_v6, home};
use dataplane::{InstanceIndex, PacketSettings, PortIndex, Segment, SessionEntry, SessionIndex};
use std::net::Ipv6Addr;
use wire::eth::{TPID_8021AD, Tag, Tags};

/// Sessions of a segment that has many.
const PER_SEGMENT: u32 = 4096;
/// S-tag of the first of those segments.
const FIRST_VLAN: u16 = 100;
/// Segments where each value of the S-tag is one.
const MOST_SEGMENTS: u32 = 4096;

/// How sessions are spread over segments and instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Each value of the S-tag is a segment, and session n is in segment n % 4,096; else segments have 4,096 sessions.
    pub is_split: bool,
    /// Network instances; session n is in instance n % `instances`. Of several each has a VLAN of the core port.
    pub instances: u16,
}

impl Layout {
    /// Segments of 4,096 sessions, one instance.
    pub const PLAIN: Layout = Layout {
        is_split: false,
        instances: 1,
    };
    /// 4,096 segments, one instance.
    pub const SPLIT: Layout = Layout {
        is_split: true,
        instances: 1,
    };

    /// Segments of 4,096 sessions, so many instances.
    pub const fn over(instances: u16) -> Layout {
        Layout {
            is_split: false,
            instances,
        }
    }

    /// The segments of so many sessions.
    pub fn segments(self, sessions: u32) -> Vec<Segment> {
        let (count, first) = match self.is_split {
            true => (MOST_SEGMENTS.min(sessions), 0),
            false => (sessions.div_ceil(PER_SEGMENT), FIRST_VLAN),
        };
        let segment = |id: u16| Segment {
            id,
            vlans: vec![first + id..=first + id],
        };
        (0..count as u16).map(segment).collect()
    }

    /// S-tag of a session, which names its segment.
    pub fn outer_vlan(self, session: u32) -> u16 {
        match self.is_split {
            true => (session % MOST_SEGMENTS) as u16,
            false => FIRST_VLAN + (session / PER_SEGMENT) as u16,
        }
    }

    /// PPPoE session id. In a segment with 4,096 sessions the ids fill whole pages and name the same worker as the index. Where
    /// segments have few sessions, the lanes come in turn over all of them, as the control plane allocates ids for one worker.
    pub fn pppoe_id(self, session: u32) -> u16 {
        match self.is_split {
            true => 256 + (session % 255) as u16 + 1,
            false => (session % PER_SEGMENT) as u16 + 256,
        }
    }

    /// Tags of a session's frames.
    pub fn tags(self, session: u32) -> Tags {
        let outer = Tag {
            tpid: TPID_8021AD,
            ..Tag::new(self.outer_vlan(session))
        };
        Tags {
            outer: Some(outer),
            inner: Some(Tag::new((session % 4000) as u16 + 1)),
        }
    }

    /// Network instance of a session.
    pub fn instance(self, session: u32) -> InstanceIndex {
        InstanceIndex((session % u32::from(self.instances)) as u16)
    }

    /// VLAN of an instance at the core; none where there is one instance alone.
    pub fn core_vlan(self, InstanceIndex(instance): InstanceIndex) -> Option<u16> {
        (self.instances > 1).then_some(instance + 1)
    }

    /// The interface that leads to the core of an instance.
    pub fn core_interface(self, instance: InstanceIndex) -> PortIndex {
        let vlan = self.core_vlan(instance);
        PortIndex(CORE.0 + vlan.unwrap_or(0))
    }

    /// The session as the data plane is told of it.
    pub fn entry(self, session: u32) -> SessionEntry {
        let prefix = Ipv6Addr::from(address_v6(session));
        SessionEntry {
            index: SessionIndex(session),
            port: ACCESS,
            tags: self.tags(session),
            peer_mac: home(session),
            gateway_mac: GATEWAY,
            pppoe_session_id: self.pppoe_id(session),
            instance: self.instance(session),
            packets: PacketSettings::with_mtu(1492),
            policies: Default::default(),
            subscriber: session.into(),
            ipv4: Some(address_v4(session).into()),
            ipv6: Some(ipnet::Ipv6Net::new_assert(prefix, 64)),
            routed: Box::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_session_is_found_by_its_segment_and_id() {
        for layout in [Layout::PLAIN, Layout::SPLIT, Layout::over(64)] {
            let segments = layout.segments(131_072);
            let vlans: HashSet<u16> = segments.iter().map(|s| *s.vlans[0].start()).collect();
            let keys = (0..131_072).map(|n| (layout.outer_vlan(n), layout.pppoe_id(n)));
            let keys: HashSet<_> = keys.collect();
            assert_eq!(keys.len(), 131_072, "{layout:?}");
            assert!(
                keys.iter()
                    .all(|(vlan, id)| vlans.contains(vlan) && *id > 0)
            );
        }
        assert_eq!(Layout::SPLIT.segments(131_072).len(), 4096);
        let first: HashSet<u16> = (0..4096).map(|n| Layout::SPLIT.outer_vlan(n)).collect();
        assert_eq!(first.len(), 4096, "of the first 4,096 each has its own");
    }

    #[test]
    fn a_session_belongs_to_the_worker_of_its_index() {
        let layout = Layout::PLAIN;
        assert!((0..131_072).all(|n| n % 16 == u32::from(layout.pppoe_id(n)) % 16));
    }
}
