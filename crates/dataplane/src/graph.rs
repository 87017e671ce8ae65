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
//! will need, which asks for them once more a few packets ahead (`docs/performance.md` says why). In between, IPv6
//! destinations are looked up, all of the burst together; and those of what comes from the core, as only then the session's
//! line is known. A packet either goes out by a port, or is punted, or is dropped for a named reason.
//!
//! What follows behind `session` is in `graph/upstream.rs`, behind `lookup` in `graph/forward.rs`.
//!
//! The ways have names (`edges`), and `took` says which one a packet takes. Only a graph that is traced notes that
//! (`TRACE`); in the other nothing is left of it.
mod forward;
mod upstream;

use crate::api::{AdjacencyIndex, Event, InstanceIndex, PortIndex, Role, SessionIndex};
use crate::drops::DropReason;
use crate::edges::Edge;
use crate::handoff;
use crate::nodes::classify::{self, Access, Core, ETHERNET, TAG};
use crate::nodes::ip::{self, Family};
use crate::nodes::lookup::{self, Batch, Origin};
use crate::nodes::punt::for_kernel;
use crate::nodes::{Exit, Part, session};
use crate::punt::{NextHop, PuntKind};
use crate::routes::Generations;
use crate::tables::Vlans;
use crate::tables::adjacency::{Adjacencies, Asked};
use crate::tables::fib::{Reader, Table, Target};
use crate::tables::groups::Groups;
use crate::tables::interfaces::Interfaces;
use crate::tables::samples::Samples;
use crate::tables::sessions::Sessions;
use dpdk::{Burst, Exits, Gone, HEAD, Packet, Pool, TxBuffers, Window, prefetch, prefetch_early};
use forward::{NOTE, PacketContext, downstream, noted, to_former_subscriber, to_subscriber};
use upstream::upstream;
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
    pub generations: Generations,
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
    outs: &mut TxBuffers,
    rest: &mut Exits<Exit>,
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
    outs: &mut TxBuffers,
    rest: &mut Exits<Exit>,
) {
    let table = t.fibs.table(t.likely);
    let mut first = FirstPass {
        vlans: t.sessions.vlans(PortIndex(port)),
        sessions: &t.sessions,
        fibs: &t.fibs,
        table,
        six: &mut t.six,
    };
    let mut seen = burst.look(rest, |w, len| first.look(w, len));
    if t.sessions.any_routed() {
        t.ask_for_sources(&mut seen);
    }
    t.six.find(&t.fibs, table);
    let (sessions, words) = (t.sessions.up_lines(), t.fibs.lines());
    let soon = |seen: Seen| {
        prefetch(sessions.at(seen.slot));
        prefetch(words.at(seen.place));
    };
    seen.act(outs, rest, soon, |seen, packet| {
        t.took::<TRACE>(edge);
        match seen.kind {
            Access::Double => upstream::<TRACE, 2>(t, table, seen.slot, seen.place, packet),
            _ => from_access_seldom::<TRACE>(t, port, table, seen, packet),
        }
    });
}

/// What the first pass has found out of a frame from an access port.
#[derive(Clone, Copy)]
struct Seen {
    kind: Access,
    /// The place of its session, if it has one.
    slot: u32,
    /// Where its destination will be found: an IPv4 one by the word at a place of the tables, or by more than one if this
    /// is 0; an IPv6 one at a place among those that are looked up together.
    place: u32,
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
    /// Looks at a frame, and asks for the lines of the session and of the packet's destination.
    #[inline(always)]
    fn look(&mut self, w: &Window, len: usize) -> Seen {
        // One with fewer than two tags by functions that return what registers hold: a key that is written to memory in
        // parts and read as a whole would have to wait.
        let depth = classify::depth(w);
        let (kind, slot) = match depth {
            2 => classify::access::<2>(w, len, self.vlans, self.sessions),
            _ => self.with_fewer_tags(w, len, depth),
        };
        let mut place = 0;
        if kind.is_session() {
            prefetch_early(self.sessions.up_lines().at(slot));
            place = match depth {
                2 => self.destination::<2>(w),
                _ => self.destination_with_fewer_tags(w, depth),
            };
        }
        Seen { kind, slot, place }
    }

    #[inline(never)]
    fn with_fewer_tags(&self, w: &Window, len: usize, depth: usize) -> (Access, u32) {
        match depth {
            0 => classify::access::<0>(w, len, self.vlans, self.sessions),
            _ => classify::access::<1>(w, len, self.vlans, self.sessions),
        }
    }

    /// Asks for the line of the destination; where it will be found.
    #[inline(always)]
    fn destination<const DEPTH: usize>(&mut self, w: &Window) -> u32 {
        let ip = HEAD + session::headers(DEPTH);
        let protocol = w.raw16(ip - 2);
        if protocol == session::PPP_IPV4.to_be() {
            self.fibs.touch_v4(self.table, w.u32(ip + 16))
        } else if protocol == session::PPP_IPV6.to_be() {
            self.six.add(self.fibs, self.table, w, ip)
        } else {
            0
        }
    }

    #[inline(never)]
    fn destination_with_fewer_tags(&mut self, w: &Window, depth: usize) -> u32 {
        match depth {
            0 => self.destination::<0>(w),
            _ => self.destination::<1>(w),
        }
    }
}

/// What is not of a session with two tags; not in the loop itself, which would become too large.
#[inline(never)]
fn from_access_seldom<const TRACE: bool>(
    t: &mut Tables,
    port: u16,
    table: Table,
    seen: Seen,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let Seen { kind, slot, place } = seen;
    match kind {
        Access::Double => upstream::<TRACE, 2>(t, table, slot, place, packet),
        Access::Tagged => upstream::<TRACE, 1>(t, table, slot, place, packet),
        Access::Untagged => upstream::<TRACE, 0>(t, table, slot, place, packet),
        Access::Termination(depth) => {
            t.took::<TRACE>(Edge::OfSession);
            let (up, whose) = t.sessions.entry(slot);
            let leave = session::terminate(up, whose, packet.window(), depth);
            packet.leave(t.left_session::<TRACE>(leave))
        }
        Access::Discovery => {
            t.took::<TRACE>(Edge::Discovery);
            packet.leave(Exit::Punt(PuntKind::Discovery, Part::WHOLE))
        }
        Access::Other(worker) => {
            t.took::<TRACE>(Edge::OfOther);
            packet.set_meta([handoff::FRAME, port.into()]);
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
    outs: &mut TxBuffers,
    rest: &mut Exits<Exit>,
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
    let arrived = PacketContext {
        origin: Origin::Core(PortIndex(port)),
        instance,
        family: Family::V4,
        ip: IP as u8,
    };
    let sessions = t.sessions.down_lines();
    let soon = |(_, target): (Core, Target)| sessions.soon(target);
    seen.act(outs, rest, soon, |(kind, target), mut packet| {
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
                let end = HEAD + packet.len();
                let leave = for_kernel(packet.window(), HEAD, end, PortIndex(port));
                packet.leave(leave)
            }
            Core::V6 => {
                t.took::<TRACE>(Edge::CoreV6);
                let family = Family::V6;
                downstream::<TRACE>(t, PacketContext { family, ..arrived }, target, packet)
            }
            Core::Kernel => {
                t.took::<TRACE>(Edge::CoreKernel);
                let end = HEAD + packet.len();
                let leave = for_kernel(packet.window(), HEAD, end, PortIndex(port));
                packet.leave(leave)
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
    outs: &mut TxBuffers,
    rest: &mut Exits<Exit>,
) {
    let table = t.fibs.table(InstanceIndex(instance));
    let seen = burst.look(rest, |w, _| {
        let family = ip::family(w, IP);
        (family, t.lookup_ahead(family, table, w, IP))
    });
    let sessions = t.sessions.down_lines();
    let soon = |(_, target): (Family, Target)| sessions.soon(target);
    seen.act(outs, rest, soon, |(family, target), packet| {
        t.took::<TRACE>(Edge::GatewayPacket);
        let arrived = PacketContext {
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
    outs: &mut TxBuffers,
    rest: &mut Exits<Exit>,
) {
    let seen = burst.look(rest, |w, _| {
        let index = SessionIndex(w.u32(NOTE));
        prefetch_early(t.sessions.down_lines().at(index));
        index
    });
    let sessions = t.sessions.down_lines();
    let soon = |index| prefetch(sessions.at(index));
    seen.act(outs, rest, soon, |_, mut packet| {
        t.took::<TRACE>(Edge::TakenPacket);
        let (index, generation, arrived) = noted(packet.window());
        let down = t.sessions.down(index);
        if down.is_none_or(|down| down.generation != generation) {
            return to_former_subscriber::<TRACE>(t, arrived, packet);
        }
        let total = packet.len().saturating_sub(ETHERNET);
        to_subscriber::<TRACE>(t, arrived, total, index, packet)
    });
}

/// Where IP starts in the window of a frame without tags.
const IP: usize = HEAD + ETHERNET;

/// Where IP starts in the window of a frame with one tag.
const TAGGED_IP: usize = IP + TAG;

/// Has the frame from the core a tag?
fn is_tagged(packet: &mut Packet<'_, Exit>) -> bool {
    packet.len() >= ETHERNET && packet.window().u16(IP - 2) == TPID_8021Q
}

/// untag → as from an untagged port.
#[inline(never)]
fn from_vlan<const TRACE: bool>(
    t: &mut Tables,
    kind: Core,
    target: Target,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let (interface, family) = match kind {
        Core::TaggedV4(interface) => (interface, Family::V4),
        Core::TaggedV6(interface) => (interface, Family::V6),
        Core::TaggedKernel(interface) => {
            t.took::<TRACE>(Edge::TaggedKernel);
            classify::untag(packet.window());
            let end = HEAD + packet.len();
            let leave = for_kernel(packet.window(), HEAD + TAG, end, interface);
            return packet.leave(leave);
        }
        Core::Drop(reason) => return packet.leave(reason.into()),
        // The others have no tag.
        Core::V4 | Core::V6 | Core::Kernel | Core::Tagged => return packet.leave(Exit::default()),
    };
    classify::untag(packet.window());
    if family == Family::V6 && lookup::stays_on_link(packet.window(), TAGGED_IP) {
        t.took::<TRACE>(Edge::TaggedLinkLocal);
        let end = HEAD + packet.len();
        let leave = for_kernel(packet.window(), HEAD + TAG, end, interface);
        return packet.leave(leave);
    }
    t.took::<TRACE>(family.either(Edge::TaggedV4, Edge::TaggedV6));
    let arrived = PacketContext {
        origin: Origin::Core(interface),
        instance: t.instance(interface),
        family,
        ip: TAGGED_IP as u8,
    };
    downstream::<TRACE>(t, arrived, target, packet)
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
    fn left_session<const TRACE: bool>(&mut self, leave: Exit) -> Exit {
        if TRACE && matches!(leave, Exit::Punt(..)) {
            self.took::<TRACE>(Edge::SessionControl);
        }
        leave
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

    /// Takes a copy of a frame to a session that is sampled.
    fn show_down(&mut self, index: SessionIndex, port: usize, octets: &[u8]) {
        let (kind, port) = (PuntKind::SampledDown(index), PortIndex(port as u16));
        self.samples
            .take(index, kind, port, octets, self.now, self.second);
    }

    /// Fragments go out by a port in the place of the packet; there is room for them.
    fn sent<const TRACE: bool>(
        &mut self,
        packet: &mut Packet<'_, Exit>,
        port: usize,
        mut fragments: Burst,
    ) -> Exit {
        self.took::<TRACE>(Edge::Fragments);
        let n = fragments.len() as u8;
        packet.send_ahead(port, &mut fragments);
        Exit::Fragmented(n)
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

    /// Asks for the lines of those sources that are to be found in the routes.
    #[cold]
    #[inline(never)]
    fn ask_for_sources(&mut self, all: &mut dpdk::Seen<Seen>) {
        all.ask(|w, seen| {
            let up = self.sessions.up(seen.slot);
            if up.is_routed() && seen.kind.is_session() {
                session::ask_for_source(up, &self.fibs, w, classify::depth(w));
            }
        });
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
            prefetch_early(self.sessions.down_lines().at(index));
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
