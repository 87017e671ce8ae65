//! Inputs, outputs and configuration of a session.
use crate::duid::Duid;
use crate::lcp::AuthProtocol;
use crate::reconfigure::ReconfigureKey;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use ipnet::Ipv6Net;
use policy::Bindings;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wire::eth::{MacAddr, Tags};
use wire::mschapv2;

/// Access line of a subscriber, with its MAC address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Circuit {
    /// User plane's name of the port (opaque octets of the BBF Logical Port).
    pub logical_port: Box<[u8]>,
    /// The VLAN tags.
    pub tags: Tags,
    /// The subscriber's MAC address.
    pub mac: MacAddr,
}

/// Configuration that all sessions of an access profile share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Our name in CHAP challenges.
    pub name: String,
    /// Authentication protocols to request, in order, at least one. The peer may choose another one of them.
    pub auth: Vec<AuthProtocol>,
    /// MRU that we request without PPP-Max-Payload, at most 1492 (RFC 2516 §7).
    pub mru: u16,
    /// Time between retransmissions (RFC 1661 §4.6 restart timer).
    pub restart_interval: Duration,
    /// Maximum number of transmissions of a Configure-Request, and of a CHAP challenge.
    pub max_configure: u8,
    /// Maximum number of transmissions of a Terminate-Request.
    pub max_terminate: u8,
    /// Maximum number of consecutive Configure-Naks. Then we reject instead.
    pub max_failure: u8,
    /// Time between LCP echo requests, varied by up to 10 %. 0: none.
    pub echo_interval: Duration,
    /// Number of unanswered LCP echo requests that ends the session.
    pub echo_failures: u8,
    /// Time in which the peer may send LCP first. A host needs some milliseconds after PADS to start PPP, and loses earlier packets until
    /// the restart timer retransmits them.
    pub start_delay: Duration,
    /// Time-out from PADS to the first open address family.
    pub setup_timeout: Duration,
    /// Settings of Router Advertisements.
    pub ra: RaConfig,
    /// Settings of DHCPv6.
    pub dhcp: DhcpConfig,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            name: "sluice".into(),
            auth: vec![AuthProtocol::Chap, AuthProtocol::Pap],
            mru: 1492,
            restart_interval: Duration::from_secs(3),
            max_configure: 10,
            max_terminate: 2,
            max_failure: 5,
            echo_interval: Duration::from_secs(30),
            echo_failures: 3,
            start_delay: Duration::ZERO,
            setup_timeout: Duration::from_secs(60),
            ra: RaConfig::default(),
            dhcp: DhcpConfig::default(),
        }
    }
}

/// Settings of Router Advertisements (RFC 4861 §6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaConfig {
    /// Maximum time between unsolicited advertisements. The minimum is a third of it.
    pub interval: Duration,
    /// Router lifetime in seconds.
    pub router_lifetime: u16,
    /// Valid lifetime of the prefix in seconds.
    pub valid_lifetime: u32,
    /// Preferred lifetime of the prefix in seconds.
    pub preferred_lifetime: u32,
}

impl Default for RaConfig {
    fn default() -> Self {
        RaConfig {
            interval: Duration::from_secs(600),
            router_lifetime: 1800,
            valid_lifetime: 86_400,
            preferred_lifetime: 14_400,
        }
    }
}

/// Settings of DHCPv6 (RFC 8415).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DhcpConfig {
    /// DUID of the server: the same after a restart of the gateway, and for every session.
    pub duid: Duid,
    /// Preferred lifetime of the address and the delegated prefixes in seconds. The subscriber renews them after half of it (T1).
    pub preferred_lifetime: u32,
    /// Valid lifetime in seconds, at least the preferred lifetime.
    pub valid_lifetime: u32,
    /// Secret of the gateway that authenticates Reconfigure messages: the same after a restart.
    pub reconfigure_key: ReconfigureKey,
    /// Wall time since 1970 at the origin of the monotonic time.
    pub epoch: Duration,
}

impl Default for DhcpConfig {
    fn default() -> Self {
        DhcpConfig {
            duid: Duid::of_gateway(""),
            preferred_lifetime: 14_400,
            valid_lifetime: 86_400,
            reconfigure_key: ReconfigureKey([0; 32]),
            epoch: Duration::ZERO,
        }
    }
}

/// Random values of a session, from the system's random number generator.
#[derive(Clone, Copy)]
pub struct Random {
    /// Our LCP magic number; zero is replaced.
    pub magic: u32,
    /// The first CHAP challenge.
    pub chap_challenge: [u8; 16],
    /// The first CHAP identifier.
    pub chap_id: u8,
    /// Our interface identifier, which is the gateway's link-local address; zero is replaced.
    pub interface_id: u64,
    /// Seed for later values: jitter, further challenges and magic numbers.
    pub seed: u64,
}

/// Address family. It has its own NCP and rules within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4 by IPCP.
    Ipv4,
    /// IPv6 by IPV6CP and router advertisements.
    Ipv6,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Ipv4 => "IPv4",
            Family::Ipv6 => "IPv6",
        })
    }
}

/// Command of a link's owner.
#[derive(Debug)]
pub enum Command {
    /// Result of [`Output::Authenticate`] with this attempt number. A result of an older attempt is ignored. The grant of a peer that was
    /// authenticated again is ignored, too: it keeps its addresses.
    Auth {
        /// [`AuthRequest::attempt`].
        attempt: u8,
        /// Result.
        reply: AuthReply,
    },
    /// The rules of the last [`Output::Install`] are installed and stored.
    Installed(Family),
    /// Authenticate the peer again, while its address families stay open (RFC 1994 §2: at any time). An error: it was authenticated with
    /// PAP, which the peer begins.
    Reauthenticate,
    /// Ask the peer for a sign of life at once, by some LCP echo requests within a second if the link is open. Until it comes,
    /// [`Status::is_silent`] is set.
    Probe,
    /// End the session for this reason.
    Terminate(Cause),
    /// End the session at once for this reason, without waiting for the peer, which has begun another one or is gone.
    Abandon(Cause),
    /// Apply a changed configuration: at once for repeated actions (echoes, challenges), otherwise with the next negotiation.
    Configure(Arc<SessionConfig>),
    /// Use another grant for the families that are granted. Of IPv4, the DNS servers count, for the next IPCP negotiation. Of IPv6,
    /// everything counts except the interface identifier. Router Advertisements announce other prefixes at once, and withdraw those
    /// that are missing. A DHCPv6 client that takes Reconfigure messages is told.
    SetGrant(Grant),
}

/// Who looks for signs of life of the subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// The link, with LCP echo requests.
    Link,
    /// The user plane. The link asks only after [`Command::Probe`], and while a family is given up that the peer may believe open.
    UserPlane,
    /// Nobody, because the path to the subscriber's user plane is interrupted. Its silence is excused: missed echoes and challenges do not
    /// count, and due ones are postponed.
    Nobody,
}

/// Frame to the access line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Ethertype.
    pub ethertype: u16,
    /// What follows the ethertype.
    pub payload: Vec<u8>,
}

/// Output of a link, in frames of type `F`. Outputs must be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<F = Frame> {
    /// Send this frame.
    Frame(F),
    /// Authenticate the peer, and answer with [`Command::Auth`].
    Authenticate(AuthRequest),
    /// Install the address family's rules, and answer with [`Command::Installed`]. The packet that opens the family (IPCP's
    /// Configure-Ack, Router Advertisement) waits for that.
    Install(Family),
    /// The address family is open: the subscriber has its address or prefix.
    Up(Family),
    /// Remove the rules of the last [`Output::Install`], whether or not [`Output::Up`] followed it. The owner must not answer that
    /// `Install` any more.
    Down(Family),
    /// The session has ended, and no output follows. All its resources can be released.
    Closed(Cause),
}

impl<F> Output<F> {
    /// The same output in other frames.
    pub(crate) fn in_frames<G>(self, frame: impl FnOnce(F) -> G) -> Output<G> {
        match self {
            Output::Frame(content) => Output::Frame(frame(content)),
            Output::Authenticate(request) => Output::Authenticate(request),
            Output::Install(family) => Output::Install(family),
            Output::Up(family) => Output::Up(family),
            Output::Down(family) => Output::Down(family),
            Output::Closed(cause) => Output::Closed(cause),
        }
    }
}

/// Request to authenticate a peer.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthRequest {
    /// Distinguishes this request from earlier ones of the session, because a peer may restart PPP.
    pub attempt: u8,
    /// User name, any octets.
    pub username: Vec<u8>,
    /// Authentication method with the peer's credentials.
    pub method: AuthMethod,
}

/// Shows the name as text.
impl fmt::Debug for AuthRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (attempt, name, method) = (self.attempt, self.username.escape_ascii(), &self.method);
        write!(
            f,
            "AuthRequest {{ attempt: {attempt}, username: \"{name}\", method: {method:?} }}"
        )
    }
}

/// Authentication method.
#[derive(Clone, PartialEq, Eq)]
pub enum AuthMethod {
    /// PAP, with the password.
    Pap {
        /// The password.
        password: Vec<u8>,
    },
    /// CHAP, with the MD5 hash of identifier, password and challenge (RFC 1994).
    Chap {
        /// Identifier of the challenge.
        id: u8,
        /// The challenge.
        challenge: [u8; 16],
        /// The hash.
        response: [u8; 16],
    },
    /// MS-CHAPv2 (RFC 2759).
    MsChapV2 {
        /// Identifier of the challenge.
        id: u8,
        /// The challenge.
        challenge: [u8; 16],
        /// The peer's own challenge, and its response.
        response: mschapv2::Response,
    },
}

/// Hides the credentials.
impl fmt::Debug for AuthMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AuthMethod::Pap { .. } => "Pap",
            AuthMethod::Chap { .. } => "Chap",
            AuthMethod::MsChapV2 { .. } => "MsChapV2",
        })
    }
}

/// Result of an [`AuthRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthReply {
    /// The peer is accepted.
    Accept {
        /// Addresses of the subscriber.
        grant: Grant,
        /// A text for the peer, perhaps empty.
        message: Vec<u8>,
        /// Proof for the peer that AAA knows its password, too. A peer of MS-CHAPv2 is rejected without it.
        proof: Option<[u8; 20]>,
    },
    /// The peer is rejected.
    Reject {
        /// A text for the peer, perhaps empty.
        message: Vec<u8>,
        /// Error code of MS-CHAPv2. Without it the name or the password is wrong.
        error: Option<u32>,
    },
}

/// Addresses of a subscriber. The session rejects an address family without a grant by Protocol-Reject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// IPv4.
    pub ipv4: Option<Ipv4Grant>,
    /// IPv6.
    pub ipv6: Option<Ipv6Grant>,
}

/// IPv4 address with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ipv4Grant {
    /// The subscriber's address.
    pub address: Ipv4Addr,
    /// Gateway's address on this link.
    pub gateway: Ipv4Addr,
    /// DNS servers, in order.
    pub dns: [Option<Ipv4Addr>; 2],
}

/// IPv6 prefixes with their parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredIpv6Grant", into = "StoredIpv6Grant")]
pub struct Ipv6Grant {
    /// Bindings of the session. At least one prefix of the subscriber's link is among them; its router gets an address (IA_NA) and delegated
    /// prefixes (IA_PD) by DHCPv6. Of a stored [`Snapshot`](crate::Snapshot) only the first prefix of the link counts: the session's owner
    /// stores its bindings, and sets them again.
    pub bindings: Bindings,
    /// DNS servers (RFC 8106, RFC 3646).
    pub dns: Box<[Ipv6Addr]>,
    /// Interface identifier that the subscriber must use; `None` if it may choose.
    pub interface_id: Option<u64>,
}

/// Grant in a snapshot: first prefix of the link, DNS servers, interface identifier.
#[derive(Serialize, Deserialize)]
struct StoredIpv6Grant {
    prefix: Ipv6Net,
    dns: Box<[Ipv6Addr]>,
    interface_id: Option<u64>,
}

impl From<StoredIpv6Grant> for Ipv6Grant {
    fn from(stored: StoredIpv6Grant) -> Self {
        Ipv6Grant {
            bindings: Bindings::of(None, Some(stored.prefix)),
            dns: stored.dns,
            interface_id: stored.interface_id,
        }
    }
}

impl From<Ipv6Grant> for StoredIpv6Grant {
    fn from(grant: Ipv6Grant) -> Self {
        StoredIpv6Grant {
            prefix: grant.bindings.ipv6().unwrap_or_default(),
            dns: grant.dns,
            interface_id: grant.interface_id,
        }
    }
}

/// Cause of a session's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The subscriber ended the session.
    UserRequest,
    /// LCP echo requests were not answered.
    LostCarrier,
    /// The idle time-out expired.
    IdleTimeout,
    /// The session time-out expired.
    SessionTimeout,
    /// An operator ended it.
    AdminReset,
    /// The user plane is drained or the gateway stops.
    AdminReboot,
    /// The port or the user plane failed.
    PortError,
    /// A failure in the gateway, or an exhausted resource.
    NasError,
    /// The gateway no longer needs the session, for example because a newer one replaced it.
    NasRequest,
    /// The line returns our own packets.
    Loopback,
    /// Wrong name or password.
    AuthFailed,
    /// PPP negotiation failed or timed out.
    NegotiationFailed,
}

impl Cause {
    /// The value of Acct-Terminate-Cause (RFC 2866 §5.10).
    pub const fn acct_terminate_cause(self) -> u32 {
        match self {
            Cause::UserRequest => 1,
            Cause::LostCarrier => 2,
            Cause::IdleTimeout => 4,
            Cause::SessionTimeout => 5,
            Cause::AdminReset => 6,
            Cause::AdminReboot => 7,
            Cause::PortError | Cause::Loopback => 8,
            Cause::NasError => 9,
            Cause::NasRequest => 10,
            Cause::AuthFailed | Cause::NegotiationFailed => 17,
        }
    }

    /// A few words, for logs and for the text of a PADT.
    pub const fn text(self) -> &'static str {
        match self {
            Cause::UserRequest => "user request",
            Cause::LostCarrier => "no answer to LCP echoes",
            Cause::IdleTimeout => "idle timeout",
            Cause::SessionTimeout => "session timeout",
            Cause::AdminReset => "ended by the operator",
            Cause::AdminReboot => "gateway is going down",
            Cause::PortError => "port error",
            Cause::NasError => "gateway error",
            Cause::NasRequest => "replaced by a newer session",
            Cause::Loopback => "line is looped back",
            Cause::AuthFailed => "authentication failed",
            Cause::NegotiationFailed => "PPP negotiation failed",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// LCP is being negotiated.
    Establish,
    /// The peer is being authenticated.
    Authenticate,
    /// The peer is authenticated, and network protocols may open and close.
    Network,
    /// One side terminates the session.
    Terminate,
    /// The session has ended.
    Closed,
}

/// State of an address family's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum RulesState {
    /// Not requested.
    Off,
    /// [`Output::Install`] went out.
    Asked,
    /// [`Command::Installed`] came in.
    Installed,
    /// [`Output::Up`] went out: the address family is open.
    Up,
}

/// State of a link, for its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Phase of the session.
    pub phase: Phase,
    /// Whether the subscriber has sent us nothing sensible since [`Command::Probe`].
    pub is_silent: bool,
    /// Our LCP magic number, 0 if the peer rejects such numbers.
    pub magic: u32,
    /// Largest IP packet that the subscriber accepts.
    pub mtu: u16,
    /// The subscriber's interface identifier, once it is negotiated.
    pub peer_interface_id: Option<u64>,
    /// Whether the session waits for AAA's answer.
    pub waits_for_verdict: bool,
    /// Whether the peer accepts no answer without a proof of AAA.
    pub needs_proof: bool,
    /// Rules of IPv4 and IPv6.
    pub rules: [RulesState; 2],
}

impl Status {
    /// Whether this address family's rules are requested but not installed yet.
    pub fn waits_for_rules(&self, family: Family) -> bool {
        self.rules[family as usize] == RulesState::Asked
    }
}

/// Why a frame changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// It is malformed, or of a kind that no session gets.
    Malformed,
    /// It names another session.
    Foreign,
    /// The session has no use for what it carries.
    Discarded(Discarded),
}

/// Ignored input with the reason, for a counter and a debug log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded(pub &'static str);

impl From<wire::Malformed> for Discarded {
    fn from(malformed: wire::Malformed) -> Self {
        Discarded(malformed.0)
    }
}
