//! How far a home has come, and when.

use core::time::Duration;

/// How far a home has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Not dialled, or over.
    Offline,
    /// Looking for an access concentrator and asking for a session.
    Discovery,
    /// LCP.
    Link,
    /// PAP or CHAP.
    Authentication,
    /// IPCP, IPV6CP and router discovery.
    Network,
    /// Every family that it wants, and the gateway has, is up.
    Online,
    /// Hanging up.
    Closing,
}

impl State {
    /// All of them, in order.
    pub const ALL: [State; 7] = [
        State::Offline,
        State::Discovery,
        State::Link,
        State::Authentication,
        State::Network,
        State::Online,
        State::Closing,
    ];
}

/// When an attempt reached each of its milestones, on the caller's clock; `None`: not yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The first PADI was sent.
    pub dialled: Option<Duration>,
    /// PADS brought a session.
    pub session: Option<Duration>,
    /// Both sides agreed on the link.
    pub link: Option<Duration>,
    /// The gateway accepted user and password, or did not ask.
    pub authenticated: Option<Duration>,
    /// IPCP brought an address.
    pub ipv4: Option<Duration>,
    /// A Router Advertisement brought a prefix.
    pub ipv6: Option<Duration>,
    /// [`State::Online`].
    pub online: Option<Duration>,
}
