//! User planes and their ports.

use super::policies::{Acls, Policer, TrafficPolicy, shared};
use super::{AccessProfile, Configuration, Level, Protection};
use crate::{HoldSessions, SvlanSet};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// User plane.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserPlane {
    /// IP address for PFCP (UDP 8805) and GTP-U (UDP 2152), IPv4 or IPv6.
    #[schemars(extend("x-example" = "192.0.2.2"))]
    pub address: IpAddr,
    /// Endpoint of the management interface: path of a Unix socket on this machine, or IP address and TCP port.
    #[schemars(extend("x-format" = "endpoint", "x-example" = "192.0.2.2:8806"))]
    pub management: String,
    /// Time for which sessions keep forwarding after the control plane is lost: `forever`, or seconds.
    #[serde(default)]
    #[schemars(with = "String", extend("x-format" = "hold", "default" = "forever"))]
    pub hold_sessions: HoldSessions,
    /// Packets with IPv4 options (RFC 791 §3.1) that the user plane forwards, from subscribers and from the core.
    #[serde(default)]
    pub ipv4_options: Ipv4Options,
    /// Whether the user plane takes new sessions. `sluice drain` sets it, together with `end-sessions`.
    #[serde(default)]
    pub admin_state: AdminState,
    /// Number of sessions that the control plane ends per second while `admin-state` is `shutting-down`. Each subscriber is
    /// notified (LCP Terminate-Request, PADT), and accounting reports Admin-Reboot (RFC 2866 §5.10). 0: sessions end by themselves.
    #[serde(default)]
    #[schemars(range(max = 10_000), extend("x-unit" = "sessions per second"))]
    pub end_sessions: u16,
    /// The most that one worker sends to subscribers. All sessions of a segment or VLAN with a rate (`egress-rate`, `vlan-egress-rate`) are at
    /// one worker, so their rate is refused above this. The default was measured with packets of 512 octets that all wait, for 131,072
    /// subscribers at a core of 3 GHz.
    #[serde(default = "worker_rate")]
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub worker_rate: u32,
    /// Access ports and core ports.
    #[serde(default)]
    #[schemars(extend("x-key" = "the logical port's name, as PFCP's Logical Port carries it"))]
    pub ports: BTreeMap<String, Port>,
}

/// Packets with IPv4 options that a user plane forwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ipv4Options {
    /// All, as if they had no options.
    Forward,
    /// Those without a loose or strict source route (RFC 7126 §4.3, §4.4). A packet whose options cannot be read is dropped, too.
    #[default]
    DropSourceRoutes,
    /// None.
    Drop,
}

impl Ipv4Options {
    fn is_default(&self) -> bool {
        *self == Ipv4Options::default()
    }
}

/// Administrative state (ITU-T X.731, RFC 8348).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdminState {
    /// Takes new sessions.
    #[default]
    Unlocked,
    /// Keeps its sessions and takes no new ones.
    ShuttingDown,
}

/// Port of a user plane.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Port {
    /// Network to which the port connects.
    pub role: PortRole,
    /// DPDK device: a PCI address, or device arguments such as `net_af_xdp0,iface=eth1`. A port has either this or `lag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-format" = "device", "x-example" = "net_af_xdp0,iface=eth1"))]
    pub device: Option<String>,
    /// Link aggregation group (LAG): several devices that are one port (IEEE 802.1AX). A subscriber's packets leave by one of them, and by
    /// another when that fails. Rates of the port and of its parts hold across all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Lag>,
    /// Access: access segments. A port without segments is one segment with all VLANs and default settings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-key" = "the segment's name"))]
    pub segments: BTreeMap<String, Segment>,
    /// Access: subscriber group of the port's sessions. Default: a group of its own. A change applies to new sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reference" = "/subscriber-groups"))]
    pub subscriber_group: Option<String>,
    /// Core: network instance of untagged packets.
    #[serde(default = "default_instance")]
    #[schemars(extend("x-reference" = "/network-instances"))]
    pub network_instance: String,
    /// Core: kernel interface (TAP) that has the port's addresses. Default: `sl-` and the port's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-format" = "interface", "x-example" = "sl-core0"))]
    pub tap: Option<String>,
    /// Core: IP addresses of the port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", extend("x-format" = "interface-address", "x-example" = "198.51.100.1/24"))]
    pub addresses: Vec<IpNet>,
    /// Core: largest IP packet. Access: largest payload of a frame behind its tags; at least `max-mru` of the access profiles and the
    /// 8 octets of PPPoE.
    #[serde(default = "mtu")]
    #[schemars(range(min = 1280, max = 9600), extend("x-unit" = "octets"))]
    pub mtu: u16,
    /// Rate at which packets leave by the port, with everything that a frame takes on the wire (preamble, gap and frame check sequence).
    /// Packets wait for it for 20 ms at most. Default: the port's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub egress_rate: Option<u32>,
    /// Core: check of the source addresses of untagged packets against the routes (RFC 3704). `loose` and `strict` also drop packets
    /// whose source address is a subscriber's or the gateway's own.
    #[serde(default, skip_serializing_if = "SourceCheck::is_off")]
    #[schemars(extend("default" = "off"))]
    pub source_check: SourceCheck,
    /// Core: 802.1Q sub-interfaces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-key" = "the sub-interface's name"))]
    pub subinterfaces: BTreeMap<String, Subinterface>,
}

/// Maximum number of members of a link aggregation group.
pub const MOST_LAG_MEMBERS: usize = 8;

/// Link aggregation group of a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Lag {
    /// Its members: DPDK devices, as for `device`. The first one's MAC address is the port's.
    #[schemars(length(min = 1, max = MOST_LAG_MEMBERS), extend("x-format" = "device", "x-example" = "0000:03:00.0"))]
    pub members: Vec<String>,
    /// Whether the link aggregation control protocol (LACP) is spoken. `passive`: if the other end does. `off`: every member whose link is
    /// up is used, and the other end has to be configured alike.
    #[serde(default, skip_serializing_if = "Lacp::is_default")]
    #[schemars(extend("default" = "active"))]
    pub lacp: Lacp,
    /// How soon a member is left by which nothing is heard although its link is up: `fast` after 3 seconds, `slow` after 90. The other end
    /// sends each second or each 30.
    #[serde(default, skip_serializing_if = "LacpRate::is_default")]
    #[schemars(extend("default" = "fast"))]
    pub lacp_rate: LacpRate,
    /// Members that have to be usable. With fewer, the port is down, and the other end sends nothing to it.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MOST_LAG_MEMBERS))]
    pub minimum_links: u8,
    /// LACP's priority of this system, for the other end: of two systems, the one with the lower number may choose between members.
    #[serde(default = "system_priority")]
    #[schemars(range(min = 1, max = 65_535))]
    pub system_priority: u16,
}

/// Whether LACP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lacp {
    /// By itself.
    #[default]
    Active,
    /// If the other end does.
    Passive,
    /// Not at all.
    Off,
}

impl Lacp {
    fn is_default(&self) -> bool {
        *self == Lacp::default()
    }
}

/// How often the other end of a LAG shall send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LacpRate {
    /// Each second.
    #[default]
    Fast,
    /// Each 30 seconds.
    Slow,
}

impl LacpRate {
    fn is_default(&self) -> bool {
        *self == LacpRate::default()
    }
}

/// Role of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortRole {
    /// Access network with subscribers.
    Access,
    /// Operator's core network.
    Core,
}

/// Access segment: part of an access port with PPPoE session ids of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Segment {
    /// Outer VLANs of the segment: VLAN ids, ranges, and `untagged`.
    #[schemars(
        with = "String",
        extend("x-format" = "s-vlans", "default" = "untagged,0-4095", "x-example" = "100-199")
    )]
    pub s_vlans: SvlanSet,
    /// Access profile of the segment. Default: the built-in access profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reference" = "/access-profiles"))]
    pub access_profile: Option<String>,
    /// Rate of all frames to the segment's sessions whose policies have queues (`above-rate: wait`), such as that of an access node, with
    /// preamble, gap and frame check sequence. Sessions share it by the `weight` of their policies; one worker has all of them that begin
    /// after it was set, and after `sluice move aggregate` all of them. Default: that of the port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub egress_rate: Option<u32>,
    /// The same for each outer VLAN of the segment, such as that of a PON. Default: that of the segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub vlan_egress_rate: Option<u32>,
}

/// IEEE 802.1Q sub-interface of a core port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Subinterface {
    /// VLAN id of the sub-interface.
    #[schemars(range(min = 1, max = 4094))]
    pub vlan_id: u16,
    /// Network instance of its packets.
    #[serde(default = "default_instance")]
    #[schemars(extend("x-reference" = "/network-instances"))]
    pub network_instance: String,
    /// Kernel interface (TAP) that has the sub-interface's addresses. Default: `sl-` and the sub-interface's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-format" = "interface", "x-example" = "sl-v300"))]
    pub tap: Option<String>,
    /// IP addresses of the sub-interface.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", extend("x-format" = "interface-address", "x-example" = "203.0.113.1/30"))]
    pub addresses: Vec<IpNet>,
    /// Largest IP packet.
    #[serde(default = "mtu")]
    #[schemars(range(min = 1280, max = 9600), extend("x-unit" = "octets"))]
    pub mtu: u16,
    /// Check of the source addresses of the sub-interface's packets against the routes (RFC 3704). `loose` and `strict` also drop
    /// packets whose source address is a subscriber's or the gateway's own.
    #[serde(default, skip_serializing_if = "SourceCheck::is_off")]
    #[schemars(extend("default" = "off"))]
    pub source_check: SourceCheck,
    /// Where the priority (IEEE 802.1p) in the sub-interface's VLAN tags comes from. `fixed`: it is 0.
    #[serde(default, skip_serializing_if = "PrioritySource::is_fixed")]
    #[schemars(extend("default" = "fixed"))]
    pub priority_source: PrioritySource,
}

/// Where the priority (IEEE 802.1p) in VLAN tags of IP packets comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrioritySource {
    /// It is the same for all packets.
    #[default]
    Fixed,
    /// The first three bits of the packet's DSCP (RFC 2474 §4.2.2), after policies have marked it.
    Dscp,
}

impl PrioritySource {
    /// Whether it is the same for all packets.
    pub fn is_fixed(&self) -> bool {
        *self == PrioritySource::Fixed
    }
}

/// Check of the source addresses of packets from the core (RFC 3704).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceCheck {
    /// No check. Source addresses that no packet may have are dropped nevertheless (RFC 1812 §5.3.7).
    #[default]
    Off,
    /// The source address needs a route that does not discard packets. A default route counts (RFC 3704 §2.4).
    Loose,
    /// The route to the source address must leave by the port or sub-interface; of several next hops, one must (RFC 3704 §2.2).
    Strict,
}

impl SourceCheck {
    /// Whether nothing is checked.
    pub fn is_off(&self) -> bool {
        *self == SourceCheck::Off
    }
}

fn default_instance() -> String {
    "default".into()
}
fn mtu() -> u16 {
    1500
}
fn worker_rate() -> u32 {
    25_000_000
}
fn one() -> u8 {
    1
}
fn system_priority() -> u16 {
    0x8000
}

impl Port {
    /// Its devices: of a LAG the members, else one.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let members = self.lag.iter().flat_map(|lag| &lag.members);
        self.device.iter().chain(members).map(String::as_str)
    }

    /// Where its devices are named.
    pub fn devices_at(&self) -> &'static [&'static str] {
        match self.lag {
            Some(_) => &["lag", "members"],
            None => &["device"],
        }
    }

    /// Name of a core port's TAP. `name` is the port's name.
    pub fn tap_name(&self, name: &str) -> String {
        self.tap.clone().unwrap_or_else(|| format!("sl-{name}"))
    }

    /// Access segments. A port without segments has one with the name `all`.
    pub fn segments(&self) -> BTreeMap<String, Segment> {
        match self.segments.is_empty() {
            true => [("all".to_owned(), Segment::default())].into(),
            false => self.segments.clone(),
        }
    }

    /// Pairs of segments that share a VLAN. Untagged frames count as VLAN 0, like priority-tagged ones (IEEE 802.1Q §9.6).
    pub fn overlapping_segments(&self) -> Vec<(&str, &str)> {
        let mut owner: Vec<Option<&str>> = vec![None; 4096]; // of each VLAN id
        let mut overlapping = Vec::new();
        for (name, segment) in &self.segments {
            let other = segment.s_vlans.members().find_map(|vlan| {
                let other = owner[usize::from(vlan.unwrap_or(0))].replace(name);
                other.filter(|other| other != name)
            });
            overlapping.extend(other.map(|other| (name.as_str(), other)));
        }
        overlapping
    }
}

impl Subinterface {
    /// Name of the TAP. `name` is the sub-interface's name.
    pub fn tap_name(&self, name: &str) -> String {
        self.tap.clone().unwrap_or_else(|| format!("sl-{name}"))
    }
}

/// Part of the configuration that a user plane gets over its management interface.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct UserPlaneDocument {
    /// Least severe level that it logs.
    pub log_level: Level,
    /// Time for which sessions keep forwarding after the control plane is lost.
    pub hold_sessions: HoldSessions,
    /// Packets with IPv4 options that it forwards. User planes of before know nothing of it.
    #[serde(skip_serializing_if = "Ipv4Options::is_default")]
    pub ipv4_options: Ipv4Options,
    /// How much it passes on that is for the gateway itself. User planes of before know nothing of it.
    #[serde(skip_serializing_if = "Protection::is_default")]
    pub protection: Protection,
    /// Access segments, by port, in which circuit and remote ids name no lines (`trust-line-tags: false`). User planes of before know
    /// nothing of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub untrusted_segments: BTreeMap<String, BTreeSet<String>>,
    /// ACLs by name. User planes of before know nothing of them.
    #[serde(with = "shared", skip_serializing_if = "BTreeMap::is_empty")]
    pub acls: Acls,
    /// Policers by name. User planes of before know nothing of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub policers: BTreeMap<String, Policer>,
    /// Policies by name. User planes of before know nothing of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub policies: BTreeMap<String, TrafficPolicy>,
    /// Network instances of its ports and subscribers, by name.
    pub network_instances: BTreeMap<String, DeviceDocument>,
    /// Ports, without the settings that only the control plane needs.
    pub ports: BTreeMap<String, Port>,
}

/// Network instance in a user plane's document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DeviceDocument {
    /// Kernel interface through which the kernel reaches the instance's subscribers.
    pub interface: String,
    /// The gateway's own addresses towards subscribers.
    pub gateway: Vec<IpAddr>,
}

impl Configuration {
    /// Largest payload of a frame that sessions of an access port may need: an IP packet of the largest MRU that may be
    /// agreed upon, behind the 6 octets of PPPoE and the 2 of PPP (RFC 2516 §4, RFC 4638).
    fn sessions_mtu(&self, port: &Port) -> u16 {
        let segments = port.segments();
        let mru = segments.values().map(|segment| {
            let profile = self.profile_of(segment);
            profile.map_or(AccessProfile::default().max_mru, |profile| profile.max_mru)
        });
        mru.max().unwrap_or_default() + 8
    }

    /// The access profile of a segment, unless it is the built-in one.
    fn profile_of(&self, segment: &Segment) -> Option<&AccessProfile> {
        self.access_profiles.get(segment.access_profile.as_ref()?)
    }

    /// Segments by port whose access profiles do not trust the ids of access nodes.
    fn untrusted_segments(&self, plane: &UserPlane) -> BTreeMap<String, BTreeSet<String>> {
        let trusts = |segment: &Segment| {
            let profile = self.profile_of(segment);
            profile.is_none_or(|profile| profile.trust_line_tags)
        };
        let ports = plane.ports.iter().map(|(name, port)| {
            let all = port.segments.iter();
            let untrusted = all.filter(|(_, segment)| !trusts(segment));
            let names: BTreeSet<String> = untrusted.map(|(name, _)| name.clone()).collect();
            (name.clone(), names)
        });
        ports.filter(|(_, names)| !names.is_empty()).collect()
    }

    /// Document for a user plane; `None` if the configuration has no user plane of this name.
    pub fn document_for(&self, user_plane: &str) -> Option<UserPlaneDocument> {
        let plane = self.user_planes.get(user_plane)?;
        let instances = self.network_instances.iter().map(|(name, instance)| {
            let interface = instance
                .interface
                .clone()
                .unwrap_or_else(|| format!("sl-{name}"));
            let gateway = instance.gateway.clone();
            (name.clone(), DeviceDocument { interface, gateway })
        });
        let mut ports = plane.ports.clone();
        for port in ports.values_mut() {
            if port.role == PortRole::Access {
                port.mtu = port.mtu.max(self.sessions_mtu(port));
            }
            port.subscriber_group = None;
            let segments = port.segments.values_mut();
            segments.for_each(|segment| segment.access_profile = None);
        }
        Some(UserPlaneDocument {
            log_level: self.logging.level,
            hold_sessions: plane.hold_sessions,
            ipv4_options: plane.ipv4_options,
            protection: self.protection.clone(),
            untrusted_segments: self.untrusted_segments(plane),
            acls: self.acls.clone(),
            policers: self.policers.clone(),
            policies: self.policies.clone(),
            network_instances: instances.collect(),
            ports,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::check;

    #[test]
    fn an_access_port_is_told_what_its_sessions_may_need() {
        let mtu = |setting: &str, max_mru: u16| {
            let text = format!(
                "network-instances: {{default: {{}}}}
access-profiles: {{large: {{max-mru: {max_mru}}}}}
user-planes:
  up1:
    address: 192.0.2.2
    management: /run/up1.sock
    ports:
      plain: {{role: access, device: net_af_xdp0}}
      large: {{role: access, device: net_af_xdp1, {setting} segments: {{a: {{s-vlans: 1}}, b: {{s-vlans: 2, access-profile: large}}}}}}
      core0: {{role: core, device: net_af_xdp2}}
"
            );
            let configuration = check::read(&text).unwrap().configuration;
            let document = configuration.document_for("up1").unwrap();
            ["plain", "large", "core0"].map(|port| document.ports[port].mtu)
        };
        assert_eq!(mtu("", 1400), [1500, 1500, 1500]);
        assert_eq!(mtu("", 1500), [1500, 1508, 1500]);
        assert_eq!(mtu("mtu: 1400,", 1500), [1500, 1508, 1500]);
        assert_eq!(mtu("mtu: 1600,", 1500), [1500, 1600, 1500]);
    }
    #[test]
    fn a_user_plane_is_told_which_segments_have_ids_that_are_not_trusted() {
        let text = "network-instances: {default: {}}
access-profiles: {own: {trust-line-tags: false}, plain: {}}
user-planes:
  up1:
    address: 192.0.2.2
    management: /run/up1.sock
    ports:
      plain: {role: access, device: net_af_xdp0}
      mixed: {role: access, device: net_af_xdp1, segments: {a: {s-vlans: 1, access-profile: own}, b: {s-vlans: 2, access-profile: plain}}}
      core0: {role: core, device: net_af_xdp2}
";
        let configuration = check::read(text).unwrap().configuration;
        let document = configuration.document_for("up1").unwrap();
        let told = serde_json::to_value(&document).unwrap();
        assert_eq!(
            told["untrusted-segments"],
            serde_json::json!({"mixed": ["a"]})
        );
        // one of before is told nothing that it does not know, unless there is something to tell
        let text = text.replace("false", "true");
        let configuration = check::read(&text).unwrap().configuration;
        let document = configuration.document_for("up1").unwrap();
        let told = serde_json::to_value(&document).unwrap();
        assert_eq!(told.get("untrusted-segments"), None);
    }
}
