//! From the core, and from the gateway itself: classify → (untag) → ip → lookup, and on by `forward`.
use super::forward::{PacketContext, downstream};
use super::{IP, TAGGED_IP, Tables};
use crate::api::{InstanceIndex, PortIndex};
use crate::drops::DropReason;
use crate::edges::Edge;
use crate::nodes::Exit;
use crate::nodes::classify::{self, Core, ETHERNET, TAG};
use crate::nodes::ip::{self, Family};
use crate::nodes::lookup::{self, Origin};
use crate::nodes::punt::for_kernel;
use crate::nodes::source;
use crate::tables::fib::{Table, Target};
use dpdk::{Burst, Exits, Gone, HEAD, Packet, TxBuffers, Window, prefetch, prefetch_early};
use policy::Direction;
use wire::eth::TPID_8021Q;

#[inline(never)]
pub(super) fn from_core<const TRACE: bool>(
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
        // The longer header of a frame to a subscriber begins in the line of memory in front of this frame's.
        prefetch(w);
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
    let checks = t.interfaces.checks(PortIndex(port));
    if checks {
        seen.ask(|w, (kind, _)| t.ask_for_core_source(table, *kind, w));
    }
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
    if t.sessions.any_policed() {
        seen.ask(|_, (_, target)| {
            if let Some(index) = target.session() {
                t.ask_for_policy((index, Direction::Down), t.sessions.passes_down(index));
            }
        });
    }
    if checks {
        seen.ask(|w, (kind, _)| {
            if *kind == Core::V6 {
                t.six.add_address(&t.fibs, table, w.u128(IP + 8));
            }
        });
        t.six.find(&t.fibs, table);
        let mut place = 0;
        seen.ask(|w, (kind, _)| *kind = t.judged(PortIndex(port), table, *kind, &mut place, w));
    }
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
            seldom => from_vlan::<TRACE>(t, seldom, target, packet),
        }
    });
}

#[inline(never)]
pub(super) fn from_gateway<const TRACE: bool>(
    instance: u16,
    t: &mut Tables,
    burst: &mut Burst,
    outs: &mut TxBuffers,
    rest: &mut Exits<Exit>,
) {
    let table = t.fibs.table(InstanceIndex(instance));
    let seen = burst.look(rest, |w, len| {
        // An empty one has no version, but what the buffer had before. IPv4's check refuses it.
        let family = if len > IP - HEAD {
            ip::family(w, IP)
        } else {
            Family::V4
        };
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

/// Has the frame from the core a tag?
fn is_tagged(packet: &mut Packet<'_, Exit>) -> bool {
    packet.len() >= ETHERNET && packet.window().u16(IP - 2) == TPID_8021Q
}

/// untag → as from an untagged port; or a packet that node `source` refuses.
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
        Core::Refused(family, reason) => return refused::<TRACE>(t, family, reason, packet),
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

/// (untag) → ip → source: a packet whose source is refused, unless its header is not sound either.
#[cold]
#[inline(never)]
fn refused<const TRACE: bool>(
    t: &mut Tables,
    family: Family,
    reason: DropReason,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let (ip, edge) = match is_tagged(&mut packet) {
        true => (TAGGED_IP, family.either(Edge::TaggedV4, Edge::TaggedV6)),
        false => (IP, family.either(Edge::CoreV4, Edge::CoreV6)),
    };
    t.took::<TRACE>(edge);
    let room = packet.len().saturating_sub(ip - HEAD);
    let w = packet.window();
    let reason = match ip::check(family, w, ip, room, &t.ipv4_options) {
        Err(unsound) => unsound,
        Ok(_) if ip::has_martian_source(family, w, ip) => DropReason::MartianSource,
        Ok(_) => {
            t.took::<TRACE>(Edge::ToSource);
            reason
        }
    };
    packet.leave(reason.into())
}

impl Tables {
    /// Asks for the line of the routes that will say whether the source of a packet may be.
    #[inline(never)]
    fn ask_for_core_source(&self, table: Table, kind: Core, w: &Window) {
        match kind {
            Core::V4 => _ = self.fibs.touch_v4(table, w.u32(IP + 12)),
            Core::V6 => self.fibs.touch_v6(table, w.u128(IP + 8)),
            Core::TaggedV4(interface) => {
                let table = self.fibs.table(InstanceIndex(self.instance(interface)));
                self.fibs.touch_v4(table, w.u32(TAGGED_IP + 12));
            }
            Core::TaggedV6(interface) => {
                let table = self.fibs.table(InstanceIndex(self.instance(interface)));
                self.fibs.touch_v6(table, w.u128(TAGGED_IP + 8));
            }
            _ => {}
        }
    }

    /// What a packet from a port is, if its source may be. Those of IPv6 without tags were looked up together, in this order.
    #[inline(never)]
    fn judged(
        &self,
        port: PortIndex,
        table: Table,
        kind: Core,
        place: &mut u32,
        w: &Window,
    ) -> Core {
        let (interface, family, ip, back) = match kind {
            Core::V4 => {
                let back = self.fibs.find_v4(table, w.u32(IP + 12));
                (port, Family::V4, IP, back)
            }
            Core::V6 => {
                *place += 1;
                (port, Family::V6, IP, self.six.target(*place - 1))
            }
            Core::TaggedV4(interface) | Core::TaggedV6(interface) => {
                let (family, back) = self.way_back(kind, interface, w);
                (interface, family, TAGGED_IP, back)
            }
            _ => return kind,
        };
        if family == Family::V6 && lookup::stays_on_link(w, ip) {
            return kind;
        }
        let check = self.interfaces.source_check(interface);
        let refusal = source::refusal(check, interface, back, &self.groups, &self.adjacencies);
        refusal.map_or(kind, |reason| Core::Refused(family, reason))
    }

    /// Where the source of a tagged packet leads.
    fn way_back(&self, kind: Core, interface: PortIndex, w: &Window) -> (Family, Target) {
        let table = self.fibs.table(InstanceIndex(self.instance(interface)));
        match kind {
            Core::TaggedV4(_) => {
                let back = self.fibs.find_v4(table, w.u32(TAGGED_IP + 12));
                (Family::V4, back)
            }
            _ => {
                let back = self.fibs.find_v6(table, w.u128(TAGGED_IP + 8));
                (Family::V6, back)
            }
        }
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
            self.sessions.ask_for_passes_down(index);
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
}
