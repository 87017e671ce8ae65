//! The keys that everything hangs on, and what the configuration says about them: user planes, subscriber groups,
//! access segments and network instances. Made once at start, then only read.

use config::{ControlPlane, Segment as SegmentConfig};
use core::net::IpAddr;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use wire::eth::{MacAddr, Tags};

/// A user plane, by its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserPlaneId(pub u16);

/// A subscriber group: what moves between user planes as a whole. Every session belongs to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u16);

/// An access segment: a range of outer VLANs of a logical port, with one bank of PPPoE session ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentId(pub u16);

/// A network instance (VRF).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub u16);

/// A subscriber, who may have several sessions; they share a QER Correlation ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubscriberId(pub u32);

/// Bits of a session's index in TEIDs and SEIDs: room for 1,048,576 sessions, of which the last index is the
/// default tunnel's.
pub const INDEX_BITS: u32 = 20;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

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
    /// The logical ports of its segments.
    pub ports: Vec<String>,
    /// Where its subscribers' addresses are.
    pub instance: InstanceId,
}

/// An access segment.
#[derive(Debug)]
pub struct Segment {
    /// Its name.
    pub name: String,
    /// The user plane that it is on.
    pub user_plane: UserPlaneId,
    /// Its logical port.
    pub port: String,
    /// The group of its sessions.
    pub group: GroupId,
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
        let mut topology = Topology {
            user_planes: Vec::new(),
            groups: Vec::new(),
            segments: Vec::new(),
            instances,
        };
        let default = InstanceId(default.expect("checked by the configuration") as u16);
        for (n, peer) in config.user_planes.value.iter().enumerate() {
            topology.add_user_plane(UserPlaneId(n as u16), peer, default);
        }
        topology
    }

    fn add_user_plane(&mut self, id: UserPlaneId, peer: &config::UserPlanePeer, instance: InstanceId) {
        self.user_planes.push(UserPlane {
            node_id: peer.node_id.clone(),
            address: peer.address,
        });
        let mut by_name: BTreeMap<String, GroupId> = BTreeMap::new();
        for port in &peer.access_ports {
            let default_name = || format!("{}/{}", peer.node_id, port.port);
            let name = port.subscriber_group.clone().unwrap_or_else(default_name);
            let group = *by_name.entry(name.clone()).or_insert_with(|| {
                self.groups.push(Group {
                    virtual_mac: virtual_mac(&name),
                    name,
                    user_plane: id,
                    ports: Vec::new(),
                    instance,
                });
                GroupId(self.groups.len() as u16 - 1)
            });
            self.groups[usize::from(group.0)].ports.push(port.port.clone());
            self.segments.extend(port.segments.iter().map(|config| Segment {
                name: config.name.clone(),
                user_plane: id,
                port: port.port.clone(),
                group,
                config: config.clone(),
            }));
        }
    }

    /// Every user plane.
    pub fn user_planes(&self) -> impl Iterator<Item = (UserPlaneId, &UserPlane)> {
        self.user_planes.iter().enumerate().map(|(n, u)| (UserPlaneId(n as u16), u))
    }

    /// Every group.
    pub fn groups(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        self.groups.iter().enumerate().map(|(n, g)| (GroupId(n as u16), g))
    }

    /// How many segments there are; their ids count from 0.
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// Every network instance.
    pub fn instances(&self) -> impl Iterator<Item = (InstanceId, &Instance)> {
        self.instances.iter().enumerate().map(|(n, i)| (InstanceId(n as u16), i))
    }

    /// A user plane.
    pub fn user_plane(&self, id: UserPlaneId) -> &UserPlane {
        &self.user_planes[usize::from(id.0)]
    }

    /// A group.
    pub fn group(&self, id: GroupId) -> &Group {
        &self.groups[usize::from(id.0)]
    }

    /// A segment.
    pub fn segment(&self, id: SegmentId) -> &Segment {
        &self.segments[usize::from(id.0)]
    }

    /// A network instance.
    pub fn instance(&self, id: InstanceId) -> &Instance {
        &self.instances[usize::from(id.0)]
    }

    /// The segment that a frame came from.
    pub fn find_segment(&self, user_plane: UserPlaneId, port: &[u8], tags: &Tags) -> Option<SegmentId> {
        let s_vlan = tags.outer.map(|tag| tag.vid);
        let found = self.segments.iter().position(|segment| {
            segment.user_plane == user_plane
                && segment.port.as_bytes() == port
                && segment.config.s_vlans.contains(s_vlan)
        })?;
        Some(SegmentId(found as u16))
    }
}

/// The TEID of a session's control tunnel, the same in both directions: out of the range that its group owns.
pub fn session_teid(group: GroupId, index: u32) -> u32 {
    (u32::from(group.0) + 1) << INDEX_BITS | index
}

/// The TEID of a group's default tunnel.
pub fn default_teid(group: GroupId) -> u32 {
    session_teid(group, INDEX_MASK)
}

/// What a TEID says: its group, and the session's index unless it is the default tunnel's.
pub fn read_teid(teid: u32) -> Option<(GroupId, Option<u32>)> {
    let group = GroupId((teid >> INDEX_BITS).checked_sub(1)? as u16);
    let index = teid & INDEX_MASK;
    Some((group, (index != INDEX_MASK).then_some(index)))
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
    use wire::eth::Tag;

    fn topology() -> Topology {
        let text = "node-id: cp1
address: 192.0.2.1
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
        assert_eq!(t.group(GroupId(1)).ports, ["b", "c"]);
        assert_ne!(t.group(GroupId(0)).virtual_mac, t.group(GroupId(1)).virtual_mac);
        let tags = |vid: Option<u16>| Tags {
            outer: vid.map(|vid| Tag { tpid: 0x88a8, vid, pcp: 0, dei: false }),
            inner: None,
        };
        let find = |up, port: &str, vid| {
            let id = t.find_segment(UserPlaneId(up), port.as_bytes(), &tags(vid))?;
            Some((t.segment(id).name.as_str(), t.segment(id).group))
        };
        assert_eq!(find(0, "a", Some(150)), Some(("east", GroupId(0))));
        assert_eq!(find(0, "a", None), Some(("west", GroupId(0))));
        assert_eq!(find(0, "a", Some(300)), None);
        assert_eq!(find(0, "c", Some(300)), Some(("all", GroupId(1))));
        assert_eq!(find(1, "a", Some(300)), Some(("all", GroupId(2))));
        assert_eq!(find(1, "b", None), None);
    }

    #[test]
    fn teids_say_whose_they_are() {
        assert_eq!(read_teid(session_teid(GroupId(3), 77)), Some((GroupId(3), Some(77))));
        assert_eq!(read_teid(default_teid(GroupId(0))), Some((GroupId(0), None)));
        assert_eq!(read_teid(5), None);
    }
}
