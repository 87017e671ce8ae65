//! The control thread's picture of ports and subinterfaces: whatever could be wrong with a change is found here, so that the
//! worker, which has no time, need not look.
use crate::api::*;
use crate::tables::{Vlans, no_vlans};
use dpdk::Queue;
use wire::eth::MacAddr;

/// All places for interfaces.
pub(crate) struct Ports {
    places: Vec<Option<Place>>,
    /// Which banks of PPPoE session ids are taken.
    banks: Vec<bool>,
    instances: u16,
}

/// The segments of an access port, by id, and the bank that each has.
type Banks = Vec<(u16, u16)>;

enum Place {
    Port(Port),
    Part { port: PortIndex, vlan: u16 },
}

/// A port.
pub(crate) struct Port {
    pub mac: MacAddr,
    /// `None`: a core port.
    segments: Option<Banks>,
    /// Where the queues were taken out, and are put back.
    device: dpdk::Port,
    /// It was removed.
    leaving: bool,
    /// Workers that have not let go of it.
    held: u16,
}

impl Ports {
    pub fn new(limits: &Limits) -> Self {
        Ports {
            places: (0..limits.interfaces).map(|_| None).collect(),
            banks: vec![false; limits.segments as usize],
            instances: limits.instances,
        }
    }

    /// Takes a port in; what its VLANs have, and its queues.
    pub fn add(
        &mut self,
        index: PortIndex,
        config: PortConfig,
        workers: u16,
    ) -> Result<(Box<Vlans>, Vec<Queue>), PortError> {
        self.vacant(index)?;
        let (segments, vlans) = match &config.role {
            Role::Access { segments } => {
                let (banks, vlans) = self.lay_out(&[], segments)?;
                (Some(banks), vlans)
            }
            Role::Core { instance } => {
                self.check_instance(*instance)?;
                (None, no_vlans())
            }
        };
        let PortConfig {
            port: mut device,
            mac,
            ..
        } = config;
        let queues = device.take_queues();
        self.places[index.0 as usize] = Some(Place::Port(Port {
            mac: mac.unwrap_or(MacAddr(device.mac())),
            segments,
            device,
            leaving: false,
            held: workers,
        }));
        Ok((vlans, queues))
    }

    /// Changes an access port's segments; which bank each VLAN has then.
    pub fn set_segments(
        &mut self,
        index: PortIndex,
        segments: &[Segment],
    ) -> Result<Box<Vlans>, PortError> {
        let port = self.port(index)?;
        let old = port.segments.clone().ok_or(PortError::Unknown(index))?;
        let (banks, vlans) = self.lay_out(&old, segments)?;
        if let Some(Some(Place::Port(port))) = self.places.get_mut(index.0 as usize) {
            port.segments = Some(banks);
        }
        Ok(vlans)
    }

    /// Gives each segment a bank: the one that it had, or a free one. The banks of segments that are gone are free then;
    /// the worker gives them to nobody before their sessions are gone too.
    fn lay_out(
        &mut self,
        old: &[(u16, u16)],
        segments: &[Segment],
    ) -> Result<(Banks, Box<Vlans>), PortError> {
        let wrong = |text: String| Err(PortError::Segments(text));
        let (mut taken, mut vlans, mut all) = (self.banks.clone(), no_vlans(), Vec::new());
        for (_, bank) in old {
            taken[*bank as usize] = false;
        }
        let kept = |id: u16| {
            old.iter()
                .find(|(known, _)| *known == id)
                .map(|(_, bank)| *bank)
        };
        for bank in segments.iter().filter_map(|segment| kept(segment.id)) {
            taken[bank as usize] = true;
        }
        for Segment { id, vlans: ranges } in segments {
            if all.iter().any(|(known, _)| known == id) {
                return wrong(format!("two access segments have the id {id}"));
            }
            let fresh = || {
                taken
                    .iter()
                    .position(|taken| !taken)
                    .map(|bank| bank as u16)
            };
            let Some(bank) = kept(*id).or_else(fresh) else {
                return wrong(format!("more than {} access segments", taken.len()));
            };
            taken[bank as usize] = true;
            all.push((*id, bank));
            for range in ranges {
                if range.is_empty() || *range.end() > 4095 {
                    let (from, to) = (range.start(), range.end());
                    return wrong(format!("{from}-{to} is not a range of VLAN ids"));
                }
                for vlan in range.clone() {
                    if core::mem::replace(&mut vlans[vlan as usize], bank + 1) != 0 {
                        return wrong(format!("VLAN {vlan} is in two access segments"));
                    }
                }
            }
        }
        self.banks = taken;
        Ok((all, vlans))
    }

    /// Takes a subinterface in.
    pub fn add_part(&mut self, index: PortIndex, part: &Subinterface) -> Result<(), PortError> {
        self.vacant(index)?;
        self.check_instance(part.instance)?;
        self.core_port(part.port)?;
        let same = |(_, vlan)| vlan == part.vlan;
        if !(1..=4094).contains(&part.vlan) || self.parts_of(part.port).any(same) {
            return Err(PortError::Vlan(part.vlan));
        }
        let (port, vlan) = (part.port, part.vlan);
        self.places[index.0 as usize] = Some(Place::Part { port, vlan });
        Ok(())
    }

    /// Lets a subinterface go.
    pub fn remove_part(&mut self, index: PortIndex) -> Result<(), PortError> {
        self.check_part(index)?;
        self.places[index.0 as usize] = None;
        Ok(())
    }

    /// Is this a subinterface of a core port?
    pub fn check_part(&self, index: PortIndex) -> Result<(), PortError> {
        self.tagged(index).ok_or(PortError::Unknown(index))?;
        Ok(())
    }

    /// Is this a core port or a subinterface of one?
    pub fn check_core(&self, index: PortIndex) -> Result<(), PortError> {
        match self.tagged(index) {
            Some(_) => Ok(()),
            None => self.core_port(index),
        }
    }

    /// Begins to let a port go: nothing can be done with it any more.
    pub fn remove(&mut self, index: PortIndex) -> Result<(), PortError> {
        self.port(index)?;
        if self.parts_of(index).next().is_some() {
            return Err(PortError::HasSubinterfaces(index));
        }
        let Some(Some(Place::Port(port))) = self.places.get_mut(index.0 as usize) else {
            return Err(PortError::Unknown(index));
        };
        port.leaving = true;
        for (_, bank) in port.segments.iter().flatten() {
            self.banks[*bank as usize] = false;
        }
        Ok(())
    }

    /// A worker has let go of a port, and hands its queue back. The last one frees its place: the port then.
    pub fn let_go(&mut self, index: PortIndex, queue: Option<Queue>) -> bool {
        let Some(Some(Place::Port(port))) = self.places.get_mut(index.0 as usize) else {
            return false;
        };
        if let Some(queue) = queue {
            port.device.put_back(queue);
        }
        port.held = port.held.saturating_sub(1);
        port.held == 0
    }

    /// Frees the place of a port that no worker holds. What its counters do not know is added to them.
    pub fn removed(&mut self, index: PortIndex, counted: PortCounters) -> Option<RemovedPort> {
        let counters = self.describe(index, counted);
        match self.places.get_mut(index.0 as usize)?.take()? {
            Place::Port(Port { device: port, .. }) => Some(RemovedPort {
                index,
                port,
                counters,
            }),
            Place::Part { .. } => None,
        }
    }

    /// The ports that are there, by index, with what their counters do not know.
    pub fn counters(
        &self,
        counted: impl Fn(PortIndex) -> PortCounters,
    ) -> impl Iterator<Item = PortCounters> {
        let indexes = (0..self.places.len() as u16).map(PortIndex);
        let ports = indexes.filter(|index| self.port(*index).is_ok());
        ports.map(move |index| self.describe(index, counted(index)))
    }

    fn describe(&self, index: PortIndex, counted: PortCounters) -> PortCounters {
        let Some(Some(Place::Port(port))) = self.places.get(index.0 as usize) else {
            return counted;
        };
        let health = port.device.health().unwrap_or_default();
        PortCounters {
            index,
            name: port.device.name(),
            mac: port.mac,
            access: port.segments.is_some(),
            up: health.up,
            rx_lost: health.rx_missed + health.rx_errors + health.rx_no_buffer,
            unaggregated: health.unaggregated,
            ..counted
        }
    }

    /// The device of a port that is there.
    pub fn device(&self, index: PortIndex) -> Result<&dpdk::Port, PortError> {
        self.port(index).map(|port| &port.device)
    }

    /// A port that is there.
    fn port(&self, index: PortIndex) -> Result<&Port, PortError> {
        match self.places.get(index.0 as usize) {
            Some(Some(Place::Port(port))) if !port.leaving => Ok(port),
            _ => Err(PortError::Unknown(index)),
        }
    }

    fn core_port(&self, index: PortIndex) -> Result<(), PortError> {
        match self.port(index)?.segments {
            None => Ok(()),
            Some(_) => Err(PortError::Unknown(index)),
        }
    }

    /// Of which port a subinterface is a part, and its VLAN id.
    pub fn tagged(&self, index: PortIndex) -> Option<(PortIndex, u16)> {
        match self.places.get(index.0 as usize)?.as_ref()? {
            Place::Part { port, vlan } => Some((*port, *vlan)),
            Place::Port(_) => None,
        }
    }

    fn parts_of(&self, of: PortIndex) -> impl Iterator<Item = (PortIndex, u16)> {
        let parts = (0..self.places.len() as u16).filter_map(|i| self.tagged(PortIndex(i)));
        parts.filter(move |(port, _)| *port == of)
    }

    fn vacant(&self, index: PortIndex) -> Result<(), PortError> {
        match self.places.get(index.0 as usize) {
            Some(None) => Ok(()),
            _ => Err(PortError::NoPlace(index)),
        }
    }

    fn check_instance(&self, instance: InstanceIndex) -> Result<(), PortError> {
        match instance.0 < self.instances {
            true => Ok(()),
            false => Err(PortError::NoInstance(instance)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ops::RangeInclusive;

    fn segment(id: u16, vlans: &[RangeInclusive<u16>]) -> Segment {
        Segment {
            id,
            vlans: vlans.to_vec(),
        }
    }

    fn ports() -> Ports {
        Ports::new(&Limits {
            segments: 3,
            ..Limits::default()
        })
    }

    #[test]
    fn a_segment_keeps_its_bank_and_a_free_one_is_used_again() {
        let mut ports = ports();
        let (first, vlans) = ports
            .lay_out(
                &[],
                &[segment(7, &[1..=9, 20..=20]), segment(8, &[10..=19])],
            )
            .unwrap();
        assert_eq!(first, [(7, 0), (8, 1)]);
        assert_eq!([0, 1, 9, 10, 20, 21].map(|v| vlans[v]), [0, 1, 1, 2, 1, 0]);
        let (second, vlans) = ports
            .lay_out(&first, &[segment(8, &[0..=30]), segment(9, &[31..=31])])
            .unwrap();
        assert_eq!(second, [(8, 1), (9, 0)]);
        assert_eq!([0, 20, 31].map(|v| vlans[v]), [2, 2, 1]);
        let (other, _) = ports.lay_out(&[], &[segment(7, &[0..=0])]).unwrap();
        assert_eq!(other, [(7, 2)]);
    }

    #[test]
    fn wrong_segments_are_refused_and_change_nothing() {
        let mut ports = ports();
        let (known, _) = ports.lay_out(&[], &[segment(1, &[5..=5])]).unwrap();
        let before = ports.banks.clone();
        for wrong in [
            vec![segment(1, &[RangeInclusive::new(5, 4)])],
            vec![segment(1, &[0..=4096])],
            vec![segment(1, &[1..=9]), segment(2, &[9..=20])],
            vec![segment(1, &[1..=9]), segment(1, &[10..=20])],
            (0..4).map(|id| segment(id, &[id..=id])).collect(),
        ] {
            let refused = ports.lay_out(&known, &wrong);
            assert!(matches!(refused, Err(PortError::Segments(_))), "{wrong:?}");
            assert_eq!(ports.banks, before);
        }
    }
}
