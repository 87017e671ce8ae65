//! What the workers hold, shown to the control thread piece by piece, between bursts: a piece is small enough that no
//! packet waits long for it.
use crate::api::*;
use crate::nodes::lookup;
use crate::punt::PuntLimits;
use crate::worker::Worker;
use core::net::Ipv4Addr;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use policy::{PrioritySource, Rate};

/// How many places of a table, or routes, are in a piece.
pub(crate) const PIECE: usize = 128;

/// Where a piece of the tables begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Sessions, from this index on, those of one worker after the other.
    Sessions(SessionIndex),
    /// Places that PPPoE session ids lead to, from this one on, likewise.
    Ids(u32),
    /// Queues of sessions, from this place on, likewise.
    Queues(u32),
    /// The routes of an instance, behind this prefix or from the first.
    Routes(InstanceIndex, Option<IpNet>),
    /// Adjacencies, from this index on.
    Adjacencies(AdjacencyIndex),
    /// Core ports and subinterfaces, from this index on.
    Interfaces(PortIndex),
    /// Access segments, from this VLAN of this port on.
    Segments(PortIndex, u16),
}

impl Part {
    /// Where everything begins.
    pub const FIRST: Part = Part::Sessions(SessionIndex(0));
}

/// A piece of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
    pub part: Part,
    /// What is there.
    pub found: Vec<Held>,
    /// Where the next one begins; `None` after the last.
    pub next: Option<Part>,
    /// How many workers there are: of sessions, so many-th indexes are shown from the first on.
    pub workers: u16,
}

impl Piece {
    /// Does one worker have the sessions with these two indexes?
    pub fn of_same_worker(
        &self,
        SessionIndex(a): SessionIndex,
        SessionIndex(b): SessionIndex,
    ) -> bool {
        (a ^ b) % u32::from(self.workers) == 0
    }
}

/// Something that a worker holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A session.
    Session {
        /// As it was set.
        entry: SessionEntry,
        /// Whether what packets meet says the same: its PPPoE session id, its encapsulation, its host routes.
        whole: bool,
    },
    /// A place for packets from a subscriber that leads to a session which is not there, or has another place.
    StrayId {
        /// The place.
        place: u32,
        /// The session.
        index: SessionIndex,
    },
    /// Queues of a session.
    Queues {
        /// Their place among those of their worker.
        place: u32,
        /// The port.
        port: PortIndex,
        /// The session. `None`: it is not known whose they are.
        session: Option<SessionIndex>,
        /// Whether the session's packets find them.
        whole: bool,
    },
    /// A host route that came with a session.
    HostRoute(InstanceIndex, IpNet, SessionIndex),
    /// A route that the control thread set.
    Route(InstanceIndex, IpNet, Destination),
    /// A neighbour.
    Adjacency(AdjacencyIndex, Adjacency),
    /// A core port, or a subinterface of one.
    Interface {
        /// Which.
        index: PortIndex,
        /// The port: itself, or that of which it is a part.
        port: PortIndex,
        /// The VLAN id of its frames, 0 without a tag.
        vlan: u16,
        /// The instance that packets from there are routed in.
        instance: InstanceIndex,
        /// The largest IP packet.
        mtu: u16,
        /// How the sources of packets from there are checked.
        source_check: SourceCheck,
        /// Where the priority of its tags comes from.
        priority_source: PrioritySource,
    },
    /// How much the worker punts.
    PuntLimits(Box<PuntLimits>),
    /// What the worker forwards of packets with IPv4 options.
    Ipv4Options(Ipv4Options),
    /// The rate at which the worker lets packets leave by a port.
    EgressRate(PortIndex, Rate),
    /// Rates that the worker keeps for an access segment of a port.
    SegmentRates(PortIndex, SegmentRates),
    /// VLANs of an access port that have the same PPPoE session ids.
    Segment {
        /// The port.
        port: PortIndex,
        /// The first VLAN.
        from: u16,
        /// The last VLAN.
        to: u16,
        /// Which segment: a number that differs between segments.
        bank: u16,
        /// Whether circuit and remote ids name access lines there.
        trusts_ids: bool,
    },
}

/// The routes that every instance has from the start.
pub fn first_routes() -> impl Iterator<Item = (IpNet, Destination)> {
    lookup::unroutable().map(|net| (net, Destination::Discard))
}

/// The host routes that come with a session.
pub fn host_routes(entry: &SessionEntry) -> impl Iterator<Item = IpNet> {
    nets_of(entry.ipv4, entry.ipv6, &entry.routed)
}

/// The nets of these addresses and prefixes.
pub(crate) fn nets_of(
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Net>,
    routed: &[IpNet],
) -> impl Iterator<Item = IpNet> {
    let v4 = ipv4.map(|a| IpNet::V4(Ipv4Net::from(a)));
    let v6 = ipv6.map(|p| IpNet::V6(p.trunc()));
    v4.into_iter().chain(v6).chain(routed.iter().copied())
}

/// The piece that begins here, of what the worker has; `found` is empty and has room for it.
pub(crate) fn inspect(worker: &Worker, part: Part, mut found: Vec<Held>) -> Piece {
    let tables = &worker.tables;
    let shard = tables.sessions.shard;
    let next = match part {
        Part::Sessions(SessionIndex(from)) => {
            let from = shard.place(from) as usize;
            let places = from..(from + PIECE).min(tables.sessions.places());
            let end = places.end;
            let indexes = places.map(|place| SessionIndex(shard.number(place as u32)));
            found.extend(indexes.filter_map(|index| session(worker, index)));
            match end < tables.sessions.places() {
                true => Part::Sessions(SessionIndex(shard.number(end as u32))),
                false => match shard.next() {
                    Some(next) => Part::Sessions(SessionIndex(next.number(0))),
                    None => Part::Ids(0),
                },
            }
        }
        Part::Ids(from) => {
            let from = shard.place(from);
            match tables.sessions.stray_ids(from, PIECE as u32, &mut found) {
                Some(place) => Part::Ids(shard.number(place)),
                None => match shard.next() {
                    Some(next) => Part::Ids(next.number(0)),
                    None => Part::Queues(0),
                },
            }
        }
        Part::Queues(from) => {
            let from = shard.place(from);
            match tables.queues.inspect(from, shard, &mut found) {
                Some(place) => Part::Queues(shard.number(place)),
                None => match shard.next() {
                    Some(next) => Part::Queues(next.number(0)),
                    None => Part::Routes(InstanceIndex(0), None),
                },
            }
        }
        // The control thread has them.
        Part::Routes(..) => Part::Adjacencies(AdjacencyIndex(0)),
        Part::Adjacencies(AdjacencyIndex(from)) => {
            let end = (from + PIECE as u32).min(worker.limits.adjacencies);
            let known = (from..end).map(AdjacencyIndex);
            let held = |index| Some(Held::Adjacency(index, tables.adjacencies.known(index)?));
            found.extend(known.filter_map(held));
            match end < worker.limits.adjacencies {
                true => Part::Adjacencies(AdjacencyIndex(end)),
                false => Part::Interfaces(PortIndex(0)),
            }
        }
        Part::Interfaces(PortIndex(from)) => {
            let end = (from + PIECE as u16).min(worker.limits.interfaces);
            let limits = (from == 0).then(|| Box::new(worker.punter.limits));
            found.extend(limits.map(Held::PuntLimits));
            let options = (from == 0).then_some(tables.ipv4_options);
            found.extend(options.map(Held::Ipv4Options));
            found.extend((from..end).filter_map(|index| interface(worker, PortIndex(index))));
            let here = worker.ports.iter();
            let here = here.filter(|port| (from..end).contains(&port.index.0));
            found.extend(here.filter_map(|port| {
                let rate = worker.tables.queues.rate(port.index)?;
                Some(Held::EgressRate(port.index, rate))
            }));
            for port in worker.ports.iter() {
                if (from..end).contains(&port.index.0) {
                    let rates = worker.tables.queues.segment_rates(port.index).iter();
                    let rates = rates.filter(|rates| rates.rate.or(rates.vlan_rate).is_some());
                    found.extend(rates.map(|rates| Held::SegmentRates(port.index, rates.clone())));
                }
            }
            match end < worker.limits.interfaces {
                true => Part::Interfaces(PortIndex(end)),
                false => Part::Segments(PortIndex(0), 0),
            }
        }
        Part::Segments(port, from) => {
            let next = segments(worker, port, from, &mut found);
            return Piece {
                part,
                found,
                next,
                workers: shard.workers(),
            };
        }
    };
    Piece {
        part,
        found,
        next: Some(next),
        workers: shard.workers(),
    }
}

fn interface(worker: &Worker, index: PortIndex) -> Option<Held> {
    let known = worker.tables.interfaces.get(index)?;
    Some(Held::Interface {
        index,
        port: known.port,
        vlan: known.vlan,
        instance: known.instance,
        mtu: known.mtu,
        source_check: known.source_check,
        priority_source: known.priority_source,
    })
}

/// The segments from a VLAN of a port on, as ranges; where to go on, if there are more.
fn segments(worker: &Worker, port: PortIndex, vlan: u16, found: &mut Vec<Held>) -> Option<Part> {
    let mut from = vlan;
    for port in (port.0..worker.limits.interfaces).map(PortIndex) {
        let vlans = worker.tables.sessions.segments(port).map_or(&[][..], |v| v);
        let mut at = core::mem::take(&mut from);
        for run in vlans
            .get(at as usize..)
            .unwrap_or_default()
            .chunk_by(|a, b| a == b)
        {
            if found.len() == PIECE {
                return Some(Part::Segments(port, at));
            }
            let to = at + run.len() as u16 - 1;
            let bank = run[0].checked_sub(1);
            found.extend(bank.map(|bank| Held::Segment {
                port,
                from: at,
                to,
                bank,
                trusts_ids: worker.punter.trusts_ids(port, at),
            }));
            at = to + 1;
        }
    }
    None
}

fn session(worker: &Worker, index: SessionIndex) -> Option<Held> {
    let entry = worker.tables.sessions.get(index)?.clone();
    // Whether its host routes lead to it, the control thread knows.
    let whole = worker.tables.sessions.is_whole(index);
    Some(Held::Session { entry, whole })
}
