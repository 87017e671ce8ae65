//! Configuration of the RADIUS client.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use std::sync::Arc;

use crate::mapping::Mappings;
use crate::{FamilyCounters, Secret};

/// Configuration of a [`Client`](crate::Client).
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Identity of the gateway.
    pub nas: Nas,
    /// Authentication servers. With [`Selection::Ordered`] the preferred one comes first.
    pub authentication: Vec<ServerConfig>,
    /// Accounting servers. With [`Selection::Ordered`] the preferred one comes first.
    pub accounting: Vec<ServerConfig>,
    /// How a server is selected for a request.
    pub selection: Selection,
    /// Meaning of vendors' attributes in answers.
    pub mappings: Arc<Mappings>,
    /// What an answer with an attribute is that a dictionary knows and that has no effect.
    pub not_enforced: NotEnforced,
    /// Vendor's attributes for address families in accounting records.
    pub family_counters: FamilyCounters,
    /// Maximum number of open requests, sent or waiting.
    pub max_requests: usize,
    /// Maximum number of UDP sockets for each address family. Each socket has 256 identifiers for each server.
    pub max_sockets: u16,
}

impl ClientConfig {
    /// Configuration without servers, with the shipped mappings, and with limits for a gateway of 100,000 sessions.
    pub fn new(nas: Nas) -> Self {
        Self {
            nas,
            authentication: Vec::new(),
            accounting: Vec::new(),
            selection: Selection::Ordered,
            mappings: Mappings::shipped(),
            not_enforced: NotEnforced::Accept,
            family_counters: FamilyCounters::None,
            max_requests: 65_536,
            max_sockets: 16,
        }
    }
}

/// How a server is selected for a request, among those that are considered alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// The first one in the order of the configuration.
    #[default]
    Ordered,
    /// The one with the fewest open requests. Of several with equally many, the one that was selected least recently.
    Balanced,
}

/// What happens to an Access-Accept with an attribute that a dictionary knows and that has no effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotEnforced {
    /// The subscriber is accepted without it.
    #[default]
    Accept,
    /// The subscriber is rejected.
    Reject,
}

/// Identity of the gateway in requests (RFC 2865 §5.4, §5.32, RFC 3162 §2.1).
#[derive(Clone, Debug, Default)]
pub struct Nas {
    /// NAS-Identifier.
    pub identifier: String,
    /// NAS-IP-Address.
    pub ipv4: Option<Ipv4Addr>,
    /// NAS-IPv6-Address.
    pub ipv6: Option<Ipv6Addr>,
}

/// How packets get to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// In datagrams (UDP, RFC 2865).
    #[default]
    Datagram,
    /// On connections (TCP, RFC 6613, or TLS, RFC 6614).
    Stream {
        /// Stands for the settings of the connections. A server with another value is another server: its connections are closed.
        settings: u64,
    },
}

/// RADIUS server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address, and UDP or TCP port.
    pub address: SocketAddr,
    /// How packets get to it.
    pub transport: Transport,
    /// The shared secret.
    pub secret: Secret,
    /// Time to the first retransmission (IRT of RFC 5080 §2.2.1); later ones double it.
    pub timeout: Duration,
    /// Number of retransmissions before the next server is tried. On a stream nothing is retransmitted (RFC 6613 §2.6.1): the server has
    /// the same time in total, and a request is sent again as often if its connection ends.
    pub retries: u32,
    /// Time for which a server that did not answer is skipped.
    pub dead_time: Duration,
    /// Whether to ignore a reply to an Access-Request without Message-Authenticator (CVE-2024-3596). Use `false` only for servers that do
    /// not support it.
    pub require_message_authenticator: bool,
    /// Time between two Status-Server packets to a server that is considered dead (RFC 5997); it is used again as soon as it answers
    /// one. `None`: it gets none, because old servers drop them.
    pub status_interval: Option<Duration>,
}

impl ServerConfig {
    /// Creates a server with the default timers.
    pub fn new(address: SocketAddr, secret: Secret) -> Self {
        Self {
            address,
            transport: Transport::Datagram,
            secret,
            timeout: Duration::from_secs(2),
            retries: 2,
            dead_time: Duration::from_secs(60),
            require_message_authenticator: true,
            status_interval: None,
        }
    }
}
