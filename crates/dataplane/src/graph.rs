//! The graph: what becomes of a burst. Read this first.
//!
//! ```text
//!  access port ─▶ classify ─▶ session ─▶ ip ──┐                    ┌─▶ rewrite ─▶ access port
//!                    │           │            ├─▶ lookup ─▶ hop ───┤      └─(fragment)─▶ either, or punt
//!  core port ───▶ classify ──(untag)────▶ ip ─┤      │             └─▶ rewrite ─▶ core port
//!                    │                        │      │
//!  gateway ───────────────────────────▶ ip ───┘      │
//!                    └───────────┬───────────────────┴─▶ punt ─▶ control thread
//! ```
//!
//! Each burst is passed over twice: the first pass looks at the headers and asks for the tables' lines that the second
//! will need. (What comes from the core is looked up in a pass between: only then the session's line is known.) A packet either goes out by a port, or is punted, or is dropped for a named reason.
//!
//! The ways have names (`edges`), and `took` says which one a packet takes. Only a graph that is traced notes that
//! (`TRACE`); in the other nothing is left of it.
use crate::api::{AdjacencyIndex, Event, InstanceIndex, PortIndex, PuntKind, Role, SessionIndex};
use crate::drops::DropReason;
use crate::edges::Edge;
use crate::nodes::classify::{self, Access, Core, ETHERNET, TAG};
use crate::nodes::ip::{self, Family};
use crate::nodes::lookup::{self, Next, Origin};
use crate::nodes::{Leave, Part, fragment, mss, rewrite, session};
use crate::tables::adjacency::{Adjacencies, Asked};
use crate::tables::fib::{Reader, Target};
use crate::tables::groups::Groups;
use crate::tables::interfaces::Interfaces;
use crate::tables::samples::Samples;
use crate::tables::sessions::Sessions;
use dpdk::{Burst, HEAD, Outs, Packet, Pool, Rest, WINDOW, Window};
use wire::eth::{MacAddr, TPID_8021Q};

/// Where a burst came from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// A port that leads to subscribers.
    Access { port: u16 },
    /// A port that leads to the core of an instance, and the gateway's address there.
    Core { port: u16, instance: u16, own: u64 },
    /// The gateway itself: IP packets behind 14 octets that mean nothing.
    Gateway { instance: u16 },
}

impl Source {
    pub fn of(PortIndex(port): PortIndex, role: &Role, own: MacAddr) -> Self {
        match role {
            Role::Access { .. } => Source::Access { port },
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
    pub groups: Groups,
    pub adjacencies: Adjacencies,
    pub asked: Asked,
    pub samples: Samples,
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
        Source::Access { port } => burst.two_pass(
            tables,
            outs,
            rest,
            |t, w, len| match classify::depth(w) {
                0 => t.look_at_access::<0>(w, len, port),
                1 => t.look_at_access::<1>(w, len, port),
                _ => t.look_at_access::<2>(w, len, port),
            },
            |t, kind, packet| {
                t.took::<TRACE>(Edge::AccessFrame);
                match kind {
                    Access::Double { slot } => upstream::<TRACE, 2>(t, slot, packet),
                    Access::Tagged { slot } => upstream_called::<TRACE, 1>(t, slot, packet),
                    Access::Untagged { slot } => upstream_called::<TRACE, 0>(t, slot, packet),
                    Access::Termination { slot, depth } => {
                        t.took::<TRACE>(Edge::OfSession);
                        let up = t.sessions.up(slot);
                        let leave = session::terminate(up, packet.window(), depth);
                        Err(t.left_session::<TRACE>(leave))
                    }
                    Access::Discovery => {
                        t.took::<TRACE>(Edge::Discovery);
                        Err(Leave::Punt(PuntKind::Discovery, Part::WHOLE))
                    }
                    Access::Drop(reason) => Err(reason.into()),
                }
            },
        ),
        Source::Core {
            port,
            instance,
            own,
        } => burst.three_pass(
            tables,
            outs,
            rest,
            |t, w, len| {
                let kind = classify::core(w, len, own);
                match kind {
                    // Most of what comes from there is for a subscriber.
                    Core::V4 => t
                        .fibs
                        .touch_host_v4(InstanceIndex(instance), w.u32(IP + 16)),
                    Core::V6 => t.fibs.touch_v6(InstanceIndex(instance), w.u128(IP + 24)),
                    Core::Tagged => return t.look_at_tagged(w, len, port, own),
                    _ => {}
                }
                (kind, Target::default())
            },
            |t, w, (kind, target)| match kind {
                Core::V4 => *target = t.lookup_ahead(Family::V4, instance, w, IP),
                Core::V6 => *target = t.lookup_ahead(Family::V6, instance, w, IP),
                _ => {}
            },
            |t, (kind, target), packet| {
                let origin = Origin::Core(PortIndex(port));
                t.took::<TRACE>(Edge::CoreFrame);
                if TRACE && is_tagged(packet) {
                    t.took::<TRACE>(Edge::Tagged);
                }
                match kind {
                    Core::V4 => {
                        t.took::<TRACE>(Edge::CoreV4);
                        downstream::<TRACE>(t, origin, Family::V4, instance, target, packet, IP)
                    }
                    Core::V6 if lookup::stays_on_link(packet.window(), IP) => {
                        t.took::<TRACE>(Edge::CoreLinkLocal);
                        Err(for_kernel(PortIndex(port), 0))
                    }
                    Core::V6 => {
                        t.took::<TRACE>(Edge::CoreV6);
                        downstream::<TRACE>(t, origin, Family::V6, instance, target, packet, IP)
                    }
                    Core::Kernel => {
                        t.took::<TRACE>(Edge::CoreKernel);
                        Err(for_kernel(PortIndex(port), 0))
                    }
                    Core::Drop(reason) => Err(reason.into()),
                    tagged => from_vlan::<TRACE>(t, tagged, target, packet),
                }
            },
        ),
        Source::Gateway { instance } => burst.two_pass(
            tables,
            outs,
            rest,
            |t, w, _| {
                let family = if w.u8(IP) >> 4 == 6 {
                    Family::V6
                } else {
                    Family::V4
                };
                (family, t.lookup_ahead(family, instance, w, IP))
            },
            |t, (family, target), packet| {
                t.took::<TRACE>(Edge::GatewayPacket);
                downstream::<TRACE>(t, Origin::Gateway, family, instance, target, packet, IP)
            },
        ),
    }
}

/// Where IP starts in the window of a frame without tags.
const IP: usize = HEAD + ETHERNET;

/// Where IP starts in the window of a frame with one tag.
const TAGGED_IP: usize = IP + TAG;

/// Has the frame from the core a tag?
fn is_tagged(packet: &mut Packet<'_>) -> bool {
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
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    let (interface, family) = match kind {
        Core::TaggedV4(interface) => (interface, Family::V4),
        Core::TaggedV6(interface) => (interface, Family::V6),
        Core::TaggedKernel(interface) => {
            t.took::<TRACE>(Edge::TaggedKernel);
            classify::untag(packet.window());
            return Err(for_kernel(interface, TAG));
        }
        Core::Drop(reason) => return Err(reason.into()),
        // The others have no tag.
        Core::V4 | Core::V6 | Core::Kernel | Core::Tagged => return Err(Leave::default()),
    };
    classify::untag(packet.window());
    if family == Family::V6 && lookup::stays_on_link(packet.window(), TAGGED_IP) {
        t.took::<TRACE>(Edge::TaggedLinkLocal);
        return Err(for_kernel(interface, TAG));
    }
    let instance = t.instance(interface);
    let origin = Origin::Core(interface);
    t.took::<TRACE>(family.either(Edge::TaggedV4, Edge::TaggedV6));
    downstream::<TRACE>(t, origin, family, instance, target, packet, TAGGED_IP)
}

/// session → lookup → rewrite.
#[inline(always)]
fn upstream<const TRACE: bool, const DEPTH: usize>(
    t: &mut Tables,
    slot: u32,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    t.took::<TRACE>(Edge::OfSession);
    let len = packet.len();
    let up = t.sessions.up(slot);
    let admitted = match session::admit::<DEPTH>(up, packet.window(), len, &t.fibs) {
        Ok(admitted) => admitted,
        Err(Leave::Sampled) => return sampled_upstream::<TRACE, DEPTH>(t, slot, packet),
        Err(leave) => return Err(t.left_session::<TRACE>(leave)),
    };
    let instance = up.instance;
    t.likely = InstanceIndex(instance);
    from_subscriber::<TRACE>(t, slot, instance, admitted, packet)
}

/// The same, not in the loop itself, which would become too large.
#[inline(never)]
fn upstream_called<const TRACE: bool, const DEPTH: usize>(
    t: &mut Tables,
    slot: u32,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    upstream::<TRACE, DEPTH>(t, slot, packet)
}

/// The same for a session that is sampled.
#[cold]
#[inline(never)]
fn sampled_upstream<const TRACE: bool, const DEPTH: usize>(
    t: &mut Tables,
    slot: u32,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    let len = packet.len();
    let up = t.sessions.up(slot);
    up.sample(false);
    let admitted = session::admit::<DEPTH>(up, packet.window(), len, &t.fibs);
    up.sample(true);
    let (instance, index) = (up.instance, up.index);
    let admitted = admitted.map_err(|leave| t.left_session::<TRACE>(leave))?;
    t.took::<TRACE>(Edge::SampledUp);
    if let Some(port) = t.sessions.get(index).map(|entry| entry.port) {
        let frame = packet.window().bytes(HEAD..WINDOW.min(HEAD + len));
        let kind = PuntKind::SampledUp(index);
        t.samples.take(index, kind, port, frame, t.now, t.second);
    }
    from_subscriber::<TRACE>(t, slot, instance, admitted, packet)
}

/// (mss) → lookup → rewrite.
#[inline(always)]
fn from_subscriber<const TRACE: bool>(
    t: &mut Tables,
    slot: u32,
    instance: u16,
    admitted: session::Packet,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    if mss::may_be_syn(admitted.family, packet.window(), admitted.ip) {
        return connecting::<TRACE>(t, slot, instance, admitted, packet);
    }
    let family = admitted.family;
    t.took::<TRACE>(family.either(Edge::SubscriberV4, Edge::SubscriberV6));
    routed::<TRACE>(t, instance, admitted, packet)
}

/// mss → lookup → rewrite, for what could be a SYN.
#[cold]
#[inline(never)]
fn connecting<const TRACE: bool>(
    t: &mut Tables,
    slot: u32,
    instance: u16,
    admitted: session::Packet,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    t.took::<TRACE>(Edge::SubscriberSyn);
    t.took::<TRACE>(Edge::SynToLookup);
    let session::Packet { family, ip, total } = admitted;
    mss::clamp(packet, family, ip, total, t.sessions.up(slot).mtu);
    routed::<TRACE>(t, instance, admitted, packet)
}

/// lookup → rewrite.
#[inline(always)]
fn routed<const TRACE: bool>(
    t: &mut Tables,
    instance: u16,
    session::Packet { family, ip, total }: session::Packet,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    let target = lookup::find(&t.fibs, &t.groups, instance, family, packet.window(), ip);
    let arrived = Arrived {
        origin: Origin::Subscriber,
        instance,
        family,
        ip: ip as u8,
        total: total as u16,
    };
    forward::<TRACE>(t, arrived, target, packet)
}

/// ip → lookup (done ahead) → rewrite.
#[inline(always)]
fn downstream<const TRACE: bool>(
    t: &mut Tables,
    origin: Origin,
    family: Family,
    instance: u16,
    target: Target,
    packet: &mut Packet<'_>,
    ip: usize,
) -> Result<usize, Leave> {
    let room = packet.len().saturating_sub(ip - HEAD);
    let total = ip::check(family, packet.window(), ip, room)?;
    t.took::<TRACE>(Edge::Sound);
    forward::<TRACE>(
        t,
        Arrived {
            origin,
            instance,
            family,
            ip: ip as u8,
            total: total as u16,
        },
        target,
        packet,
    )
}

/// A packet whose header is sound.
#[derive(Clone, Copy)]
struct Arrived {
    origin: Origin,
    instance: u16,
    family: Family,
    ip: u8,
    total: u16,
}

/// Two registers hold it: what is seldom needed costs nothing.
const _: () = assert!(size_of::<Arrived>() <= 16);

impl Arrived {
    /// Where the IP header is in the window.
    #[inline(always)]
    fn ip(self) -> usize {
        self.ip.into()
    }

    /// Length of the IP packet.
    #[inline(always)]
    fn total(self) -> usize {
        self.total.into()
    }
}

/// lookup's result → hop → rewrite → port.
#[inline(always)]
fn forward<const TRACE: bool>(
    t: &mut Tables,
    a: Arrived,
    target: Target,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    let next = match lookup::route(target, a.origin, a.instance, a.ip(), a.total()) {
        Ok(next) => next,
        Err(leave) => return Err(t.left_lookup::<TRACE>(leave)),
    };
    let w = packet.window();
    if a.origin != Origin::Gateway {
        t.took::<TRACE>(Edge::Forwarded);
        if let Err(leave) = rewrite::hop(a.family, w, a.ip(), a.total(), a.instance) {
            t.took::<TRACE>(Edge::Expired);
            return Err(leave);
        }
    }
    t.took::<TRACE>(way(next, a.origin));
    let frame = match next {
        Next::Neighbour(index) => match t.adjacencies.take(index) {
            Some(neighbour) if a.total() <= neighbour.mtu as usize => {
                rewrite::to_neighbour(neighbour, a.family, w, a.ip(), a.total())
            }
            Some(_) => return large_to_neighbour::<TRACE>(t, index, a, packet),
            None => return Err(t.missing(index).into()),
        },
        Next::Subscriber(index) => match t.sessions.down(index) {
            Some(down)
                if (a.total() <= down.plain as usize) & !mss::may_be_syn(a.family, w, a.ip()) =>
            {
                rewrite::to_subscriber(down, a.family, w, a.ip(), a.total())
            }
            _ => return closer_to_subscriber::<TRACE>(t, index, a, packet),
        },
        Next::Unresolved(port) => {
            let address = lookup::address(a.family, w, a.ip());
            return Err(t.unresolved(port, address).into());
        }
    };
    t.took::<TRACE>(match next {
        Next::Subscriber(_) => Edge::Encapsulated,
        _ if frame.start + ETHERNET < a.ip() => Edge::Retagged,
        _ => Edge::Untagged,
    });
    send(packet, frame)
}

/// The way from `lookup`, or for what is forwarded from `hop`.
fn way(next: Next, origin: Origin) -> Edge {
    match (next, origin) {
        (Next::Neighbour(_), Origin::Gateway) => Edge::OwnToNeighbour,
        (Next::Subscriber(_), Origin::Gateway) => Edge::OwnToSubscriber,
        (Next::Unresolved(_), Origin::Gateway) => Edge::OwnToConnected,
        (Next::Neighbour(_), _) => Edge::ToNeighbour,
        (Next::Subscriber(_), _) => Edge::ToSubscriber,
        (Next::Unresolved(_), _) => Edge::ToConnected,
    }
}

/// To a session that is sampled, or one that is gone; or a packet that could be a SYN, or is too big.
#[cold]
#[inline(never)]
fn closer_to_subscriber<const TRACE: bool>(
    t: &mut Tables,
    index: SessionIndex,
    a: Arrived,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    if mss::may_be_syn(a.family, packet.window(), a.ip()) {
        t.took::<TRACE>(Edge::ToMss);
        t.took::<TRACE>(Edge::SynToSubscriber);
    }
    let there = t.sessions.down(index).filter(|down| down.length != 0);
    let Some(down) = there else {
        return Err(DropReason::StaleSession.into());
    };
    let (mtu, sampled) = (down.mtu, down.is_sampled());
    mss::clamp(packet, a.family, a.ip(), a.total(), mtu);
    if a.total() > mtu as usize {
        return large_to_subscriber::<TRACE>(t, index, a, packet);
    }
    let frame = rewrite::to_subscriber(down, a.family, packet.window(), a.ip(), a.total());
    if sampled {
        t.took::<TRACE>(Edge::SampledDown);
        let octets = frame.start..WINDOW.min(frame.start + frame.len);
        t.show_down(index, frame.port, packet.window().bytes(octets));
    }
    t.took::<TRACE>(Edge::Encapsulated);
    send(packet, frame)
}

/// To a subscriber, larger than it takes packets.
fn large_to_subscriber<const TRACE: bool>(
    t: &mut Tables,
    index: SessionIndex,
    a: Arrived,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    t.took::<TRACE>(Edge::LargeToSubscriber);
    let Some(down) = t.sessions.down(index) else {
        return Err(DropReason::StaleSession.into());
    };
    let (mtu, port, sampled) = (down.mtu, down.port as usize, down.is_sampled());
    let header = |w: &mut Window, ip, total| rewrite::to_subscriber(down, a.family, w, ip, total);
    let fragments = match fragment::make(t.pool, packet, a.ip(), a.total(), mtu, header) {
        Ok(fragments) => fragments,
        Err(reason) => return Err(t.refused::<TRACE>(reason, a, mtu)),
    };
    if sampled {
        t.took::<TRACE>(Edge::SampledDown);
        for frame in fragments.frames() {
            t.show_down(index, port, &frame[..frame.len().min(WINDOW - HEAD)]);
        }
    }
    Err(t.sent::<TRACE>(packet, port, fragments))
}

/// To a neighbour that does not take packets of this size.
#[cold]
#[inline(never)]
fn large_to_neighbour<const TRACE: bool>(
    t: &mut Tables,
    index: AdjacencyIndex,
    a: Arrived,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    t.took::<TRACE>(Edge::LargeToNeighbour);
    let Some(neighbour) = t.adjacencies.take(index) else {
        return Err(t.missing(index).into());
    };
    let (mtu, port) = (neighbour.mtu, neighbour.port as usize);
    let header =
        |w: &mut Window, ip, total| rewrite::to_neighbour(neighbour, a.family, w, ip, total);
    match fragment::make(t.pool, packet, a.ip(), a.total(), mtu, header) {
        Ok(fragments) => Err(t.sent::<TRACE>(packet, port, fragments)),
        Err(reason) => Err(t.refused::<TRACE>(reason, a, mtu)),
    }
}

/// The packet is the frame now.
#[inline(always)]
fn send(packet: &mut Packet<'_>, frame: rewrite::Frame) -> Result<usize, Leave> {
    if packet.reframe(frame.start, frame.len) {
        Ok(frame.port)
    } else {
        Err(Leave::default())
    }
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
        packet: &mut Packet<'_>,
        port: usize,
        mut fragments: Burst,
    ) -> Leave {
        self.took::<TRACE>(Edge::Fragments);
        let n = fragments.len() as u8;
        packet.send(port, &mut fragments);
        Leave::Fragmented(n)
    }

    /// What must not be fragmented is dropped, and its sender is told.
    fn refused<const TRACE: bool>(&mut self, reason: DropReason, a: Arrived, mtu: u16) -> Leave {
        if reason != DropReason::TooBig {
            return reason.into();
        }
        self.took::<TRACE>(Edge::Refused);
        let kind = PuntKind::TooBig {
            instance: InstanceIndex(a.instance),
            mtu,
            own: a.origin == Origin::Gateway,
        };
        Leave::Told(kind, lookup::packet(a.ip(), a.total()))
    }

    /// Looks at a frame with `DEPTH` tags from an access port, and asks for the lines of the session and of the packet's
    /// destination.
    #[inline(always)]
    fn look_at_access<const DEPTH: usize>(&self, w: &Window, len: usize, port: u16) -> Access {
        let kind = classify::access::<DEPTH>(w, len, port, &self.sessions);
        let (Access::Untagged { slot } | Access::Tagged { slot } | Access::Double { slot }) = kind
        else {
            return kind;
        };
        self.sessions.touch_up(slot);
        let ip = HEAD + session::headers(DEPTH);
        match w.u16(ip - 2) {
            session::PPP_IPV4 => self.fibs.touch_v4(self.likely, w.u32(ip + 16)),
            session::PPP_IPV6 => self.fibs.touch_v6(self.likely, w.u128(ip + 24)),
            _ => {}
        }
        kind
    }

    /// Looks the destination up and asks for the line of where it leads.
    #[inline(always)]
    fn lookup_ahead(&self, family: Family, instance: u16, w: &Window, ip: usize) -> Target {
        let target = lookup::find(&self.fibs, &self.groups, instance, family, w, ip);
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
        let target = self.lookup_ahead(family, self.instance(interface), w, TAGGED_IP);
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
