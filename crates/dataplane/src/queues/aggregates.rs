//! Parts of a port with rates of their own: access segments, and VLANs of them.
use super::{PortPart, PortQueues};
use crate::api::SegmentRates;
use policy::Rate;
use scheduler::{AggregateIndex, AggregateSettings, PORT};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parts of a port with rates of their own.
#[derive(Default)]
pub(super) struct Aggregates {
    pub rates: Arc<[SegmentRates]>,
    /// Those under which sessions have queues.
    pub known: BTreeMap<Aggregate, AggregateIndex>,
}

/// A part of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aggregate {
    Segment(u16),
    /// A VLAN of a segment, which has a rate itself or not.
    Vlan(u16, u16, bool),
}

impl Aggregate {
    /// The parts with rates that a VLAN is in, from above, and their rates.
    fn of_vlan(rates: &[SegmentRates], vlan: u16) -> [Option<(Aggregate, Rate)>; 2] {
        let has = |rates: &&SegmentRates| rates.vlans.iter().any(|range| range.contains(&vlan));
        let Some(rates) = rates.iter().find(has) else {
            return [None; 2];
        };
        let of_vlan = Aggregate::Vlan(rates.id, vlan, rates.rate.is_some());
        [
            rates.rate.map(|rate| (Aggregate::Segment(rates.id), rate)),
            rates.vlan_rate.map(|rate| (of_vlan, rate)),
        ]
    }

    /// The rate of the part, if it has one.
    pub fn rate(self, rates: &[SegmentRates]) -> Option<Rate> {
        let find = |id| rates.iter().find(|rates| rates.id == id);
        match self {
            Aggregate::Segment(id) => find(id)?.rate,
            Aggregate::Vlan(id, ..) => find(id)?.vlan_rate,
        }
    }

    /// Which part it is.
    pub fn part(self) -> PortPart {
        match self {
            Aggregate::Segment(id) => PortPart::Segment(id),
            Aggregate::Vlan(id, vlan, _) => PortPart::Vlan(id, vlan),
        }
    }
}

impl PortQueues {
    /// Where a session of a VLAN stands in the tree.
    pub(super) fn parent(&mut self, vlan: u16) -> AggregateIndex {
        let mut parent = PORT;
        let Aggregates { rates, known } = &mut self.aggregates;
        for (part, rate) in Aggregate::of_vlan(rates, vlan).into_iter().flatten() {
            let settings = AggregateSettings {
                parent,
                rate: Some(rate),
            };
            let add = || self.scheduler.add_aggregate(&settings);
            parent = *known.entry(part).or_insert_with(add);
        }
        parent
    }

    pub(super) fn set_segment_rates(&mut self, rates: Arc<[SegmentRates]>) {
        for (part, index) in &self.aggregates.known {
            self.scheduler.set_rate(*index, part.rate(&rates));
        }
        self.aggregates.rates = rates;
    }

    /// A session has left an aggregate: removes it if it was the last one, and likewise those above.
    pub(super) fn remove_unused(&mut self, mut at: AggregateIndex) {
        while at != PORT && self.scheduler.is_unused(at) {
            self.aggregates.known.retain(|_, index| *index != at);
            at = self.scheduler.remove_aggregate(at);
        }
    }
}
