//! Where the destination leads: lookup's result → (another worker) → hop → rewrite → port.
use super::{IP, Tables};
use crate::api::{AdjacencyIndex, Event, InstanceIndex, PortIndex, SessionIndex};
use crate::chain::Note;
use crate::compiled::Matched;
use crate::drops::DropReason;
use crate::edges::Edge;
use crate::handoff;
use crate::nodes::classify::ETHERNET;
use crate::nodes::ip::{self, Family};
use crate::nodes::lookup::{self, Origin};
use crate::nodes::policy::{Examined, Queued};
use crate::nodes::{Exit, fragment, mss, policy, priority, rewrite, session};
use crate::punt::{NextHop, PuntKind};
use crate::tables::fib::Target;
use ::policy::Direction;
use core::sync::atomic::Ordering::Acquire;
use dpdk::{Burst, Exits, Gone, HEAD, Packet, TxBuffers, WINDOW, Window, prefetch, prefetch_early};
use scheduler::SubscriberIndex;

/// What one worker tells another of an IP packet, in the octets in front of it: the session (4 octets), its generation (4), the
/// origin (2), the instance (2), and of a frame that came with a tag its priority (2).
const NOTE: usize = HEAD;

/// Origins in a note; a smaller number is an interface.
const OF_SUBSCRIBER: u16 = u16::MAX;
const OF_GATEWAY: u16 = u16::MAX - 1;

/// ip → (source, done ahead) → lookup (done ahead) → rewrite.
#[inline(always)]
pub(super) fn downstream<const TRACE: bool>(
    t: &mut Tables,
    a: PacketContext,
    target: Target,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let room = packet.len().saturating_sub(a.ip() - HEAD);
    match ip::check(a.family, packet.window(), a.ip(), room, &t.ipv4_options) {
        Ok(total) => {
            if a.origin != Origin::Gateway
                && ip::has_martian_source(a.family, packet.window(), a.ip())
            {
                return from_nowhere(packet);
            }
            t.took_from_ip::<TRACE>(a.origin);
            forward::<TRACE>(t, a, total, target, packet)
        }
        Err(reason) => packet.leave(reason.into()),
    }
}

/// A packet with a source that none may have.
#[cold]
#[inline(never)]
fn from_nowhere(packet: Packet<'_, Exit>) -> Gone {
    packet.leave(DropReason::MartianSource.into())
}

/// Where a packet comes from and is to be routed, and what its header is.
#[derive(Clone, Copy)]
pub(super) struct PacketContext {
    pub origin: Origin,
    pub instance: u16,
    pub family: Family,
    pub ip: u8,
}

/// A register holds it: what is seldom needed costs nothing.
const _: () = assert!(size_of::<PacketContext>() == 8);

impl PacketContext {
    /// From a subscriber with so many tags. The family is to be said.
    #[inline(always)]
    pub fn upstream<const DEPTH: usize>(instance: u16) -> Self {
        PacketContext {
            origin: Origin::Subscriber,
            instance,
            family: Family::V4,
            ip: (HEAD + session::headers(DEPTH)) as u8,
        }
    }

    #[inline(always)]
    pub fn of(self, family: Family) -> Self {
        PacketContext { family, ..self }
    }

    /// Where the IP header is in the window.
    #[inline(always)]
    pub fn ip(self) -> usize {
        self.ip.into()
    }

    /// The way from `lookup`, or for what is forwarded from `hop`.
    fn way(self, forwarded: Edge, own: Edge) -> Edge {
        match self.origin {
            Origin::Gateway => own,
            _ => forwarded,
        }
    }
}

/// lookup's result → (another worker) → hop → rewrite → port.
#[inline(always)]
pub(super) fn forward<const TRACE: bool>(
    t: &mut Tables,
    a: PacketContext,
    total: usize,
    target: Target,
    packet: Packet<'_, Exit>,
) -> Gone {
    if let Some(index) = target.adjacency() {
        to_neighbour::<TRACE>(t, a, total, index, packet)
    } else if let Some(index) = target.session() {
        match t.sessions.shard.has(index.0) {
            true => to_subscriber::<TRACE>(t, a, total, index, packet),
            false => to_other::<TRACE>(t, a, total, index, packet),
        }
    } else {
        elsewhere::<TRACE>(t, a, total, target, packet)
    }
}

#[inline(always)]
fn to_neighbour<const TRACE: bool>(
    t: &mut Tables,
    a: PacketContext,
    total: usize,
    index: AdjacencyIndex,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    if let Err(leave) = hop::<TRACE>(t, a, total, packet.window()) {
        return packet.leave(leave);
    }
    t.took::<TRACE>(a.way(Edge::ToNeighbour, Edge::OwnToNeighbour));
    let Some(neighbour) = t.adjacencies.take(index, total) else {
        return large_to_neighbour::<TRACE>(t, index, a, total, packet);
    };
    let frame = rewrite::to_neighbour(neighbour, a.family, packet.window(), a.ip(), total);
    t.took::<TRACE>(match frame.start + ETHERNET < a.ip() {
        true => Edge::Retagged,
        false => Edge::Untagged,
    });
    packet.send(frame.port, frame.start as u32, frame.len as u32)
}

#[inline(always)]
fn to_subscriber<const TRACE: bool>(
    t: &mut Tables,
    a: PacketContext,
    total: usize,
    index: SessionIndex,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let w = packet.window();
    if let Err(leave) = hop::<TRACE>(t, a, total, w) {
        return packet.leave(leave);
    }
    hopped_to_subscriber::<TRACE>(t, a, total, index, packet)
}

/// The same behind `hop`.
#[inline(always)]
fn hopped_to_subscriber<const TRACE: bool>(
    t: &mut Tables,
    a: PacketContext,
    total: usize,
    index: SessionIndex,
    packet: Packet<'_, Exit>,
) -> Gone {
    t.took::<TRACE>(a.way(Edge::ToSubscriber, Edge::OwnToSubscriber));
    match t.sessions.down(index) {
        Some(down) if down.is_policed() => policed::<TRACE>(t, index, a, total, packet),
        _ => encapsulated::<TRACE>(t, index, a, total, Departure::AtOnce, packet),
    }
}

/// When a frame to a subscriber leaves.
#[derive(Clone, Copy)]
enum Departure {
    /// At once, by its port.
    AtOnce,
    /// When it is the turn of a class of these queues ([`Queues::take`](crate::queues::Queues::take)). As an array they would be written one by one
    /// in memory and read together: a packet would wait for that.
    Queued(SubscriberIndex, u8),
}

impl Departure {
    /// A frame that waits is counted when it leaves: it may be dropped before.
    #[inline(always)]
    fn is_at_once(self) -> bool {
        matches!(self, Departure::AtOnce)
    }

    /// The way out for a port's frames.
    #[inline(always)]
    fn way(self, t: &Tables, port: usize) -> usize {
        match self {
            Departure::AtOnce => port,
            Departure::Queued(..) => t.queued + port,
        }
    }
}

/// To a subscriber, behind everything that its policy has to say.
#[inline(always)]
fn encapsulated<const TRACE: bool>(
    t: &mut Tables,
    index: SessionIndex,
    a: PacketContext,
    total: usize,
    departure: Departure,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let w = packet.window();
    let frame = match t.sessions.down_entry(index) {
        Some((down, mut carry))
            if (total <= down.plain as usize) & !mss::may_be_syn(a.family, w, a.ip()) =>
        {
            if departure.is_at_once() {
                carry.count(down, a.family, total);
            }
            rewrite::to_subscriber(down, a.family, w, a.ip(), total)
        }
        _ => return closer_to_subscriber::<TRACE>(t, index, a, total, departure, packet),
    };
    leave::<TRACE>(t, frame, a, departure, packet)
}

/// A frame to a subscriber is ready.
#[inline(always)]
fn leave<const TRACE: bool>(
    t: &mut Tables,
    frame: rewrite::Frame,
    a: PacketContext,
    departure: Departure,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    match departure {
        Departure::AtOnce => t.took::<TRACE>(Edge::Encapsulated),
        Departure::Queued(SubscriberIndex(subscriber), class) => {
            t.took::<TRACE>(Edge::Queued);
            packet.set_meta([subscriber, class.into()]);
            let ahead = a.ip() - frame.start;
            let note = Note::of(packet.window(), a.family, a.ip(), ahead);
            packet.set_note(note.get());
        }
    }
    let way = departure.way(t, frame.port);
    packet.send(way, frame.start as u32, frame.len as u32)
}

/// The same to a session whose policy has to permit the packet.
#[inline(never)]
fn policed<const TRACE: bool>(
    t: &mut Tables,
    index: SessionIndex,
    a: PacketContext,
    total: usize,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    t.took::<TRACE>(Edge::PolicyDown);
    let examined = Examined {
        w: packet.window(),
        family: a.family,
        ip: a.ip(),
        total,
        origin: a.origin,
        matched: Matched::OPEN,
        now: t.now,
    };
    let departure = match policy::down(&mut t.sessions, &t.policies, index, examined) {
        Ok(None) => Departure::AtOnce,
        Ok(Some(queued)) => t.departure(index, queued),
        Err(reason) => return packet.leave(reason.into()),
    };
    t.took::<TRACE>(Edge::PermittedDown);
    encapsulated::<TRACE>(t, index, a, total, departure, packet)
}

/// To a session that went while the packet was on its way to this worker; the next one with its index is not meant. Or to one that is not
/// here yet: then the packet waits for it.
#[cold]
fn to_former_subscriber<const TRACE: bool>(
    t: &mut Tables,
    a: PacketContext,
    kind: u32,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    if t.holds {
        t.took::<TRACE>(Edge::ToOther);
        packet.set_meta([kind, 0]);
        let len = packet.len() as u32;
        return packet.send(t.held(), NOTE as u32, len);
    }
    if a.origin != Origin::Gateway {
        t.took::<TRACE>(Edge::Forwarded);
    }
    t.took::<TRACE>(a.way(Edge::ToSubscriber, Edge::OwnToSubscriber));
    packet.leave(DropReason::StaleSession.into())
}

/// To the worker that has the session.
#[inline(never)]
fn to_other<const TRACE: bool>(
    t: &mut Tables,
    a: PacketContext,
    total: usize,
    index: SessionIndex,
    packet: Packet<'_, Exit>,
) -> Gone {
    let way = t.others + t.sessions.shard.of(index.0) as usize;
    with_note::<TRACE>(t, a, total, index, (handoff::PACKET, way), packet)
}

/// By a way, with a note of what is known.
#[inline(always)]
fn with_note<const TRACE: bool>(
    t: &mut Tables,
    a: PacketContext,
    total: usize,
    index: SessionIndex,
    (kind, way): (u32, usize),
    mut packet: Packet<'_, Exit>,
) -> Gone {
    t.took::<TRACE>(Edge::ToOther);
    let (note, w) = (a.ip() - ETHERNET, packet.window());
    let origin = match a.origin {
        Origin::Subscriber => OF_SUBSCRIBER,
        Origin::Gateway => OF_GATEWAY,
        Origin::Core(PortIndex(interface)) => interface,
    };
    w.put32(note, index.0);
    let generation = t.generations.get(index.0 as usize);
    w.put32(note + 4, generation.map_or(0, |of| of.load(Acquire)));
    w.put16(note + 8, origin);
    w.put16(note + 10, a.instance);
    if let Origin::Core(_) = a.origin {
        priority::hand_on(w, a.ip());
    }
    packet.set_meta([kind, 0]);
    packet.send(way, note as u32, (total + ETHERNET) as u32)
}

/// What [`with_note`] wrote.
fn noted(w: &Window) -> (SessionIndex, u32, PacketContext) {
    let arrived = PacketContext {
        origin: match w.u16(NOTE + 8) {
            OF_SUBSCRIBER => Origin::Subscriber,
            OF_GATEWAY => Origin::Gateway,
            interface => Origin::Core(PortIndex(interface)),
        },
        instance: w.u16(NOTE + 10),
        family: ip::family(w, IP),
        ip: IP as u8,
    };
    (SessionIndex(w.u32(NOTE)), w.u32(NOTE + 4), arrived)
}

/// To one of several neighbours; or to where no way leads yet, or none goes on.
#[inline(never)]
fn elsewhere<const TRACE: bool>(
    t: &mut Tables,
    a: PacketContext,
    total: usize,
    target: Target,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let target = lookup::of_group(&t.groups, target, a.family, packet.window(), a.ip());
    if let Some(index) = target.adjacency() {
        return to_neighbour::<TRACE>(t, a, total, index, packet);
    }
    match lookup::elsewhere(target, a.origin, a.instance, packet.window(), a.ip(), total) {
        Ok(port) => {
            if let Err(leave) = hop::<TRACE>(t, a, total, packet.window()) {
                return packet.leave(leave);
            }
            t.took::<TRACE>(a.way(Edge::ToConnected, Edge::OwnToConnected));
            let address = lookup::address(a.family, packet.window(), a.ip());
            packet.leave(t.unresolved(port, address).into())
        }
        Err(leave) => packet.leave(t.left_lookup::<TRACE>(leave)),
    }
}

/// One hop further, unless it is the gateway's own packet.
#[inline(always)]
fn hop<const TRACE: bool>(
    t: &mut Tables,
    a: PacketContext,
    total: usize,
    w: &mut Window,
) -> Result<(), Exit> {
    if a.origin != Origin::Gateway {
        t.took::<TRACE>(Edge::Forwarded);
        rewrite::hop(a.family, w, a.ip(), total, a.instance).inspect_err(|_| {
            t.took::<TRACE>(Edge::Expired);
        })?;
    }
    Ok(())
}

/// To a session that is sampled, or one that is gone; or a packet that could be a SYN, or is too big.
#[cold]
#[inline(never)]
fn closer_to_subscriber<const TRACE: bool>(
    t: &mut Tables,
    index: SessionIndex,
    a: PacketContext,
    total: usize,
    departure: Departure,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    if mss::may_be_syn(a.family, packet.window(), a.ip()) {
        t.took::<TRACE>(Edge::ToMss);
        t.took::<TRACE>(Edge::SynToSubscriber);
    }
    let there = (t.sessions.down_entry(index)).filter(|(down, _)| down.length != 0);
    let Some((down, mut carry)) = there else {
        return to_absent_subscriber::<TRACE>(t, index, a, total, packet);
    };
    let (mtu, sampled) = (down.mtu, down.is_sampled());
    mss::clamp(&mut packet, a.family, a.ip(), total, mtu);
    if total > mtu as usize {
        return large_to_subscriber::<TRACE>(t, index, a, total, departure, packet);
    }
    if departure.is_at_once() {
        carry.count(down, a.family, total);
    }
    let frame = rewrite::to_subscriber(down, a.family, packet.window(), a.ip(), total);
    if sampled {
        t.took::<TRACE>(Edge::SampledDown);
        let octets = frame.start..WINDOW.min(frame.start + frame.len);
        t.show_down(index, frame.port, packet.window().bytes(octets));
    }
    leave::<TRACE>(t, frame, a, departure, packet)
}

/// To a session that is gone, or that is not here yet: then the packet waits for it.
#[cold]
#[inline(never)]
fn to_absent_subscriber<const TRACE: bool>(
    t: &mut Tables,
    index: SessionIndex,
    a: PacketContext,
    total: usize,
    packet: Packet<'_, Exit>,
) -> Gone {
    if t.holds {
        let way = (handoff::HOPPED, t.held());
        return with_note::<TRACE>(t, a, total, index, way, packet);
    }
    packet.leave(DropReason::StaleSession.into())
}

/// To a subscriber, larger than it takes packets.
fn large_to_subscriber<const TRACE: bool>(
    t: &mut Tables,
    index: SessionIndex,
    a: PacketContext,
    total: usize,
    departure: Departure,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    t.took::<TRACE>(Edge::LargeToSubscriber);
    let Some((down, mut carry)) = t.sessions.down_entry(index) else {
        return packet.leave(DropReason::StaleSession.into());
    };
    let (mtu, port, sampled) = (down.mtu, down.port as usize, down.is_sampled());
    let mut ahead = 0;
    let header = |w: &mut Window, ip, total| {
        if departure.is_at_once() {
            carry.count(down, a.family, total);
        }
        let frame = rewrite::to_subscriber(down, a.family, w, ip, total);
        ahead = ip - frame.start;
        frame
    };
    let mut fragments = match fragment::make(t.pool, &mut packet, a.ip(), total, mtu, header) {
        Ok(fragments) => fragments,
        Err(reason) => return packet.leave(t.refused::<TRACE>(reason, a, total, mtu)),
    };
    if sampled {
        t.took::<TRACE>(Edge::SampledDown);
        for frame in fragments.frames() {
            t.show_down(index, port, &frame[..frame.len().min(WINDOW - HEAD)]);
        }
    }
    let edge = match departure {
        Departure::AtOnce => Edge::Fragments,
        Departure::Queued(SubscriberIndex(subscriber), class) => {
            fragments.set_meta([subscriber, class.into()]);
            let note = Note::of(packet.window(), a.family, a.ip(), ahead);
            fragments.set_note(note.get());
            Edge::QueuedFragments
        }
    };
    t.took::<TRACE>(edge);
    let leave = sent(&mut packet, departure.way(t, port), fragments);
    packet.leave(leave)
}

/// Fragments go out by a way in the place of the packet; there is room for them.
fn sent(packet: &mut Packet<'_, Exit>, way: usize, mut fragments: Burst) -> Exit {
    let n = fragments.len() as u8;
    packet.send_ahead(way, &mut fragments);
    Exit::Fragmented(n)
}

/// To a neighbour that does not take packets of this size, or that is not known.
#[cold]
#[inline(never)]
fn large_to_neighbour<const TRACE: bool>(
    t: &mut Tables,
    index: AdjacencyIndex,
    a: PacketContext,
    total: usize,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let Some(&neighbour) = t.adjacencies.get(index) else {
        return packet.leave(t.missing(index).into());
    };
    t.took::<TRACE>(Edge::LargeToNeighbour);
    let (mtu, port) = (neighbour.mtu, neighbour.port as usize);
    let header =
        |w: &mut Window, ip, total| rewrite::to_neighbour(&neighbour, a.family, w, ip, total);
    let leave = match fragment::make(t.pool, &mut packet, a.ip(), total, mtu, header) {
        Ok(fragments) => {
            t.took::<TRACE>(Edge::Fragments);
            sent(&mut packet, port, fragments)
        }
        Err(reason) => t.refused::<TRACE>(reason, a, total, mtu),
    };
    packet.leave(leave)
}

/// What other workers handed over because its session is this one's.
///
/// `HOPPED`: the hop is counted already.
#[inline(never)]
pub(super) fn from_worker<const TRACE: bool, const HOPPED: bool>(
    t: &mut Tables,
    burst: &mut Burst,
    outs: &mut TxBuffers,
    rest: &mut Exits<Exit>,
) {
    let mut seen = burst.look(rest, |w, _| {
        let index = SessionIndex(w.u32(NOTE));
        prefetch_early(t.sessions.down_lines().at(index));
        t.sessions.ask_for_passes_down(index);
        index
    });
    if t.sessions.any_policed() {
        seen.ask(|_, index| {
            let way = (*index, Direction::Down);
            t.ask_for_policy(way, t.sessions.passes_down(*index));
        });
    }
    let sessions = t.sessions.down_lines();
    let soon = |index| prefetch(sessions.at(index));
    seen.act(outs, rest, soon, |_, mut packet| {
        t.took::<TRACE>(Edge::TakenPacket);
        let (index, generation, arrived) = noted(packet.window());
        let down = t.sessions.down(index);
        if down.is_none_or(|down| down.generation != generation) {
            let kind = if HOPPED {
                handoff::HOPPED
            } else {
                handoff::PACKET
            };
            return to_former_subscriber::<TRACE>(t, arrived, kind, packet);
        }
        let total = packet.len().saturating_sub(ETHERNET);
        match HOPPED {
            true => hopped_to_subscriber::<TRACE>(t, arrived, total, index, packet),
            false => to_subscriber::<TRACE>(t, arrived, total, index, packet),
        }
    });
}

impl Tables {
    /// A packet with a sound header goes to `lookup`, through `source` if that has judged it.
    #[inline(always)]
    fn took_from_ip<const TRACE: bool>(&mut self, origin: Origin) {
        match origin {
            Origin::Core(interface) if TRACE && self.interfaces.is_checked(interface) => {
                self.took::<TRACE>(Edge::ToSource);
                self.took::<TRACE>(Edge::Sourced);
            }
            _ => self.took::<TRACE>(Edge::Sound),
        }
    }

    /// What `lookup` found no next hop for is dropped there, or the gateway's own.
    #[inline(always)]
    fn left_lookup<const TRACE: bool>(&mut self, leave: Exit) -> Exit {
        match leave {
            Exit::Punt(PuntKind::Local(_), _) => self.took::<TRACE>(Edge::LocalFromSubscriber),
            Exit::Punt(..) => self.took::<TRACE>(Edge::LocalFromCore),
            _ => {}
        }
        leave
    }

    /// The departure of a packet for a queue of a session. Without queues, if the session or its policy has gone, it leaves at once.
    #[inline(always)]
    fn departure(&mut self, index: SessionIndex, queued: Queued) -> Departure {
        let place = self.sessions.shard.place(index.0) as usize;
        let known = self.queues.of_session(place, queued.compilation);
        match known.or_else(|| self.queues_of(index, place)) {
            Some(subscriber) => Departure::Queued(subscriber, queued.class),
            None => Departure::AtOnce,
        }
    }

    /// Makes or changes the queues of a session; `None` if it has none.
    #[cold]
    #[inline(never)]
    pub(crate) fn queues_of(
        &mut self,
        index: SessionIndex,
        place: usize,
    ) -> Option<SubscriberIndex> {
        let entry = self.sessions.get(index)?;
        let policy = entry.policies.down?;
        let compiled = self.policies.get(policy)?;
        let of = (policy, compiled, compiled.queues()?);
        Some(self.queues.renew(place, entry, of))
    }

    /// Takes a copy of a frame to a session that is sampled.
    fn show_down(&mut self, index: SessionIndex, port: usize, octets: &[u8]) {
        let (kind, port) = (PuntKind::SampledDown(index), PortIndex(port as u16));
        self.samples
            .take(index, kind, port, octets, self.now, self.second);
    }

    /// What must not be fragmented is dropped, and its sender is told.
    fn refused<const TRACE: bool>(
        &mut self,
        reason: DropReason,
        a: PacketContext,
        total: usize,
        mtu: u16,
    ) -> Exit {
        if reason != DropReason::TooBig {
            return reason.into();
        }
        self.took::<TRACE>(Edge::Refused);
        let next_hop = NextHop {
            instance: InstanceIndex(a.instance),
            mtu,
        };
        let kind = match a.origin {
            Origin::Gateway => PuntKind::OwnTooBig(next_hop),
            _ => PuntKind::TooBig(next_hop),
        };
        Exit::DropAndNotify(reason, kind, lookup::packet(a.ip(), total))
    }

    /// Asks the control thread for an adjacency. An event that finds no room is asked for again by a later packet.
    #[cold]
    fn missing(&mut self, index: AdjacencyIndex) -> DropReason {
        if self.adjacencies.ask(index, self.now, self.second) {
            let _ = self.events.push(Event::AdjacencyMissing(index));
        }
        DropReason::NoAdjacency
    }

    /// Asks the control thread for a neighbour on a connected net.
    #[cold]
    fn unresolved(&mut self, port: PortIndex, address: core::net::IpAddr) -> DropReason {
        if self.asked.ask(port, address, self.now, self.second) {
            let _ = self.events.push(Event::NeighbourMissing { port, address });
        }
        DropReason::NoAdjacency
    }
}
