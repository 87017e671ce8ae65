//! Configuration and kernel routes in the worker's tables, by names. Indexes and numbers are left out, so that two user planes
//! with the same configuration can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use dataplane::{
    Adjacency, AdjacencyIndex, Destination, Held, Level, Part, PortIndex, PuntLimits, Rate,
};

use super::{ForWorker, UserPlane};

/// Maximum time for the worker to show everything.
const PATIENCE: Duration = Duration::from_secs(5);

impl UserPlane {
    /// One line for each interface, access segment, route and next hop of the worker, for each LAG, and for the hold time of sessions. Sessions
    /// are left out.
    pub fn tables(&mut self) -> BTreeSet<String> {
        let held = self.held();
        let names = self.interface_names();
        let hops: BTreeMap<AdjacencyIndex, Adjacency> = held
            .iter()
            .filter_map(|held| match held {
                Held::Adjacency(index, to) => Some((*index, *to)),
                _ => None,
            })
            .collect();
        let lines = held.iter().filter_map(|held| line(held, &names, &hops));
        let limits = held.iter().flat_map(|held| match held {
            Held::PuntLimits(limits) => protection(limits),
            _ => Vec::new(),
        });
        let lines = lines.chain(limits);
        let hold = match self.engine.hold() {
            Some(hold) => format!("sessions are held for {} s", hold.as_secs()),
            None => "sessions are held for ever".to_owned(),
        };
        let lags = self.lags();
        lines
            .chain(self.segments(&held))
            .chain(lags)
            .chain([hold])
            .collect()
    }

    /// What LACP is told of each port with several members.
    fn lags(&self) -> impl Iterator<Item = String> {
        let lags = self.ports.iter();
        let lags = lags.filter_map(|(name, port)| Some((name, port.lag.as_ref()?.settings())));
        lags.map(|(name, settings)| {
            let lacp::Settings {
                mode,
                fast,
                minimum,
                system_priority,
                ..
            } = settings;
            format!(
                "LACP of {name} {mode:?} fast {fast} minimum {minimum} priority {system_priority}"
            )
        })
    }

    /// VLANs of each access segment. A line also says if VLANs share session ids with another segment.
    fn segments(&self, held: &[Held]) -> Vec<String> {
        let (mut lines, mut banks) = (Vec::new(), BTreeMap::new());
        for held in held {
            let Held::Segment {
                port,
                from,
                to,
                bank,
                trusts_ids,
            } = held
            else {
                continue;
            };
            let found = self.ports.iter().find(|(_, known)| known.index == *port);
            let Some((name, port)) = found else { continue };
            let segment = port.segment_of(*from).unwrap_or("?");
            let key = (name.clone(), segment.to_owned());
            let own = banks.entry(*bank).or_insert_with(|| key.clone());
            let fault = if *own == key {
                ""
            } else {
                " with the session ids of another"
            };
            let ids = match trusts_ids {
                true => "",
                false => ", where ids name no lines",
            };
            lines.push(format!(
                "vlans {from}-{to} of {name} are segment {segment}{fault}{ids}"
            ));
        }
        lines
    }

    /// Everything that the worker shows, requested piece by piece.
    fn held(&mut self) -> Vec<Held> {
        let (mut all, mut next) = (Vec::new(), Some(Part::FIRST));
        let begun = Instant::now();
        // A resource audit needs the pieces for itself.
        while let Some(part) = next
            && self.check.is_none()
        {
            self.for_worker(ForWorker::Inspect(part));
            let piece = loop {
                self.settle();
                if let Some(piece) = self.controller.poll_piece() {
                    break piece;
                }
                if begun.elapsed() > PATIENCE {
                    return all;
                }
                self.drain_worker();
                std::thread::sleep(Duration::from_micros(200));
            };
            all.extend(piece.found);
            next = piece.next;
        }
        all
    }

    /// Names of ports and subinterfaces.
    pub(super) fn interface_names(&self) -> BTreeMap<PortIndex, String> {
        let ports = self.ports.iter().flat_map(|(name, port)| {
            let parts = port.parts.iter();
            let parts = parts.map(move |(part, p)| (p.index, format!("{name} {part}")));
            std::iter::once((port.index, name.clone())).chain(parts)
        });
        ports.collect()
    }
}

/// What the worker passes on of each kind, and when it holds down.
fn protection(limits: &PuntLimits) -> Vec<String> {
    let session = limits.per_session.per_second;
    let (after, hold) = (limits.hold_down.after, limits.hold_down);
    let hold = [("first", hold.first), ("longest", hold.longest)]
        .map(|(which, time)| format!("hold-down {which} {} s", time.as_secs()));
    let kinds = limits.each().map(|(class, rate, levels)| {
        let below = Level::ALL.map(|level| match levels.of(level) {
            Some(rate) => format!("{} {rate}, ", level.name()),
            None => String::new(),
        });
        let total = rate.per_second;
        format!("passes on {}: {}total {total}", class.name, below.concat())
    });
    let of_session = format!("passes on {session} of a session");
    let after = format!("hold-down after {after} packets");
    kinds.chain([of_session, after]).chain(hold).collect()
}

fn line(
    held: &Held,
    names: &BTreeMap<PortIndex, String>,
    hops: &BTreeMap<AdjacencyIndex, Adjacency>,
) -> Option<String> {
    let name = |index: &PortIndex| names.get(index).map_or("?", String::as_str);
    let hop = |to: &Adjacency| {
        let mac = to.mac.unwrap_or_default();
        format!("{mac} on {}", name(&to.port))
    };
    Some(match held {
        Held::Interface {
            index,
            port,
            vlan,
            instance,
            mtu,
            source_check,
            priority_source,
        } => {
            let (index, port) = (name(index), name(port));
            format!(
                "interface {index} of {port} vlan {vlan} instance {} mtu {mtu} sources {source_check:?} priority {priority_source:?}",
                instance.0
            )
        }
        Held::Route(instance, net, to) => {
            let to = match to {
                Destination::Adjacency(index) => match hops.get(index) {
                    Some(to) => hop(to),
                    None => "an unresolved next hop".to_owned(),
                },
                Destination::Connected(port) => format!("connected to {}", name(port)),
                Destination::Group(group) => format!("group {}", group.0),
                other => format!("{other:?}"),
            };
            format!("route {net} of {} to {to}", instance.0)
        }
        Held::Ipv4Options(options) => format!("IPv4 options {options:?}"),
        Held::SegmentRates(port, rates) => {
            let kbps = |rate: Option<Rate>| rate.map_or(0, Rate::get);
            let (all, each) = (kbps(rates.rate), kbps(rates.vlan_rate));
            format!(
                "rate {all} of a segment of {}, {each} of each VLAN",
                name(port)
            )
        }
        Held::EgressRate(port, rate) => format!("rate {} of {}", rate.get(), name(port)),
        Held::Adjacency(_, to) => format!("next hop {}", hop(to)),
        Held::Session { .. }
        | Held::StrayId { .. }
        | Held::Queues { .. }
        | Held::HostRoute(..)
        | Held::PuntLimits(_)
        | Held::Segment { .. } => return None,
    })
}
