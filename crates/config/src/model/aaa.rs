//! Authentication and accounting: RADIUS servers, server groups, local users.

use super::{Mapping, NotEnforced};
use crate::{Secret, Template};
use ipnet::{IpNet, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// RADIUS servers and server groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Aaa {
    /// RADIUS servers.
    #[schemars(extend("x-key" = "the server's name"))]
    pub servers: BTreeMap<String, Server>,
    /// Groups of RADIUS servers that know the same subscribers. Accounting records for a deleted group are kept until a group
    /// with its name exists again.
    #[schemars(extend("x-key" = "the group's name"))]
    pub server_groups: BTreeMap<String, ServerGroup>,
    /// Meaning of vendors' attributes in answers of RADIUS servers, beside the shipped mappings (docs/reference/radius.md).
    #[schemars(extend("x-key" = "any name"))]
    pub mappings: BTreeMap<String, Mapping>,
    /// RADIUS servers that may change and end running sessions (CoA-Request and Disconnect-Request, RFC 5176).
    pub dynamic_authorization: DynamicAuthorization,
}

/// RADIUS servers that may change and end running sessions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DynamicAuthorization {
    /// RADIUS servers whose requests are obeyed. Without one the gateway does not listen.
    #[schemars(extend("x-key" = "the server's name"))]
    pub clients: BTreeMap<String, DynamicClient>,
    /// UDP port on which the gateway listens, on the control plane's addresses.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Maximum difference between a request's Event-Timestamp and the gateway's clock. A request outside it is dropped.
    #[schemars(range(min = 1, max = 3600), extend("x-unit" = "seconds"))]
    pub time_window: u16,
    /// Whether to drop a request without Event-Timestamp. Such a request can be recorded and sent again later.
    pub require_event_timestamp: bool,
}

impl Default for DynamicAuthorization {
    fn default() -> Self {
        DynamicAuthorization {
            clients: BTreeMap::new(),
            port: 3799,
            time_window: 300,
            require_event_timestamp: false,
        }
    }
}

/// A RADIUS server that may change and end running sessions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DynamicClient {
    /// IP address from which its requests come.
    #[schemars(extend("x-example" = "192.0.2.9"))]
    pub address: IpAddr,
    /// Shared secret (RFC 2865 §3).
    #[schemars(with = "String", extend("x-secret" = true))]
    pub secret_key: Secret,
    /// Whether to drop a request without Message-Authenticator.
    #[serde(default)]
    pub require_message_authenticator: bool,
}

/// A RADIUS server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Server {
    /// IP address of the server.
    #[schemars(extend("x-example" = "192.0.2.9"))]
    pub address: IpAddr,
    /// How requests get to the server.
    #[serde(default)]
    pub transport: Transport,
    /// Credentials for `transport: tls`.
    #[serde(default)]
    pub tls: Tls,
    /// Shared secret (RFC 2865 §3). Default with `transport: tls`: `radsec` (RFC 6614 §2.3). The other transports need one.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("x-secret" = true))]
    pub secret_key: Option<Secret>,
    /// Port for authentication. Default: 1812; with `transport: tls`: 2083.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub auth_port: Option<u16>,
    /// Port for accounting. Default: 1813; with `transport: tls`: 2083.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub acct_port: Option<u16>,
    /// Time-out before a request is first retransmitted. Over TCP and TLS nothing is retransmitted: the server then has as long to answer
    /// as over UDP, all retransmissions included.
    #[serde(default = "timeout")]
    #[schemars(range(min = 1, max = 60), extend("x-unit" = "seconds"))]
    pub timeout: u16,
    /// Number of retransmissions before the request goes to the next server. Over TCP and TLS a request is sent again as often if its
    /// connection ends.
    #[serde(default = "retransmit_attempts")]
    #[schemars(range(max = 10))]
    pub retransmit_attempts: u8,
    /// Time for which a server that does not answer is skipped, while another server is available.
    #[serde(default = "dead_time")]
    #[schemars(range(max = 3600), extend("x-unit" = "seconds"))]
    pub dead_time: u16,
    /// Whether to drop an answer without Message-Authenticator. Such an answer can be forged (RFC 3579 §3.2).
    #[serde(default = "yes")]
    pub require_message_authenticator: bool,
    /// Whether the server gets Status-Server packets on both ports while it does not answer (RFC 5997). It is used again as soon as it
    /// answers one. Once it has answered one, no subscriber's request tries it before it answers again. Old servers drop these
    /// packets: then the server is tried after its `dead-time`, as without them.
    #[serde(default)]
    pub status_server: bool,
    /// Time between two Status-Server packets.
    #[serde(default = "status_interval")]
    #[schemars(range(min = 10, max = 300), extend("x-unit" = "seconds"))]
    pub status_interval: u16,
}

fn timeout() -> u16 {
    2
}
fn retransmit_attempts() -> u8 {
    2
}
fn dead_time() -> u16 {
    60
}
fn status_interval() -> u16 {
    10
}
fn yes() -> bool {
    true
}

impl Server {
    /// Ports for authentication and for accounting.
    #[must_use]
    pub fn ports(&self) -> [u16; 2] {
        let defaults = match self.transport {
            Transport::Udp | Transport::Tcp => [1812, 1813],
            Transport::Tls => [2083, 2083],
        };
        let [auth, acct] = defaults;
        [
            self.auth_port.unwrap_or(auth),
            self.acct_port.unwrap_or(acct),
        ]
    }

    /// The shared secret.
    #[must_use]
    pub fn secret(&self) -> &str {
        self.secret_key.as_ref().map_or("radsec", Secret::reveal)
    }
}

/// How requests get to a RADIUS server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// UDP (RFC 2865).
    #[default]
    Udp,
    /// TCP (RFC 6613). It is not encrypted: only for networks that nobody else can read.
    Tcp,
    /// TLS over TCP with certificates of both sides (RFC 6614).
    Tls,
}

/// Credentials for RADIUS over TLS: PEM files on the control plane's machine. They are read for each connection, so that a renewed
/// certificate needs no commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Tls {
    /// Absolute path of the certificates of the authorities that may sign the server's certificate.
    #[schemars(extend("x-example" = "/etc/sluice/radius-ca.pem"))]
    pub authority: Option<String>,
    /// Absolute path of our certificate, followed by the intermediate certificates.
    #[schemars(extend("x-example" = "/etc/sluice/radius.pem"))]
    pub certificate: Option<String>,
    /// Absolute path of the private key of our certificate.
    #[schemars(extend("x-example" = "/etc/sluice/radius.key"))]
    pub key: Option<String>,
    /// Name that the server's certificate must have: a DNS name or an IP address. Default: the server's `address`.
    #[schemars(extend("x-example" = "radius.example.net"))]
    pub server_name: Option<String>,
}

/// Group of RADIUS servers that know the same subscribers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ServerGroup {
    /// Servers in the order in which they are tried.
    #[serde(default)]
    #[schemars(extend("x-reference" = "/aaa/servers"))]
    pub servers: Vec<String>,
    /// How a server is selected for a request, among those that answer.
    #[serde(default)]
    pub selection: Selection,
    /// IPv4 address of the control plane's machine from which requests to IPv4 servers come. It is also NAS-IP-Address then.
    /// Default: the address that the routing table selects; NAS-IP-Address is the control plane's address.
    #[serde(default)]
    #[schemars(extend("x-example" = "192.0.2.1"))]
    pub source_ipv4: Option<Ipv4Addr>,
    /// IPv6 address of the control plane's machine from which requests to IPv6 servers come. It is also NAS-IPv6-Address then.
    /// Default: the address that the routing table selects; NAS-IPv6-Address is the control plane's address.
    #[serde(default)]
    #[schemars(extend("x-example" = "2001:db8::1"))]
    pub source_ipv6: Option<Ipv6Addr>,
    /// Linux VRF device of the control plane's machine, in whose routing table the servers are. It is not one of
    /// `network-instances`: those are on the user planes. Default: the main routing table.
    #[serde(default)]
    #[schemars(extend("x-format" = "interface", "x-example" = "mgmt"))]
    pub vrf: Option<String>,
    /// NAS-Identifier of the gateway (RFC 2865 §5.32). Default: the control plane's node id.
    #[serde(default)]
    pub nas_identifier: Option<String>,
    /// Time between interim accounting records if the server sends no Acct-Interim-Interval. 0: only when addresses or routes change.
    #[serde(default = "interim_interval")]
    #[schemars(extend("x-unit" = "seconds"))]
    pub interim_interval: u32,
    /// Maximum variation of the time between two interim records of a session, so that the records of many sessions are spread: 10 with an
    /// interval of 300 seconds is 270 to 330 seconds. On the average, the interval is kept. 0: none.
    #[serde(default = "interim_jitter")]
    #[schemars(range(max = 50), extend("x-unit" = "percent"))]
    pub interim_jitter: u8,
    /// Whether the servers get Accounting-On when the control plane starts, or the group is configured, while the gateway has no session
    /// with accounting; and Accounting-Off when the control plane is stopped then (RFC 2866 §5.1). Records of new sessions wait until a
    /// server has acknowledged Accounting-On: set it to `false` for servers that do not answer it.
    #[serde(default = "yes")]
    pub accounting_on: bool,
    /// What happens to an Access-Accept with an attribute that a dictionary knows and that has no effect here.
    #[serde(default)]
    pub not_enforced: NotEnforced,
    /// Vendor whose attributes for address families accounting records have. The standard ones count both families. A change applies to the
    /// next record.
    #[serde(default)]
    pub family_counters: FamilyCounters,
    /// How names of subscribers and lines are written in requests to this group's servers.
    #[serde(default)]
    pub templates: Templates,
}

/// Templates of names in requests to RADIUS servers: texts with variables in braces (docs/reference/radius.md lists them). An attribute
/// whose text comes out empty is left out. A change applies to new sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Templates {
    /// User-Name (RFC 2865 §5.1). Default, and if the text is empty: the name as the subscriber sent it. Local users are always found by
    /// that name.
    #[schemars(with = "Option<String>", extend("x-format" = "template", "x-example" = "{user}@isp.example"))]
    pub user_name: Option<Template>,
    /// NAS-Port-Id (RFC 2869 §5.17). Default: user plane, port and VLAN ids, such as `up1/access0.100.7`.
    #[schemars(with = "Option<String>", extend("x-format" = "template", "x-example" = "{node} {port}:{svlan}.{cvlan}"))]
    pub nas_port_id: Option<Template>,
    /// Calling-Station-Id (RFC 2865 §5.31). Default: the MAC address, such as `02:00:00:00:00:07`.
    #[schemars(with = "Option<String>", extend("x-format" = "template", "x-example" = "{mac:AA-BB-CC-DD-EE-FF}"))]
    pub calling_station_id: Option<Template>,
    /// Called-Station-Id (RFC 2865 §5.30). Default: the PPPoE service name that the subscriber asked for; without one, none.
    #[schemars(with = "Option<String>", extend("x-format" = "template", "x-example" = "{service}"))]
    pub called_station_id: Option<Template>,
}

fn interim_interval() -> u32 {
    300
}
fn interim_jitter() -> u8 {
    10
}

/// Vendor whose attributes for address families accounting records have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FamilyCounters {
    /// None: records count both families together.
    #[default]
    None,
    /// ERX-IPv6-Acct-Input-Octets and its like, for IPv6. IPv4 is the rest.
    Erx,
    /// Acct-Input-IPv4-Octets, Acct-Input-IPv6-Octets and their like of Redback, for both families.
    Redback,
}

/// How a server is selected for a request, among those that answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// The first one in the order of `servers`.
    #[default]
    Ordered,
    /// The one with the fewest open requests. Of several with equally many, the one that was selected least recently.
    Balanced,
}

/// Local user. Its settings take precedence over those of its subscriber profile, and a change of them reaches its online sessions.
/// Deleting a user ends its sessions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct User {
    /// Password for PAP, CHAP and MS-CHAPv2, in plain text: CHAP needs it so (RFC 1994 §2.2), and whoever reads the files of the
    /// configuration can read it. A change applies to new sessions. A user has either this or `password-hash`.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("x-secret" = true))]
    pub password: Option<Secret>,
    /// Hash of the password for PAP: argon2id in the PHC format, as `sluice hash-password` prints it. At most 64 MiB of memory,
    /// 10 passes and 4 lanes. CHAP and MS-CHAPv2 refuse the user, so the access profile must ask for `pap` first. A change applies to
    /// new sessions.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("x-secret" = true))]
    pub password_hash: Option<Secret>,
    /// Subscriber profile of the user. Default: the one that the access profile names. Online sessions get the settings of a new
    /// profile at once, and its network instance and pools when they reconnect.
    #[serde(default)]
    #[schemars(extend("x-reference" = "/subscriber-profiles"))]
    pub subscriber_profile: Option<String>,
    /// IPv4 pools in the order in which they are tried, in place of the profile's. A change applies to new sessions.
    #[serde(default)]
    #[schemars(extend("x-reference" = "/ipv4-pools"))]
    pub ipv4_pools: Vec<String>,
    /// IPv6 pools of the prefix of the link, in the order in which they are tried, in place of the profile's. A change applies to new
    /// sessions.
    #[serde(default)]
    #[schemars(extend("x-reference" = "/ipv6-pools"))]
    pub ipv6_pools: Vec<String>,
    /// IPv6 pools of the delegated prefix, in the order in which they are tried, in place of the profile's. A change applies to new
    /// sessions.
    #[serde(default)]
    #[schemars(extend("x-reference" = "/ipv6-pools"))]
    pub delegated_pools: Vec<String>,
    /// IPv6 pools of the router's address, in the order in which they are tried, in place of the profile's. A change applies to new
    /// sessions.
    #[serde(default)]
    #[schemars(extend("x-reference" = "/ipv6-pools"))]
    pub ipv6_address_pools: Vec<String>,
    /// DNS servers in place of the profile's. A change reaches online subscribers like that of a profile.
    #[serde(default)]
    #[schemars(extend("x-example" = "192.0.2.53"))]
    pub dns: Vec<IpAddr>,
    /// Largest IP packet that is sent to the user. Default: the profile's.
    #[serde(default)]
    #[schemars(range(min = 576, max = 9216), extend("x-unit" = "octets"))]
    pub mtu: Option<u16>,
    /// Priority (IEEE 802.1p) in the VLAN tags of frames to the user. Default: the profile's.
    #[serde(default)]
    #[schemars(range(min = 0, max = 7))]
    pub vlan_priority: Option<u8>,
    /// Time without packets from the user after which the session ends. Default: the profile's. 0: no idle time-out.
    #[serde(default)]
    #[schemars(extend("x-unit" = "seconds"))]
    pub idle_timeout: Option<u32>,
    /// Whether packets to the user also restart the idle time-out. Default: the profile's.
    #[serde(default)]
    pub idle_both_ways: Option<bool>,
    /// Rate of IP packets from the user. Default: the profile's. 0: no limit.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub rate_up: Option<u32>,
    /// Rate of IP packets to the user. Default: the profile's. 0: no limit.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub rate_down: Option<u32>,
    /// Committed rate of IP packets from the user. Default: the profile's. 0: that of the policer.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub committed_rate_up: Option<u32>,
    /// Committed rate of IP packets to the user. Default: the profile's. 0: that of the policer.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub committed_rate_down: Option<u32>,
    /// Rate of IP packets from all sessions of the user together. Default: the profile's. 0: no limit.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub subscriber_rate_up: Option<u32>,
    /// Rate of IP packets to all sessions of the user together. Default: the profile's. 0: no limit.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub subscriber_rate_down: Option<u32>,
    /// Policy of packets from the user. Default: the profile's.
    #[serde(default)]
    #[schemars(extend("x-reference" = "/policies"))]
    pub policy_up: Option<String>,
    /// Policy of packets to the user. Default: the profile's.
    #[serde(default)]
    #[schemars(extend("x-reference" = "/policies"))]
    pub policy_down: Option<String>,
    /// Maximum duration of a session. Default: the profile's. 0: unlimited.
    #[serde(default)]
    #[schemars(extend("x-unit" = "seconds"))]
    pub session_timeout: Option<u32>,
    /// Time between interim accounting records. A user's session has accounting only if its access profile names a server group
    /// and came to the local users by its `fallback`. Default: the server group's. 0: only when addresses or routes change.
    #[serde(default)]
    #[schemars(extend("x-unit" = "seconds"))]
    pub interim_interval: Option<u32>,
    /// Networks behind the user's router, which are routed to its session: at most 32. A change applies to new sessions.
    #[serde(default)]
    #[schemars(with = "Vec<String>", extend("x-format" = "prefix", "x-example" = "203.0.113.0/28"))]
    pub routes: Vec<IpNet>,
    /// Fixed IPv4 address of the user. A change applies to new sessions.
    #[serde(default)]
    #[schemars(extend("x-example" = "100.64.9.1"))]
    pub ipv4_address: Option<Ipv4Addr>,
    /// Fixed IPv6 prefix of the user's link, a /64. A change applies to new sessions.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("x-format" = "ipv6-prefix", "x-example" = "2001:db8:9:1::/64"))]
    pub ipv6_prefix: Option<Ipv6Net>,
    /// Fixed IPv6 address of the user's router, which it gets by DHCPv6 (IA_NA). A change applies to new sessions.
    #[serde(default)]
    #[schemars(extend("x-example" = "2001:db8:9:1::2"))]
    pub ipv6_address: Option<Ipv6Addr>,
    /// Fixed prefixes of up to 64 bits that are delegated to the user's router by DHCPv6 (IA_PD): at most 8. A change applies to new
    /// sessions.
    #[serde(default)]
    #[schemars(with = "Vec<String>", extend("x-format" = "ipv6-prefix", "x-example" = "2001:db8:9100::/56"))]
    pub delegated_prefixes: Vec<Ipv6Net>,
}
