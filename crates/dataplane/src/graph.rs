//! The graph: what becomes of a burst. Read this first.
//!
//! ```text
//!  access port ─▶ classify ─▶ session ─▶ ip ──┐                    ┌─▶ rewrite ─▶ access port
//!                    │           │            ├─▶ lookup ─▶ hop ───┤      └─(fragment)─▶ either, or punt
//!  core port ───▶ classify ──(untag)────▶ ip ─┤      │             └─▶ rewrite ─▶ core port
//!                    │                        │      │
//!  gateway ───────────────────────────▶ ip ───┘      │
//!  other workers ─▶ (as from an access port, or behind lookup) and the other way round for what is theirs
//!                    └───────────┬───────────────────┴─▶ punt ─▶ control thread
//! ```
//!
//! Each burst is passed over twice: the first pass looks at the headers and asks for the tables' lines that the second
//! will need. In between, IPv6 destinations are looked up, all of the burst together; and those of what comes from the
//! core, as only then the session's line is known. A packet either goes out by a port, or is punted, or is dropped for a
//! named reason.
//!
//! The ways have names (`edges`), and `took` says which one a packet takes. Only a graph that is traced notes that
//! (`TRACE`); in the other nothing is left of it.
use crate::api::{AdjacencyIndex, Event, InstanceIndex, PortIndex, PuntKind, Role, SessionIndex};
use crate::drops::DropReason;
use crate::edges::Edge;
use crate::nodes::classify::{self, Access, Core, ETHERNET, TAG};
use crate::nodes::ip::{self, Family};
use crate::nodes::lookup::{self, Batch, Origin};
use crate::nodes::{Leave, Part, fragment, mss, rewrite, session};
use crate::punt;
use crate::tables::Vlans;
use crate::tables::adjacency::{Adjacencies, Asked};
use crate::tables::fib::{Reader, Table, Target};
use crate::tables::groups::Groups;
use crate::tables::interfaces::Interfaces;
use crate::tables::samples::Samples;
use crate::tables::sessions::Sessions;
use dpdk::{Burst, Gone, HEAD, Outs, Packet, Pool, Rest, WINDOW, Window};
use wire::eth::{MacAddr, TPID_8021Q};

/// Where a burst came from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// A port that leads to subscribers, or another worker that has received a frame there.
    Access { port: u16, edge: Edge },
    /// A port that leads to the core of an instance, and the gateway's address there.
    Core { port: u16, instance: u16, own: u64 },
    /// The gateway itself: IP packets behind 14 octets that mean nothing.
    Gateway { instance: u16 },
    /// Another worker, which has looked up where it leads: IP packets behind a note ([`NOTE`]).
    Worker,
}

impl Source {
    pub fn of(PortIndex(port): PortIndex, role: &Role, own: MacAddr) -> Self {
        match role {
            Role::Access { .. } => Source::Access {
                port,
                edge: Edge::AccessFrame,
            },
            Role::Core { instance } => Source::Core {
                port,
                instance: instance.0,
                own: classify::number(own),
            },
        }
    }
}

/// What the nodes work with.
pub(crate) struct Tables {
    pub interfaces: Interfaces,
    pub sessions: Sessions,
    pub fibs: Reader,
    /// The instance of the last packet from a subscriber, and so probably of the next.
    pub likely: InstanceIndex,
    /// The burst's IPv6 destinations.
    pub six: Batch,
    pub groups: Groups,
    pub adjacencies: Adjacencies,
    pub asked: Asked,
    pub samples: Samples,
    /// The way out to worker 0; those of the others follow.
    pub others: usize,
    /// For fragments.
    pub pool: Pool,
    pub events: rtrb::Producer<Event>,
    /// The TSC when the burst came, and its ticks in a second.
    pub now: u64,
    pub second: u64,
    /// The edges that packets took, one after the other, if the graph is traced.
    pub path: Vec<Edge>,
}

/// Passes a burst through the graph.
pub(crate) fn run<const TRACE: bool>(
    source: Source,
    tables: &mut Tables,
    burst: &mut Burst,
    outs: &mut Outs,
    rest: &mut Rest<Leave>,
) {
    match source {
        Source::Access { port, edge } => {
            from_access::<TRACE>(port, edge, tables, burst, outs, rest);
        }
        Source::Core {
            port,
            instance,
            own,
        } => from_core::<TRACE>(port, instance, own, tables, burst, outs, rest),
        Source::Gateway { instance } => {
            from_gateway::<TRACE>(instance, tables, burst, outs, rest);
        }
        Source::Worker => from_worker::<TRACE>(tables, burst, outs, rest),
    }
}

#[inline(never)]
fn from_access<const TRACE: bool>(
    port: u16,
    edge: Edge,
    t: &mut Tables,
    burst: &mut Burst,
    outs: &mut Outs,
    rest: &mut Rest<Leave>,
) {
    let table = t.fibs.table(t.likely);
    let mut first = FirstPass {
        vlans: t.sessions.vlans(PortIndex(port)),
        sessions: &t.sessions,
        fibs: &t.fibs,
        table,
        six: &mut t.six,
    };
    let seen = burst.look(rest, |w, len| match classify::depth(w) {
        2 => first.look::<2>(w, len),
        depth => first.look_with_fewer_tags(w, len, depth),
    });
    t.six.find(&t.fibs, table);
    seen.act(outs, rest, |kind, packet| {
        t.took::<TRACE>(edge);
        match kind {
            Access::Double { slot, six } => upstream::<TRACE, 2>(t, table, slot, six, packet),
            other => from_access_seldom::<TRACE>(t, port, table, other, packet),
        }
    });
}

/// What the first pass over a burst from an access port works with.
struct FirstPass<'a> {
    vlans: &'a Vlans,
    sessions: &'a Sessions,
    fibs: &'a Reader,
    table: Table,
    six: &'a mut Batch,
}

impl FirstPass<'_> {
    /// Looks at a frame with `DEPTH` tags, and asks for the lines of the session and of the packet's destination.
    #[inline(always)]
    fn look<const DEPTH: usize>(&mut self, w: &Window, len: usize) -> Access {
        let kind = classify::access::<DEPTH>(w, len, self.vlans, self.sessions);
        let (Access::Untagged { slot, .. }
        | Access::Tagged { slot, .. }
        | Access::Double { slot, .. }) = kind
        else {
            return kind;
        };
        self.sessions.touch_up(slot);
        let ip = HEAD + session::headers(DEPTH);
        let protocol = w.raw16(ip - 2);
        if protocol == session::PPP_IPV4.to_be() {
            self.fibs.touch_v4(self.table, w.u32(ip + 16));
        } else if protocol == session::PPP_IPV6.to_be() {
            return Access::session::<DEPTH>(slot, self.six.add(self.fibs, self.table, w, ip));
        }
        kind
    }

    /// The same with one tag or none.
    #[inline(never)]
    fn look_with_fewer_tags(&mut self, w: &Window, len: usize, depth: usize) -> Access {
        match depth {
            0 => self.look::<0>(w, len),
            _ => self.look::<1>(w, len),
        }
    }
}

/// What is not of a session with two tags; not in the loop itself, which would become too large.
#[inline(never)]
fn from_access_seldom<const TRACE: bool>(
    t: &mut Tables,
    port: u16,
    table: Table,
    kind: Access,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    match kind {
        Access::Double { slot, six } => upstream::<TRACE, 2>(t, table, slot, six, packet),
        Access::Tagged { slot, six } => upstream::<TRACE, 1>(t, table, slot, six, packet),
        Access::Untagged { slot, six } => upstream::<TRACE, 0>(t, table, slot, six, packet),
        Access::Termination { slot, depth } => {
            t.took::<TRACE>(Edge::OfSession);
            let leave = session::terminate(t.sessions.up(slot), packet.window(), depth);
            packet.leave(t.left_session::<TRACE>(leave))
        }
        Access::Discovery => {
            t.took::<TRACE>(Edge::Discovery);
            packet.leave(Leave::Punt(PuntKind::Discovery, Part::WHOLE))
        }
        Access::Other(worker) => {
            t.took::<TRACE>(Edge::OfOther);
            packet.set_meta([punt::FRAME, port.into()]);
            let len = packet.len() as u32;
            packet.send(t.others + worker as usize, HEAD as u32, len)
        }
        Access::Drop(reason) => packet.leave(reason.into()),
    }
}

#[inline(never)]
fn from_core<const TRACE: bool>(
    port: u16,
    instance: u16,
    own: u64,
    t: &mut Tables,
    burst: &mut Burst,
    outs: &mut Outs,
    rest: &mut Rest<Leave>,
) {
    let table = t.fibs.table(InstanceIndex(instance));
    let mut seen = burst.look(rest, |w, len| {
        let kind = classify::core(w, len, own);
        match kind {
            // Most of what comes from there is for a subscriber.
            Core::V4 => t.fibs.touch_host_v4(table, w.u32(IP + 16)),
            Core::V6 => _ = t.six.add(&t.fibs, table, w, IP),
            Core::Tagged => return t.look_at_tagged(w, len, port, own),
            _ => {}
        }
        (kind, Target::default())
    });
    t.six.find(&t.fibs, table);
    let mut place = 0;
    seen.ask(|w, (kind, target)| match kind {
        Core::V4 => *target = t.lookup_ahead(Family::V4, table, w, IP),
        Core::V6 => {
            // In the order in which they were added.
            *target = t.ask_for(t.six.target(place), Family::V6, w, IP);
            place += 1;
        }
        _ => {}
    });
    let arrived = Arrived {
        origin: Origin::Core(PortIndex(port)),
        instance,
        family: Family::V4,
        ip: IP as u8,
    };
    seen.act(outs, rest, |(kind, target), mut packet| {
        t.took::<TRACE>(Edge::CoreFrame);
        if TRACE && is_tagged(&mut packet) {
            t.took::<TRACE>(Edge::Tagged);
        }
        match kind {
            Core::V4 => {
                t.took::<TRACE>(Edge::CoreV4);
                downstream::<TRACE>(t, arrived, target, packet)
            }
            Core::V6 if lookup::stays_on_link(packet.window(), IP) => {
                t.took::<TRACE>(Edge::CoreLinkLocal);
                packet.leave(for_kernel(PortIndex(port), 0))
            }
            Core::V6 => {
                t.took::<TRACE>(Edge::CoreV6);
                let family = Family::V6;
                downstream::<TRACE>(t, Arrived { family, ..arrived }, target, packet)
            }
            Core::Kernel => {
                t.took::<TRACE>(Edge::CoreKernel);
                packet.leave(for_kernel(PortIndex(port), 0))
            }
            Core::Drop(reason) => packet.leave(reason.into()),
            tagged => from_vlan::<TRACE>(t, tagged, target, packet),
        }
    });
}

#[inline(never)]
fn from_gateway<const TRACE: bool>(
    instance: u16,
    t: &mut Tables,
    burst: &mut Burst,
    outs: &mut Outs,
    rest: &mut Rest<Leave>,
) {
    let table = t.fibs.table(InstanceIndex(instance));
    let seen = burst.look(rest, |w, _| {
        let family = ip::family(w, IP);
        (family, t.lookup_ahead(family, table, w, IP))
    });
    seen.act(outs, rest, |(family, target), packet| {
        t.took::<TRACE>(Edge::GatewayPacket);
        let arrived = Arrived {
            origin: Origin::Gateway,
            instance,
            family,
            ip: IP as u8,
        };
        downstream::<TRACE>(t, arrived, target, packet)
    });
}

#[inline(never)]
fn from_worker<const TRACE: bool>(
    t: &mut Tables,
    burst: &mut Burst,
    outs: &mut Outs,
    rest: &mut Rest<Leave>,
) {
    let seen = burst.look(rest, |w, _| {
        t.sessions.touch_down(SessionIndex(w.u32(NOTE)));
    });
    seen.act(outs, rest, |(), mut packet| {
        t.took::<TRACE>(Edge::TakenPacket);
        let (index, arrived) = noted(packet.window());
        let total = packet.len().saturating_sub(ETHERNET);
        to_subscriber::<TRACE>(t, arrived, total, index, packet)
    });
}

/// What one worker tells another of an IP packet, in the octets in front of it: the session (4 octets), the origin (2), the
/// instance (2).
const NOTE: usize = HEAD;

/// Origins in a note; a smaller number is an interface.
const OF_SUBSCRIBER: u16 = u16::MAX;
const OF_GATEWAY: u16 = u16::MAX - 1;

/// Where IP starts in the window of a frame without tags.
const IP: usize = HEAD + ETHERNET;

/// Where IP starts in the window of a frame with one tag.
const TAGGED_IP: usize = IP + TAG;

/// Has the frame from the core a tag?
fn is_tagged(packet: &mut Packet<'_, Leave>) -> bool {
    packet.len() >= ETHERNET && packet.window().u16(IP - 2) == TPID_8021Q
}

fn for_kernel(interface: PortIndex, strip: usize) -> Leave {
    let part = Part {
        strip: strip as u8,
        ..Part::WHOLE
    };
    Leave::Punt(crate::PuntKind::Core(interface), part)
}

/// untag → as from an untagged port.
#[inline(never)]
fn from_vlan<const TRACE: bool>(
    t: &mut Tables,
    kind: Core,
    target: Target,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    let (interface, family) = match kind {
        Core::TaggedV4(interface) => (interface, Family::V4),
        Core::TaggedV6(interface) => (interface, Family::V6),
        Core::TaggedKernel(interface) => {
            t.took::<TRACE>(Edge::TaggedKernel);
            classify::untag(packet.window());
            return packet.leave(for_kernel(interface, TAG));
        }
        Core::Drop(reason) => return packet.leave(reason.into()),
        // The others have no tag.
        Core::V4 | Core::V6 | Core::Kernel | Core::Tagged => return packet.leave(Leave::default()),
    };
    classify::untag(packet.window());
    if family == Family::V6 && lookup::stays_on_link(packet.window(), TAGGED_IP) {
        t.took::<TRACE>(Edge::TaggedLinkLocal);
        return packet.leave(for_kernel(interface, TAG));
    }
    t.took::<TRACE>(family.either(Edge::TaggedV4, Edge::TaggedV6));
    let arrived = Arrived {
        origin: Origin::Core(interface),
        instance: t.instance(interface),
        family,
        ip: TAGGED_IP as u8,
    };
    downstream::<TRACE>(t, arrived, target, packet)
}

/// session → lookup → rewrite. Most packets go by the table of the one before.
#[inline(always)]
fn upstream<const TRACE: bool, const DEPTH: usize>(
    t: &mut Tables,
    table: Table,
    slot: u32,
    six: u8,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    t.took::<TRACE>(Edge::OfSession);
    let len = packet.len();
    let up = t.sessions.up(slot);
    let (family, total) = match session::admit::<DEPTH>(up, packet.window(), len, &t.fibs) {
        Ok(admitted) => admitted,
        Err(Leave::Sampled) => return sampled_upstream::<TRACE, DEPTH>(t, slot, packet),
        Err(leave) => return packet.leave(t.left_session::<TRACE>(leave)),
    };
    let arrived = Arrived::upstream::<DEPTH>(up.instance);
    if up.instance != table.instance().0 {
        return elsewhere_upstream::<TRACE>(t, slot, arrived, packet);
    }
    // Each family has its own code from here on.
    match family {
        Family::V4 => {
            let a = arrived.of(Family::V4);
            from_subscriber::<TRACE>(t, table, slot, a, total, None, packet)
        }
        Family::V6 => {
            let a = arrived.of(Family::V6);
            from_subscriber::<TRACE>(t, table, slot, a, total, Some(six), packet)
        }
    }
}

/// The same for one in another instance than the last one.
#[cold]
#[inline(never)]
fn elsewhere_upstream<const TRACE: bool>(
    t: &mut Tables,
    slot: u32,
    a: Arrived,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    t.likely = InstanceIndex(a.instance);
    let table = t.fibs.table(t.likely);
    let a = a.of(ip::family(packet.window(), a.ip()));
    let total = ip::total(a.family, packet.window(), a.ip());
    from_subscriber::<TRACE>(t, table, slot, a, total, None, packet)
}

/// The same for a session that is sampled.
#[cold]
#[inline(never)]
fn sampled_upstream<const TRACE: bool, const DEPTH: usize>(
    t: &mut Tables,
    slot: u32,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    let len = packet.len();
    let up = t.sessions.up(slot);
    up.sample(false);
    let admitted = session::admit::<DEPTH>(up, packet.window(), len, &t.fibs);
    up.sample(true);
    let (arrived, index) = (Arrived::upstream::<DEPTH>(up.instance), up.index);
    if let Err(leave) = admitted {
        return packet.leave(t.left_session::<TRACE>(leave));
    }
    t.took::<TRACE>(Edge::SampledUp);
    if let Some(port) = t.sessions.get(index).map(|entry| entry.port) {
        let frame = packet.window().bytes(HEAD..WINDOW.min(HEAD + len));
        let kind = PuntKind::SampledUp(index);
        t.samples.take(index, kind, port, frame, t.now, t.second);
    }
    elsewhere_upstream::<TRACE>(t, slot, arrived, packet)
}

/// (mss) → lookup, if it was not done ahead (at this place) → rewrite.
#[inline(always)]
fn from_subscriber<const TRACE: bool>(
    t: &mut Tables,
    table: Table,
    slot: u32,
    a: Arrived,
    total: usize,
    ahead: Option<u8>,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    if mss::may_be_syn(a.family, packet.window(), a.ip()) {
        return connecting::<TRACE>(t, slot, a, total, packet);
    }
    t.took::<TRACE>(a.family.either(Edge::SubscriberV4, Edge::SubscriberV6));
    let target = match ahead {
        Some(place) => t.six.target(place),
        None => lookup::find(&t.fibs, table, a.family, packet.window(), a.ip()),
    };
    forward::<TRACE>(t, a, total, target, packet)
}

/// mss → lookup → rewrite, for what could be a SYN.
#[cold]
#[inline(never)]
fn connecting<const TRACE: bool>(
    t: &mut Tables,
    slot: u32,
    a: Arrived,
    total: usize,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    t.took::<TRACE>(Edge::SubscriberSyn);
    t.took::<TRACE>(Edge::SynToLookup);
    mss::clamp(
        &mut packet,
        a.family,
        a.ip(),
        total,
        t.sessions.up(slot).mtu,
    );
    let table = t.fibs.table(InstanceIndex(a.instance));
    let target = lookup::find(&t.fibs, table, a.family, packet.window(), a.ip());
    forward::<TRACE>(t, a, total, target, packet)
}

/// ip → lookup (done ahead) → rewrite.
#[inline(always)]
fn downstream<const TRACE: bool>(
    t: &mut Tables,
    a: Arrived,
    target: Target,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    let room = packet.len().saturating_sub(a.ip() - HEAD);
    match ip::check(a.family, packet.window(), a.ip(), room) {
        Ok(total) => {
            t.took::<TRACE>(Edge::Sound);
            forward::<TRACE>(t, a, total, target, packet)
        }
        Err(reason) => packet.leave(reason.into()),
    }
}

/// Where a packet comes from and is to be routed, and what its header is.
#[derive(Clone, Copy)]
struct Arrived {
    origin: Origin,
    instance: u16,
    family: Family,
    ip: u8,
}

/// A register holds it: what is seldom needed costs nothing.
const _: () = assert!(size_of::<Arrived>() == 8);

impl Arrived {
    /// From a subscriber with so many tags. The family is to be said.
    #[inline(always)]
    fn upstream<const DEPTH: usize>(instance: u16) -> Self {
        Arrived {
            origin: Origin::Subscriber,
            instance,
            family: Family::V4,
            ip: (HEAD + session::headers(DEPTH)) as u8,
        }
    }

    #[inline(always)]
    fn of(self, family: Family) -> Self {
        Arrived { family, ..self }
    }

    /// Where the IP header is in the window.
    #[inline(always)]
    fn ip(self) -> usize {
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
fn forward<const TRACE: bool>(
    t: &mut Tables,
    a: Arrived,
    total: usize,
    target: Target,
    packet: Packet<'_, Leave>,
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
    a: Arrived,
    total: usize,
    index: AdjacencyIndex,
    mut packet: Packet<'_, Leave>,
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
    a: Arrived,
    total: usize,
    index: SessionIndex,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    let w = packet.window();
    if let Err(leave) = hop::<TRACE>(t, a, total, w) {
        return packet.leave(leave);
    }
    t.took::<TRACE>(a.way(Edge::ToSubscriber, Edge::OwnToSubscriber));
    let frame = match t.sessions.down(index) {
        Some(down) if (total <= down.plain as usize) & !mss::may_be_syn(a.family, w, a.ip()) => {
            rewrite::to_subscriber(down, a.family, w, a.ip(), total)
        }
        _ => return closer_to_subscriber::<TRACE>(t, index, a, total, packet),
    };
    t.took::<TRACE>(Edge::Encapsulated);
    packet.send(frame.port, frame.start as u32, frame.len as u32)
}

/// To the worker that has the session.
#[inline(never)]
fn to_other<const TRACE: bool>(
    t: &mut Tables,
    a: Arrived,
    total: usize,
    index: SessionIndex,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    t.took::<TRACE>(Edge::ToOther);
    let (note, w) = (a.ip() - ETHERNET, packet.window());
    let origin = match a.origin {
        Origin::Subscriber => OF_SUBSCRIBER,
        Origin::Gateway => OF_GATEWAY,
        Origin::Core(PortIndex(interface)) => interface,
    };
    w.put32(note, index.0);
    w.put16(note + 4, origin);
    w.put16(note + 6, a.instance);
    packet.set_meta([punt::PACKET, 0]);
    let worker = t.sessions.shard.of(index.0) as usize;
    packet.send(t.others + worker, note as u32, (total + ETHERNET) as u32)
}

/// What [`to_other`] wrote.
fn noted(w: &Window) -> (SessionIndex, Arrived) {
    let arrived = Arrived {
        origin: match w.u16(NOTE + 4) {
            OF_SUBSCRIBER => Origin::Subscriber,
            OF_GATEWAY => Origin::Gateway,
            interface => Origin::Core(PortIndex(interface)),
        },
        instance: w.u16(NOTE + 6),
        family: ip::family(w, IP),
        ip: IP as u8,
    };
    (SessionIndex(w.u32(NOTE)), arrived)
}

/// To one of several neighbours; or to where no way leads yet, or none goes on.
#[inline(never)]
fn elsewhere<const TRACE: bool>(
    t: &mut Tables,
    a: Arrived,
    total: usize,
    target: Target,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    let target = lookup::of_group(&t.groups, target, a.family, packet.window(), a.ip());
    if let Some(index) = target.adjacency() {
        return to_neighbour::<TRACE>(t, a, total, index, packet);
    }
    match lookup::elsewhere(target, a.origin, a.instance, a.ip(), total) {
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
    a: Arrived,
    total: usize,
    w: &mut Window,
) -> Result<(), Leave> {
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
    a: Arrived,
    total: usize,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    if mss::may_be_syn(a.family, packet.window(), a.ip()) {
        t.took::<TRACE>(Edge::ToMss);
        t.took::<TRACE>(Edge::SynToSubscriber);
    }
    let there = t.sessions.down(index).filter(|down| down.length != 0);
    let Some(down) = there else {
        return packet.leave(DropReason::StaleSession.into());
    };
    let (mtu, sampled) = (down.mtu, down.is_sampled());
    mss::clamp(&mut packet, a.family, a.ip(), total, mtu);
    if total > mtu as usize {
        return large_to_subscriber::<TRACE>(t, index, a, total, packet);
    }
    let frame = rewrite::to_subscriber(down, a.family, packet.window(), a.ip(), total);
    if sampled {
        t.took::<TRACE>(Edge::SampledDown);
        let octets = frame.start..WINDOW.min(frame.start + frame.len);
        t.show_down(index, frame.port, packet.window().bytes(octets));
    }
    t.took::<TRACE>(Edge::Encapsulated);
    packet.send(frame.port, frame.start as u32, frame.len as u32)
}

/// To a subscriber, larger than it takes packets.
fn large_to_subscriber<const TRACE: bool>(
    t: &mut Tables,
    index: SessionIndex,
    a: Arrived,
    total: usize,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    t.took::<TRACE>(Edge::LargeToSubscriber);
    let Some(down) = t.sessions.down(index) else {
        return packet.leave(DropReason::StaleSession.into());
    };
    let (mtu, port, sampled) = (down.mtu, down.port as usize, down.is_sampled());
    let header = |w: &mut Window, ip, total| rewrite::to_subscriber(down, a.family, w, ip, total);
    let fragments = match fragment::make(t.pool, &mut packet, a.ip(), total, mtu, header) {
        Ok(fragments) => fragments,
        Err(reason) => return packet.leave(t.refused::<TRACE>(reason, a, total, mtu)),
    };
    if sampled {
        t.took::<TRACE>(Edge::SampledDown);
        for frame in fragments.frames() {
            t.show_down(index, port, &frame[..frame.len().min(WINDOW - HEAD)]);
        }
    }
    let leave = t.sent::<TRACE>(&mut packet, port, fragments);
    packet.leave(leave)
}

/// To a neighbour that does not take packets of this size, or that is not known.
#[cold]
#[inline(never)]
fn large_to_neighbour<const TRACE: bool>(
    t: &mut Tables,
    index: AdjacencyIndex,
    a: Arrived,
    total: usize,
    mut packet: Packet<'_, Leave>,
) -> Gone {
    let Some(&neighbour) = t.adjacencies.get(index) else {
        return packet.leave(t.missing(index).into());
    };
    t.took::<TRACE>(Edge::LargeToNeighbour);
    let (mtu, port) = (neighbour.mtu, neighbour.port as usize);
    let header =
        |w: &mut Window, ip, total| rewrite::to_neighbour(&neighbour, a.family, w, ip, total);
    let leave = match fragment::make(t.pool, &mut packet, a.ip(), total, mtu, header) {
        Ok(fragments) => t.sent::<TRACE>(&mut packet, port, fragments),
        Err(reason) => t.refused::<TRACE>(reason, a, total, mtu),
    };
    packet.leave(leave)
}

impl Tables {
    /// A packet takes this edge.
    #[inline(always)]
    pub fn took<const TRACE: bool>(&mut self, edge: Edge) {
        if TRACE {
            self.path.push(edge);
        }
    }

    /// What `session` did not admit is dropped there, or punted.
    #[inline(always)]
    fn left_session<const TRACE: bool>(&mut self, leave: Leave) -> Leave {
        if TRACE && matches!(leave, Leave::Punt(..)) {
            self.took::<TRACE>(Edge::SessionControl);
        }
        leave
    }

    /// What `lookup` found no next hop for is dropped there, or the gateway's own.
    #[inline(always)]
    fn left_lookup<const TRACE: bool>(&mut self, leave: Leave) -> Leave {
        match leave {
            Leave::Punt(PuntKind::Local(_), _) => self.took::<TRACE>(Edge::LocalFromSubscriber),
            Leave::Punt(..) => self.took::<TRACE>(Edge::LocalFromCore),
            _ => {}
        }
        leave
    }

    /// Takes a copy of a frame to a session that is sampled.
    fn show_down(&mut self, index: SessionIndex, port: usize, octets: &[u8]) {
        let (kind, port) = (PuntKind::SampledDown(index), PortIndex(port as u16));
        self.samples
            .take(index, kind, port, octets, self.now, self.second);
    }

    /// Fragments go out by a port in the place of the packet; there is room for them.
    fn sent<const TRACE: bool>(
        &mut self,
        packet: &mut Packet<'_, Leave>,
        port: usize,
        mut fragments: Burst,
    ) -> Leave {
        self.took::<TRACE>(Edge::Fragments);
        let n = fragments.len() as u8;
        packet.send_ahead(port, &mut fragments);
        Leave::Fragmented(n)
    }

    /// What must not be fragmented is dropped, and its sender is told.
    fn refused<const TRACE: bool>(
        &mut self,
        reason: DropReason,
        a: Arrived,
        total: usize,
        mtu: u16,
    ) -> Leave {
        if reason != DropReason::TooBig {
            return reason.into();
        }
        self.took::<TRACE>(Edge::Refused);
        let kind = PuntKind::TooBig {
            instance: InstanceIndex(a.instance),
            mtu,
            own: a.origin == Origin::Gateway,
        };
        Leave::Told(kind, lookup::packet(a.ip(), total))
    }

    /// Looks the destination up and asks for the line of where it leads.
    #[inline(always)]
    fn lookup_ahead(&self, family: Family, table: Table, w: &Window, ip: usize) -> Target {
        self.ask_for(
            lookup::find(&self.fibs, table, family, w, ip),
            family,
            w,
            ip,
        )
    }

    /// Asks for the line of where it leads.
    #[inline(always)]
    fn ask_for(&self, target: Target, family: Family, w: &Window, ip: usize) -> Target {
        let target = lookup::of_group(&self.groups, target, family, w, ip);
        if let Some(index) = target.session() {
            self.sessions.touch_down(index);
        } else if let Some(index) = target.adjacency() {
            self.adjacencies.touch(index);
        }
        target
    }

    /// What `run` looks for in a frame from the core, for one with a tag.
    #[inline(never)]
    fn look_at_tagged(&self, w: &Window, len: usize, port: u16, own: u64) -> (Core, Target) {
        let kind = classify::tagged(w, len, port, own, &self.interfaces);
        let (interface, family) = match kind {
            Core::TaggedV4(interface) => (interface, Family::V4),
            Core::TaggedV6(interface) => (interface, Family::V6),
            _ => return (kind, Target::default()),
        };
        let table = self.fibs.table(InstanceIndex(self.instance(interface)));
        let target = self.lookup_ahead(family, table, w, TAGGED_IP);
        (kind, target)
    }

    /// The instance that packets from an interface are routed in.
    fn instance(&self, interface: PortIndex) -> u16 {
        self.interfaces.get(interface).map_or(0, |i| i.instance.0)
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
