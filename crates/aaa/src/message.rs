//! What the gateway asks and what it is told, whoever answers: RADIUS servers or the configured users.

use core::net::Ipv4Addr;
use core::time::Duration;

use ipnet::{IpNet, Ipv6Net};
use wire::Malformed;

use crate::Secret;

/// How a subscriber proves who he is.
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
        /// The peer's answer to it.
        response: [u8; 16],
    },
}

/// NAS port: where a subscriber is attached. Every request carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NasPort {
    /// The kind of port.
    pub port_type: PortType,
    /// NAS-Port: a number of the port, by custom slot, port and VLANs packed into 32 bits.
    pub port: Option<u32>,
    /// NAS-Port-Id: the port in words, for example `up1/access0:100.7`.
    pub port_id: Option<String>,
    /// Calling-Station-Id: the MAC address in words.
    pub calling_station: Option<String>,
    /// Called-Station-Id, for example the service name.
    pub called_station: Option<String>,
    /// Agent circuit id of the access node (RFC 4679 §3.3.1).
    pub circuit_id: Option<Vec<u8>>,
    /// Agent remote id of the access node (RFC 4679 §3.3.2).
    pub remote_id: Option<Vec<u8>>,
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

/// A question: may this subscriber come in, and with what?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRequest {
    /// The name as the peer sent it; any bytes.
    pub username: Vec<u8>,
    /// The proof.
    pub credentials: Credentials,
    /// Acct-Session-Id of the accounting records that will follow (RFC 2866 §5.5 allows it here).
    pub acct_session_id: String,
    /// NAS port of the subscriber.
    pub nas_port: NasPort,
}

/// A subscriber may come in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessAccept {
    /// Framed-IP-Address; `None` also for the two values that leave the choice to us (RFC 2865 §5.8).
    pub framed_ip: Option<Ipv4Addr>,
    /// Framed-IPv6-Prefix (RFC 3162).
    pub framed_ipv6_prefix: Option<Ipv6Net>,
    /// Every Framed-Route and Framed-IPv6-Route: nets behind the peer (RFC 2865 §5.22, RFC 3162 §2.5).
    pub framed_routes: Vec<IpNet>,
    /// Framed-Interface-Id: the interface identifier that the peer shall use (RFC 3162).
    pub framed_interface_id: Option<u64>,
    /// Framed-Pool: name of the IPv4 pool to take an address from (RFC 2869).
    pub framed_pool: Option<String>,
    /// What the subscriber gets, by name (Filter-Id, RFC 2865 §5.11).
    pub filter_id: Option<String>,
    /// Framed-IPv6-Pool: name of the pool to take a prefix from (RFC 3162).
    pub framed_ipv6_pool: Option<String>,
    /// Every Class, to be echoed in order in each accounting record (RFC 2865 §5.25).
    pub class: Vec<Vec<u8>>,
    /// Session-Timeout: the session ends after this time.
    pub session_timeout: Option<Duration>,
    /// Idle-Timeout: the session ends when it was idle for this time (RFC 2865 §5.28).
    pub idle_timeout: Option<Duration>,
    /// Acct-Interim-Interval: time between interim records.
    pub acct_interim: Option<Duration>,
    /// Framed-MTU.
    pub framed_mtu: Option<u32>,
    /// Every Reply-Message joined, for the peer's screen.
    pub reply_message: Vec<u8>,
}

/// A subscriber may not come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReject {
    /// Every Reply-Message joined, for the peer's screen.
    pub reply_message: Vec<u8>,
    /// Who said no, and why.
    pub reason: RejectReason,
}

/// Why a subscriber is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectReason {
    /// The server said Access-Reject, or no user is known by this name with this proof.
    #[error("refused by the server")]
    Refused,
    /// The server wants to ask back, which neither PAP nor CHAP can do (RFC 2865 §4.4: to be taken as a refusal).
    #[error("the server sent a challenge, which PAP and CHAP cannot answer")]
    Challenged,
    /// The server accepted, but with an attribute that cannot be read (RFC 2865 §5: to be taken as a refusal).
    #[error("the server's Access-Accept carries an unusable {0}")]
    Malformed(&'static str),
    /// The server accepted for a service that this gateway does not give (RFC 2865 §5.6: to be taken as a refusal).
    #[error("the server's Access-Accept asks for another service: {0}")]
    Unsupported(&'static str),
}

/// Which record of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountingKind {
    /// The session is up.
    Start,
    /// The session is still up.
    Interim,
    /// The session is over.
    Stop(TerminateCause),
}

/// Acct-Terminate-Cause (RFC 2866 §5.10): those that a broadband gateway has.
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
    /// The gateway itself, by its own users.
    Local,
}

/// What went one way in a session, as totals since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Octets, of what the user plane counts.
    pub octets: u64,
    /// Packets. RADIUS has 32 bits for them, so they wrap there.
    pub packets: u64,
}

/// One accounting record (RFC 2866).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountingRecord {
    /// Which one.
    pub kind: AccountingKind,
    /// The name of the subscriber.
    pub username: Vec<u8>,
    /// The session, unique also over restarts.
    pub acct_session_id: String,
    /// NAS port of the subscriber.
    pub nas_port: NasPort,
    /// Every Class of the Access-Accept, in order.
    pub class: Vec<Vec<u8>>,
    /// The IPv4 address, once there is one.
    pub framed_ip: Option<Ipv4Addr>,
    /// The IPv6 prefix on the subscriber's link, once there is one.
    pub framed_ipv6_prefix: Option<Ipv6Net>,
    /// The peer's interface identifier, once there is one.
    pub framed_interface_id: Option<u64>,
    /// Who authenticated the subscriber.
    pub authentic: Authentic,
    /// When it happened, in seconds since 1970 (Event-Timestamp, RFC 2869 §5.3).
    pub event_time: u32,
    /// How long the session has lasted; zero in a Start.
    pub session_time: Duration,
    /// From the subscriber (Acct-Input-…).
    pub input: Traffic,
    /// To the subscriber (Acct-Output-…).
    pub output: Traffic,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The subscriber may come in.
    Accept(Box<AccessAccept>),
    /// The subscriber may not come in.
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
    /// Every server was asked, none answered.
    #[error("no RADIUS server answered")]
    NoAnswer,
    /// Too many requests are open already.
    #[error("too many RADIUS requests are open")]
    QueueFull,
    /// The request does not fit into RADIUS, for example a name of more than 253 octets.
    #[error("the request cannot be sent: {0}")]
    Unsendable(Malformed),
}
