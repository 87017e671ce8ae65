//! From an access port: classify → session → (mss) → lookup, and on by `forward`.
use super::Tables;
use super::forward::{PacketContext, forward};
use crate::api::{InstanceIndex, PortIndex};
use crate::compiled::Matched;
use crate::drops::DropReason::{self, NotForUs, WrongMac, WrongTag};
use crate::edges::Edge;
use crate::handoff;
use crate::nodes::classify::{self, Access};
use crate::nodes::ip::{self, Family};
use crate::nodes::lookup::{self, Batch};
use crate::nodes::policy::Examined;
use crate::nodes::{Exit, Part, mss, policy, session};
use crate::punt::PuntKind;
use crate::shard::{NO_OWNERS, Owners};
use crate::tables::Vlans;
use crate::tables::fib::{Reader, Table};
use crate::tables::sessions::{Occupant, Sessions};
use ::policy::Direction;
use dpdk::{Burst, Exits, Gone, HEAD, Packet, TxBuffers, WINDOW, Window, prefetch, prefetch_early};

#[inline(never)]
pub(super) fn from_access<const TRACE: bool>(
    port: u16,
    edge: Edge,
    t: &mut Tables,
    burst: &mut Burst,
    outs: &mut TxBuffers,
    rest: &mut Exits<Exit>,
) {
    let table = t.fibs.table(t.likely);
    let owners = t.sessions.owners(PortIndex(port), edge);
    let any_policed = t.sessions.any_policed();
    let mut first = FirstPass {
        vlans: t.sessions.vlans(PortIndex(port)),
        owners: owners.unwrap_or(&NO_OWNERS),
        sessions: &t.sessions,
        fibs: &t.fibs,
        table,
        six: &mut t.six,
    };
    let mut seen = match (owners, any_policed) {
        (None, false) => burst.look(rest, |w, len| first.look::<false, false>(w, len)),
        (None, true) => burst.look(rest, |w, len| first.look::<false, true>(w, len)),
        (Some(_), false) => burst.look(rest, |w, len| first.look::<true, false>(w, len)),
        (Some(_), true) => burst.look(rest, |w, len| first.look::<true, true>(w, len)),
    };
    if t.sessions.any_routed() {
        t.ask_for_sources(&mut seen);
    }
    if any_policed {
        t.match_rules(&mut seen);
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
            Access::Double => upstream::<TRACE, 2>(t, table, seen, packet),
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
    /// What the rules of its session's policy say.
    matched: Matched,
}

/// What the first pass over a burst from an access port works with.
struct FirstPass<'a> {
    vlans: &'a Vlans,
    /// VLANs that were moved.
    owners: &'a Owners,
    sessions: &'a Sessions,
    fibs: &'a Reader,
    table: Table,
    six: &'a mut Batch,
}

impl FirstPass<'_> {
    /// Looks at a frame, and asks for the lines of the session and of the packet's destination.
    #[inline(always)]
    fn look<const MOVED: bool, const POLICED: bool>(&mut self, w: &Window, len: usize) -> Seen {
        // One with fewer than two tags by functions that return what registers hold: a key that is written to memory in
        // parts and read as a whole would have to wait.
        let depth = classify::depth(w);
        let (kind, slot) = match depth {
            2 => classify::access::<2, MOVED>(w, len, (self.vlans, self.owners), self.sessions),
            _ => self.with_fewer_tags::<MOVED>(w, len, depth),
        };
        let mut place = 0;
        if kind.is_session() {
            let up = self.sessions.up_lines().at(slot);
            if POLICED {
                // Into the first cache: of three early requests a packet many are ignored, and the next pass would wait.
                prefetch(self.sessions.occupants().at(slot));
                prefetch(up);
            } else {
                prefetch_early(up);
            }
            place = match depth {
                2 => self.destination::<2>(w),
                _ => self.destination_with_fewer_tags(w, depth),
            };
        }
        Seen {
            kind,
            slot,
            place,
            matched: Matched::OPEN,
        }
    }

    #[inline(never)]
    fn with_fewer_tags<const MOVED: bool>(
        &self,
        w: &Window,
        len: usize,
        depth: usize,
    ) -> (Access, u32) {
        match depth {
            0 => classify::access::<0, MOVED>(w, len, (self.vlans, self.owners), self.sessions),
            _ => classify::access::<1, MOVED>(w, len, (self.vlans, self.owners), self.sessions),
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
    let slot = seen.slot;
    match seen.kind {
        Access::Double => upstream::<TRACE, 2>(t, table, seen, packet),
        Access::Tagged => upstream::<TRACE, 1>(t, table, seen, packet),
        Access::Untagged => upstream::<TRACE, 0>(t, table, seen, packet),
        Access::Termination(depth) => {
            t.took::<TRACE>(Edge::OfSession);
            let (up, whose) = t.sessions.entry(slot);
            let leave = session::terminate(up, whose, packet.window(), depth);
            let leave = t.left_session::<TRACE>(leave, slot, packet.window());
            packet.leave(leave)
        }
        Access::Discovery => {
            t.took::<TRACE>(Edge::Discovery);
            packet.leave(Exit::Punt(PuntKind::Discovery, Part::WHOLE))
        }
        Access::SlowProtocol => {
            t.took::<TRACE>(Edge::SlowProtocol);
            packet.leave(Exit::Punt(PuntKind::SlowProtocol, Part::WHOLE))
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

/// session → lookup → rewrite. Most packets go by the table of the one before.
#[inline(always)]
fn upstream<const TRACE: bool, const DEPTH: usize>(
    t: &mut Tables,
    table: Table,
    seen: Seen,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let slot = seen.slot;
    t.took::<TRACE>(Edge::OfSession);
    let len = packet.len();
    let (up, whose) = t.sessions.entry(slot);
    let admitted =
        session::admit::<DEPTH>(up, whose, packet.window(), len, &t.fibs, &t.ipv4_options);
    let (family, total) = match admitted {
        Ok(admitted) => admitted,
        Err(Exit::Sampled) => return sampled_upstream::<TRACE, DEPTH>(t, seen, packet),
        Err(Exit::Full) => return full_upstream::<TRACE, DEPTH>(t, seen, packet),
        Err(leave) => {
            let leave = t.left_session::<TRACE>(leave, slot, packet.window());
            return packet.leave(leave);
        }
    };
    let (instance, policed) = (up.instance, up.is_policed());
    let arrived = PacketContext::upstream::<DEPTH>(instance);
    if policed
        && let Err(leave) = t.permit_up::<TRACE>(seen, arrived.of(family), total, packet.window())
    {
        return packet.leave(leave);
    }
    if instance != table.instance().0 {
        return elsewhere_upstream::<TRACE>(t, slot, arrived, packet);
    }
    let place = Some(seen.place);
    // Each family has its own code from here on.
    match family {
        Family::V4 => {
            let a = arrived.of(Family::V4);
            from_subscriber::<TRACE>(t, table, slot, a, total, place, packet)
        }
        Family::V6 => {
            let a = arrived.of(Family::V6);
            from_subscriber::<TRACE>(t, table, slot, a, total, place, packet)
        }
    }
}

/// The same for one in another instance than the last one.
#[cold]
#[inline(never)]
fn elsewhere_upstream<const TRACE: bool>(
    t: &mut Tables,
    slot: u32,
    a: PacketContext,
    mut packet: Packet<'_, Exit>,
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
    seen: Seen,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let slot = seen.slot;
    let len = packet.len();
    let (up, whose) = t.sessions.entry(slot);
    up.sample(false);
    let admitted =
        session::admit::<DEPTH>(up, whose, packet.window(), len, &t.fibs, &t.ipv4_options);
    up.sample(true);
    let (arrived, index) = (PacketContext::upstream::<DEPTH>(up.instance), whose.index());
    let policed = up.is_policed();
    let (family, total) = match admitted {
        Ok(admitted) => admitted,
        Err(Exit::Full) => t.carry_up(slot, arrived, packet.window()),
        Err(leave) => {
            let leave = t.left_session::<TRACE>(leave, slot, packet.window());
            return packet.leave(leave);
        }
    };
    if policed
        && let Err(leave) = t.permit_up::<TRACE>(seen, arrived.of(family), total, packet.window())
    {
        return packet.leave(leave);
    }
    t.took::<TRACE>(Edge::SampledUp);
    if let Some(port) = t.sessions.get(index).map(|entry| entry.port) {
        let frame = packet.window().bytes(HEAD..WINDOW.min(HEAD + len));
        let kind = PuntKind::SampledUp(index);
        t.samples.take(index, kind, port, frame, t.now, t.second);
    }
    elsewhere_upstream::<TRACE>(t, slot, arrived, packet)
}

/// The same for a packet that was admitted, and for whose octets the session's counters have no room.
#[cold]
#[inline(never)]
fn full_upstream<const TRACE: bool, const DEPTH: usize>(
    t: &mut Tables,
    seen: Seen,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let slot = seen.slot;
    let up = t.sessions.up(slot);
    let (arrived, policed) = (
        PacketContext::upstream::<DEPTH>(up.instance),
        up.is_policed(),
    );
    let (family, total) = t.carry_up(slot, arrived, packet.window());
    if policed
        && let Err(leave) = t.permit_up::<TRACE>(seen, arrived.of(family), total, packet.window())
    {
        return packet.leave(leave);
    }
    elsewhere_upstream::<TRACE>(t, slot, arrived, packet)
}

/// (mss) → lookup, at the place that the first pass has found → rewrite.
#[inline(always)]
fn from_subscriber<const TRACE: bool>(
    t: &mut Tables,
    table: Table,
    slot: u32,
    a: PacketContext,
    total: usize,
    place: Option<u32>,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    if mss::may_be_syn(a.family, packet.window(), a.ip()) {
        return connecting::<TRACE>(t, slot, a, total, packet);
    }
    t.took::<TRACE>(a.family.either(Edge::SubscriberV4, Edge::SubscriberV6));
    let target = match (a.family, place) {
        (Family::V4, Some(place @ 1..)) => {
            let destination = packet.window().u32(a.ip() + 16);
            t.fibs.find_v4_at(place, destination)
        }
        (Family::V6, Some(place)) => t.six.target(place),
        _ => lookup::find(&t.fibs, table, a.family, packet.window(), a.ip()),
    };
    forward::<TRACE>(t, a, total, target, packet)
}

/// mss → lookup → rewrite, for what could be a SYN.
#[cold]
#[inline(never)]
fn connecting<const TRACE: bool>(
    t: &mut Tables,
    slot: u32,
    a: PacketContext,
    total: usize,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    t.took::<TRACE>(Edge::SubscriberSyn);
    t.took::<TRACE>(Edge::SynToLookup);
    mss::clamp(&mut packet, a.family, a.ip(), total, t.sessions.mtu(slot));
    let table = t.fibs.table(InstanceIndex(a.instance));
    let target = lookup::find(&t.fibs, table, a.family, packet.window(), a.ip());
    forward::<TRACE>(t, a, total, target, packet)
}

impl Tables {
    /// What `session` did not admit is dropped there, or punted.
    #[inline(always)]
    fn left_session<const TRACE: bool>(&mut self, leave: Exit, slot: u32, w: &Window) -> Exit {
        if TRACE && matches!(leave, Exit::Punt(..)) {
            self.took::<TRACE>(Edge::SessionControl);
        }
        match leave {
            Exit::Drop(reason @ (NotForUs | WrongMac | WrongTag)) => {
                self.not_of_session(reason, slot, w).into()
            }
            leave => leave,
        }
    }

    /// What is not of the session at a slot may be of none at all: segments share pages.
    #[cold]
    #[inline(never)]
    fn not_of_session(&self, reason: DropReason, slot: u32, w: &Window) -> DropReason {
        match (self.sessions).is_in_segment(slot, classify::outer_vid(w)) {
            true => reason,
            false => DropReason::UnknownSession,
        }
    }

    /// Carries over the counters of a session that have no room for an admitted packet; the packet's family and length.
    fn carry_up(&mut self, slot: u32, a: PacketContext, w: &Window) -> (Family, usize) {
        let family = ip::family(w, a.ip());
        let total = ip::total(family, w, a.ip());
        self.sessions.carry_up(slot, family, total);
        (family, total)
    }

    /// Whether the session's policy permits a packet from its subscriber.
    #[inline(never)]
    fn permit_up<const TRACE: bool>(
        &mut self,
        seen: Seen,
        a: PacketContext,
        total: usize,
        w: &mut Window,
    ) -> Result<(), Exit> {
        self.took::<TRACE>(Edge::PolicyUp);
        let examined = Examined {
            w,
            family: a.family,
            ip: a.ip(),
            total,
            origin: a.origin,
            matched: seen.matched,
            now: self.now,
        };
        let permitted = policy::up(&mut self.sessions, &self.policies, seen.slot, examined);
        if let Err(Exit::Punt(..)) = permitted {
            self.took::<TRACE>(Edge::Redirected);
        }
        permitted?;
        self.took::<TRACE>(Edge::PermittedUp);
        Ok(())
    }

    /// Asks for the policy lines of sessions that have one, and looks their packets up in their rules, one right after the other: what one
    /// of them waits for, others use.
    #[inline(never)]
    fn match_rules(&mut self, all: &mut dpdk::Seen<Seen>) {
        all.ask(|w, seen| {
            if !seen.kind.is_session() {
                return;
            }
            let Occupant { session, passes } = self.sessions.occupant(seen.slot);
            let Some(compiled) = self.ask_for_policy((session, Direction::Up), passes) else {
                return;
            };
            let depth = match seen.kind {
                Access::Double => 2,
                _ => classify::depth(w),
            };
            let ip = HEAD + session::headers(depth);
            seen.matched = match w.u16(ip - 2) {
                session::PPP_IPV4 => policy::matched(compiled, w, Family::V4, ip),
                session::PPP_IPV6 => policy::matched(compiled, w, Family::V6, ip),
                _ => return,
            };
        });
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
}
