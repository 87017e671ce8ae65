//! The gateway as IPv6 router of one subscriber: Router Advertisements with the subscriber's own /64s (RFC 4861 §6.2), and answers
//! for the gateway's link-local address. PPP has no link-layer addresses, so no option has one.
//!
//! A prefix that was advertised and that the subscriber has no more is withdrawn: the next [`INITIAL`] unsolicited advertisements have it
//! with lifetimes of 0. A host then uses its addresses in it for no new connection (RFC 4862 §5.5.3 and §5.5.4).
use crate::dhcpv6;
use crate::layer::Core;
use crate::reconfigure::Reconfigure;
use crate::time::Deadline;
use crate::types::{Discarded, Ipv6Grant};
use core::net::Ipv6Addr;
use core::time::Duration;
use ipnet::Ipv6Net;
use policy::Bindings;
use wire::ipv6::{self, ALL_NODES, link_local};
use wire::nd::{Message, Opt, Packet, PrefixInformation, RouterAdvertisement};
use wire::ppp;

/// MAX_INITIAL_RTR_ADVERTISEMENTS and MAX_INITIAL_RTR_ADVERT_INTERVAL (RFC 4861 §10).
const INITIAL: u8 = 3;
const INITIAL_INTERVAL: Duration = Duration::from_secs(16);
/// Maximum number of prefixes that are withdrawn at a time, the last ones. Each is an option of 32 octets.
const MOST_WITHDRAWN: usize = 8;

/// State of what is sent without a request: Router Advertisements, and Reconfigure of DHCPv6.
pub(crate) struct Router {
    pub(crate) at: Deadline,
    pub(crate) reconfigure: Reconfigure,
    /// Number of initial, more frequent advertisements that were sent.
    sent: u8,
    /// Bindings whose prefixes were advertised last.
    advertised: Bindings,
    /// What is being withdrawn. Most sessions have nothing.
    withdrawn: Option<Box<Withdrawn>>,
}

/// Prefixes that are being withdrawn, with the number of unsolicited advertisements that are left to say so.
#[derive(Default)]
struct Withdrawn(Vec<(Ipv6Net, u8)>);

/// Interface identifiers of both ends of the link.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) ours: u64,
    /// Identifier of the peer; 0 if the peer gave none.
    pub(crate) peer: u64,
}

impl Router {
    pub(crate) fn silent() -> Self {
        Router {
            at: Deadline::NEVER,
            reconfigure: Reconfigure::silent(),
            sent: 0,
            advertised: Bindings::default(),
            withdrawn: None,
        }
    }

    /// Stops the advertisements and Reconfigure messages. What was advertised is known, and is withdrawn when the peer comes back
    /// without it.
    pub(crate) fn silence(&mut self) {
        (self.at, self.sent) = (Deadline::NEVER, 0);
        self.reconfigure = self.reconfigure.forgotten();
    }

    /// Router of a session that continues after a restart. Its next advertisement comes at a random time within the interval.
    pub(crate) fn resumed(core: &mut Core, grant: &Ipv6Grant) -> Self {
        let delay = core.rng.between(Duration::ZERO, core.config.ra.interval);
        Router {
            at: Deadline::after(core.now(), delay),
            reconfigure: Reconfigure::silent(),
            sent: INITIAL,
            advertised: grant.bindings.clone(),
            withdrawn: None,
        }
    }

    /// Goes on with a grant that is advertised otherwise: at once, and as often as at the beginning (RFC 4861 §6.2.4).
    pub(crate) fn advertise_change(&mut self, core: &mut Core, ends: Ends, grant: &Ipv6Grant) {
        self.sent = 0;
        self.advertise(core, ends, grant);
    }

    /// Sends an unsolicited advertisement and sets the time of the next one.
    pub(crate) fn advertise(&mut self, core: &mut Core, ends: Ends, grant: &Ipv6Grant) {
        self.update_withdrawn(grant);
        let longest = core.config.ra.interval;
        let mut delay = core.rng.between(longest / 3, longest);
        if self.sent < INITIAL {
            self.sent += 1;
            delay = delay.min(INITIAL_INTERVAL);
        }
        self.at = Deadline::after(core.now(), delay);
        let to = if ends.peer == 0 {
            ALL_NODES
        } else {
            link_local(ends.peer)
        };
        self.send_advertisement(core, ends, to, grant);
        if let Some(Withdrawn(prefixes)) = self.withdrawn.as_deref_mut() {
            prefixes.iter_mut().for_each(|(_, left)| *left -= 1);
            prefixes.retain(|(_, left)| *left > 0);
        }
        self.withdrawn.take_if(|withdrawn| withdrawn.0.is_empty());
    }

    /// Notes prefixes that were advertised and are missing in the grant.
    fn update_withdrawn(&mut self, grant: &Ipv6Grant) {
        let is_granted = |prefix: &Ipv6Net| grant.bindings.links().any(|own| own == *prefix);
        let advertised = std::mem::replace(&mut self.advertised, grant.bindings.clone());
        let gone: Vec<Ipv6Net> = advertised.links().filter(|p| !is_granted(p)).collect();
        if gone.is_empty() && self.withdrawn.is_none() {
            return;
        }
        let Withdrawn(prefixes) = &mut **self.withdrawn.get_or_insert_default();
        prefixes.retain(|(prefix, _)| !is_granted(prefix));
        prefixes.extend(gone.into_iter().map(|prefix| (prefix, INITIAL)));
        let surplus = prefixes.len().saturating_sub(MOST_WITHDRAWN);
        prefixes.drain(..surplus);
    }

    /// Handles a packet that the user plane redirected: neighbour discovery or DHCPv6.
    pub(crate) fn on_packet(
        &mut self,
        core: &mut Core,
        ends: Ends,
        grant: &Ipv6Grant,
        bytes: &[u8],
    ) -> Result<(), Discarded> {
        let packet = ipv6::Packet::parse(bytes)?;
        match packet.header.next_header {
            ipv6::UDP => dhcpv6::on_packet(&mut self.reconfigure, core, ends, grant, &packet),
            _ => self.on_discovery(core, ends, grant, bytes),
        }
    }

    fn on_discovery(
        &self,
        core: &mut Core,
        ends: Ends,
        grant: &Ipv6Grant,
        bytes: &[u8],
    ) -> Result<(), Discarded> {
        let packet = Packet::parse(bytes)?;
        let unspecified = packet.source.is_unspecified();
        if !unspecified && !packet.source.is_unicast_link_local() {
            return Err(Discarded("ND from a source that is not link-local"));
        }
        match packet.message {
            Message::RouterSolicitation { .. } => {
                let to = match (unspecified, ends.peer) {
                    (false, _) => packet.source,
                    (true, 0) => ALL_NODES,
                    (true, peer) => link_local(peer),
                };
                self.send_advertisement(core, ends, to, grant);
                Ok(())
            }
            Message::NeighborSolicitation { target, .. } if target == link_local(ends.ours) => {
                send_neighbor(core, target, (!unspecified).then_some(packet.source));
                Ok(())
            }
            Message::NeighborSolicitation { .. } => {
                Err(Discarded("NS for an address that is not ours"))
            }
            Message::NeighborAdvertisement { .. } => {
                Err(Discarded("NA, which a point-to-point link does not need"))
            }
            Message::RouterAdvertisement(_) => Err(Discarded("RA from a subscriber")),
        }
    }

    fn send_advertisement(&self, core: &mut Core, ends: Ends, to: Ipv6Addr, grant: &Ipv6Grant) {
        let ra = &core.config.ra;
        let lifetimes = (ra.valid_lifetime, ra.preferred_lifetime);
        let withdrawn = self.withdrawn.iter().flat_map(|withdrawn| &withdrawn.0);
        let withdrawn = withdrawn.map(|(prefix, _)| *prefix);
        let withdrawn = withdrawn.map(|prefix| prefix_option(prefix, (0, 0)));
        let prefixes = grant
            .bindings
            .links()
            .map(|prefix| prefix_option(prefix, lifetimes));
        let mut options: Vec<Opt> = prefixes.chain(withdrawn).collect();
        if !grant.dns.is_empty() {
            // Three intervals, so that two advertisements may be lost (RFC 8106 §5.1).
            let lifetime = u32::try_from(ra.interval.as_secs().saturating_mul(3));
            options.push(Opt::Rdnss {
                lifetime: lifetime.unwrap_or(u32::MAX),
                servers: grant.dns.to_vec(),
            });
        }
        let (managed, other) = flags(grant);
        let message = Message::RouterAdvertisement(RouterAdvertisement {
            hop_limit: 64,
            managed,
            other,
            router_lifetime: ra.router_lifetime,
            options,
            ..RouterAdvertisement::default()
        });
        send(
            core,
            &Packet {
                source: link_local(ends.ours),
                destination: to,
                message,
            },
        );
    }
}

/// Prefix Information (RFC 4861 §4.6.2).
fn prefix_option(prefix: Ipv6Net, (valid_lifetime, preferred_lifetime): (u32, u32)) -> Opt {
    Opt::Prefix(PrefixInformation {
        prefix: prefix.network(),
        length: prefix.prefix_len(),
        on_link: true,
        autonomous: true,
        valid_lifetime,
        preferred_lifetime,
    })
}

/// Whether advertisements say the same of two grants.
pub(crate) fn is_advertised_alike(a: &Ipv6Grant, b: &Ipv6Grant) -> bool {
    a.bindings.links().eq(b.bindings.links()) && flags(a) == flags(b) && a.dns == b.dns
}

/// M and O flags (RFC 4861 §4.2). M: DHCPv6 has an address. O: it has something that the advertisement does not tell. A delegated
/// prefix counts as that, because a router of RFC 7084 asks for one if either flag is set (WPD-4). Name servers do not: the
/// advertisement has them (RFC 8106).
fn flags(grant: &Ipv6Grant) -> (bool, bool) {
    let managed = grant.bindings.ipv6_address().is_some();
    let delegates = grant.bindings.delegated().next().is_some();
    (managed, managed || delegates)
}

/// Answers a Neighbor Solicitation; to all nodes if the asker has no address yet (RFC 4861 §7.2.4).
fn send_neighbor(core: &mut Core, target: Ipv6Addr, asker: Option<Ipv6Addr>) {
    let message = Message::NeighborAdvertisement {
        router: true,
        solicited: asker.is_some(),
        override_cache: true,
        target,
        options: Vec::new(),
    };
    send(
        core,
        &Packet {
            source: target,
            destination: asker.unwrap_or(ALL_NODES),
            message,
        },
    );
}

fn send(core: &mut Core, packet: &Packet) {
    let mut frame = Vec::with_capacity(160);
    frame.extend_from_slice(&ppp::IPV6.to_be_bytes());
    packet.emit(&mut frame);
    core.send_frame(frame);
}
