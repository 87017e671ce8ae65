//! Who we are to the servers, and who the servers are.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;

use crate::Secret;

/// Everything a [`Client`](crate::Client) is told once.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Who we are.
    pub nas: Nas,
    /// Servers for authentication, the preferred one first.
    pub authentication: Vec<ServerConfig>,
    /// Servers for accounting, the preferred one first.
    pub accounting: Vec<ServerConfig>,
    /// Most requests that may be open at one time, sent or waiting.
    pub max_requests: usize,
    /// Most UDP sockets for each address family: each gives 256 identifiers per server.
    pub max_sockets: u16,
}

impl ClientConfig {
    /// No servers yet, and bounds for a gateway of a hundred thousand sessions.
    pub fn new(nas: Nas) -> Self {
        Self {
            nas,
            authentication: Vec::new(),
            accounting: Vec::new(),
            max_requests: 65_536,
            max_sockets: 16,
        }
    }
}

/// Who we are to the servers (RFC 2865 §5.4, §5.32, RFC 3162 §2.1).
#[derive(Clone, Debug, Default)]
pub struct Nas {
    /// NAS-Identifier.
    pub identifier: String,
    /// NAS-IP-Address.
    pub ipv4: Option<Ipv4Addr>,
    /// NAS-IPv6-Address.
    pub ipv6: Option<Ipv6Addr>,
}

/// One RADIUS server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where it listens.
    pub address: SocketAddr,
    /// The shared secret.
    pub secret: Secret,
    /// Time to the first retransmission (IRT of RFC 5080 §2.2.1); later ones double it.
    pub timeout: Duration,
    /// How often a request is sent again before the next server is asked.
    pub retries: u32,
    /// How long a server that did not answer is passed over.
    pub dead_time: Duration,
    /// Whether a reply to an Access-Request without Message-Authenticator is ignored (CVE-2024-3596). Only for servers
    /// too old to send it this may be false.
    pub require_message_authenticator: bool,
}

impl ServerConfig {
    /// A server with the usual timers.
    pub fn new(address: SocketAddr, secret: Secret) -> Self {
        Self {
            address,
            secret,
            timeout: Duration::from_secs(2),
            retries: 2,
            dead_time: Duration::from_secs(60),
            require_message_authenticator: true,
        }
    }
}
