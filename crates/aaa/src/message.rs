//! Requests of the gateway and their results, from RADIUS servers or from local users.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use ipnet::Ipv6Net;
use policy::{FilterRules, Rate};
use wire::Malformed;
use wire::access_loop::AccessLoop;
use wire::mschapv2;

use crate::Secret;
use crate::mapping::UnusableRate;
use crate::route::FramedRoute;

/// Proof of a subscriber's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// PAP (RFC 1334): the password itself.
    Pap {
        /// The password as the peer sent it.
        password: Secret,
    },
    /// CHAP with MD5 (RFC 1994).
    Chap {
        /// Identifier of the challenge.
        id: u8,
        /// The challenge that we sent.
        challenge: Vec<u8>,
        /// The peer's response.
        response: [u8; 16],
    },
    /// MS-CHAPv2 (RFC 2759).
    MsChapV2 {
        /// Identifier of the challenge.
        id: u8,
        /// The challenge that we sent.
        challenge: [u8; 16],
        /// The peer's response.
        response: mschapv2::Response,
    },
    /// None: the subscriber is authenticated already, and the server wants to be asked what it gets (Authorize-Only, RFC 5176 §3.2).
    AuthorizeOnly,
}

/// NAS port: where a subscriber is attached. Every request carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NasPort {
    /// Type of the port.
    pub port_type: PortType,
    /// NAS-Port-Id: the port as text, for example `up1/access0:100.7`.
    pub port_id: Option<String>,
    /// Calling-Station-Id, for example the MAC address as text.
    pub calling_station: Option<String>,
    /// Called-Station-Id, for example the service name.
    pub called_station: Option<String>,
    /// Agent circuit id of the access node (RFC 4679 §3.3.1).
    pub circuit_id: Option<Vec<u8>>,
    /// Agent remote id of the access node (RFC 4679 §3.3.2).
    pub remote_id: Option<Vec<u8>>,
    /// Characteristics of the access loop (RFC 4679 §3.3.3 ff.).
    pub access_loop: Option<Box<AccessLoop>>,
}

/// NAS-Port-Type (RFC 2865 §5.41, RFC 4603).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortType {
    /// Ethernet (15).
    Ethernet,
    /// PPPoE on an untagged port (PPPoEoE, 32).
    PppoeOverEthernet,
    /// PPPoE in a VLAN (PPPoEoVLAN, 33).
    PppoeOverVlan,
    /// PPPoE in stacked VLANs (PPPoEoQinQ, 34).
    #[default]
    PppoeOverQinq,
}

/// Request to authenticate a subscriber and to get its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRequest {
    /// User name as the peer sent it; any octets. Local users are found by it.
    pub username: Vec<u8>,
    /// User-Name for servers, if it is another.
    pub sent_name: Option<Vec<u8>>,
    /// Proof of identity.
    pub credentials: Credentials,
    /// Acct-Session-Id of the accounting records that will follow (RFC 2866 §5.5 allows it here).
    pub acct_session_id: String,
    /// NAS port of the subscriber.
    pub nas_port: NasPort,
    /// State of the server's answer or request that asks for this one (RFC 2865 §5.29, RFC 5176 §3.2). Empty: none.
    pub state: Vec<u8>,
}

/// Maximum number of Framed-IPv6-Prefixes of a subscriber. Further ones are ignored.
pub const MOST_LINKS: usize = 8;

/// Maximum number of Delegated-IPv6-Prefixes of a subscriber. Further ones are ignored.
pub const MOST_DELEGATED: usize = 16;

/// Settings of an accepted subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessAccept {
    /// Framed-IP-Address. `None` also for the two values that leave the choice to the user or to us (RFC 2865 §5.8).
    pub framed_ip: Option<Ipv4Addr>,
    /// All Framed-IPv6-Prefixes in their order, each once and at most [`MOST_LINKS`] (RFC 3162 §2.3).
    pub framed_ipv6_prefixes: Vec<Ipv6Net>,
    /// All Framed-Routes and Framed-IPv6-Routes: networks behind the peer (RFC 2865 §5.22, RFC 3162 §2.5).
    pub framed_routes: Vec<FramedRoute>,
    /// Framed-Interface-Id: interface identifier that the peer must use (RFC 3162).
    pub framed_interface_id: Option<u64>,
    /// Framed-Pool: name of the subscriber's IPv4 pool (RFC 2869).
    pub framed_pool: Option<String>,
    /// Filter-Id without a direction: name of the subscriber's settings (RFC 2865 §5.11).
    pub filter_id: Option<String>,
    /// Policy of packets from the subscriber: a Filter-Id that ends in `.in`, or a mapped attribute.
    pub policy_up: Option<String>,
    /// Policy of packets to the subscriber: a Filter-Id that ends in `.out`, or a mapped attribute.
    pub policy_down: Option<String>,
    /// Rules of the subscriber: all NAS-Filter-Rules (RFC 4849), in the canonical form of [`acl::Rule`].
    pub filter_rules: Option<FilterRules>,
    /// Why the answer cannot be carried out: a second policy for a direction, of which nobody knows which one is meant, or a rule that cannot
    /// be used. Without either, more would pass than the server wants.
    pub unusable: Option<String>,
    /// Framed-IPv6-Pool: name of the subscriber's IPv6 prefix pool (RFC 3162).
    pub framed_ipv6_pool: Option<String>,
    /// Framed-IPv6-Address: address of the subscriber's router by DHCPv6 (RFC 6911 §3.1).
    pub framed_ipv6_address: Option<Ipv6Addr>,
    /// Stateful-IPv6-Address-Pool: name of the pool of that address (RFC 6911 §3.5).
    pub ipv6_address_pool: Option<String>,
    /// All Delegated-IPv6-Prefixes in their order, each once and at most [`MOST_DELEGATED`]: prefixes of at most 64 bits that are delegated
    /// to the subscriber's router (RFC 4818).
    pub delegated_prefixes: Vec<Ipv6Net>,
    /// Delegated-IPv6-Prefix-Pool: name of the pool of the delegated prefix (RFC 6911 §3.4).
    pub delegated_pool: Option<String>,
    /// All Class attributes. Each accounting record repeats them in order (RFC 2865 §5.25).
    pub class: Vec<Vec<u8>>,
    /// Session-Timeout: the session ends after this time. Zero, only in a change: it has no limit.
    pub session_timeout: Option<Duration>,
    /// Termination-Action: whether the subscriber is authenticated again when Session-Timeout has passed, in place of the session's end
    /// (RFC 2865 §5.29).
    pub reauthenticates: Option<bool>,
    /// State, which the request that Termination-Action asks for repeats. Empty: none, or not asked for.
    pub state: Vec<u8>,
    /// Port-Limit: maximum number of sessions that the subscriber may have (RFC 2865 §5.42).
    pub port_limit: Option<u32>,
    /// Idle-Timeout: the session ends after it was idle for this time (RFC 2865 §5.28). Zero, only in a change: it may be idle.
    pub idle_timeout: Option<Duration>,
    /// Acct-Interim-Interval: time between interim records. Zero, only in a change: no such records.
    pub acct_interim: Option<Duration>,
    /// Framed-MTU.
    pub framed_mtu: Option<u32>,
    /// Rate from the subscriber, by a mapped attribute.
    pub rate_up: Option<Rate>,
    /// Rate to the subscriber, by a mapped attribute.
    pub rate_down: Option<Rate>,
    /// Committed rate from the subscriber, by a mapped attribute.
    pub committed_rate_up: Option<Rate>,
    /// Committed rate to the subscriber, by a mapped attribute.
    pub committed_rate_down: Option<Rate>,
    /// Rate from all sessions of the subscriber together, by a mapped attribute.
    pub subscriber_rate_up: Option<Rate>,
    /// Rate to all sessions of the subscriber together, by a mapped attribute.
    pub subscriber_rate_down: Option<Rate>,
    /// Rates that attributes should say and do not, and that no other attribute says. Where the subscriber profile has none either, the
    /// answer cannot be carried out: the subscriber would have no limit.
    pub unusable_rates: Vec<UnusableRate>,
    /// DNS servers, the preferred one first, by mapped attributes. Empty: none said.
    pub dns: Vec<IpAddr>,
    /// Priority in VLAN tags, 0 to 7, by a mapped attribute.
    pub vlan_priority: Option<u8>,
    /// MS-CHAP2-Success: proof for the peer that the server knows its password, too (RFC 2548 §2.3.3).
    pub mschapv2_proof: Option<[u8; 20]>,
    /// All Reply-Messages joined, to be shown to the peer.
    pub reply_message: Vec<u8>,
    /// Names of known attributes that are ignored: one for each value that cannot be used, or for which there is no room.
    pub ignored: Vec<String>,
    /// Names of attributes that a dictionary knows and that have no effect: no mapping says what they mean.
    pub not_enforced: Vec<String>,
    /// Numbers of attributes that no dictionary knows, as text.
    pub unknown: Vec<String>,
}

/// Rejection of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReject {
    /// All Reply-Messages joined, to be shown to the peer. Without any, the text of MS-CHAP-Error.
    pub reply_message: Vec<u8>,
    /// Error code of MS-CHAP-Error (RFC 2548 §2.1.5).
    pub mschap_error: Option<u32>,
    /// Reason of the rejection.
    pub reason: RejectReason,
}

/// Why a subscriber is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectReason {
    /// The server sent an Access-Reject, or no local user has this name and proof.
    #[error("refused by the server")]
    Refused,
    /// The local user has a hash, from which no response to a challenge can be computed.
    #[error(
        "the local user has a `password-hash`, which only PAP can use: set its `password` instead, or ask for `pap` in the access \
         profile"
    )]
    NeedsPassword,
    /// The server sent an Access-Challenge, which neither PAP nor CHAP can answer (RFC 2865 §4.4: treat as a rejection).
    #[error("the server sent a challenge, which PAP and CHAP cannot answer")]
    Challenged,
    /// The server's Access-Accept proves nothing to a subscriber of MS-CHAPv2, who would hang up (RFC 2759 §5).
    #[error(
        "the server's Access-Accept has no valid MS-CHAP2-Success, without which an MS-CHAPv2 subscriber hangs up"
    )]
    NoProof,
    /// The server accepted for a service that this gateway does not support (RFC 2865 §5.6: treat as a rejection).
    #[error("the server's Access-Accept asks for another service: {0}")]
    Unsupported(&'static str),
    /// The server's answer has an attribute that has no effect, and its server group rejects those.
    #[error("the server's Access-Accept has the attribute {0}, which is not carried out")]
    NotEnforced(String),
}

/// Kind of an accounting record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountingKind {
    /// The session has started.
    Start,
    /// The session continues.
    Interim,
    /// The session has ended.
    Stop(TerminateCause),
}

/// Message of the gateway about all sessions of a server group (RFC 2866 §5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Accounting begins (Accounting-On): whatever the servers still have as a session is none. Otherwise it ends (Accounting-Off).
    pub begins: bool,
    /// Acct-Session-Id, which this message has as well (RFC 2866 §5.5).
    pub acct_session_id: String,
    /// Time of the event, in seconds since 1970.
    pub event_time: u32,
}

/// Acct-Terminate-Cause (RFC 2866 §5.10): the values that a broadband gateway needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)] // the RFC's names say it
pub enum TerminateCause {
    UserRequest = 1,
    LostCarrier = 2,
    LostService = 3,
    IdleTimeout = 4,
    SessionTimeout = 5,
    AdminReset = 6,
    AdminReboot = 7,
    PortError = 8,
    NasError = 9,
    NasRequest = 10,
    NasReboot = 11,
    ServiceUnavailable = 15,
    UserError = 17,
}

/// Acct-Authentic (RFC 2866 §5.6): who authenticated the subscriber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authentic {
    /// A RADIUS server.
    #[default]
    Radius,
    /// The gateway itself, from its local users.
    Local,
}

/// Traffic of a session in one direction, as totals since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Octets, as the user plane counts them.
    pub octets: u64,
    /// Packets. RADIUS has 32 bits for them, so they wrap there.
    pub packets: u64,
}

/// Traffic of a session in one address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FamilyTraffic {
    /// Traffic from the subscriber.
    pub input: Traffic,
    /// Traffic to the subscriber.
    pub output: Traffic,
}

/// Traffic of a session by address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FamilyUsage {
    /// IPv4.
    pub ipv4: FamilyTraffic,
    /// IPv6.
    pub ipv6: FamilyTraffic,
}

/// Accounting record (RFC 2866).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountingRecord {
    /// Kind of the record.
    pub kind: AccountingKind,
    /// User-Name, the same as in the session's Access-Request.
    pub username: Vec<u8>,
    /// Acct-Session-Id, unique across restarts.
    pub acct_session_id: String,
    /// Acct-Multi-Session-Id: the same for all sessions of a subscriber that overlap (RFC 2866 §5.11).
    pub multi_session_id: Option<String>,
    /// NAS port of the subscriber.
    pub nas_port: NasPort,
    /// All Class attributes of the Access-Accept, in order.
    pub class: Vec<Vec<u8>>,
    /// IPv4 address, if there is one.
    pub framed_ip: Option<Ipv4Addr>,
    /// IPv6 prefixes on the subscriber's link.
    pub framed_ipv6_prefixes: Vec<Ipv6Net>,
    /// IPv6 address of the subscriber's router, if there is one (RFC 6911).
    pub framed_ipv6_address: Option<Ipv6Addr>,
    /// The peer's interface identifier, if there is one.
    pub framed_interface_id: Option<u64>,
    /// Networks behind the subscriber's router (Framed-Route, Framed-IPv6-Route).
    pub framed_routes: Vec<FramedRoute>,
    /// Prefixes delegated to the subscriber's router (RFC 4818).
    pub delegated_prefixes: Vec<Ipv6Net>,
    /// Name of the subscriber's settings, if AAA named them (Filter-Id).
    pub filter_id: Option<String>,
    /// Who authenticated the subscriber.
    pub authentic: Authentic,
    /// Time of the event, in seconds since 1970 (Event-Timestamp, RFC 2869 §5.3).
    pub event_time: u32,
    /// Duration of the session; zero in a Start.
    pub session_time: Duration,
    /// Traffic from the subscriber (Acct-Input-…).
    pub input: Traffic,
    /// Traffic to the subscriber (Acct-Output-…).
    pub output: Traffic,
    /// The same by address family, for servers that get it ([`FamilyCounters`](crate::FamilyCounters)). `None` if it is not known.
    pub families: Option<FamilyUsage>,
}

/// Result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The subscriber is accepted.
    Accept(Box<AccessAccept>),
    /// The subscriber is rejected.
    Reject(AccessReject),
    /// Nobody decided.
    Unavailable(Unavailable),
}

/// Why nobody decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// No server is configured for this.
    #[error("no RADIUS server is configured for this")]
    NoServer,
    /// Every server was tried, and none answered.
    #[error("no RADIUS server answered")]
    NoAnswer,
    /// Too many requests are open.
    #[error("too many RADIUS requests are open")]
    QueueFull,
    /// Too many passwords of local users are being compared with their hashes.
    #[error("too many passwords of local users wait for verification")]
    TooManyPasswords,
    /// The password of a local user was not compared with its hash in time.
    #[error("the password was not verified in time")]
    PasswordLate,
    /// The request does not fit into RADIUS, for example a name of more than 253 octets.
    #[error("the request cannot be sent: {0}")]
    Unsendable(Malformed),
}
