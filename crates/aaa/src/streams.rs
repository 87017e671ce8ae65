//! Connections to servers over TCP and TLS (RFC 6613, RFC 6614).
//!
//! A connection has 256 identifiers of its own. Authentication and accounting have connections of their own, because a server that has
//! one port for both would see an identifier twice. Nothing is repeated on a connection (RFC 6613 §2.6.1). When a connection ends, its
//! requests are sent again on another one. A server whose connections cannot be opened, or end before they have brought an authentic
//! packet, counts as one that does not answer: its requests go to the next server.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use wire::radius::Packet;

use crate::random::Random;
use crate::server::{Server, Slot};
use crate::{Client, Output, ServerConfig, Transport};

/// Time between the first two attempts to connect. It doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// Maximum time between two attempts to connect.
const LONGEST_BACKOFF: Duration = Duration::from_secs(16);

/// Purpose of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Authentication (RFC 2865).
    Authentication,
    /// Accounting (RFC 2866).
    Accounting,
}

/// Connection to a server over TCP or TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Connection {
    /// What it is used for.
    pub role: Role,
    /// Address and TCP port of the server.
    pub server: SocketAddr,
    /// Number among the connections to the server for the same purpose.
    pub number: u16,
}

/// Where a packet comes from.
#[derive(Clone, Copy)]
pub(crate) enum Origin {
    Datagram(SocketAddr),
    Stream(Connection),
}

impl Origin {
    /// Whether this server may have sent it.
    pub(crate) fn is(self, role: Role, server: &ServerConfig) -> bool {
        match (self, server.transport) {
            (Origin::Datagram(from), Transport::Datagram) => server.address == from,
            (Origin::Stream(on), Transport::Stream { .. }) => {
                on.role == role && on.server == server.address
            }
            _ => false,
        }
    }
}

/// What a received packet is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answers a request, or proves at least that the server has sent it.
    Authentic,
    /// Nothing that it could answer is open.
    Unexpected,
    /// It has a wrong authenticator, or is malformed.
    Unauthentic,
}

/// Connections to a server for one purpose.
#[derive(Default)]
pub(crate) struct Connections {
    /// Connections by number, and whether each has brought an authentic packet.
    proven: BTreeMap<u16, bool>,
    /// Attempts that failed since the last authentic packet.
    failures: u32,
    /// Time before which no other attempt is made.
    retry_at: Option<Duration>,
    /// Why the last attempt failed, if no packet has come since.
    trouble: Option<Arc<str>>,
}

impl Connections {
    /// Whether a request may go to the server now.
    pub(crate) fn is_usable(&self, now: Duration) -> bool {
        let works = || self.proven.values().any(|proven| *proven);
        self.retry_at.is_none_or(|at| at <= now) || works()
    }

    pub(crate) fn trouble(&self) -> Option<Arc<str>> {
        self.trouble.clone()
    }

    /// Time of the next attempt, while there is to be none.
    pub(crate) fn retry_at(&self, now: Duration) -> Option<Duration> {
        self.retry_at.filter(|_| !self.is_usable(now))
    }

    /// Handles an authentic packet on the connection with this number.
    fn on_heard(&mut self, number: u16) {
        (self.failures, self.retry_at, self.trouble) = (0, None, None);
        if let Some(proven) = self.proven.get_mut(&number) {
            *proven = true;
        }
    }

    fn on_failure(&mut self, now: Duration, reason: &str, random: &mut Random) {
        let longer = FIRST_BACKOFF.saturating_mul(1 << self.failures.min(8));
        // between half and all of it, so that gateways do not come back together
        let share = 0.5 + random.share() / 2.0;
        self.retry_at = Some(now + longer.min(LONGEST_BACKOFF).mul_f64(share));
        self.failures += 1;
        self.trouble = Some(reason.into());
    }
}

impl Server {
    /// Output that sends a packet to it.
    pub(crate) fn transmit(&mut self, role: Role, slot: Slot, bytes: Vec<u8>) -> Output {
        let (server, number) = (self.config.address, slot.socket());
        match self.config.transport {
            Transport::Datagram => Output::Transmit {
                socket: number,
                to: server,
                bytes,
            },
            Transport::Stream { .. } => {
                self.connections.proven.entry(number).or_default();
                let connection = Connection {
                    role,
                    server,
                    number,
                };
                Output::Send { connection, bytes }
            }
        }
    }

    /// Closes all connections to it. Returns their numbers.
    pub(crate) fn close_connections(
        &mut self,
        role: Role,
        output: &mut impl Extend<Output>,
    ) -> Vec<u16> {
        let numbers = core::mem::take(&mut self.connections.proven).into_keys();
        let numbers: Vec<u16> = numbers.collect();
        output.extend(numbers.iter().map(|&number| Output::Close {
            connection: Connection {
                role,
                server: self.config.address,
                number,
            },
        }));
        numbers
    }
}

impl Client {
    /// Handles a packet that a connection has received. A packet that is malformed or not authentic closes it (RFC 6613 §2.6.4).
    pub fn receive(&mut self, now: Duration, connection: Connection, bytes: &[u8]) {
        let origin = Origin::Stream(connection);
        match self.on_packet(now, origin, connection.number, bytes) {
            Verdict::Authentic => {
                if let Some((_, server)) = self.stream_server(connection) {
                    server.connections.on_heard(connection.number);
                }
            }
            // it may be late, which is no fault
            Verdict::Unexpected if Packet::parse(bytes).is_ok() => {}
            Verdict::Unexpected | Verdict::Unauthentic => {
                self.output.push_back(Output::Close { connection });
                let reason =
                    "it sent a packet that is malformed or not authentic: check `secret-key`";
                self.on_closed(now, connection, reason);
            }
        }
    }

    /// Handles that a connection has ended, or could not be opened. The reason is for the operator.
    pub fn on_closed(&mut self, now: Duration, connection: Connection, reason: &str) {
        let Connection { role, number, .. } = connection;
        let Some((index, server)) = self.stream_server(connection) else {
            return;
        };
        let Some(proven) = server.connections.proven.remove(&number) else {
            return;
        };
        let probe = server.probe.lose(number);
        let lost = self.requests_on(role, index, number);
        if !proven && (probe.is_some() || !lost.is_empty()) {
            self.counters.connection_failures += 1;
            let random = &mut self.random;
            let server = match role {
                Role::Authentication => &mut self.peers[index].server,
                Role::Accounting => &mut self.accounting.servers[index].server,
            };
            server.connections.on_failure(now, reason, random);
        }
        if let Some(slot) = probe {
            match role {
                Role::Authentication => self.peers[index].slots.free(slot),
                Role::Accounting => self.accounting.slots.free(slot),
            }
        }
        for key in lost {
            match role {
                Role::Authentication => self.on_request_lost(now, key, proven),
                Role::Accounting => self.on_record_lost(now, key, proven),
            }
        }
        self.serve_waiting(now);
        self.serve_records(now);
    }

    /// Requests that were sent on a connection and have no answer.
    pub(crate) fn requests_on(&self, role: Role, index: usize, number: u16) -> Vec<usize> {
        let slots = (0..=255).map(|identifier| Slot::new(number, identifier));
        match role {
            Role::Authentication => {
                let peer = &self.peers[index];
                let owners = slots.filter_map(|slot| peer.slots.owner(slot));
                owners.map(|owner| owner.request).collect()
            }
            Role::Accounting => {
                let accounting = &self.accounting;
                let owners = slots.filter_map(|slot| accounting.slots.owner(slot));
                let is_here = |key: &usize| accounting.offers[*key].at == Some(index);
                owners.filter(is_here).collect()
            }
        }
    }

    /// The server of a connection, and its number among those for the same purpose.
    fn stream_server(&mut self, connection: Connection) -> Option<(usize, &mut Server)> {
        let origin = Origin::Stream(connection);
        let is_its = |server: &Server| origin.is(connection.role, &server.config);
        match connection.role {
            Role::Authentication => {
                let servers = self.peers.iter_mut().map(|peer| &mut peer.server);
                servers.enumerate().find(|(_, server)| is_its(server))
            }
            Role::Accounting => {
                let servers = self.accounting.servers.iter_mut().map(|of| &mut of.server);
                servers.enumerate().find(|(_, server)| is_its(server))
            }
        }
    }
}
