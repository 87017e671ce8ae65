//! The keys that everything hangs on, and what the configuration says about them: user planes, subscriber groups,
//! access ports and segments, network instances. Made once at start, then only read.

use config::{ControlPlane, Segment as SegmentConfig};
use core::net::IpAddr;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use wire::eth::{MacAddr, Tags};

macro_rules! ids {
    ($($(#[doc = $doc:literal])+ $id:ident => $items:ident, $one:ident: $of:ident;)*) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $id(pub u16);
    )*
        impl Topology { $(
            #[doc = concat!("Every [`", stringify!($of), "`] with its key.")]
            pub fn $items(&self) -> impl Iterator<Item = ($id, &$of)> {
                (0..).map($id).zip(&self.$items)
            }

            #[doc = concat!("The [`", stringify!($of), "`] of a key that this topology gave.")]
            pub fn $one(&self, id: $id) -> &$of {
                &self.$items[usize::from(id.0)]
            }
        )* }
    };
}

ids! {
    /// A user plane.
    UserPlaneId => user_planes, user_plane: UserPlane;
    /// A subscriber group: what moves between user planes as a whole. Every session belongs to one.
    GroupId => groups, group: Group;
    /// An access port of a user plane.
    PortId => ports, port: Port;
    /// An access segment: a range of outer VLANs of a logical port, with one bank of PPPoE session ids.
    SegmentId => segments, segment: Segment;
    /// A network instance (VRF).
    InstanceId => instances, instance: Instance;
}

/// A subscriber, who may have several sessions: they share a QER Correlation ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubscriberId(pub u32);

/// Bits of a session's index in TEIDs and SEIDs: room for 1,048,576 sessions.
const INDEX_BITS: u32 = 20;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
/// The most sessions that identifiers have room for.
pub const MAX_SESSIONS: u32 = 1 << INDEX_BITS;

/// The control plane's PFCP Session Endpoint Identifier of a session; in hexadecimal also its Acct-Session-Id and its
/// name for people. A generation above the index: a late message for an earlier owner of an index meets nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seid(pub u64);

impl Seid {
    /// The identifier of the session at `index`; generations begin at 1.
    pub const fn new(generation: u64, index: u32) -> Self {
        Seid(generation << INDEX_BITS | index as u64)
    }

    /// The identifier of an access port's default session: of generation 0.
    pub const fn of_port(port: PortId) -> Self {
        Seid(port.0 as u64 + 1)
    }

    /// The session's index.
    pub const fn index(self) -> u32 {
        self.0 as u32 & INDEX_MASK
    }

    /// The generation.
    pub const fn generation(self) -> u64 {
        self.0 >> INDEX_BITS
    }
}

impl core::fmt::Display for Seid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Whose a control tunnel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelOwner {
    /// The default session of an access port.
    Default(PortId),
    /// The session of a group at an index.
    Session(GroupId, u32),
}

impl TunnelOwner {
    /// The TEID, the same in both directions: a session's is out of the range that its group owns.
    pub fn teid(self) -> u32 {
        match self {
            TunnelOwner::Default(port) => u32::from(port.0) + 1,
            TunnelOwner::Session(group, index) => (u32::from(group.0) + 1) << INDEX_BITS | index,
        }
    }

    /// The owner of a TEID, if it was given out.
    pub fn of(teid: u32) -> Option<Self> {
        let index = teid & INDEX_MASK;
        Some(match teid >> INDEX_BITS {
            0 => TunnelOwner::Default(PortId(index.checked_sub(1)?.try_into().ok()?)),
            group => TunnelOwner::Session(GroupId(group as u16 - 1), index),
        })
    }
}

/// A user plane.
#[derive(Debug)]
pub struct UserPlane {
    /// Its PFCP Node ID.
    pub node_id: String,
    /// Where it serves PFCP and GTP-U.
    pub address: IpAddr,
}

/// A subscriber group.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Where its sessions are.
    pub user_plane: UserPlaneId,
    /// The gateway's MAC address towards its subscribers; the same wherever the group is.
    pub virtual_mac: MacAddr,
    /// The first of its access ports, whose default session carries the group's nets.
    pub first_port: PortId,
    /// Where its subscribers' addresses are.
    pub instance: InstanceId,
}

/// An access port.
#[derive(Debug)]
pub struct Port {
    /// The logical port's name.
    pub name: String,
    /// The user plane that it is on.
    pub user_plane: UserPlaneId,
    /// The group of its sessions.
    pub group: GroupId,
}

/// An access segment.
#[derive(Debug)]
pub struct Segment {
    /// The port that it is part of.
    pub port: PortId,
    config: SegmentConfig,
}

/// A network instance.
#[derive(Debug)]
pub struct Instance {
    /// Its name, as PFCP's Network Instance carries it.
    pub name: String,
    /// What subscribers get there.
    pub service: config::NetworkInstanceService,
}

/// Everything by its key.
#[derive(Debug)]
pub struct Topology {
    user_planes: Vec<UserPlane>,
    groups: Vec<Group>,
    ports: Vec<Port>,
    segments: Vec<Segment>,
    instances: Vec<Instance>,
}

impl Topology {
    /// Reads the checked configuration.
    pub fn new(config: &ControlPlane) -> Self {
        let instances = config.network_instances.iter();
        let instances: Vec<Instance> = instances
            .map(|(name, service)| Instance {
                name: name.clone(),
                service: service.clone(),
            })
            .collect();
        let default = instances.iter().position(|i| i.name == "default");
        let default = InstanceId(default.expect("checked by the configuration") as u16);
        let mut topology = Topology {
            user_planes: Vec::new(),
            groups: Vec::new(),
            ports: Vec::new(),
            segments: Vec::new(),
            instances,
        };
        for peer in &config.user_planes.value {
            topology.add_user_plane(peer, default);
        }
        topology
    }

    fn add_user_plane(&mut self, peer: &config::UserPlanePeer, instance: InstanceId) {
        let user_plane = UserPlaneId(self.user_planes.len() as u16);
        self.user_planes.push(UserPlane {
            node_id: peer.node_id.clone(),
            address: peer.address,
        });
        let mut by_name: BTreeMap<String, GroupId> = BTreeMap::new();
        for config in &peer.access_ports {
            let port = PortId(self.ports.len() as u16);
            let default_name = || format!("{}/{}", peer.node_id, config.port);
            let name = config.subscriber_group.clone().unwrap_or_else(default_name);
            let group = *by_name.entry(name.clone()).or_insert_with(|| {
                self.groups.push(Group {
                    virtual_mac: virtual_mac(&name),
                    name,
                    user_plane,
                    first_port: port,
                    instance,
                });
                GroupId(self.groups.len() as u16 - 1)
            });
            self.ports.push(Port {
                name: config.port.clone(),
                user_plane,
                group,
            });
            let segments = config.segments.iter().cloned();
            self.segments
                .extend(segments.map(|config| Segment { port, config }));
        }
    }

    /// The access port of a user plane by its name.
    pub fn find_port(&self, user_plane: UserPlaneId, name: &[u8]) -> Option<PortId> {
        let is_it = |p: &Port| p.user_plane == user_plane && p.name.as_bytes() == name;
        Some(PortId(self.ports.iter().position(is_it)? as u16))
    }

    /// The segment of a port that a frame with these tags belongs to.
    pub fn find_segment(&self, port: PortId, tags: &Tags) -> Option<SegmentId> {
        let s_vlan = tags.outer.map(|tag| tag.vid);
        let is_it = |s: &Segment| s.port == port && s.config.s_vlans.contains(s_vlan);
        Some(SegmentId(self.segments.iter().position(is_it)? as u16))
    }
}

/// A locally administered unicast address made from the group's name, so that it does not depend on where the
/// group is.
fn virtual_mac(group: &str) -> MacAddr {
    let hash = Sha256::digest(group.as_bytes());
    MacAddr([0x02, 0x53, hash[0], hash[1], hash[2], hash[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology() -> Topology {
        let text = "node-id: cp1
address: [192.0.2.1, '2001:db8::1']
user-planes:
  - node-id: up1
    address: 192.0.2.2
    access-ports:
      - {port: a, segments: [{name: east, s-vlans: 100-199}, {name: west, s-vlans: 'untagged,200'}]}
      - {port: b, subscriber-group: shared}
      - {port: c, subscriber-group: shared}
  - {node-id: up2, address: '2001:db8::2', access-ports: [{port: a}]}
network-instances: {default: {}}
aaa: {users-file: users.yaml}
";
        Topology::new(&config::parse(text, "cp.yaml").unwrap())
    }

    #[test]
    fn groups_and_segments_follow_the_ports() {
        let t = topology();
        let names: Vec<&str> = t.groups().map(|(_, g)| g.name.as_str()).collect();
        assert_eq!(names, ["up1/a", "shared", "up2/a"]);
        assert_eq!(t.group(GroupId(1)).first_port, PortId(1));
        let macs = [0, 1].map(|n| t.group(GroupId(n)).virtual_mac);
        assert!(macs[0] != macs[1] && macs.iter().all(|m| !m.is_group()));
        let find = |up, port: &str, vid: Option<u16>| {
            let port = t.find_port(UserPlaneId(up), port.as_bytes())?;
            let segment = t.find_segment(port, &vid.map_or(Tags::NONE, Tags::single))?;
            Some((segment, t.port(port).group))
        };
        assert_eq!(find(0, "a", Some(150)), Some((SegmentId(0), GroupId(0))));
        assert_eq!(find(0, "a", None), Some((SegmentId(1), GroupId(0))));
        assert_eq!(find(0, "a", Some(300)), None);
        assert_eq!(find(0, "c", Some(300)), Some((SegmentId(3), GroupId(1))));
        assert_eq!(find(1, "a", Some(300)), Some((SegmentId(4), GroupId(2))));
        assert_eq!(find(1, "b", None), None);
    }

    #[test]
    fn identifiers_say_whose_they_are() {
        for owner in [
            TunnelOwner::Default(PortId(0)),
            TunnelOwner::Session(GroupId(0), 0),
            TunnelOwner::Session(GroupId(4), MAX_SESSIONS - 1),
        ] {
            assert_eq!(TunnelOwner::of(owner.teid()), Some(owner));
        }
        assert_eq!(TunnelOwner::of(0), None);
        let seid = Seid::new(9, 77);
        assert_eq!((seid.generation(), seid.index()), (9, 77));
        assert_eq!(Seid::of_port(PortId(3)).generation(), 0);
        assert_eq!(Seid(0x1f).to_string(), "000000000000001f");
    }
}
