//! Access profiles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Access profile: PPPoE, PPP and authentication settings of an access segment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AccessProfile {
    /// AC-Name in PADO (RFC 2516 §5.2), and the gateway's name in CHAP challenges.
    pub ac_name: String,
    /// PPPoE service names that the gateway offers. Default: any service name is accepted.
    #[schemars(extend("x-example" = "internet"))]
    pub service_names: Vec<String>,
    /// Subscriber profiles that a subscriber may choose by a PPPoE service name: the profile's name. They are offered beside
    /// `service-names`. A profile that RADIUS or the user entry names takes precedence. A service name that is not in the list selects
    /// nothing.
    #[schemars(extend("x-reference" = "/subscriber-profiles"))]
    pub service_profiles: Vec<String>,
    /// Delay of PADO (RFC 2516 §5.2). With several gateways on an access network, subscribers choose the one that answers first.
    #[schemars(range(max = 5000), extend("x-unit" = "milliseconds"))]
    pub pado_delay: u16,
    /// Delay of PADO when the gateway has as many sessions as `limits sessions` allows. In between, the delay grows with the number of
    /// sessions. Default: as without sessions.
    #[schemars(range(max = 5000), extend("x-unit" = "milliseconds"))]
    pub pado_delay_full: Option<u16>,
    /// Largest MRU that the gateway accepts. Above 1492 only for subscribers that send PPP-Max-Payload (RFC 4638). A change
    /// applies to new sessions.
    #[schemars(range(min = 576, max = 9216), extend("x-unit" = "octets"))]
    pub max_mru: u16,
    /// Whether the access node's tag in discovery packets names the access line (TR-101). If the access node adds none, a home can name
    /// itself: then set it to false. Of several tags, the last one is the access node's. A change applies to new sessions.
    pub trust_line_tags: bool,
    /// Authentication protocols in order of preference. A subscriber may choose another one of them. A change applies to new sessions.
    pub authentication: Vec<Authentication>,
    /// Time between LCP echo requests to a subscriber, varied by up to 10 %. The user plane sends them, and does not ask a subscriber that
    /// has sent packets since. 0: the gateway sends none.
    #[schemars(range(max = 3600), extend("x-unit" = "seconds"))]
    pub echo_interval: u16,
    /// Number of consecutive unanswered LCP echo requests that ends the session.
    #[schemars(range(min = 1, max = 255))]
    pub echo_failures: u8,
    /// Time between retransmissions of PPP requests, and of CHAP challenges (RFC 1661 §4.6, Restart timer).
    #[schemars(range(min = 1, max = 30), extend("x-unit" = "seconds"))]
    pub restart_interval: u8,
    /// Maximum number of transmissions of a Configure-Request, and of a CHAP challenge (RFC 1661 §4.6, Max-Configure).
    #[schemars(range(min = 1, max = 255))]
    pub max_configure: u8,
    /// Maximum number of transmissions of a Terminate-Request (RFC 1661 §4.6, Max-Terminate).
    #[schemars(range(min = 1, max = 255))]
    pub max_terminate: u8,
    /// Maximum number of consecutive Configure-Naks; then the gateway sends Configure-Reject instead (RFC 1661 §4.6, Max-Failure).
    #[schemars(range(min = 1, max = 255))]
    pub max_failure: u8,
    /// Time from PADS to the first open address family after which a session that is being set up ends.
    #[schemars(range(min = 5, max = 600), extend("x-unit" = "seconds"))]
    pub setup_timeout: u16,
    /// Back-off of a MAC address on its access line whose set-ups fail.
    pub setup_back_off: SetupBackOff,
    /// Lock-out of an access line whose logins are rejected.
    pub lock_out: LockOut,
    /// Router Advertisements to subscribers (RFC 4861 §6.2.1).
    pub router_advertisements: RouterAdvertisements,
    /// RADIUS server group for authentication and accounting. Without it, the local `users` authenticate subscribers.
    /// Accounting records of a session go to the group that authenticated it.
    #[schemars(extend("x-reference" = "/aaa/server-groups"))]
    pub server_group: Option<String>,
    /// What happens to a subscriber when no server of the group answers. Servers that have not answered are not asked again within their
    /// `dead-time` if there is a fallback and no other server is left. A server that answers always decides.
    pub fallback: Fallback,
    /// Time after an Access-Accept for which `fallback: last-policy` may repeat it. Choose more than sessions usually last.
    #[schemars(range(min = 1, max = 8760), extend("x-unit" = "hours"))]
    pub fallback_time: u16,
    /// Subscriber profile used when neither RADIUS nor the user entry names one, and the subscriber chooses none by its service name
    /// (`service-profiles`). Default: the built-in defaults.
    #[schemars(extend("x-reference" = "/subscriber-profiles"))]
    pub subscriber_profile: Option<String>,
    /// What tells one subscriber from another. Sessions of the same subscriber belong together: in `show subscriber`, in limits, and
    /// at the user plane. A change applies to new sessions.
    pub subscriber_identity: SubscriberIdentity,
    /// Maximum number of sessions that one MAC address may have at the same time in the same VLANs. At this limit a new one is permitted
    /// only in place of one that does not answer, or that is not online yet. A change applies to new sessions.
    #[schemars(range(min = 1, max = 255))]
    pub sessions_per_mac: u8,
    /// Maximum number of sessions in one VLAN of a port at the same time, which is an outer and an inner VLAN id if frames have both. A
    /// further one is refused. A change applies to new sessions. 0: unlimited.
    #[schemars(range(max = 65534))]
    pub sessions_per_vlan: u16,
    /// Maximum number of sessions on one access port at the same time. A further one is refused. A change applies to new sessions.
    /// 0: unlimited.
    #[schemars(range(max = 1_048_576))]
    pub sessions_per_port: u32,
    /// Maximum number of sessions of a subscriber at the same time. A further one is refused. A change applies to new sessions.
    /// 0: unlimited.
    pub sessions_per_subscriber: u16,
    /// Maximum number of sessions with the same user name at the same time, on all access lines, also where the subscriber is known by its
    /// access line. A further one is rejected after authentication. A change applies to new sessions. 0: unlimited.
    pub sessions_per_user: u16,
    /// Preferred lifetime of addresses and delegated prefixes in DHCPv6 (RFC 8415). The subscriber's router renews them after half of
    /// it. The session has them until it ends, whatever their lifetimes. A change reaches online subscribers when they renew.
    #[schemars(range(min = 300, max = 31_536_000), extend("x-unit" = "seconds"))]
    pub dhcpv6_preferred_lifetime: u32,
    /// Valid lifetime of addresses and delegated prefixes in DHCPv6, at least the preferred lifetime. A change reaches online
    /// subscribers when they renew.
    #[schemars(range(min = 300, max = 31_536_000), extend("x-unit" = "seconds"))]
    pub dhcpv6_valid_lifetime: u32,
}

impl Default for AccessProfile {
    fn default() -> Self {
        AccessProfile {
            ac_name: "sluice".into(),
            service_names: Vec::new(),
            service_profiles: Vec::new(),
            pado_delay: 0,
            pado_delay_full: None,
            max_mru: 1492,
            trust_line_tags: true,
            authentication: vec![Authentication::Chap, Authentication::Pap],
            echo_interval: 30,
            echo_failures: 3,
            restart_interval: 3,
            max_configure: 10,
            max_terminate: 2,
            max_failure: 5,
            setup_timeout: 60,
            setup_back_off: SetupBackOff::default(),
            lock_out: LockOut::default(),
            router_advertisements: RouterAdvertisements::default(),
            server_group: None,
            fallback: Fallback::Reject,
            fallback_time: 24,
            subscriber_profile: None,
            subscriber_identity: SubscriberIdentity::Line,
            sessions_per_mac: 1,
            sessions_per_vlan: 0,
            sessions_per_port: 0,
            sessions_per_subscriber: 0,
            sessions_per_user: 0,
            dhcpv6_preferred_lifetime: 14_400,
            dhcpv6_valid_lifetime: 86_400,
        }
    }
}

/// Router Advertisements to subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RouterAdvertisements {
    /// Maximum time between unsolicited advertisements (MaxRtrAdvInterval). The minimum is a third of it.
    #[schemars(range(min = 4, max = 1800), extend("x-unit" = "seconds"))]
    pub interval: u16,
    /// Time for which the subscriber uses the gateway as default router (AdvDefaultLifetime). 0: not at all; otherwise at least
    /// `interval`.
    #[schemars(range(max = 9000), extend("x-unit" = "seconds"))]
    pub router_lifetime: u16,
    /// Time for which addresses of the prefix are valid (AdvValidLifetime).
    #[schemars(extend("x-unit" = "seconds"))]
    pub valid_lifetime: u32,
    /// Time for which addresses of the prefix are used for new connections (AdvPreferredLifetime). At most `valid-lifetime`.
    #[schemars(extend("x-unit" = "seconds"))]
    pub preferred_lifetime: u32,
}

impl Default for RouterAdvertisements {
    fn default() -> Self {
        RouterAdvertisements {
            interval: 600,
            router_lifetime: 1800,
            valid_lifetime: 86_400,
            preferred_lifetime: 14_400,
        }
    }
}

/// What a subscriber is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SubscriberIdentity {
    /// The access line: the circuit id and remote id of the access node (TR-101), or else both VLAN ids, or else the MAC address.
    Line,
    /// The user name, once authenticated.
    UserName,
}

/// What happens to a subscriber when no RADIUS server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// The subscriber is rejected.
    Reject,
    /// The local `users` authenticate the subscriber.
    LocalUsers,
    /// The subscriber gets the answer of its last Access-Accept again, without a check of its password. The server group, the access
    /// line and the user name must be the same, and no Access-Reject may have followed. The line is the port, the VLAN ids and the
    /// circuit and remote id of the access node; without these ids, and with fewer than two VLAN ids, also the MAC address. A subscriber
    /// of MS-CHAPv2 is rejected: it expects a proof that only a server can give.
    LastPolicy,
}

/// PPP authentication protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Authentication {
    /// CHAP with MD5 (RFC 1994).
    Chap,
    /// PAP (RFC 1334).
    Pap,
    /// MS-CHAPv2 (RFC 2759).
    #[serde(rename = "mschapv2")]
    MsChapV2,
}

/// Back-off of a MAC address on its access line whose set-ups fail: its discovery packets are not answered for a while. Set-ups fail by a
/// rejected login, by PPP that does not come up, or by a new attempt instead of a login. A line on which ever new MAC addresses fail backs
/// off as a whole, after four times as many failures. The line must be known by circuit or remote id, or by both VLAN ids. Established
/// sessions are not affected. A login that succeeds ends it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SetupBackOff {
    /// Number of consecutive failed set-ups after which it begins. 0: never.
    #[schemars(range(max = 1000))]
    pub after: u32,
    /// First back-off. Each further failed set-up doubles it.
    #[schemars(range(min = 1, max = 3600), extend("x-unit" = "seconds"))]
    pub first: u32,
    /// Longest back-off; at least `first`.
    #[schemars(range(min = 1, max = 3600), extend("x-unit" = "seconds"))]
    pub longest: u32,
}

impl Default for SetupBackOff {
    fn default() -> Self {
        SetupBackOff {
            after: 5,
            first: 5,
            longest: 60,
        }
    }
}

/// Lock-out of an access line whose logins are rejected by RADIUS or by the local users: no discovery packet of the line is answered. The
/// line must be known by circuit or remote id, or by both VLAN ids. Established sessions are not affected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LockOut {
    /// Number of consecutive rejected logins after which the line is locked out, and again after each further one. Logins that are ten
    /// minutes apart do not count. 0: never.
    #[schemars(range(max = 1000))]
    pub after: u32,
    /// Time of the lock-out.
    #[schemars(range(min = 1, max = 86_400), extend("x-unit" = "seconds"))]
    pub time: u32,
}

impl Default for LockOut {
    fn default() -> Self {
        LockOut {
            after: 0,
            time: 900,
        }
    }
}
