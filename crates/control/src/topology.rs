//! Keys of user planes, subscriber groups, access ports, access segments and network instances, with their configured properties.
//!
//! A key stays the same while anything refers to it, whatever the configuration says meanwhile: a removed object is retired first, and
//! its key is free when nothing refers to it. The store keeps the keys of groups and ports by name, because user planes know those of
//! ports from SEIDs, and those of groups from the TEIDs of an earlier version.

use config::{Configuration, Fault, Path, SvlanSet};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
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
                self.$items.iter().map(|(id, one)| ($id(*id), one))
            }

            #[doc = concat!("The [`", stringify!($of), "`] of a key that this topology gave.")]
            pub fn $one(&self, id: $id) -> &$of {
                &self.$items[&id.0]
            }
        )* }
    };
}

ids! {
    /// User plane.
    UserPlaneId => user_planes, user_plane: UserPlane;
    /// Subscriber group on a user plane. Every session belongs to one. A group moves between user planes as a whole.
    GroupId => groups, group: Group;
    /// An access port of a user plane.
    PortId => ports, port: Port;
    /// An access segment: a range of outer VLANs of a logical port, with PPPoE session ids of its own.
    SegmentId => segments, segment: Segment;
    /// A network instance (VRF).
    InstanceId => instances, instance: Instance;
}

/// Handle of a subscriber, below [`MAX_SESSIONS`]. All its sessions have it as QER Correlation ID (TS 29.244 §8.2.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubscriberId(pub u32);

/// Bits of a session's index in SEIDs: room for 1,048,576 sessions.
const INDEX_BITS: u32 = 20;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
/// Maximum number of sessions, by the size of identifiers.
pub const MAX_SESSIONS: u32 = 1 << INDEX_BITS;
/// Maximum number of groups, by the size of an earlier version's TEIDs.
const MAX_GROUPS: usize = (1 << (u32::BITS - INDEX_BITS)) - 1;
/// Maximum number of user planes, of ports and of segments.
const MAX_USER_PLANES: usize = 1024;
const MAX_PORTS: usize = 16_384;
const MAX_SEGMENTS: usize = 32_768;

/// Control plane's PFCP Session Endpoint Identifier of a session. In hexadecimal it is also the Acct-Session-Id and the id that operators
/// see. It consists of a generation and the session's index, so that a late message for an earlier session of the index matches none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seid(pub u64);

impl Seid {
    /// Identifier of the session at `index`. Generations start at 1.
    pub const fn new(generation: u64, index: u32) -> Self {
        Seid(generation << INDEX_BITS | index as u64)
    }

    /// Identifier of an access port's default session, with generation 0.
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

/// Access line of a home. It distinguishes homes with the same MAC address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AccessLine {
    /// The user plane's node id.
    pub user_plane: String,
    /// The access port.
    pub port: String,
    /// The VLAN ids, the outer one first.
    pub vids: (Option<u16>, Option<u16>),
    /// The home's MAC address.
    pub mac: MacAddr,
}

impl AccessLine {
    /// NAS-Port-Id of the line, without the MAC address.
    pub fn nas_port_id(&self) -> String {
        let vids = [self.vids.0, self.vids.1].map(|vid| vid.map(u32::from));
        nas_port_id(&self.user_plane, &self.port, vids)
    }
}

/// Text for a port of a user plane, or for VLANs on it: `up1/access0.100.7`.
pub(crate) fn nas_port_id(user_plane: &str, port: &str, vids: [Option<u32>; 2]) -> String {
    let vids = vids.iter().flatten().map(|vid| format!(".{vid}"));
    format!("{user_plane}/{port}{}", vids.collect::<String>())
}

/// `02:00:00:00:00:07 at up1/access0.100.7`.
impl core::fmt::Display for AccessLine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} at {}", self.mac, self.nas_port_id())
    }
}

/// User plane.
#[derive(Clone, Debug)]
pub struct UserPlane {
    /// Its PFCP Node ID.
    pub node_id: String,
    /// IP address for PFCP and GTP-U.
    pub address: IpAddr,
    /// Whether the configuration no longer contains it.
    pub retired: bool,
}

/// Subscriber group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name.
    pub name: String,
    /// User plane of its sessions.
    pub user_plane: UserPlaneId,
    /// Gateway's MAC address towards new sessions. It does not depend on the group's user plane.
    pub virtual_mac: MacAddr,
    /// Access port whose default session announces the group's prefix blocks.
    pub carrier: PortId,
    /// Whether no configured port names it.
    pub retired: bool,
}

/// Access port.
#[derive(Clone, Debug)]
pub struct Port {
    /// The logical port's name.
    pub name: String,
    /// User plane of the port.
    pub user_plane: UserPlaneId,
    /// Group of new sessions on the port.
    pub group: GroupId,
    /// Its devices. With others it is another port, although it keeps its name.
    pub devices: Vec<String>,
    /// Whether the configuration no longer contains it.
    pub retired: bool,
}

/// Access segment.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Name.
    pub name: String,
    /// Port of the segment.
    pub port: PortId,
    /// Name of the access profile; `None` for the built-in one.
    pub access_profile: Option<String>,
    s_vlans: SvlanSet,
    /// Parts of it whose sessions share a rate.
    pub aggregates: Aggregates,
    /// Whether the configuration no longer contains it.
    pub retired: bool,
}

/// Parts of a segment whose sessions share a rate, so that one worker has to have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregates {
    /// None.
    #[default]
    None,
    /// The whole segment.
    Whole,
    /// Each outer VLAN.
    EachVlan,
}

impl Aggregates {
    fn of(segment: &config::model::Segment) -> Self {
        match (segment.egress_rate, segment.vlan_egress_rate) {
            (Some(_), _) => Aggregates::Whole,
            (None, Some(_)) => Aggregates::EachVlan,
            (None, None) => Aggregates::None,
        }
    }
}

/// A network instance.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its name, as PFCP's Network Instance carries it.
    pub name: String,
}

/// Allocated numbers by name: `group up1 east`, `port up1 access0`.
pub type Numbers = BTreeMap<String, u16>;

/// All objects by key.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    user_planes: BTreeMap<u16, UserPlane>,
    groups: BTreeMap<u16, Group>,
    ports: BTreeMap<u16, Port>,
    segments: BTreeMap<u16, Segment>,
    instances: BTreeMap<u16, Instance>,
    /// Numbers of earlier runs that no object has claimed yet.
    kept: Numbers,
}

/// The carrier of a group on a user plane without a port.
const NO_PORT: PortId = PortId(u16::MAX);

/// Next number: the one after the highest, or else the lowest free one. So a released number stays unused for long.
fn free<T>(items: &BTreeMap<u16, T>, taken: &BTreeSet<u16>, most: usize) -> u16 {
    let is_free = |number: &u16| !items.contains_key(number) && !taken.contains(number);
    let highest = items.keys().next_back().max(taken.iter().next_back());
    let next = highest.map_or(0, |highest| usize::from(*highest) + 1);
    match u16::try_from(next) {
        Ok(next) if usize::from(next) < most => next,
        _ => (0..=u16::MAX).find(is_free).expect("bounds are checked"),
    }
}

/// The name of a group that is a port's own.
fn own_group(plane: &str, port: &str) -> String {
    format!("{plane}/{port}")
}

/// Limits that the configuration exceeds.
pub(crate) fn bounds(configuration: &Configuration) -> Vec<Fault> {
    let mut faults = Vec::new();
    let planes = &configuration.user_planes;
    let ports = || planes.values().flat_map(|plane| plane.ports.values());
    let access = || ports().filter(|port| port.role == config::model::PortRole::Access);
    let groups: BTreeSet<(&str, String)> = planes
        .iter()
        .flat_map(|(plane, of)| {
            of.ports.iter().map(move |(name, port)| {
                let named = port.subscriber_group.clone();
                (&**plane, named.unwrap_or_else(|| own_group(plane, name)))
            })
        })
        .collect();
    let segments = access().map(|port| port.segments().len()).sum();
    for (what, found, most) in [
        ("user planes", planes.len(), MAX_USER_PLANES),
        ("access ports", access().count(), MAX_PORTS),
        ("access segments", segments, MAX_SEGMENTS),
        // half of the numbers, so that those that go can rest
        ("subscriber groups", groups.len(), MAX_GROUPS / 2),
    ] {
        if found > most {
            faults.push(Fault {
                line: 0,
                path: ["user-planes"].into_iter().collect::<Path>(),
                message: format!("{found} {what}: expected at most {most}"),
            });
        }
    }
    faults
}

impl Topology {
    /// Creates the topology of a configuration, with the numbers of earlier runs.
    pub fn new(configuration: &Configuration, kept: Numbers) -> Self {
        let mut topology = Topology {
            kept,
            ..Topology::default()
        };
        topology.update(configuration);
        topology
    }

    /// Applies a changed configuration, whose [`bounds`] are checked. Removed objects are retired.
    pub fn update(&mut self, configuration: &Configuration) {
        self.user_planes.values_mut().for_each(|p| p.retired = true);
        self.groups.values_mut().for_each(|g| g.retired = true);
        self.ports.values_mut().for_each(|p| p.retired = true);
        self.segments.values_mut().for_each(|s| s.retired = true);
        for name in configuration.network_instances.keys() {
            self.instance_of(name);
        }
        for profile in configuration.subscriber_profiles.values() {
            self.instance_of(&profile.network_instance);
        }
        self.instance_of("default");
        for (name, plane) in &configuration.user_planes {
            let id = self.user_plane_of(name, plane.address);
            let entry = self.user_planes.get_mut(&id.0).expect("just there");
            (entry.address, entry.retired) = (plane.address, false);
            let access = |port: &config::model::Port| port.role == config::model::PortRole::Access;
            for (port, of) in plane.ports.iter().filter(|(_, port)| access(port)) {
                self.update_port(id, port, of);
            }
        }
        self.update_groups(configuration);
    }

    fn update_port(&mut self, plane: UserPlaneId, name: &str, of: &config::model::Port) {
        let group = match &of.subscriber_group {
            Some(group) => group.clone(),
            None => own_group(&self.user_plane(plane).node_id, name),
        };
        let group = self.group_of(plane, &group);
        let id = self.port_of(plane, name, group);
        let port = self.ports.get_mut(&id.0).expect("just there");
        (port.group, port.retired) = (group, false);
        port.devices = of.devices().map(str::to_owned).collect();
        self.groups.get_mut(&group.0).expect("just there").retired = false;
        let known = self.segments().filter(|(_, segment)| segment.port == id);
        let known: BTreeMap<String, SegmentId> =
            known.map(|(id, s)| (s.name.clone(), id)).collect();
        for (name, segment) in of.segments() {
            let known = known.get(&name).copied();
            let id = known.unwrap_or_else(|| self.new_segment(id, &name));
            let entry = self.segments.get_mut(&id.0).expect("just there");
            entry.retired = false;
            entry.aggregates = Aggregates::of(&segment);
            entry.s_vlans = segment.s_vlans;
            entry.access_profile = segment.access_profile;
        }
    }

    /// Access ports that are not retired.
    pub fn open_ports(&self) -> impl Iterator<Item = PortId> {
        let open = self.ports().filter(|(_, port)| !port.retired);
        open.map(|(id, _)| id)
    }

    /// Access ports that have had other devices before.
    pub fn replaced_ports(&self, before: &Topology) -> Vec<PortId> {
        let is_replaced = |id: &PortId| {
            let old = before.ports.get(&id.0);
            old.is_some_and(|old| !old.retired && old.devices != self.port(*id).devices)
        };
        self.open_ports().filter(is_replaced).collect()
    }

    /// Segments of before whose sessions, or some of them, have lost their place.
    pub fn lost_places(&self, before: &Topology) -> BTreeSet<SegmentId> {
        let replaced = self.replaced_ports(before);
        let is_lost = |id: SegmentId| {
            let (was, is) = (before.segment(id), self.segment(id));
            before.is_open(id)
                && (!self.is_open(id) || replaced.contains(&is.port) || was.s_vlans != is.s_vlans)
        };
        let ids = before.segments().map(|(id, _)| id);
        ids.filter(|id| is_lost(*id)).collect()
    }

    /// Whether a segment is configured, with its port and user plane.
    fn is_open(&self, id: SegmentId) -> bool {
        let segment = self.segment(id);
        let port = self.port(segment.port);
        !segment.retired && !port.retired && !self.user_plane(port.user_plane).retired
    }

    /// Selects the carrier port of each group. A carrier stays while its port exists. Then another port of the group replaces it, or any
    /// port of the user plane.
    pub fn find_carriers(&mut self) {
        let mut first: BTreeMap<GroupId, PortId> = BTreeMap::new();
        let mut any: BTreeMap<UserPlaneId, PortId> = BTreeMap::new();
        for (id, port) in self.ports.iter().filter(|(_, port)| !port.retired) {
            first.entry(port.group).or_insert(PortId(*id));
            any.entry(port.user_plane).or_insert(PortId(*id));
        }
        for (id, group) in &mut self.groups {
            let there = |port: &Port| !port.retired && port.user_plane == group.user_plane;
            if !self.ports.get(&group.carrier.0).is_some_and(there)
                && let Some(carrier) = first.get(&GroupId(*id)).or(any.get(&group.user_plane))
            {
                group.carrier = *carrier;
            }
        }
    }

    fn update_groups(&mut self, configuration: &Configuration) {
        self.find_carriers();
        for group in self.groups.values_mut() {
            let configured = configuration.subscriber_groups.get(&group.name);
            let mac = configured.and_then(|group| config::mac(group.virtual_mac.as_deref()?));
            if !group.retired {
                group.virtual_mac = mac.map_or_else(|| virtual_mac(&group.name), MacAddr);
            }
        }
    }

    /// Key of a network instance. A new key is assigned if it has none.
    pub fn instance_of(&mut self, name: &str) -> InstanceId {
        if let Some((id, _)) = self.instances().find(|(_, one)| one.name == name) {
            return id;
        }
        let id = free(&self.instances, &BTreeSet::new(), usize::from(u16::MAX));
        self.instances.insert(id, Instance { name: name.into() });
        InstanceId(id)
    }

    /// Key of a user plane. A new key is assigned if it has none; it is retired then.
    pub fn user_plane_of(&mut self, name: &str, address: IpAddr) -> UserPlaneId {
        if let Some((id, _)) = self.user_planes().find(|(_, one)| one.node_id == name) {
            return id;
        }
        let id = free(&self.user_planes, &BTreeSet::new(), usize::from(u16::MAX));
        let plane = UserPlane {
            node_id: name.into(),
            address,
            retired: true,
        };
        self.user_planes.insert(id, plane);
        UserPlaneId(id)
    }

    /// Key of a group. A new key is assigned if it has none; it is retired then.
    pub fn group_of(&mut self, plane: UserPlaneId, name: &str) -> GroupId {
        let is_it = |(_, g): &(GroupId, &Group)| g.user_plane == plane && g.name == name;
        if let Some((id, _)) = self.groups().find(is_it) {
            return id;
        }
        let key = format!("group {} {name}", self.user_plane(plane).node_id);
        let kept = self.kept.remove(&key);
        let kept = kept.filter(|id| !self.groups.contains_key(id));
        let id = kept.unwrap_or_else(|| free(&self.groups, &self.kept_of("group "), MAX_GROUPS));
        let group = Group {
            name: name.into(),
            user_plane: plane,
            virtual_mac: virtual_mac(name),
            carrier: NO_PORT,
            retired: true,
        };
        self.groups.insert(id, group);
        GroupId(id)
    }

    /// Key of a port. A new key is assigned if it has none; it is retired then.
    pub fn port_of(&mut self, plane: UserPlaneId, name: &str, group: GroupId) -> PortId {
        let is_it = |(_, p): &(PortId, &Port)| p.user_plane == plane && p.name == name;
        if let Some((id, _)) = self.ports().find(is_it) {
            return id;
        }
        let key = format!("port {} {name}", self.user_plane(plane).node_id);
        let kept = self.kept.remove(&key);
        let kept = kept.filter(|id| !self.ports.contains_key(id));
        let id = kept.unwrap_or_else(|| free(&self.ports, &self.kept_of("port "), 2 * MAX_PORTS));
        let port = Port {
            name: name.into(),
            user_plane: plane,
            group,
            devices: Vec::new(),
            retired: true,
        };
        self.ports.insert(id, port);
        let group = self.groups.get_mut(&group.0).expect("a group of ours");
        if group.carrier == NO_PORT {
            group.carrier = PortId(id);
        }
        PortId(id)
    }

    /// Key of a segment. A new key is assigned if it has none; it is retired then.
    pub fn segment_of(&mut self, port: PortId, name: &str) -> SegmentId {
        let is_it = |(_, s): &(SegmentId, &Segment)| s.port == port && s.name == name;
        let known = self.segments().find(is_it).map(|(id, _)| id);
        known.unwrap_or_else(|| self.new_segment(port, name))
    }

    fn new_segment(&mut self, port: PortId, name: &str) -> SegmentId {
        let id = free(&self.segments, &BTreeSet::new(), 2 * MAX_SEGMENTS);
        let segment = Segment {
            name: name.into(),
            port,
            access_profile: None,
            s_vlans: SvlanSet::default(),
            aggregates: Aggregates::None,
            retired: true,
        };
        self.segments.insert(id, segment);
        SegmentId(id)
    }

    fn kept_of(&self, kind: &str) -> BTreeSet<u16> {
        let kept = self.kept.iter().filter(|(name, _)| name.starts_with(kind));
        kept.map(|(_, number)| *number).collect()
    }

    /// Numbers for the store.
    pub fn numbers(&self) -> Numbers {
        let plane = |id| &self.user_plane(id).node_id;
        let groups = self.groups.iter().map(|(id, group)| {
            let key = format!("group {} {}", plane(group.user_plane), group.name);
            (key, *id)
        });
        let ports = self.ports.iter().map(|(id, port)| {
            let key = format!("port {} {}", plane(port.user_plane), port.name);
            (key, *id)
        });
        groups.chain(ports).collect()
    }

    /// Frees the numbers of earlier runs that no object has claimed.
    pub fn forget_kept(&mut self) {
        self.kept.clear();
    }

    /// Whether there is a port of this key.
    pub fn has_port(&self, id: PortId) -> bool {
        self.ports.contains_key(&id.0)
    }

    /// Whether there is a user plane of this key.
    pub fn has_user_plane(&self, id: UserPlaneId) -> bool {
        self.user_planes.contains_key(&id.0)
    }

    /// Whether there is a group of this key.
    pub fn has_group(&self, id: GroupId) -> bool {
        self.groups.contains_key(&id.0)
    }

    /// Whether anything is retired.
    pub fn has_retired(&self) -> bool {
        self.user_planes.values().any(|plane| plane.retired)
            || self.groups.values().any(|group| group.retired)
            || self.ports.values().any(|port| port.retired)
            || self.segments.values().any(|segment| segment.retired)
    }

    /// Removes a user plane with its ports, groups and segments.
    pub fn remove_user_plane(&mut self, id: UserPlaneId) {
        let ports: Vec<PortId> = self.ports_of(id).collect();
        ports.into_iter().for_each(|port| self.remove_port(port));
        self.groups.retain(|_, group| group.user_plane != id);
        self.user_planes.remove(&id.0);
    }

    /// Removes a port with its segments.
    pub fn remove_port(&mut self, id: PortId) {
        self.segments.retain(|_, segment| segment.port != id);
        self.ports.remove(&id.0);
    }

    /// Removes a group.
    pub fn remove_group(&mut self, id: GroupId) {
        self.groups.remove(&id.0);
    }

    /// Removes a segment.
    pub fn remove_segment(&mut self, id: SegmentId) {
        self.segments.remove(&id.0);
    }

    /// The ports of a user plane.
    pub fn ports_of(&self, plane: UserPlaneId) -> impl Iterator<Item = PortId> {
        let ports = self
            .ports()
            .filter(move |(_, port)| port.user_plane == plane);
        ports.map(|(id, _)| id)
    }

    /// The access port of a user plane by its name.
    pub fn find_port(&self, user_plane: UserPlaneId, name: &[u8]) -> Option<PortId> {
        let is_it = |(_, p): &(PortId, &Port)| {
            p.user_plane == user_plane && p.name.as_bytes() == name && !p.retired
        };
        self.ports().find(is_it).map(|(id, _)| id)
    }

    /// Segment of a port for frames with these tags.
    pub fn find_segment(&self, port: PortId, tags: &Tags) -> Option<SegmentId> {
        let s_vlan = tags.outer.map(|tag| tag.vid);
        let is_it = |(_, s): &(SegmentId, &Segment)| {
            s.port == port && !s.retired && s.s_vlans.contains(s_vlan)
        };
        self.segments().find(is_it).map(|(id, _)| id)
    }

    /// Whether there is a segment of this key, retired or not.
    pub fn has_segment(&self, segment: SegmentId) -> bool {
        self.segments.contains_key(&segment.0)
    }

    /// Whether a segment still contains sessions with this outer VLAN. A VLAN is in only one segment of a port.
    pub fn has_place(&self, segment: SegmentId, s_vlan: Option<u16>) -> bool {
        self.is_open(segment) && self.segment(segment).s_vlans.contains(s_vlan)
    }

    /// The network instance of this name.
    pub fn find_instance(&self, name: &str) -> Option<InstanceId> {
        self.instances()
            .find(|(_, one)| one.name == name)
            .map(|(id, _)| id)
    }
}

/// Locally administered unicast address from the group's name, so that it does not depend on the group's user plane.
fn virtual_mac(group: &str) -> MacAddr {
    let hash = Sha256::digest(group.as_bytes());
    MacAddr([0x02, 0x53, hash[0], hash[1], hash[2], hash[3]])
}

#[cfg(test)]
mod tests;
