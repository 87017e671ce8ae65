//! `sluice-up`'s document.

use crate::values::{doubled, overlap};
use crate::{Document, Fault, Segment};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_saphyr::Spanned;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

/// One user plane.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserPlane {
    /// Its PFCP Node ID: a host name, at most 255 octets.
    pub node_id: String,
    /// Where PFCP (UDP 8805) and GTP-U (UDP 2152) are served.
    pub address: IpAddr,
    /// The control planes that may associate, each called as soon as there is no association with it. Empty: whoever
    /// calls is let in, and none is called.
    #[serde(default)]
    pub control_planes: Vec<IpAddr>,
    /// How long a control plane's sessions are held, and forward, after the path to it was lost.
    #[serde(default)]
    pub hold_sessions: HoldSessions,
    /// Where the local API listens.
    #[serde(default = "up_socket")]
    pub api_socket: PathBuf,
    /// MiB of packet memory.
    #[serde(default = "memory")]
    pub memory: u32,
    /// The most subscriber sessions, 1 to 1,048,576.
    #[serde(default = "max_sessions")]
    pub max_sessions: Spanned<u32>,
    /// The ports, at least one.
    pub ports: Spanned<Vec<Port>>,
    /// The network instances (VRFs) that core ports belong to, by name.
    pub network_instances: BTreeMap<String, NetworkInstance>,
}

fn up_socket() -> PathBuf {
    "/run/sluice/up.sock".into()
}
fn memory() -> u32 {
    256
}
fn max_sessions() -> Spanned<u32> {
    unlocated(131_072)
}

/// A default has no place in the text.
fn unlocated<T>(value: T) -> Spanned<T> {
    let nowhere = serde_saphyr::Location::UNKNOWN;
    Spanned::new(value, nowhere, nowhere)
}

/// How long something is held: `forever`, or a number of seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HoldSessions {
    /// Until the path returns.
    #[default]
    Forever,
    /// So many seconds, at least 1.
    Seconds(u32),
}

impl Serialize for HoldSessions {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            HoldSessions::Forever => s.serialize_str("forever"),
            HoldSessions::Seconds(seconds) => s.serialize_str(&seconds.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for HoldSessions {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // a number may be read as a text
        let text = String::deserialize(d)?;
        match (text.as_str(), text.parse()) {
            ("forever", _) => Ok(HoldSessions::Forever),
            (_, Ok(seconds @ 1..)) => Ok(HoldSessions::Seconds(seconds)),
            _ => Err(serde::de::Error::custom(format!(
                "`hold-sessions` is `{text}`: expected `forever` or seconds from 1 on"
            ))),
        }
    }
}

/// A logical port on a DPDK device.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Port {
    /// The logical port's name, as PFCP's Logical Port carries it.
    pub name: String,
    /// What is behind it.
    pub role: PortRole,
    /// DPDK devargs: `net_af_xdp0,iface=eth1`, `net_af_packet0,iface=eth1`, or a PCI address.
    pub device: String,
    /// Access: the segments, by default one that holds everything.
    #[serde(default = "Segment::whole_port")]
    pub segments: Vec<Segment>,
    /// Core: the network instance of what it carries.
    #[serde(default = "default_instance")]
    pub network_instance: Spanned<String>,
    /// Core: the name of its TAP, through which the kernel owns the port's addresses. At most 15 octets.
    #[serde(default)]
    pub tap: Option<String>,
    /// Core: the port's own addresses, given to the TAP.
    #[serde(default)]
    pub addresses: Vec<IpNet>,
    /// The largest IP packet on a core port, in octets.
    #[serde(default = "mtu")]
    pub mtu: u16,
}

fn default_instance() -> Spanned<String> {
    unlocated("default".into())
}
fn mtu() -> u16 {
    1500
}

/// Which side of the gateway a port is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortRole {
    /// Subscribers.
    Access,
    /// The operator's network.
    Core,
}

/// A network instance (VRF) of the user plane.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkInstance {
    /// The name of the kernel interface through which the kernel reaches the instance's subscribers. At most 15 octets.
    pub device: String,
    /// The gateway's own addresses towards subscribers.
    #[serde(default)]
    pub gateway: Vec<IpAddr>,
}

/// The longest name of a Linux interface (IFNAMSIZ less the end).
const IFNAME_MAX: usize = 15;

impl Document for UserPlane {
    fn check(&self) -> Result<(), Fault> {
        let at = |line, message: String| {
            Err(Fault {
                line,
                ..Fault::of_document(message)
            })
        };
        let ports_line = self.ports.referenced.line();
        if self.ports.value.is_empty() {
            return at(
                ports_line,
                "`ports` is empty: expected at least one port".into(),
            );
        }
        if !(1..=1 << 20).contains(&self.max_sessions.value) {
            let found = self.max_sessions.value;
            return at(
                self.max_sessions.referenced.line(),
                format!("`max-sessions` is {found}: expected 1 to 1048576"),
            );
        }
        if let Some(name) = doubled(self.ports.value.iter().map(|p| p.name.as_str())) {
            return at(
                ports_line,
                format!("two ports are named `{name}`: expected unique names"),
            );
        }
        if let Some(name) = doubled(self.interfaces()) {
            return at(
                0,
                format!("two kernel interfaces are named `{name}`: expected unique names"),
            );
        }
        if let Some(name) = self
            .interfaces()
            .find(|n| n.is_empty() || n.len() > IFNAME_MAX)
        {
            return at(
                0,
                format!(
                    "`{name}` is not the name of an interface: expected 1 to {IFNAME_MAX} octets"
                ),
            );
        }
        self.ports
            .value
            .iter()
            .try_for_each(|port| self.check_port(port, ports_line))
    }
}

impl UserPlane {
    /// The kernel interfaces that the user plane makes.
    fn interfaces(&self) -> impl Iterator<Item = &str> {
        let taps = self.ports.value.iter().filter_map(|p| p.tap.as_deref());
        taps.chain(self.network_instances.values().map(|n| n.device.as_str()))
    }

    fn check_port(&self, port: &Port, line: u64) -> Result<(), Fault> {
        let name = &port.name;
        let wrong = |line, message| {
            Err(Fault {
                line,
                ..Fault::of_document(message)
            })
        };
        if let Some((a, b)) = overlap(&port.segments) {
            return wrong(
                line,
                format!("port `{name}`: segments `{a}` and `{b}` share an S-VLAN"),
            );
        }
        match port.role {
            PortRole::Access if port.tap.is_some() || !port.addresses.is_empty() => wrong(
                line,
                format!(
                    "access port `{name}` has a `tap` or `addresses`: expected on core ports only"
                ),
            ),
            PortRole::Core if port.tap.is_none() => wrong(
                line,
                format!(
                    "core port `{name}` has no `tap`: expected the name of an interface, such as `sl-{name}`"
                ),
            ),
            PortRole::Core
                if !self
                    .network_instances
                    .contains_key(&port.network_instance.value) =>
            {
                let known: Vec<&str> = self.network_instances.keys().map(String::as_str).collect();
                let line = match port.network_instance.referenced.line() {
                    0 => line,
                    line => line,
                };
                wrong(
                    line,
                    format!(
                        "port `{name}` is in network instance `{}`, which is not there: expected one of {known:?}",
                        port.network_instance.value
                    ),
                )
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "node-id: up1
address: 192.0.2.2
ports:
  - name: access0
    role: access
    device: net_af_xdp0,iface=acc0
    segments: [{name: east, s-vlans: 100-199}, {name: west, s-vlans: 200}]
  - name: core0
    role: core
    device: net_af_xdp1,iface=core0
    network-instance: default
    tap: sl-core0
    addresses: [198.51.100.1/24, 2001:db8:100::1/64]
network-instances:
  default: {device: sl-default, gateway: [100.64.0.1, 2001:db8:ffff::1]}
";

    fn refused(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from));
        let text = GOOD.replace(from, to);
        crate::parse::<UserPlane>(&text, "up.yaml")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_good_file_is_read() {
        let up: UserPlane = crate::parse(GOOD, "up.yaml").unwrap();
        assert_eq!(up.ports.value[1].addresses.len(), 2);
        assert_eq!(up.max_sessions.value, 131_072);
        assert_eq!(up.hold_sessions, HoldSessions::Forever);
    }

    #[test]
    fn sessions_are_held_for_ever_or_for_seconds() {
        for (text, hold) in [
            ("forever", HoldSessions::Forever),
            ("300", HoldSessions::Seconds(300)),
        ] {
            let text = format!("hold-sessions: {text}\n{GOOD}");
            let up: UserPlane = crate::parse(&text, "up.yaml").unwrap();
            assert_eq!(up.hold_sessions, hold);
        }
    }

    #[test]
    fn faults_name_their_line_and_what_is_expected() {
        for (from, to, said) in [
            ("role: access", "role: acess", "up.yaml:5: "),
            ("address: 192.0.2.2", "address: 192.0.2", "up.yaml:2: "),
            (
                "s-vlans: 200",
                "s-vlans: 5000",
                "expected ids or ranges between 0 and 4095",
            ),
            ("s-vlans: 200", "s-vlans: 150-250", "share an S-VLAN"),
            (
                "network-instance: default",
                "network-instance: red",
                "up.yaml:11: port `core0` is in network instance `red`",
            ),
            ("    tap: sl-core0\n", "", "has no `tap`"),
            (
                "tap: sl-core0",
                "tap: sl-a-name-that-is-too-long",
                "1 to 15 octets",
            ),
            (
                "name: core0",
                "name: access0",
                "two ports are named `access0`",
            ),
            ("node-id: up1\n", "", "node-id"),
            (
                "node-id: up1\n",
                "node-id: up1\nnode-id: up2\n",
                "up.yaml:2: ",
            ),
            (
                "node-id: up1\n",
                "node-id: up1\nhold-sessions: 0\n",
                "expected `forever` or seconds",
            ),
            (
                "node-id: up1\n",
                "node-id: up1\nmax-sessions: 0\n",
                "up.yaml:2: `max-sessions` is 0",
            ),
            (
                "address: 192.0.2.2\n",
                "address: 192.0.2.2\nfoo: 1\n",
                "up.yaml:3: ",
            ),
        ] {
            let message = refused(from, to);
            assert!(message.contains(said), "{message}\nlacks {said}");
        }
    }
}
