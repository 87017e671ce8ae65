//! User planes and their ports.

use super::{AccessProfile, Configuration, Level};
use crate::{HoldSessions, SvlanSet};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A user plane.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserPlane {
    /// Where it serves PFCP (UDP 8805) and GTP-U (UDP 2152): over IPv4 or IPv6.
    #[schemars(extend("x-example" = "192.0.2.2"))]
    pub address: IpAddr,
    /// Where it serves its management interface: the path of a Unix socket on this machine, or an address and a TCP port.
    #[schemars(extend("x-format" = "endpoint", "x-example" = "192.0.2.2:8806"))]
    pub management: String,
    /// How long sessions forward after their control plane was lost: `forever`, or seconds.
    #[serde(default)]
    #[schemars(with = "String", extend("x-format" = "hold", "default" = "forever"))]
    pub hold_sessions: HoldSessions,
    /// Whether it takes new sessions. `sluice drain` sets it, and what follows.
    #[serde(default)]
    pub admin_state: AdminState,
    /// How many of its sessions are ended in a second while it shuts down; 0: none, they end by themselves. Their subscribers
    /// are told, and accounting has Admin-Reboot as the cause (RFC 2866 §5.10).
    #[serde(default)]
    #[schemars(range(max = 10_000), extend("x-unit" = "sessions per second"))]
    pub end_sessions: u16,
    /// Its ports, towards subscribers and towards the operator's network.
    #[serde(default)]
    #[schemars(extend("x-key" = "the logical port's name, as PFCP's Logical Port carries it"))]
    pub ports: BTreeMap<String, Port>,
}

/// Whether something serves, in the words of ITU-T X.731 and RFC 8348.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdminState {
    /// It takes whoever dials in.
    #[default]
    Unlocked,
    /// Whoever is there stays, and nobody new is answered.
    ShuttingDown,
}

/// A port of a user plane.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Port {
    /// What is behind it.
    pub role: PortRole,
    /// What carries it: DPDK device arguments, such as `net_af_xdp0,iface=eth1`, or a PCI address.
    #[schemars(extend("x-format" = "device", "x-example" = "net_af_xdp0,iface=eth1"))]
    pub device: String,
    /// Access: its segments; a port without any is one segment of all VLANs with the defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-key" = "the segment's name"))]
    pub segments: BTreeMap<String, Segment>,
    /// Access: the subscriber group of its sessions; by default one of its own. For those that begin from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reference" = "/subscriber-groups"))]
    pub subscriber_group: Option<String>,
    /// Core: the network instance of what it carries without a VLAN tag.
    #[serde(default = "default_instance")]
    #[schemars(extend("x-reference" = "/network-instances"))]
    pub network_instance: String,
    /// Core: the kernel interface that owns the port's addresses; by default `sl-` and the port's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-format" = "interface", "x-example" = "sl-core0"))]
    pub tap: Option<String>,
    /// Core: the port's own addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", extend("x-format" = "interface-address", "x-example" = "198.51.100.1/24"))]
    pub addresses: Vec<IpNet>,
    /// Core: the largest IP packet. Access: the largest payload of a frame behind its tags; at least what the access profiles'
    /// `max-mru` needs with the 8 octets of PPPoE.
    #[serde(default = "mtu")]
    #[schemars(range(min = 1280, max = 9600), extend("x-unit" = "octets"))]
    pub mtu: u16,
    /// Core: 802.1Q sub-interfaces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-key" = "the sub-interface's name"))]
    pub subinterfaces: BTreeMap<String, Subinterface>,
}

/// Which side of the gateway a port is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortRole {
    /// Subscribers.
    Access,
    /// The operator's network.
    Core,
}

/// An access segment: part of an access port, with PPPoE session ids of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Segment {
    /// The outer VLANs that belong to it: ids and ranges, and `untagged`.
    #[schemars(
        with = "String",
        extend("x-format" = "s-vlans", "default" = "untagged,0-4095", "x-example" = "100-199")
    )]
    pub s_vlans: SvlanSet,
    /// How its subscribers are met; without it by the defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reference" = "/access-profiles"))]
    pub access_profile: Option<String>,
}

/// An 802.1Q sub-interface of a core port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Subinterface {
    /// The VLAN that it carries.
    #[schemars(range(min = 1, max = 4094))]
    pub vlan_id: u16,
    /// The network instance of what it carries.
    #[serde(default = "default_instance")]
    #[schemars(extend("x-reference" = "/network-instances"))]
    pub network_instance: String,
    /// The kernel interface that owns its addresses; by default `sl-` and the sub-interface's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-format" = "interface", "x-example" = "sl-v300"))]
    pub tap: Option<String>,
    /// Its own addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", extend("x-format" = "interface-address", "x-example" = "203.0.113.1/30"))]
    pub addresses: Vec<IpNet>,
    /// The largest IP packet.
    #[serde(default = "mtu")]
    #[schemars(range(min = 1280, max = 9600), extend("x-unit" = "octets"))]
    pub mtu: u16,
}

fn default_instance() -> String {
    "default".into()
}
fn mtu() -> u16 {
    1500
}

impl Port {
    /// The name of its TAP, if it is a core port; `name` is the port's own.
    pub fn tap_name(&self, name: &str) -> String {
        self.tap.clone().unwrap_or_else(|| format!("sl-{name}"))
    }

    /// Its segments; a port that names none has one, `all`.
    pub fn segments(&self) -> BTreeMap<String, Segment> {
        match self.segments.is_empty() {
            true => [("all".to_owned(), Segment::default())].into(),
            false => self.segments.clone(),
        }
    }

    /// Segments that have a VLAN of another one, each with that one. Untagged frames count as VLAN 0, as priority-tagged ones
    /// do (IEEE 802.1Q §9.6).
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
    /// The name of its TAP; `name` is the sub-interface's own.
    pub fn tap_name(&self, name: &str) -> String {
        self.tap.clone().unwrap_or_else(|| format!("sl-{name}"))
    }
}

/// The part of the configuration that a user plane is told.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct UserPlaneDocument {
    /// The least severe messages of its log.
    pub log_level: Level,
    /// How long sessions forward after their control plane was lost.
    pub hold_sessions: HoldSessions,
    /// The network instances that its ports and its subscribers are in, by name.
    pub network_instances: BTreeMap<String, DeviceDocument>,
    /// Its ports, without what only the control plane has to know.
    pub ports: BTreeMap<String, Port>,
}

/// A network instance as a user plane is told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DeviceDocument {
    /// The kernel interface through which the kernel reaches the instance's subscribers.
    pub interface: String,
    /// The gateway's own addresses towards subscribers.
    pub gateway: Vec<IpAddr>,
}

impl Configuration {
    /// The largest payload of a frame that sessions of an access port may need: an IP packet of the largest MRU that may be
    /// agreed upon, behind the 6 octets of PPPoE and the 2 of PPP (RFC 2516 §4, RFC 4638).
    fn sessions_mtu(&self, port: &Port) -> u16 {
        let segments = port.segments();
        let mru = segments.values().map(|segment| {
            let name = segment.access_profile.as_ref();
            let profile = name.and_then(|name| self.access_profiles.get(name));
            profile.map_or(AccessProfile::default().max_mru, |profile| profile.max_mru)
        });
        mru.max().unwrap_or_default() + 8
    }

    /// What a user plane is told; `None` if there is none of this name.
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
}
