//! `sluice-cp`'s document.

use crate::values::{doubled, overlap};
use crate::{Addresses, Document, Fault, Secret, Segment};
use ipnet::{Ipv4Net, Ipv6Net};
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// One control plane.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ControlPlane {
    /// Its PFCP Node ID: a host name, at most 255 octets.
    pub node_id: String,
    /// Where PFCP (UDP 8805) and GTP-U (UDP 2152) are served: an address of each family that a user plane has.
    pub address: Addresses,
    /// Where the local API listens.
    #[serde(default = "cp_socket")]
    pub api_socket: PathBuf,
    /// The folder of the session store.
    #[serde(default = "store")]
    pub store: PathBuf,
    /// Bounds of what subscribers can make the control plane hold.
    #[serde(default)]
    pub limits: Limits,
    /// The user planes that it drives, at least one.
    pub user_planes: Spanned<Vec<UserPlanePeer>>,
    /// What subscribers get in each network instance (VRF), by name.
    pub network_instances: BTreeMap<String, NetworkInstanceService>,
    /// How PPPoE subscribers are met.
    #[serde(default)]
    pub pppoe: Pppoe,
    /// Who knows the subscribers.
    pub aaa: Aaa,
}

fn cp_socket() -> PathBuf {
    "/run/sluice/cp.sock".into()
}
fn store() -> PathBuf {
    "/var/lib/sluice/cp".into()
}

/// Bounds of what subscribers can make the control plane hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// The most sessions, half-open ones among them.
    pub sessions: u32,
    /// The most sessions that are not online yet; beyond it the oldest gives way.
    pub half_open: u32,
    /// The most accounting records that may wait for a RADIUS server, each of about 1 KB; beyond it they are lost.
    pub accounting_records: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sessions: 131_072,
            half_open: 8_192,
            accounting_records: 131_072,
        }
    }
}

/// A user plane as the control plane knows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserPlanePeer {
    /// Its PFCP Node ID.
    pub node_id: String,
    /// Where it serves PFCP and GTP-U.
    pub address: IpAddr,
    /// Its access ports.
    pub access_ports: Vec<AccessPort>,
}

/// An access port of a user plane.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AccessPort {
    /// The logical port's name.
    pub port: String,
    /// Its segments; must be those of the user plane. By default one that holds everything.
    #[serde(default = "Segment::whole_port")]
    pub segments: Vec<Segment>,
    /// The subscriber group of its sessions; by default one named after user plane and port.
    #[serde(default)]
    pub subscriber_group: Option<String>,
}

/// What subscribers get in a network instance.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkInstanceService {
    /// The gateway's address in IPCP.
    #[serde(default)]
    pub gateway: Option<Ipv4Addr>,
    /// IPv4 addresses; without it subscribers get none.
    #[serde(default)]
    pub ipv4_pool: Option<Spanned<Ipv4Pool>>,
    /// IPv6 prefixes; without it subscribers get none.
    #[serde(default)]
    pub ipv6_pool: Option<Spanned<Ipv6Pool>>,
    /// Name servers; the first two of IPv4 go into IPCP, those of IPv6 into the RA.
    #[serde(default)]
    pub dns: Vec<IpAddr>,
}

impl NetworkInstanceService {
    /// The name servers for IPCP.
    pub fn dns_ipv4(&self) -> [Option<Ipv4Addr>; 2] {
        let mut found = self.dns.iter().filter_map(|a| match a {
            IpAddr::V4(a) => Some(*a),
            IpAddr::V6(_) => None,
        });
        [found.next(), found.next()]
    }

    /// The name servers for Router Advertisements.
    pub fn dns_ipv6(&self) -> Vec<Ipv6Addr> {
        let v6 = |a: &IpAddr| match a {
            IpAddr::V6(a) => Some(*a),
            IpAddr::V4(_) => None,
        };
        self.dns.iter().filter_map(v6).collect()
    }
}

/// IPv4 addresses, handed to subscriber groups net by net.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ipv4Pool {
    /// All of them.
    pub prefix: Ipv4Net,
    /// The length of the nets that it is cut into.
    #[serde(default = "ipv4_net_length")]
    pub net_length: u8,
}

fn ipv4_net_length() -> u8 {
    24
}

/// IPv6 prefixes of /64, handed to subscriber groups net by net.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ipv6Pool {
    /// All of them.
    pub prefix: Ipv6Net,
    /// The length of the nets that it is cut into.
    #[serde(default = "ipv6_net_length")]
    pub net_length: u8,
}

fn ipv6_net_length() -> u8 {
    56
}

/// How PPPoE subscribers are met.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Pppoe {
    /// The AC-Name of PADO.
    pub ac_name: String,
    /// The services offered; empty: whatever is asked for.
    pub service_names: Vec<String>,
    /// The largest MRU, in octets; above 1492 only for those that ask by PPP-Max-Payload (RFC 4638).
    pub mru: u16,
    /// The authentication protocols in order of preference.
    pub authentication: Vec<Auth>,
    /// The keepalive.
    pub echo: Echo,
}

impl Default for Pppoe {
    fn default() -> Self {
        Pppoe {
            ac_name: "sluice".into(),
            service_names: Vec::new(),
            mru: 1492,
            authentication: vec![Auth::Chap, Auth::Pap],
            echo: Echo::default(),
        }
    }
}

/// A PPP authentication protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// CHAP with MD5 (RFC 1994).
    Chap,
    /// PAP (RFC 1334).
    Pap,
}

/// LCP echo requests to a silent subscriber.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Echo {
    /// Seconds between requests.
    pub interval: u16,
    /// Unanswered requests that end the session.
    pub failures: u8,
}

impl Default for Echo {
    fn default() -> Self {
        Echo {
            interval: 30,
            failures: 3,
        }
    }
}

/// Who knows the subscribers.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aaa {
    /// RADIUS servers.
    Radius(RadiusServers),
    /// A file of users (see crate `aaa`).
    UsersFile(PathBuf),
}

/// RADIUS servers, asked in order.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RadiusServers {
    /// At least one.
    pub servers: Spanned<Vec<RadiusServer>>,
    /// NAS-Identifier; by default the node id.
    #[serde(default)]
    pub nas_identifier: Option<String>,
    /// Seconds before the first retransmission.
    #[serde(default = "two")]
    pub timeout: u16,
    /// Transmissions to one server before the next is asked.
    #[serde(default = "three")]
    pub tries: u8,
    /// Seconds for which a server that answered nothing is passed over, as long as another one is left to ask.
    #[serde(default = "dead_time")]
    pub dead_time: u16,
    /// Seconds between interim accounting records where the server sends no Acct-Interim-Interval; 0: none.
    #[serde(default = "interim_interval")]
    pub interim_interval: u32,
}

fn two() -> u16 {
    2
}
fn three() -> u8 {
    3
}
fn dead_time() -> u16 {
    60
}
fn interim_interval() -> u32 {
    300
}

/// A RADIUS server.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RadiusServer {
    /// Its address.
    pub address: IpAddr,
    /// The shared secret.
    pub secret: Secret,
    /// UDP port for authentication.
    #[serde(default = "auth_port")]
    pub authentication_port: u16,
    /// UDP port for accounting.
    #[serde(default = "acct_port")]
    pub accounting_port: u16,
    /// Refuse replies without Message-Authenticator (CVE-2024-3596).
    #[serde(default = "yes")]
    pub require_message_authenticator: bool,
}

fn auth_port() -> u16 {
    1812
}
fn acct_port() -> u16 {
    1813
}
fn yes() -> bool {
    true
}

impl Document for ControlPlane {
    fn check(&self) -> Result<(), Fault> {
        let at = |line, message: String| {
            Err(Fault {
                line,
                ..Fault::of_document(message)
            })
        };
        let planes_line = self.user_planes.referenced.line();
        let planes = &self.user_planes.value;
        if planes.is_empty() {
            return at(
                planes_line,
                "`user-planes` is empty: expected at least one".into(),
            );
        }
        if let Some(name) = doubled(planes.iter().map(|u| u.node_id.as_str())) {
            return at(
                planes_line,
                format!("two user planes have the node id `{name}`"),
            );
        }
        let unreachable = planes
            .iter()
            .find(|plane| self.address.towards(plane.address).is_none());
        if let Some(plane) = unreachable {
            let (name, family) = match plane.address {
                IpAddr::V4(_) => (&plane.node_id, "IPv4"),
                IpAddr::V6(_) => (&plane.node_id, "IPv6"),
            };
            return at(
                planes_line,
                format!(
                    "user plane `{name}` has an {family} address: expected one of ours of that family in `address` too"
                ),
            );
        }
        for (plane, port) in planes
            .iter()
            .flat_map(|u| u.access_ports.iter().map(move |p| (u, p)))
        {
            if let Some((a, b)) = overlap(&port.segments) {
                let (plane, port) = (&plane.node_id, &port.port);
                return at(
                    planes_line,
                    format!(
                        "user plane `{plane}`, port `{port}`: segments `{a}` and `{b}` share an S-VLAN"
                    ),
                );
            }
        }
        if !self.network_instances.contains_key("default") {
            return at(
                0,
                "`network-instances` has no `default`: expected what subscribers get there".into(),
            );
        }
        if !(1280..=1500).contains(&self.pppoe.mru) {
            return at(
                0,
                format!(
                    "`pppoe.mru` is {}: expected 1280 to 1500 octets",
                    self.pppoe.mru
                ),
            );
        }
        if self.pppoe.authentication.is_empty() {
            return at(
                0,
                "`pppoe.authentication` is empty: expected `chap`, `pap` or both".into(),
            );
        }
        if let Aaa::Radius(radius) = &self.aaa
            && radius.servers.value.is_empty()
        {
            let line = radius.servers.referenced.line();
            return at(
                line,
                "`servers` is empty: expected at least one RADIUS server".into(),
            );
        }
        self.network_instances
            .iter()
            .try_for_each(|(name, i)| i.check(name))
    }
}

impl NetworkInstanceService {
    fn check(&self, name: &str) -> Result<(), Fault> {
        let at = |line, message: String| {
            Err(Fault {
                line,
                ..Fault::of_document(message)
            })
        };
        if let Some(pool) = &self.ipv4_pool {
            let (line, prefix, net) = (
                pool.referenced.line(),
                pool.value.prefix,
                pool.value.net_length,
            );
            if !(prefix.prefix_len()..=30).contains(&net) {
                return at(
                    line,
                    format!(
                        "network instance `{name}`: nets of /{net} in pool {prefix}: expected between the pool's own length and 30"
                    ),
                );
            }
            if self.gateway.is_none() {
                return at(
                    line,
                    format!(
                        "network instance `{name}` has an `ipv4-pool` but no `gateway` address"
                    ),
                );
            }
        }
        if let Some(pool) = &self.ipv6_pool {
            let (line, prefix, net) = (
                pool.referenced.line(),
                pool.value.prefix,
                pool.value.net_length,
            );
            if !(prefix.prefix_len()..=64).contains(&net) || net + 16 < 64 {
                return at(
                    line,
                    format!(
                        "network instance `{name}`: nets of /{net} in pool {prefix}: expected between the pool's own length (48 at least) and 64"
                    ),
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "node-id: cp1
address: 192.0.2.1
user-planes:
  - node-id: up1
    address: 192.0.2.2
    access-ports: [{port: access0}]
network-instances:
  default:
    gateway: 100.64.0.1
    ipv4-pool: {prefix: 100.64.0.0/16}
    ipv6-pool: {prefix: '2001:db8:4000::/40'}
    dns: [192.0.2.53, '2001:db8::53']
aaa:
  radius:
    servers: [{address: 192.0.2.9, secret: testing123}]
";

    #[test]
    fn a_good_file_is_read() {
        let cp: ControlPlane = crate::parse(GOOD, "cp.yaml").unwrap();
        let instance = &cp.network_instances["default"];
        assert_eq!(
            instance.dns_ipv4(),
            [Some(Ipv4Addr::new(192, 0, 2, 53)), None]
        );
        assert_eq!(instance.dns_ipv6().len(), 1);
        assert_eq!(cp.pppoe.authentication, [Auth::Chap, Auth::Pap]);
        assert!(!format!("{cp:?}").contains("testing123"));
        let users =
            GOOD.split("  radius:").next().unwrap().to_owned() + "  users-file: users.yaml\n";
        let cp: ControlPlane = crate::parse(&users, "cp.yaml").unwrap();
        assert!(matches!(cp.aaa, Aaa::UsersFile(_)));
    }

    #[test]
    fn faults_name_their_line_and_what_is_expected() {
        for (from, to, said) in [
            ("100.64.0.0/16", "100.64.0.0/33", "cp.yaml:10: "),
            (
                "{prefix: 100.64.0.0/16}",
                "{prefix: 100.64.0.0/16, net-length: 31}",
                "cp.yaml:10: network instance `default`: nets of /31",
            ),
            ("    gateway: 100.64.0.1\n", "", "no `gateway` address"),
            ("default:", "red:", "has no `default`"),
            (
                "[{address: 192.0.2.9, secret: testing123}]",
                "[]",
                "cp.yaml:15: `servers` is empty",
            ),
            ("secret: testing123", "secrett: testing123", "cp.yaml:15: "),
            ("  radius:", "  radios:", "radius"),
            (
                "address: 192.0.2.2",
                "address: 2001:db8::2",
                "cp.yaml:4: user plane `up1` has an IPv6 address",
            ),
        ] {
            assert!(GOOD.contains(from));
            let text = GOOD.replace(from, to);
            let message = crate::parse::<ControlPlane>(&text, "cp.yaml")
                .unwrap_err()
                .to_string();
            assert!(message.contains(said), "{message}\nlacks {said}");
        }
    }
}
