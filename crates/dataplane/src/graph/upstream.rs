//! From a subscriber: session → (mss) → lookup.
use super::Tables;
use super::forward::{PacketContext, forward};
use crate::api::InstanceIndex;
use crate::edges::Edge;
use crate::nodes::ip::{self, Family};
use crate::nodes::{Exit, lookup, mss, session};
use crate::punt::PuntKind;
use crate::tables::fib::Table;
use dpdk::{Gone, HEAD, Packet, WINDOW};

/// session → lookup → rewrite. Most packets go by the table of the one before.
#[inline(always)]
pub(super) fn upstream<const TRACE: bool, const DEPTH: usize>(
    t: &mut Tables,
    table: Table,
    slot: u32,
    place: u32,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    t.took::<TRACE>(Edge::OfSession);
    let len = packet.len();
    let (up, whose) = t.sessions.entry(slot);
    let admitted = session::admit::<DEPTH>(up, whose, packet.window(), len, &t.fibs);
    let (family, total) = match admitted {
        Ok(admitted) => admitted,
        Err(Exit::Sampled) => return sampled_upstream::<TRACE, DEPTH>(t, slot, packet),
        Err(leave) => return packet.leave(t.left_session::<TRACE>(leave)),
    };
    let arrived = PacketContext::upstream::<DEPTH>(up.instance);
    if up.instance != table.instance().0 {
        return elsewhere_upstream::<TRACE>(t, slot, arrived, packet);
    }
    let place = Some(place);
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
    slot: u32,
    mut packet: Packet<'_, Exit>,
) -> Gone {
    let len = packet.len();
    let (up, whose) = t.sessions.entry(slot);
    up.sample(false);
    let admitted = session::admit::<DEPTH>(up, whose, packet.window(), len, &t.fibs);
    up.sample(true);
    let (arrived, index) = (PacketContext::upstream::<DEPTH>(up.instance), whose.index());
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
