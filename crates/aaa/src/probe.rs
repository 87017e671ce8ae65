//! Status-Server (RFC 5997): asks a server that is considered dead whether it answers again.
//!
//! A server has one Status-Server in flight at most, and one identifier for them while it is considered dead. Its answer makes it alive at
//! once. Many servers drop Status-Server silently. So the dead time of a server that has never answered one ends as if it got none: a
//! subscriber's request tries it. A server that has answered one before stays dead until it answers the next.

use core::time::Duration;

use wire::radius::{Code, Missing, verify_response};

use crate::accounting::AccountingServer;
use crate::random::Random;
use crate::requests::status_server;
use crate::server::{Server, Slot, Slots};
use crate::streams::{Origin, Role};
use crate::{Client, Nas, Output};

/// Status-Server packets to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeStatus {
    /// Whether the server is considered dead and gets them.
    pub active: bool,
    /// Number of packets since it was configured.
    pub sent: u64,
    /// Number of authentic answers.
    pub answered: u64,
}

/// State of the Status-Server packets to a server.
#[derive(Default)]
pub(crate) struct Probe {
    /// Time of the next packet, while the server is considered dead.
    next: Option<Duration>,
    /// Identifier and Request Authenticator of the last packet.
    sent: Option<(Slot, [u8; 16])>,
    /// No identifier was free for the last packet.
    starved: bool,
    /// The server is alive by an answer to a packet, and has not answered a request since.
    unproven: bool,
    sent_count: u64,
    answered: u64,
}

impl Probe {
    pub(crate) fn status(&self, is_silent: bool) -> ProbeStatus {
        ProbeStatus {
            active: is_silent && self.next.is_some(),
            sent: self.sent_count,
            answered: self.answered,
        }
    }

    /// Whether an answer will come if the server is alive, so that no request needs to try it.
    pub(crate) fn is_conclusive(&self) -> bool {
        self.next.is_some() && self.answered > 0 && !self.starved
    }

    pub(crate) fn on_request_answered(&mut self) {
        self.unproven = false;
    }

    fn is_due(&self, now: Duration) -> bool {
        self.next.is_some_and(|next| next <= now)
    }

    /// Forgets the packet that was sent on a connection that has ended. Returns its identifier.
    pub(crate) fn lose(&mut self, connection: u16) -> Option<Slot> {
        let lost = self.sent.take_if(|(slot, _)| slot.socket() == connection);
        lost.map(|(slot, _)| slot)
    }

    /// Ends the packets and returns the identifier.
    pub(crate) fn end(&mut self) -> Option<Slot> {
        self.next = None;
        self.starved = false;
        self.sent.take().map(|(slot, _)| slot)
    }
}

/// Begins or ends the packets to a server, after a change of its state or its configuration.
fn settle<T: Copy>(now: Duration, server: &mut Server, slots: &mut Slots<T>, random: &mut Random) {
    let interval = server.config.status_interval.filter(|_| server.is_silent());
    match (interval, server.probe.next) {
        (Some(interval), None) => {
            let first = now + interval.mul_f64(1.0 + random.jitter());
            // it answers Status-Server and nothing else: without the dead time, subscribers would wait for it again and again
            let unproven = server.probe.unproven.then(|| server.dead_until());
            server.probe.next = Some(first.max(unproven.unwrap_or_default()));
        }
        (None, Some(_)) => {
            if let Some(slot) = server.probe.end() {
                slots.free(slot);
            }
        }
        _ => {}
    }
}

/// Sends a Status-Server. The previous one is considered lost.
fn send<T: Copy>(
    now: Duration,
    (nas, role): (&Nas, Role),
    server: &mut Server,
    slots: &mut Slots<T>,
    random: &mut Random,
) -> Option<Output> {
    let interval = server.config.status_interval?;
    let probe = &mut server.probe;
    probe.next = Some(now + interval.mul_f64(1.0 + random.jitter()));
    if let Some((slot, _)) = probe.sent.take() {
        slots.free(slot);
    }
    let slot = slots.take();
    probe.starved = slot.is_none();
    let slot = slot?;
    let authenticator = random.authenticator();
    probe.sent = Some((slot, authenticator));
    let secret = &server.config.secret;
    let bytes = status_server(nas, slot.identifier(), authenticator, secret).ok()?;
    probe.sent_count += 1;
    Some(server.transmit(role, slot, bytes))
}

/// Whether a datagram is the answer with this code to a server's Status-Server; `None` if the server was not asked with this identifier.
fn answers(
    (server, role): (&Server, Role),
    slot: Slot,
    origin: Origin,
    bytes: &[u8],
    code: Code,
) -> Option<Result<(), NoAnswer>> {
    let (asked, authenticator) = server.probe.sent?;
    if asked != slot || !origin.is(role, &server.config) {
        return None;
    }
    let secret = server.config.secret.expose();
    // FreeRADIUS 3 puts no Message-Authenticator into it. Who forges an answer makes a server be asked, and gets nobody in.
    let missing = Missing::Allow;
    Some(
        match verify_response(bytes, &authenticator, secret, missing) {
            Ok(packet) if packet.code == code => Ok(()),
            Ok(_) => Err(NoAnswer::Mismatched),
            Err(_) => Err(NoAnswer::Unauthentic),
        },
    )
}

/// Why a datagram does not answer a Status-Server.
enum NoAnswer {
    Mismatched,
    Unauthentic,
}

impl Client {
    /// Time of the next Status-Server.
    pub(crate) fn probe_at(&self) -> Option<Duration> {
        let authentication = self.peers.iter().map(|peer| &peer.server);
        let servers = authentication.chain(self.accounting.servers());
        servers.filter_map(|server| server.probe.next).min()
    }

    /// Begins and ends the packets to servers, after a change of their state or their configuration.
    pub(crate) fn settle_probes(&mut self, now: Duration) {
        for peer in &mut self.peers {
            settle(now, &mut peer.server, &mut peer.slots, &mut self.random);
        }
        let accounting = &mut self.accounting;
        let servers = &mut accounting.servers;
        for AccountingServer { server, .. } in servers {
            settle(now, server, &mut accounting.slots, &mut self.random);
        }
    }

    /// Sends the packets that are due.
    pub(crate) fn on_probe_timeout(&mut self, now: Duration) {
        let (nas, random, output) = (&self.nas, &mut self.random, &mut self.output);
        let mut unsent = 0;
        let mut pass = |packet: Option<Output>| {
            unsent += u64::from(packet.is_none());
            output.extend(packet);
        };
        for peer in &mut self.peers {
            if peer.server.probe.is_due(now) {
                let nas = (nas, Role::Authentication);
                pass(send(now, nas, &mut peer.server, &mut peer.slots, random));
            }
        }
        let accounting = &mut self.accounting;
        for AccountingServer { server, .. } in &mut accounting.servers {
            if server.probe.is_due(now) {
                let nas = (nas, Role::Accounting);
                pass(send(now, nas, server, &mut accounting.slots, random));
            }
        }
        self.counters.probes_unsent += unsent;
    }

    /// Handles the answer to a Status-Server. `Some(false)`: it is not authentic; `None`: no server was asked with this identifier. It
    /// may then still answer a request to another server at the same address.
    pub(crate) fn handle_probe(
        &mut self,
        now: Duration,
        slot: Slot,
        origin: Origin,
        bytes: &[u8],
    ) -> Option<bool> {
        let mut known = None;
        let authentication = self.peers.iter_mut().map(|peer| &mut peer.server);
        let authentication =
            authentication.map(|server| (server, Role::Authentication, Code::ACCESS_ACCEPT));
        let accounting = self.accounting.servers.iter_mut().map(|of| &mut of.server);
        let accounting =
            accounting.map(|server| (server, Role::Accounting, Code::ACCOUNTING_RESPONSE));
        for (server, role, code) in authentication.chain(accounting) {
            match answers((server, role), slot, origin, bytes, code) {
                Some(Ok(())) => {
                    server.probe.answered += 1;
                    server.probe.unproven = true;
                    server.revive(now);
                    self.on_revival(now);
                    return Some(true);
                }
                Some(Err(NoAnswer::Mismatched)) => {
                    self.counters.mismatched_replies += 1;
                    return Some(true);
                }
                Some(Err(NoAnswer::Unauthentic)) => known = Some(false),
                None => {}
            }
        }
        known
    }

    /// Handles that a server is alive again: the accounting records that wait are sent one after the other, not all at once.
    pub(crate) fn on_revival(&mut self, now: Duration) {
        self.settle_probes(now);
        self.accounting.hasten(now, &mut self.random);
    }
}
