//! What goes into a session and what comes out of it.
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use ipnet::Ipv6Net;
use serde::{Deserialize, Serialize};
use wire::eth::{MacAddr, Tags};

/// Where a subscriber is attached: everything by which the access network tells one home from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Circuit {
    /// The user plane's name of the port (opaque octets of the BBF Logical Port).
    pub logical_port: Box<[u8]>,
    /// The VLAN tags.
    pub tags: Tags,
    /// The subscriber's MAC address.
    pub mac: MacAddr,
}

/// Which authentication protocols are asked for, the first one first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthPolicy {
    /// CHAP, and PAP for a peer that does not want it.
    #[default]
    ChapThenPap,
    /// PAP, and CHAP for a peer that does not want it.
    PapThenChap,
    /// CHAP alone.
    Chap,
    /// PAP alone.
    Pap,
}

/// What all sessions of a profile have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Our name in CHAP challenges.
    pub name: String,
    /// Which authentication is asked for.
    pub auth: AuthPolicy,
    /// The MRU we ask for without PPP-Max-Payload, at most 1492 (RFC 2516 §7).
    pub mru: u16,
    /// Time between retransmissions (RFC 1661 §4.6 restart timer).
    pub restart_interval: Duration,
    /// Transmissions of a Configure-Request, and of a CHAP challenge, before we give up.
    pub max_configure: u8,
    /// Transmissions of a Terminate-Request before we give up.
    pub max_terminate: u8,
    /// Configure-Naks in a row before we reject instead.
    pub max_failure: u8,
    /// Time between LCP echoes, give or take a tenth; zero sends none.
    pub echo_interval: Duration,
    /// Unanswered echoes that end the session.
    pub echo_failures: u8,
    /// How long the peer is left to speak first. A host that has just got its PADS needs some milliseconds to put PPP
    /// on the session, and what comes earlier is lost until the restart timer sends it again.
    pub start_delay: Duration,
    /// Time from the PADS to the first family that is up.
    pub setup_timeout: Duration,
    /// Router advertisements.
    pub ra: RaConfig,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            name: "sluice".into(),
            auth: AuthPolicy::default(),
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
        }
    }
}

/// How prefixes are advertised (RFC 4861 §6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaConfig {
    /// Longest time between unsolicited advertisements; the shortest is a third of it.
    pub interval: Duration,
    /// How long we are a default router, in seconds.
    pub router_lifetime: u16,
    /// How long the prefix is valid, in seconds.
    pub valid_lifetime: u32,
    /// How long its addresses are preferred, in seconds.
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

/// The random values of one session, drawn by the caller from the system's generator.
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
    /// Where everything later comes from: jitter, further challenges and magic numbers.
    pub seed: u64,
}

/// An address family, which has its own NCP, rules and life within a session.
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

/// What happens to a session.
#[derive(Debug)]
pub enum Input<'a> {
    /// A PPP frame of this session from its protocol field on.
    Ppp(&'a [u8]),
    /// The subscriber sent a PADT.
    Padt,
    /// The verdict on [`Output::Authenticate`] with this attempt number; one on an older attempt is discarded.
    Auth {
        /// [`AuthRequest::attempt`].
        attempt: u8,
        /// The verdict.
        reply: AuthReply,
    },
    /// The rules of the last [`Output::Install`] are in place and durable.
    Installed(Family),
    /// End the session for this reason.
    Terminate(Cause),
}

/// What a session wants done, in this order.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this PPP frame (from its protocol field on).
    Ppp(Vec<u8>),
    /// Send a PADT with this text.
    Padt(&'static str),
    /// Find out who this is and what they get; answer with [`Input::Auth`].
    Authenticate(AuthRequest),
    /// The family's rules are wanted now; answer with [`Input::Installed`]. The packet that lets the subscriber send
    /// (Configure-Ack of IPCP, router advertisement) waits for that.
    Install(Family),
    /// The family works: the subscriber has its address or prefix.
    Up(Family),
    /// The rules of the last [`Output::Install`] are no longer wanted, whether [`Output::Up`] followed it or not.
    /// An answer to that `Install` which is still under way must not be given any more.
    Down(Family),
    /// The end; nothing follows. Everything that the session holds can be released.
    Closed(Cause),
}

/// A peer that wants to be authenticated.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthRequest {
    /// Tells this request from earlier ones of the session: a peer may start PPP over.
    pub attempt: u8,
    /// The name, any octets.
    pub username: Vec<u8>,
    /// The proof.
    pub method: AuthMethod,
}

/// With the name as text.
impl fmt::Debug for AuthRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (attempt, name, method) = (self.attempt, self.username.escape_ascii(), &self.method);
        write!(
            f,
            "AuthRequest {{ attempt: {attempt}, username: \"{name}\", method: {method:?} }}"
        )
    }
}

/// How a peer proves who it is.
#[derive(Clone, PartialEq, Eq)]
pub enum AuthMethod {
    /// By the password itself.
    Pap {
        /// The password.
        password: Vec<u8>,
    },
    /// By the MD5 of identifier, password and challenge (RFC 1994).
    Chap {
        /// Identifier of the challenge.
        id: u8,
        /// The challenge.
        challenge: [u8; 16],
        /// The hash.
        response: [u8; 16],
    },
}

/// Without the proof.
impl fmt::Debug for AuthMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AuthMethod::Pap { .. } => "Pap",
            AuthMethod::Chap { .. } => "Chap",
        })
    }
}

/// The verdict on an [`AuthRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthReply {
    /// Let them in.
    Accept {
        /// What they get.
        grant: Grant,
        /// A text for the peer, perhaps empty.
        message: Vec<u8>,
    },
    /// Keep them out.
    Reject {
        /// A text for the peer, perhaps empty.
        message: Vec<u8>,
    },
}

/// What a subscriber gets. A family that is not granted is refused by Protocol-Reject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// IPv4.
    pub ipv4: Option<Ipv4Grant>,
    /// IPv6.
    pub ipv6: Option<Ipv6Grant>,
}

/// An IPv4 address and what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ipv4Grant {
    /// The subscriber's address.
    pub address: Ipv4Addr,
    /// Ours on this link.
    pub gateway: Ipv4Addr,
    /// DNS servers, the first one first.
    pub dns: [Option<Ipv4Addr>; 2],
}

/// An IPv6 prefix and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ipv6Grant {
    /// The subscriber's own /64.
    pub prefix: Ipv6Net,
    /// DNS servers (RFC 8106).
    pub dns: Vec<Ipv6Addr>,
    /// The interface identifier that the subscriber must use; `None` leaves it the choice.
    pub interface_id: Option<u64>,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The subscriber hung up.
    UserRequest,
    /// Echoes went unanswered.
    LostCarrier,
    /// No traffic for too long.
    IdleTimeout,
    /// The time that was granted is over.
    SessionTimeout,
    /// An operator ended it.
    AdminReset,
    /// The gateway is going down.
    AdminReboot,
    /// The port or the user plane failed.
    PortError,
    /// Something in the gateway failed, or ran out.
    NasError,
    /// The gateway no longer needs it; a newer session replaced it.
    NasRequest,
    /// The line returns our own packets.
    Loopback,
    /// Wrong name or password.
    AuthFailed,
    /// PPP came to no agreement, or to none in time.
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

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// LCP is being negotiated.
    Establish,
    /// The peer has to prove who it is.
    Authenticate,
    /// Authenticated: network protocols may come and go.
    Network,
    /// We or the peer said goodbye.
    Terminate,
    /// Over.
    Closed,
}

/// An input that was ignored, and why: for a counter and a debug log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded(pub &'static str);

impl From<wire::Malformed> for Discarded {
    fn from(malformed: wire::Malformed) -> Self {
        Discarded(malformed.0)
    }
}
